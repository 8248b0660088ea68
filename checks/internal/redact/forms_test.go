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
	// Kubernetes.
	"NAME                  READY   STATUS    RESTARTS   AGE   IP            NODE\n«trainer-0-xk2p9»       1/1     Running   0          3d    «10.244.3.7»    «gpu-node-17x»\n",
	"Name:             «apollo-trainer-0»\nNamespace:        «team-x»\nNode:             «gpu-a12»/«10.0.3.4»\n", "kubectl logs -n «team-x» «apollo-trainer-0»",
	"kubectl exec -it «apollo-trainer-0» -- bash", "pod/«apollo-trainer-0» created",
	"Warning  FailedScheduling  default-scheduler  0/12 nodes are available: pod «team-x»/«apollo-trainer-0»",
	"I0819 10:21:07.123456 1 event.go:294] \"Event occurred\" object=\"«team-x»/«apollo-trainer-0»\" kind=\"Pod\"",
	"E0819 10:21:07 pod_workers.go:951] \"Error syncing pod, skipping\" pod=\"«team-x»/«apollo-trainer-0»\" podUID=«8f6c1d1e-2222-3333-4444-555566667777»",
	"    server: https://«k8s-api7».«acme-corp».com:6443",
	"    certificate-authority-data: «LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUM1ekNDQWMrZ0F3SUJBZ0lCQURBTkJna3Foa2lHOXcwQkFRc0ZBREFWTVJNd0VRWURWUVFERXdwcmRXSmwK»",
	"    client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFb3dJQkFBS0NBUUVBM0VK»",
	"    client-certificate-data: «LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURJVENDQWdtZ0F3SUJBZ0lJUHo5»", "    token: «k8sAbCdEfGhIjKlMnOp0123»",
	"current-context: «alice7@prod-cluster9»", "MY_NODE_NAME=«gpu-a12»\nPOD_IP=«10.244.3.7»\n", "  nodeName: «gpu-a12»", "  hostname: «gpu-a12»",
	"kubernetes.io/hostname: «gpu-a12»", "kubernetes.io/hostname=«gpu-a12»", "spec.nodeName=«gpu-a12»", "kubectl describe node «gpu-a12»", "node/«gpu-a12» cordoned",
	// Clouds and services.
	"AZURE_CLIENT_SECRET=«AbC8Q~dEfGhIjKlMnOpQrStUvWxYz0123456789»",
	"DefaultEndpointsProtocol=https;AccountName=«acmestore»;AccountKey=«Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==»;",
	`  "private_key": "-----BEGIN PRIVATE KEY-----\n«MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7»\n-----END PRIVATE KEY-----\n",`,
	`  "private_key_id": "«0123456789abcdef0123456789abcdef01234567»",`, `  "client_email": "«trainer»@«acme-prod-123».iam.gserviceaccount.com",`,
	`  "client_id": "«123456789012345678901»",`, `  "project_id": "«acme-prod-123»",`, "gs://«acme-checkpoints-7»/run3/x", "s3://«acme-checkpoints-7»/run3/x",
	"abfss://«data7»@«acmestore».dfs.core.windows.net/x", "https://«acmestore».blob.core.windows.net/c/x", "aws_access_key_id = «AKIAIOSFODNN7EXAMPLE»",
	"aws_session_token = «FwoGZXIvYXdzEBYaDKJnX2exampleEXAMPLEfoo123»", "x-amz-security-token: «IQoJb3JpZ2luX2VjEJr1234567890abcdefAB»",
	"X-Amz-Signature=«fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024»",
	"https://b.s3.amazonaws.com/k?X-Amz-Credential=«AKIAIOSFODNN7EXAMPLE»%2F20250819&X-Amz-Signature=«fe5f80f77d5fa3beca038a248ff027d0»",
	"subscriptions/«8f6c1d1e-2222-3333-4444-555566667777»/resourceGroups/«rg-apollo»/providers", "projects/«acme-prod-123»/zones/us-central1-a/instances/«gpu-vm-3»",
	"ocid1.instance.oc1.iad.«anuwcljtabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrst»", "OPENAI_API_KEY=«sk-proj-abcDEF123456ghiJKL789»",
	"ANTHROPIC_API_KEY: «sk-ant-api03-AAAAbbbbCCCC1111dddd»", "wandb: logging in with key «0123456789abcdef0123456789abcdef01234567»",
	"wandb login «0123456789abcdef0123456789abcdef01234567»", "wandb: Currently logged in as: «alice» («acme-ai7»). Use `wandb login --relogin` to force relogin",
	"wandb: 🚀 View run at https://wandb.ai/«acme-ai7»/«apollo»/runs/«3f8k2l9x»", "huggingface-cli login --token «hf_AbCdEfGhIjKlMnOpQrStUv»",
	"MLFLOW_TRACKING_PASSWORD=«hunter2x»", "MLFLOW_TRACKING_URI=https://«alice»:«pw123456»@«mlflow7».«acme-corp».com",
	"git clone https://oauth2:«glpat-AbCdEfGhIjKlMnOpQrSt»@gitlab.com/x", "redis://:«s3cr3tpw»@«redis7»:6379/0", "postgresql://«joe7»:«pw12345x»@«db7».«acme-corp».com/x",
	"mongodb+srv://«joe7»:«pw12345x»@«cl7».mongodb.net", "proxy_pass http://«zeus7»:80", "Cookie: session=«AbCdEf0123456789xyz»",
	"Set-Cookie: sid=«AbCdEf0123456789xyz»; Path=/", "ssh-rsa «AAAAB3NzaC1yc2EAAAADAQABAAABgQC7vbqajDhA» «alice»@«zeus»",
	"ssh-ed25519 «AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl» «alice»@«zeus»",
	"SHA256:«nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8» «alice»@«zeus» (ED25519)",
	`machine api.wandb.ai\n  login user\n  password «0123456789abcdef0123456789abcdef01234567»`, `{"auths":{"nvcr.io":{"auth":"«JG9hdXRodG9rZW46bnZhcGktYWJjZGVm»"}}}`,
	"//registry.npmjs.org/:_authToken=«npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789»", "echo «hunter2xyz» | docker login -u joe --password-stdin",
	"docker login nvcr.io -u '$oauthtoken' -p «nvapi-AbCdEf0123456789»", "apptainer remote login -p «hunter2xyz»",
	"Authorization: token «0123456789abcdef0123456789abcdef01234567»", "-H \"Authorization: Bearer «abc123DEF456ghi789»\"", "'Authorization': 'Bearer «abc123DEF456ghi789»'",
	"X-Vault-Token: «hvs.CAESIAbCdEfGhIjKlMnOpQrSt»", "VAULT_TOKEN=«s.AbCdEf0123456789GhIjKlMn»",
	"SLACK_WEBHOOK=https://hooks.slack.com/services/«T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX»", "https://discord.com/api/webhooks/«123456789012345678/AbCdEf-ghIJkl»",
	// Users, files and what a machine says of itself.
	"C:\\Users\\«alice»\\train.py", "C:/Users/«alice»/x", "/mnt/c/Users/«alice»/x", `C:\\Users\\«alice»\\AppData`, `\\«fileserver7»\share\x`, "/home/«alice»", "~«alice»/run/x",
	"HOME=/data/home/«alice»", "/u/«alice»/x", "/data/users/«alice»/x", "/data/home/«alice»/x", "/export/home/«alice»/x", "/work/users/«alice»/x",
	"drwxr-xr-x 2 «alice» «research7» 4096 Aug 19 10:21 run", "-rw-r--r-- 1 «alice» users 1234 Aug 19 2025 nccl.log",
	"USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n«alice»       4021 99.0  1.2 123456 67890 ?  Rl   10:21   5:00 python train.py\n",
	"sudo: «alice» : TTY=pts/0 ; PWD=/home/«alice» ; USER=root ; COMMAND=/usr/bin/dmesg",
	"Aug 19 10:21:07 «zeus» sshd[123]: Accepted publickey for «alice» from «10.1.2.3» port 22 ssh2: RSA SHA256:«nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8»",
	"pam_unix(sshd:session): session opened for user «alice»(uid=1000) by (uid=0)", "Static hostname: «zeus7»",
	"   Static hostname: «zeus7»\n         Icon name: computer-server\n        Machine ID: «0123456789abcdef0123456789abcdef»\n           Boot ID: «fedcba98765432100123456789abcdef»\n",
	"machine-id «0123456789abcdef0123456789abcdef»", "uuid: «8f6c1d1e-2222-3333-4444-555566667777»", "GPU UUID: GPU-«8f6c1d1e-2222-3333-4444-555566667777»",
	"boot_id «8f6c1d1e-2222-3333-4444-555566667777»", "inet6 «2001:4860:4860::8844»/64 scope global", "inet «10.0.0.7»/24 brd «10.0.0.255» scope global eth0",
	"link/ether «a0:36:9f:01:02:03» brd ff:ff:ff:ff:ff:ff", "\tSerial Number: «PK2A1234567»", "Product Serial: «1654922003141»",
	"Board Serial                    : «1654922003141»", "[SN] Serial number: «MT2145X01234»", "Chassis Serial Number             : «1654922003141»",
	"Board Part Number : 900-2G133-0000-000 Serial Number : «1654922003141»", "System Serial Number: «J1234567»", "Asset Tag: «ACME-00421»", "SN: «MT2145X01234»",
	"base_mac: «0c42a103ab12»", "Base MAC:              «0c42a103ab12»", "Base GUID: «0c42a10300ab1234»", "Image GUID:            «b8cef60300fe1230»  16",
	// The kernel.
	"Command line: BOOT_IMAGE=/vmlinuz root=UUID=«8f6c1d1e-2222-3333-4444-555566667777» ro ip=«10.1.2.3»::«10.1.2.1»:255.255.255.0:«zeus7»:eth0",
	"nfs: RPC call returned error 13 from «10.0.0.5»", "NFS: mount «nfs7».«acme-corp».com:/«vol7»",
	"EXT4-fs (sda1): mounted filesystem «8f6c1d1e-2222-3333-4444-555566667777» r/w", "libceph: mon0 (1)«10.0.0.5»:6789 session established",
	"LustreError: 11-0: lustre-OST0001-osc: «10.0.0.5»@o2ib failed",
	// PyTorch, Ray and MPI.
	"[rank0]:[W819 10:21:07.123 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=3, addr=[«zeus7».«acme-corp».com]:41234, remote=[«hera7».«acme-corp».com]:29500): failed to recv",
	"[W socket.cpp] The server socket on [::ffff:«10.0.0.7»]:29500", "torch.distributed.elastic.rendezvous: node «zeus7»_4021_0 joined",
	"The node '«zeus7».«acme-corp».com_4021_0' has joined round 0",
	"traceback : Signal 9 (SIGKILL) received by PID 4021\n  host      : «zeus7».«acme-corp».com\n  rank      : 3 (local_rank: 3)", "(raylet, ip=«10.0.0.7») Task failed",
	"(raylet) [2025-08-19 10:21:07] node_ip: «10.0.0.7»", "Process name: [[12345,1],0]\n  Local host:    «zeus7»\n  PID:           4021",
	"ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[1234,0],0] on node «login7x»\n  Remote daemon: [[1234,0],1] on node «zeus7»",
	"[«zeus7»:4021] pml_ucx.c:419  Error: ucp_ep_create(proc=1) failed", "«zeus7»:rank3.python: Failed to modify UD QP", "«zeus7»:rank0.xhpl: Failed to find IB",
	"[1755598867.123456] [«zeus7»:4021:0] ucp_worker.c UCX INFO ep_cfg[2]: tag(rc_mlx5/mlx5_0:1)", "[proxy:0:0@«zeus7»] HYD_pmcd_pmip_control_cmd_cb",
	"[mpiexec@«zeus7»] control_cb: assert", "salloc: Nodes «hgx[03-04]» are ready for job", "slurmstepd-«zeus7»: error: x",
	"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n«falcon9»*     up 1-00:00:00      2   idle «hgx[03-04]»\n", "NODELIST=«zeus7»", "SLURM_NODELIST=«hgx[03-04]»",
	"SLURM_STEP_NODELIST=«zeus7»", "SLURM_SUBMIT_DIR=/fsx/«alice»/run", "SLURM_JOB_ACCOUNT=«research7»", "SLURM_LAUNCH_NODE_IPADDR=«10.0.0.7»",
	"sbatch: Submitted batch job 4021 on cluster «olympus7»",
	"   JobId=4021 JobName=«apollo3»\n   UserId=«alice»(1000) GroupId=«research7»(1000)\n   Account=«acct77» QOS=normal\n   BatchHost=«zeus7»\n   StdOut=/fsx/«alice»/x.out\n   WorkDir=/scratch/«alice»",
	// NCCL.
	"«zeus7»:4021:4077 [0] NCCL INFO Bootstrap: Using eth0:«10.0.0.7»<0>", "NCCL INFO NET/Socket : Using [0]eth0:«10.0.0.7»<0>",
	"NCCL WARN [Proxy Service 3] Failed to connect, peer «zeus7»<51234>", "ncclRemoteError: Last error: socketPollConnect: Connect to «10.0.0.7»<45678> returned 111",
	"NCCL WARN Net : Connect to «fe80::a236:9fff:fe01:203»%eth0<1234> failed",
	"NCCL WARN NET/IB: Got completion from peer «10.0.0.7»<1234> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::«e42:a1ff:fe03:ab12» remoteGidsfe80::«e42:a1ff:fe03:ab13» hca mlx5_0",
	// GPUs.
	"| 0  NVIDIA H100 GPU UUID GPU-«8f6c1d1e-2222-3333-4444-555566667777» |", "VBIOS 96.00.74.00.0D Serial: «1654922003141»",
	"    GPU PDI                               : 0x«1234567890abcdef»", "ClusterUUID: «8f6c1d1e-2222-3333-4444-555566667777»",
	"Chassis Serial Number                 : «1820324000123»", "Module ID: 3", "GUID                              : 0x«b5a1a2b3c4d5e6f7»",
	"Serial Number                         : «PCB2213-1234-ABCD»", "card series: 0x740f unique id: 0x«8f1e2d3c4b5a6978»", "Unique ID: 0x«8f1e2d3c4b5a6978»",
	"GPU[0]\t\t: Unique ID: 0x«8f1e2d3c4b5a6978»", "GPU[0]\t\t: Serial Number: «692251000123»",
	// Containers, mail, logs and metrics.
	"docker exec -it «apollo-train» bash", "docker logs «4a5b6c7d8e9f»", "Hostname: «4a5b6c7d8e9f»", "root@«4a5b6c7d8e9f»:/workspace# nvidia-smi",
	"docker: Error response from daemon: No such container: «apollo-train».", "Container «4a5b6c7d8e9f00112233445566778899aabbccddeeff00112233445566778899» failed",
	"CONTAINER ID   IMAGE     COMMAND   CREATED       STATUS       PORTS     NAMES\n«4a5b6c7d8e9f»   ubuntu    \"bash\"    2 hours ago   Up 2 hours             «apollo-train»\n",
	"mail «alice.smith»@«acme-corp».com", "Author: Alice <«alice.smith»@«acme-corp».com>", "<«alice»@«acme-corp».com>", "MAC Address: «A0-36-9F-01-02-03»",
	"Physical Address. . . . . . . . . : «A0-36-9F-01-02-03»", "https://«jenkins7».«acme-corp».com/job/«apollo»/12/console", "FQDN: «zeus7».«acme-corp».com",
	"host=«zeus7» port=29500", "hostname=«zeus7», rank=3", "{\"hostname\": \"«zeus7»\", \"rank\": 3}", "{\"node\":\"«zeus7»\",\"level\":\"info\"}", "{\"host\":\"«zeus7»\"}",
	"node=\"«zeus7»\" gpu=\"0\"",
	"DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-«8f6c1d1e-2222-3333-4444-555566667777»\",Hostname=\"«zeus7»\",pod=\"«apollo-trainer-0»\",namespace=\"«team-x»\"} 0",
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
		"crw-rw-rw- 1 root video 195, 0 Aug 19 10:21 /dev/nvidia0", "drwxr-xr-x 2 root root 4096 Aug 19 10:21 by-path", "crw-rw---- 1 root render 226, 128 Aug 19 10:21 /dev/dri/renderD128",
		"USER         PID %CPU %MEM COMMAND\nroot        4021 99.0  1.2 nvidia-smi topo -m\n", "|  GPU   GI   CI              PID   Type   Process name   GPU Memory |\n|    0   N/A  N/A            4021      C   python              1024MiB |\n",
		"NAME           STATUS   ROLES    AGE   VERSION\ngpu            Ready    <none>   3d    v1.31.0\n", "node/node1 nodes/2/properties /sys/devices/system/node/node1/cpulist", "/proc/4021/u/x ~/.nccl.conf at ~peak/2", "torch:rank0 x",
		"GPU[0] : Unique ID: N/A", "Serial: N/A", "SN: N/A", "host=private", "hostname=unknown", "node=\"3\" host=\"localhost\"", "Asset Tag: Not Specified", "projects/data",
		"docker restart", "kubectl get pods", "kubectl get nodes -o wide", "kubectl -v", "Node: 1/2", "Name:\tpython3", "\\n\\x1b[0m C:\\Windows\\System32\\nvcuda.dll",
		"Accepted the rank for rank from 3", "remoteGids localGid", "Machine ID: unknown", "SHA256:abc", "max uid 1000 pdi: none", "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
	} {
		expect.Equal(t, text, redactedOnce(text), "%q becomes", text)
	}
}

// TestFormsCompile checks that the pattern of every form compiles, and names what stands there.
func TestFormsCompile(t *testing.T) {
	for _, forms := range [][]*form{known().Secrets, known().Keys, known().Variables, known().Names, known().Numbers, known().Addresses, known().KFD} {
		for _, f := range forms {
			expect.That(t, len(f.Hints) > 0 && strings.Join(f.pattern.Get().SubexpNames(), "") != "", "a form with the hints %q has no hint or no group", f.Hints)
		}
	}
}
