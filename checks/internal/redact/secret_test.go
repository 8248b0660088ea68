package redact

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestNotSecret checks that only secrets are taken for secrets: settings
// that faults depend on, numbers, switches, and what programs say in words.
func TestNotSecret(t *testing.T) {
	for _, text := range []string{
		"TOKENIZERS_PARALLELISM=false", "max_tokens=2048", "--max-num-batched-tokens 131072", "max_new_tokens: 1048576", "num_tokens=4194304",
		"--pass-through", "--passthrough gpu", "pass-through: enabled", "iommu.passthrough=1", "OMPI_MCA_plm_rsh_pass_environment=1",
		"author: Jane Doe of the example project", "Author=nobody", "authentication failed", "authentication: failed", "auth failed for the request", "Authorization required",
		"password: incorrect", "password incorrect", "Password authentication is disabled", "token expired", "token: expired", "unexpected token: '}'", "SyntaxError: invalid token",
		"NCCL_IB_PKEY=0x8001", "NCCL_IB_PKEY=0", "UCX_RKEY_MPOOL=1", "UCX_IB_PKEY=0xffff", "OMPI_MCA_btl_openib_pkey=0x8001", "FI_MR_KEY_SIZE=8", "KEY=1 MONKEY_COUNT=5", "HOTKEY=F12",
		"NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5_0:1,mlx5_1:1 NCCL_SOCKET_IFNAME=^docker0,lo", "NCCL_NET_PLUGIN=aws-ofi", "NCCL_TOPO_FILE=/etc/topo.xml", "LD_PRELOAD=/usr/lib/libnccl.so.2.27.3",
		"SLURM_MPI_TYPE=pmix AuthType=auth/munge", "AUTH_TYPE=munge", "SSH_AUTH_SOCK=/run/user/1000/agent.1", "PWD=/workspace/train OLDPWD=/workspace", "HF_TOKEN_PATH=/root/.cache/token",
		"--tokenizer meta-llama/Llama-3.1-70B", "--tokenizer-mode auto", "eos_token_id: 128009", "pad_token: <pad>", "--token-budget 4096", "token_count=123456789",
		"HF_TOKEN=$HF_TOKEN", "--password $PASSWORD", "password: ${{ secrets.DB }}", "--api-key <your-key>", "PASSWORD=********", "api_key: null", "token: none",
		"passed 12 tests, 3 failed", "PASS=120 FAIL=3", "Test PASSED", "login: root", "last login: Tue Aug 19 10:21:07", "key: value pairs", "key not found: xyz", "KeyError: 'weight'",
		"sk-learn", "disk-0123456789abcdef0123", "task-12345678901234567890", "mask-0x00000001000000020000", "hf_hub version 0.24", "gl-renderer", "eyJ", "ghp_", "AKIA",
		"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "commId 0x1f2e3d4c5b6a7988 - Init COMPLETE", "BuildID=3f5c1d2e4b6a79880123456789abcdef01234567",
		"busId 7000 nvmlDev 0 secretless", "credits: 16", "credit_count=16", "accredited", "the secret of the ring is in its order", "Bearer of the flag", "cookie cutter",
		"-----BEGIN CERTIFICATE-----", "ssh-keygen", "hostkey", "primary key (id)", "keyboard: us", "monkey=patched", "turkey: 5",
		"sig=4 signal=SIGTERM", "signature: ok", "libcuda.so.1: version `libcuda.so.1' not found", "loginuid=1000", "loginctl enable-linger",
	} {
		expect.Equal(t, text, secrets(variables(apply(known().Keys, text, secretOf))), "%q becomes", text)
	}
	for _, v := range []string{
		"NCCL_IB_PKEY=0x8001", "UCX_RKEY_MPOOL=1", "TOKENIZERS_PARALLELISM=false", "NCCL_IB_AUTH_TYPE=psk", "NCCL_IB_AUTH=1", "KUBERNETES_TOKEN_FILE=/run/token", "NCCL_ALGO=Ring",
		"NVIDIA_VISIBLE_DEVICES=all", "SINGULARITY_BIND=/scratch", "PWD=/work", "SSH_AUTH_SOCK=/tmp/x", "NVIDIA_API_KEY=" + Withheld, "HF_TOKEN=",
	} {
		name, value, _ := strings.Cut(v, "=")
		expect.That(t, !SecretVariable(name, value), "%s is taken for a secret", v)
	}
}

// TestPrivateKeys checks that of a private key nothing is left, whole or cut.
func TestPrivateKeys(t *testing.T) {
	body := strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n", 3) + "abc+/=\n"
	for _, kind := range []string{"PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		begin, end := "-----BEGIN "+kind+"-----\n", "-----END "+kind+"-----\n"
		for _, text := range []string{
			begin + body + end, begin + body, begin + "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB01\n\n" + body + end,
			"key: \"" + strings.ReplaceAll(begin+body+end, "\n", `\n`) + "\"\n", "before\n" + begin + body + end + "after the key\n",
		} {
			for _, r := range []*Redactor{New(), NewSecrets()} {
				got := r.Text(text)
				expect.That(t, !strings.Contains(got, "MIIE") && !strings.Contains(got, "abc+"), "%s: %q", kind, got)
				expect.That(t, !strings.Contains(text, "before") || strings.HasPrefix(got, "before\n") && strings.HasSuffix(got, "after the key\n"), "what stands around it is gone: %q", got)
				expect.Equal(t, got, New().Text(got), "redacted twice: %q becomes", got)
			}
		}
	}
}
