package network_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestFIInfo(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"providers": {
			text: "provider: efa\n    fabric: efa\n    domain: rdmap16s27-rdm\n    version: 122.0\n    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\nprovider: efa\n    fabric: efa-direct\n    domain: x\nprovider: tcp\n    fabric: 10.0.0.0/16\n",
			want: []string{"efa", "tcp"},
		},
		"cut by grep":      {text: "$ fi_info -p efa | grep provider\nprovider: efa\nprovider: efa\n", want: []string{"efa"}},
		"none":             {text: "# fi_info -p efa\nfi_getinfo: -61 (No data available)\n", want: []string{}},
		"none, older":      {text: "fi_getinfo: -61\n", want: []string{}},
		"another provider": {text: "provider: registry.terraform.io/hashicorp/aws\n  version: 5\nprovider: aws\nregion: x\n", want: nil},
	} {
		expect.NoDiff(t, tt.want, texttest.Sections("x.txt", tt.text).NICs.Providers, "%s", name)
	}
}

// TestNetworkMessages checks what forms of line mean, where two rows come near each other.
func TestNetworkMessages(t *testing.T) {
	for line, want := range map[string]string{
		"n:1:2 [0] NCCL WARN NET/OFI Request 0x1 completed with error. RC: 103. Error: 4124 (Unresponsive receiver (connection previously established)). Completed length: 0, Request: {}":     "ofi-peer-gone",
		"n:1:2 [0] NCCL WARN NET/OFI Request 0x1 completed with error. RC: 103. Error: 13 (Unresponsive receiver (connection never established or unknown)). Completed length: 0, Request: {}": "ofi-peer-unreachable",
		"n:1:2 [0] NCCL WARN NET/OFI Request 0x1 completed with error. RC: 21. Error: unknown error. Completed length: 0, Request: {}":                                                         "ofi-request-failed",
		"n:1:2 [0] NCCL WARN NET/OFI Only EFA provider is supported":                                                      "ofi-no-provider",
		"n:1:2 [0] NCCL INFO NET/OFI Could not find any optimal provider supporting GPUDirect RDMA":                       "",
		"n:1:2 [0] NCCL WARN NET/OFI Couldn't open a fabric access domain. RC: -38, ERROR: Function not implemented":      "ofi-call-unknown",
		"[rank1]: Gloo connectFullMesh failed with [/x/gloo/transport/tcp/pair.cc:144] no error":                          "gloo-connect-trouble",
		"RuntimeError: [/x/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:28041":                    "gloo-peer-closed",
		"requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co'): [Errno 111] Connection refused": "",
		"127.0.0.1 localhost":                        "",
		"127.0.0.1\tlocalhost localhost.localdomain": "",
		"127.0.1.1 gpu7":                             "hosts-name-on-loopback",
		"fi_getinfo: -61 (No data available)":        "ofi-fi-info-empty",
	} {
		expect.Equal(t, want, texttest.First("x", line+"\n").ID, "%q", line)
	}
}
