package redact

import (
	"regexp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// planted are lines as libraries, launchers, schedulers and clouds print them. What
// stands between « and » must not be seen in what leaves the machine.
var planted = []string{
	// UCX (ucs/debug/log.c): the time, then the host, the process padded to five, and the thread.
	"[1755598867.123456] [«zeus»:4021 :0]          parser.c:2036 UCX  INFO  UCX_* env variable: UCX_TLS=rc,cuda",
	"[1755598867.123456] [«gpu-a12»:40215:0]     ib_device.c:1280 UCX  ERROR ibv_create_ah failed: Connection timed out",
	"[«dgx-07»:4021 :0:4021] Caught signal 11 (Segmentation fault: address not mapped to object at address (nil))",
	"[1755598867.123456] [«falcon»:4021 :a]       ucp_ep.c:12  UCX  DIAG  failed",
	// Libfabric's provider for EFA names the instances.
	"libfabric:4021:1755598867::efa:cq:efa_cq_read_entry():82<warn> Unresponsive receiver My EFA addr: fi_addr_efa://[fe80::43e:8dff:«fe23:5c8b»]:1:2 " +
		"My host id: «i-0a1b2c3d4e5f60718» Peer EFA addr: fi_addr_efa://[fe80::43e:8dff:«fe23:5c8c»]:3:4 Peer host id: «i-0f9e8d7c6b5a40312»",
	"instance «i-0a1b2c3d4e5f60718» in «subnet-0a1b2c3d4e5f60718» of «vpc-0a1b2c3d4e5f60718», «eni-0a1b2c3d4e5f60718»",
	// Launchers that put the host before what its processes say.
	"«zeus»: [rank0]: Traceback (most recent call last):",
	"«gpunode-17»: [rank12]:[E808 ProcessGroupNCCL.cpp:616] [Rank 12] Watchdog caught collective operation timeout",
	"«zeus»: [2025-08-19 10:21:07,123] [INFO] [launch.py:256:main] process 4021 spawned",
	"«zeus»: zeus:4021:4077 [0] NCCL INFO Bootstrap : Using eth0",
	"«zeus»: Traceback (most recent call last):",
	"pdsh@«login1x»: «zeus»: ssh exited with exit code 1",
	"pdsh@«login1x»: «zeus»: command timeout",
	"[rank3]:[«zeus»:4021] *** Process received signal ***",
	"(RayWorkerWrapper pid=4021, ip=«10.11.12.13») NCCL INFO Using network IB",
	"[«zeus».acme.com:04021] PMIX ERROR: UNREACHABLE in file ptl_tcp.c at line 423",
	// Prompts.
	"(base) «alice»@«zeus»:~$ python train.py",
	"(base) [«alice»@«zeus» train]$ python train.py",
	"(torch-2.5) «alice»@«zeus» ~ % python train.py",
	"(base) «alice»@«zeus»",
	"(venv) (base) «alice»@«zeus»:/data/run[1]$ ls",
	"┌──(base)(«alice»㉿«zeus»)-[~/train]",
	// Homes on shared file systems.
	`File "/fsx/«alice»/train.py", line 12, in main`,
	"/fsx/users/«alice»/x /fsx/home/«bob77»/y",
	"/scratch/«alice»/run/nccl.log",
	"/scratch/users/«alice»/x",
	"/scratch/project/«alice»/run and /scratch/project_462000123/«bob77»/y",
	"/nfs/«alice»/venv/lib/python3.12/site-packages/torch/__init__.py",
	"/nfs/homes/«alice»/x",
	"/lustre/scratch/«alice»/x and /gpfs/«bob77»/y",
	"/global/homes/a/«alice»/x",
	"/mnt/nfs/«alice»/x",
	// Schedulers.
	"SLURM_JOB_USER=«alice»",
	"SLURM_JOB_USER: «alice»",
	`"SLURM_JOB_USER": "«alice»",`,
	"   UserId=«alice»(1000) GroupId=«research»(1000) MCS_label=N/A",
	"SLURM_JOB_GROUP=«research»",
	"SLURM_CLUSTER_NAME=«olympus»",
	"SLURMD_NODENAME=«zeus»",
	"SLURM_TOPOLOGY_ADDR=«spine7».«leaf33».«zeus»",
	"PBS_O_LOGNAME=«alice»",
	"PBS_O_HOST=«zeus»",
	"LSB_HOSTS=«zeus» «gpu-a12»",
	"             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n" +
		"              4021  a100-80g «apollo3»    «alice»  R 1-02:03:04      2 «hgx[03-04]»\n" +
		"          4022_[1-8]       gpu    batch «bob77»  PD       0:00      1 (Resources)\n\n" +
		"4023 alice was here",
	"JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n------------ ---------- ---------- ---------- ---------- ---------- -------- \n" +
		"4021            «apollo3»        gpu   «fusion9»         16    RUNNING      0:0 \n4021.batch        batch              «fusion9»         16    RUNNING      0:0 \n",
	"JobID|User|NodeList|State\n4021|«alice»|«zeus»,«hera»|FAILED\n4022|«bob77»|None assigned|PENDING\n",
	"     User JobID               NodeList \n--------- ------------ --------------- \n    «alice» 4021                    «zeus» \n «christo»+ 4022           None assigned \n",
	"sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified for user «alice»",
	// Names of clouds and clusters.
	"resolving «ip-10-0-1-2».ec2.internal",
	"«ip-10-0-1-2».us-west-2.compute.internal is Ready",
	"node «ip-10-0-1-2» joined",
	"«gpu-vm-3».c.«acme-prod».internal is up",
	"«gpu-vm-3».us-central1-a.c.«acme-prod».internal is up",
	"trainer is at «trainer-0».«trainers».«team-x».svc.cluster.local now",
	"pod at «10-244-3-7».«team-x».pod.cluster.local now",
	"reached «store».«acme».internal in 3 ms",
	"«vm7».«k3jx0a».bx.internal.cloudapp.net is up",
	"«gpu1x».«sub123».«vcn77».oraclevcn.com is up",
	"«gke-train-pool-1-3f2e1d0c-x7k9» is Ready",
	"«aks-gpu-12345678-vmss000003» is Ready",
	"Mounting «fs-0a1b2c3d4e5f60718».fsx.us-east-1.amazonaws.com@tcp:/mount1 failed",
	// Accounts.
	"assumed arn:aws:iam::«123456789012»:role/«apollo-trainer»",
	"arn:aws:sagemaker:us-east-1:«123456789012»:training-job/«apollo-v3» failed",
	"Pulling «123456789012».dkr.ecr.us-east-1.amazonaws.com/«apollo»:3",
	`"Account": "«123456789012»"`,
	// Containers and pods.
	"0::/system.slice/docker-«4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566778899».scope",
	"12:cpu:/docker/«4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566778899»",
	"«4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566778899»   pytorch/pytorch:2.5   \"python\"",
	"containerd://«4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566778899»",
	"/kubepods.slice/kubepods-pod«8f6c1d1e_2222_3333_4444_555566667777».slice/cri-containerd-«4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566778899».scope",
	"/kubepods/besteffort/pod«8f6c1d1e-2222-3333-4444-555566667777»/x",
	// InfiniBand: GUIDs and GIDs are made of MAC addresses.
	"Node GUID: 0x«0c42a10300ab1234»",
	"caguid=0x«0c42a10300ab1234»",
	`Ca	1 "H-«0c42a10300ab1234»"		# "«zeus» mlx5_0"`,
	`[1]	"S-«b8cef60300fe1230»"[5]		# "«zeus» HCA-1"`,
	"port 0x«0c42a1fffe03ab12» is down",
	"GID[0]: fe80:0000:0000:0000:«0e42:a1ff:fe03:ab12»",
	"GID fe80::«e42:a1ff:fe03:ab12»",
	"NCCL INFO NET/IB: Dev 0 Port 1 qpn 1234 mtu 5 GID 3 (0/«0D0C0B0A»FFFF0000)",
	"NCCL INFO NET/IB: Dev 0 Port 1 qpn 1234 mtu 5 LID 7 subnet-prefix 80FE GID 0 (80FE/«12AB03FEFFA1420E»)",
	"switch port mac «0c42.a103.ab12» learnt",
	// Addresses behind words that may also stand before a version.
	"libfabric tcp://«10.11.12.13»:4000", "UCX connects to «10.11.12.13»", "ROCm host «10.11.12.13»", "efa: «10.11.12.13»",
	"IPoIB lladdr 00:00:10:49:fe:80:00:00:00:00:00:00:«0c:42:a1:03:00:ab:12:34»",
}

var marked = regexp.MustCompile(`«([^»]*)»`)

// TestForms checks that nothing that is planted passes, that redacting again changes
// nothing, and that what stands around it is kept.
func TestForms(t *testing.T) {
	expect.AtLeast(t, 40, len(planted), "forms")
	for _, line := range planted {
		got := redactedOnce(strings.NewReplacer("«", "", "»", "").Replace(line))
		for _, thing := range marked.FindAllStringSubmatch(line, -1) {
			expect.That(t, !strings.Contains(strings.ToLower(got), strings.ToLower(thing[1])), "%q is seen:\n%s", thing[1], got)
		}
		expect.Equal(t, got, redactedOnce(got), "redacted twice: %q becomes", got)
	}
}

func redactedOnce(text string) string {
	r := New()
	r.Study(text)
	return r.Text(text)
}

// TestKept checks that what a diagnosis needs is no name: of devices, versions, errors,
// programs and what every machine has.
func TestKept(t *testing.T) {
	for _, text := range []string{
		"[rank0]: Traceback (most recent call last):", "error: [rank0]: x", "warning: Traceback", "ERROR: [2025-08-19 10:21:07] x", "INFO: [rank1]: y",
		"mlx5_0: [2025-08-19 10:21:07] x", "eth0: NIC Link is Up", "gpu0: [rank0]: x", "0: [rank0]: x", "srun: error: x", "[10de:2335:0] x", "[PCI:0000:3b:00] x",
		"ncclSystemError: [rank0] x", "[0000:3b:00.0:0]", "[mlx5_0:1:0]", "[gpu0:12:0]", "[Rank 0:4021:0]", "[12:34:56]",
		"/scratch/data/x /fsx/models/llama /nfs/shared/x /scratch/tmp /fsx/checkpoints/step100 /scratch/12345", "/opt/nfs/lib /scratch/project /scratch/projects/data/x",
		"metadata.google.internal host.docker.internal host.containers.internal kubernetes.default.svc.cluster.local",
		"torch._C._internal x.internal_error a.internal() google.protobuf.internal.decoder", "commHash 0x1f2e3d4c5b6a7988 commId 0x0000fffe00000000", "Cpus_allowed: 000001fffeffffff mask 0x0003000300030003",
		"nvcr.io/nvidia/pytorch@sha256:4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566778899",
		"Build-ID 3f5c1d2e4b6a79880123456789abcdef01234567", "NCCL version 2.27.3+cuda12.9", "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
		"arn:aws:s3:::public", "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0", "NCCL INFO GID 3 (0/0)", "pip 1234.5678.9012",
		"i-know sg-1 vpc-cni subnet-manager fs-cache", "SLURM_JOB_ID=123 SLURM_NTASKS=16", "driver 580.159.04 on sm_90", "2025-08-19T10:21:07.123456Z",
		"ROCm 6.4.0.0 and HIP 6.4.43482.0", "ROCm \"6.4.0.0\"", "the driver is 10.2.0.4", "v6.4.0.0", "version is 6.4.0.0", "UCX (1.18.0.1)", "MOFED 5.8.1.1",
		"             JOBID PARTITION     NAME ST\n              4021       gpu    train  R\n", "The JOBID is 4021\n4021 alice", "JOBID USER\nno gamma of alice\ngamma", "JOBID " + strings.Repeat("USER ", 2*maxColumns) + "\n4021 alice", "JobID|State\n------\n4021|OK\n",
		"[1755598867.123456] x", "process 123456789012 bytes 123456789012",
	} {
		expect.Equal(t, text, redactedOnce(text), "%q becomes", text)
	}
}

// TestFormsCompile checks that the pattern of every form compiles, and names what stands there.
func TestFormsCompile(t *testing.T) {
	for _, forms := range [][]*form{known().Secrets, known().Keys, known().Variables, known().Names, known().Numbers, known().Addresses, known().KFD} {
		for _, f := range forms {
			expect.That(t, len(f.Hints) > 0 && strings.Join(f.pattern.SubexpNames(), "") != "", "a form with the hints %q has no hint or no group", f.Hints)
		}
	}
}
