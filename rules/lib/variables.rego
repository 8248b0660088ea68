# METADATA
# title: Variables that hurt
# description: >-
#   What settings of NCCL, RCCL, PyTorch, CUDA, HIP, UCX, libfabric and NVSHMEM
#   do harm, in what circumstances, and how much. This file holds data; the rule
#   env-misconfig reads it.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.variables

# rows are settings and what is to be said of them. The first row that fits a
# variable decides.
#
#   names       the variables
#   is          the value read as NCCL reads numbers is one of these
#   at_most     the value read so is no more than this
#   text        the value is one of these, whatever its case
#   like        the value matches this expression
#   lacks       the value is a list of what to use, and none of these is in it
#   (none)      any value
#   when        circumstances that must be known to hold (env-misconfig names
#               them); "nccl>=2.21" and "nccl<2.5" compare the NCCL found here
#   unless      circumstances that must not be known to hold
#   silent      the setting is right in these circumstances
#   severity    "by-loss" is high or medium, by what was measured here
#   why         what it does, to follow "NAME=value, set in ..., "
#   remedies    default: unset-env
#   level       what NCCL_P2P_LEVEL should be, for the remedy nccl-p2p-level
#   inert       the setting does nothing
#   source      default: NCCL's page of variables
#   said        one of these messages must have been said (ids of the catalogue
#               of messages); the finding shows it
rows := array.concat(failing, array.concat(paths, array.concat(networks, array.concat(tuning, array.concat(dead, others)))))

guide := "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"

torch_guide := "https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html"

ofi_guide := "https://github.com/aws/aws-ofi-nccl/blob/master/include/nccl_ofi_param.h"

efa_guide := "https://github.com/ofiwg/libfabric/blob/main/man/fi_efa.7.md"

nvshmem_guide := "https://docs.nvidia.com/nvshmem/api/gen/env.html"

# nvls_loss is what it costs to do without NVLink SHARP: with eight H100, 370 GB/s
# in place of 480 (sjeaugey in NVIDIA/nccl-tests issue 212); with eight B300, 695 in
# place of 845 (NVIDIA/nccl issue 2140). A test holds the remedies to it.
nvls_loss := "large all-reduces lose up to a quarter of their bandwidth"

# failing are settings by which a log shows that something failed.
failing := [
	{
		# NCCL goes on without the file and finds out by itself
		# (ncclTopoGetXmlFromFile of src/graph/xml.cc; seen with 2.28.9).
		"names": ["NCCL_TOPO_FILE"], "said": ["nccl-topo-file-missing"],
		"severity": "low", "confidence": "confirmed",
		"why": "names a description of the machine that is not there; NCCL went on without it",
	},
	{
		# The plugin set it itself: that is for ofi-plugin to say.
		"names": ["NCCL_TOPO_FILE"], "like": `aws-ofi-nccl/`, "said": ["ofi-platform"], "silent": true,
	},
	{
		"names": ["NCCL_GRAPH_FILE", "NCCL_TOPO_FILE"],
		"said": ["nccl-graph-file-missing", "nccl-topo-file-invalid", "nccl-topo-attribute-missing"],
		"severity": "critical", "confidence": "confirmed",
		"why": "names a description that is not there, or that does not fit this machine, and NCCL fails over it; it may also be set in /etc/nccl.conf",
	},
	{
		"names": ["NCCL_GRAPH_FILE"], "said": ["nccl-unhandled-system-error", "nccl-internal-error"], "unless": ["cause-said"],
		"severity": "high", "confidence": "likely",
		"why": "prescribes rings and trees of GPUs, which is for experiments: with another number of GPUs than the file's NCCL fails to start, and with no more than a category of errors. It may also be set in /etc/nccl.conf",
		"source": "https://github.com/NVIDIA/nccl/issues/1240",
	},
	{
		"names": ["NCCL_TOPO_FILE"], "said": ["nccl-unhandled-system-error", "nccl-internal-error"], "unless": ["cause-said"],
		"severity": "medium", "confidence": "possible",
		"why": "replaces what NCCL finds out about this machine, and NCCL failed at its start; a file of another machine does that",
		"source": "https://github.com/NVIDIA/nccl/issues/1726",
	},
	{
		"names": ["PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"], "like": `(?i)expandable_segments *: *true`,
		"said": ["vllm-custom-all-reduce-failed"],
		"severity": "critical", "confidence": "likely",
		"why": "has PyTorch allocate memory that cudaIpcGetMemHandle cannot share, which the framework's own all-reduce does with it",
		"remedies": ["unset-env", "disable-custom-all-reduce"],
		"source": "https://github.com/vllm-project/vllm/issues/42609",
	},
	{
		# NCCL's own networks need no plugin: it has them, and found nothing to use them with.
		"names": ["NCCL_NET"], "like": `(?i)^(?:IB|Socket)$`, "said": ["nccl-network-not-found"],
		"severity": "critical", "confidence": "likely",
		"why": "allows NCCL that transport of its own and no other, and NCCL finds no device for it here: it is down, filtered out by NCCL_IB_HCA or NCCL_SOCKET_IFNAME, or not in this container",
		"remedies": ["unset-env", "pass-rdma-devices"],
	},
	{
		"names": ["NCCL_NET", "NCCL_NET_PLUGIN"], "said": ["nccl-network-not-found"],
		"severity": "critical", "confidence": "confirmed",
		"why": "asks for a network that NCCL does not find: a plugin is missing, or the name is of another machine",
		"remedies": ["unset-env", "install-ofi-plugin"],
	},
	{
		# The first rank listens at this address itself (src/bootstrap.cc). PyTorch and
		# Horovod hand an address of their own around and want none.
		"names": ["NCCL_COMM_ID"], "said": ["nccl-bind-failed"],
		"severity": "critical", "confidence": "confirmed",
		"why": "has the first rank listen at an address that is not its own: inside of a container that of the host is not, unless it runs with --network host",
		"source": "https://github.com/NVIDIA/nccl/issues/331",
	},
	{
		"names": ["NCCL_ALGO", "NCCL_PROTO"], "said": ["nccl-no-algorithm", "nccl-algo-string-invalid"],
		"severity": "critical", "confidence": "confirmed",
		"why": "leaves NCCL no algorithm and protocol for an operation; since 2.24 it then fails in place of choosing another",
	},
	{
		"names": ["CUDA_LAUNCH_BLOCKING"], "unless": ["zero"],
		"said": ["torch-watchdog-timeout", "torch-heartbeat-timeout", "vllm-workers-stuck"],
		"severity": "high", "confidence": "possible",
		"why": "makes each kernel launch wait, by which ranks that launch several collectives wait for each other without an end, and the job stands still",
		"source": "https://github.com/NVIDIA/nccl/issues/750",
	},
	{
		"names": ["VLLM_NCCL_SO_PATH"], "said": ["nccl-library-missing", "nccl-symbol-missing"],
		"severity": "high", "confidence": "likely",
		"why": "names the libnccl that vLLM is to load, and that is missing or of the wrong version",
		"source": "https://docs.vllm.ai/en/latest/configuration/env_vars.html",
	},
]

# paths are settings that choose the way between GPUs of one machine.
paths := [
	# Peer access switched off. Where it fails, that is the cure.
	{"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["p2p-broken"], "silent": true},
	{"names": ["NCCL_P2P_LEVEL"], "like": `^(LOC|0)$`, "when": ["p2p-broken"], "silent": true},
	{"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["one-gpu"], "silent": true},
	{
		"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["p2p-refused"],
		"severity": "info", "confidence": "likely", "inert": true,
		"why": "changes nothing: the driver offers no peer access here",
	},
	# HIP's copies say less of RCCL's transport than CUDA's of NCCL's: see
	# rccl-p2p-transport.
	{
		"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["p2p-proven", "amd"],
		"severity": "low", "confidence": "possible",
		"why": "keeps RCCL from peer access; copies of HIP between these GPUs arrive, which does not show that RCCL's own transport works: compare rccl-tests with and without it before it is taken off",
	},
	{
		"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["p2p-proven"],
		"severity": "by-loss", "confidence": "confirmed", "measured": true,
		"why": "keeps NCCL from peer access, which works here",
	},
	{
		"names": ["NCCL_P2P_LEVEL"], "like": `^(LOC|0)$`, "when": ["p2p-proven"],
		"severity": "by-loss", "confidence": "confirmed", "measured": true,
		"why": "keeps NCCL from peer access, which works here",
	},
	{
		"names": ["NCCL_P2P_LEVEL"], "when": ["p2p-proven", "level-excludes-all"],
		"severity": "by-loss", "confidence": "confirmed", "measured": true,
		"why": "keeps NCCL from peer access between all GPUs here, as each pair is farther apart than that, though it works",
		"remedies": ["nccl-p2p-level", "unset-env"], "level": "SYS",
	},
	{"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["staged-faster"], "silent": true},
	{
		"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["staged-slower"],
		"severity": "low", "confidence": "confirmed",
		"why": "keeps NCCL from peer access, which is slower here than its links allow, and still faster than the way through host memory",
	},
	{
		"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["image"],
		"severity": "medium", "confidence": "likely",
		"why": "keeps NCCL from peer access on every machine that runs this image, also where NVLink works",
	},
	{
		"names": ["NCCL_P2P_LEVEL"], "like": `^(LOC|0)$`, "when": ["image"],
		"severity": "medium", "confidence": "likely",
		"why": "keeps NCCL from peer access on every machine that runs this image, also where NVLink works",
	},
	{
		"names": ["NCCL_P2P_DISABLE"], "is": [1], "when": ["nvlink"], "unless": ["p2p-slow"],
		"severity": "medium", "confidence": "likely",
		"why": "keeps NCCL from the NVLinks that join the GPUs here; gpudoctor's probe tells whether it is a needed workaround",
	},
	{
		"names": ["NCCL_P2P_DISABLE"], "is": [1],
		"severity": "low", "confidence": "possible",
		"why": "keeps NCCL from peer access; whether that is a needed workaround here or a left-over has not been proven by a probe",
	},
	{
		"names": ["NCCL_P2P_LEVEL"], "like": `^(LOC|0)$`, "when": ["nvlink"], "unless": ["p2p-slow"],
		"severity": "medium", "confidence": "likely",
		"why": "keeps NCCL from the NVLinks that join the GPUs here; gpudoctor's probe tells whether it is a needed workaround",
	},
	{
		"names": ["NCCL_P2P_LEVEL"], "like": `^(LOC|0)$`, "unless": ["one-gpu"],
		"severity": "low", "confidence": "possible",
		"why": "keeps NCCL from peer access; whether that is a needed workaround here or a left-over has not been proven by a probe",
	},
	{
		"names": ["NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"],
		"like": `^[^0-9]`, "unless": ["level-known"],
		"severity": "low", "confidence": "likely",
		"why": "is no level that NCCL knows (LOC, NVL, PIX, PXB, PHB, SYS, in capitals): it is ignored without a word",
	},
	{
		"names": ["NCCL_P2P_LEVEL"], "when": ["level-excludes-all"], "unless": ["p2p-broken", "p2p-refused", "one-gpu"],
		"severity": "low", "confidence": "possible",
		"why": "keeps NCCL from peer access between all GPUs here, as each pair is farther apart than that; whether that is needed has not been proven by a probe",
		"remedies": ["nccl-p2p-level", "unset-env"], "level": "SYS",
	},
	{
		"names": ["NCCL_IGNORE_DISABLED_P2P"], "is": [1, 2],
		"severity": "low", "confidence": "likely",
		"why": "silences NCCL where the driver has switched off peer access between NVLinked GPUs: a broken NVLink stays unseen",
	},
	{
		"names": ["NCCL_SHM_DISABLE"], "unless": ["zero", "one-gpu"], "when": ["p2p-off"],
		"severity": "high", "confidence": "likely",
		"why": "together with peer access switched off leaves NCCL only the network between GPUs of one machine",
	},
	{
		"names": ["NCCL_SHM_DISABLE"], "unless": ["zero", "one-gpu"], "when": ["p2p-refused"],
		"severity": "high", "confidence": "likely",
		"why": "leaves NCCL only the network between GPUs of one machine, as the driver offers no peer access here",
	},
	{
		"names": ["NCCL_SHM_DISABLE"], "unless": ["zero", "one-gpu"], "when": ["p2p-proven"],
		"severity": "low", "confidence": "likely",
		"why": "matters little while peer access works; where it does not, traffic goes over the network in place of shared memory",
	},
	{
		"names": ["NCCL_SHM_DISABLE"], "unless": ["zero", "one-gpu", "p2p-proven"],
		"severity": "low", "confidence": "possible",
		"why": "sends traffic between GPUs that have no peer access over the network in place of shared memory",
	},
	{
		"names": ["NCCL_NVLS_ENABLE"], "is": [0], "when": ["multicast"], "unless": ["one-gpu"],
		"severity": "low", "confidence": "likely",
		"why": sprintf("keeps NCCL from NVLink SHARP: %s", [nvls_loss]),
	},
	{
		"names": ["NCCL_CUMEM_ENABLE"], "is": [0], "when": ["multicast"], "unless": ["one-gpu"],
		"severity": "low", "confidence": "likely",
		"why": sprintf("switches off NVLink SHARP and multi-node NVLink, which need cuMem: %s", [nvls_loss]),
	},
	{
		"names": ["NCCL_MNNVL_ENABLE"], "is": [1],
		"severity": "low", "confidence": "possible",
		"why": "makes NCCL fail where multi-node NVLink is not to be had; the default (2) uses it where it is",
	},
	{
		"names": ["NCCL_P2P_USE_CUDA_MEMCPY"], "is": [1],
		"severity": "low", "confidence": "likely",
		"why": "moves data between GPUs with copy engines, which is slower for most collectives",
	},
	{
		"names": ["NCCL_P2P_DIRECT_DISABLE", "NCCL_NVB_DISABLE"], "is": [1], "when": ["nvlink"],
		"severity": "info", "confidence": "likely",
		"why": "narrows the ways on which NCCL uses NVLink",
	},
	{
		"names": ["NCCL_HOSTID"], "when": ["image"],
		"severity": "medium", "confidence": "likely",
		"why": "gives all machines that run this image one identity: NCCL tries peer access and shared memory between different machines",
	},
	{
		"names": ["NCCL_HOSTID"],
		"severity": "low", "confidence": "possible",
		"why": "overrides how NCCL tells machines apart: equal values on two machines, or different ones on one, break the choice of transport",
	},
	{
		"names": ["NCCL_TOPO_FILE"], "when": ["virtual-topology"], "silent": true,
	},
	{
		"names": ["NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"],
		"severity": "info", "confidence": "possible",
		"why": "replaces what NCCL finds out about this machine; a file of another machine gives wrong paths",
	},
]

# networks are settings that choose the way to other machines.
networks := [
	{
		"names": ["NCCL_IB_DISABLE"], "unless": ["zero", "efa"], "when": ["rdma", "over-sockets"],
		"severity": "medium", "confidence": "likely",
		"why": "keeps NCCL from the RDMA NICs of this machine, RoCE as well as InfiniBand, and its log shows traffic over TCP",
	},
	{
		"names": ["NCCL_IB_DISABLE"], "unless": ["zero"], "when": ["infiniband"],
		"severity": "medium", "confidence": "likely",
		"why": "keeps NCCL from the InfiniBand NICs of this machine: traffic between machines goes over TCP",
	},
	{
		"names": ["NCCL_IB_DISABLE"], "unless": ["zero", "efa"], "when": ["rdma"],
		"severity": "low", "confidence": "possible",
		"why": "keeps NCCL from the RDMA NICs of this machine: traffic between machines goes over TCP",
	},
	{
		"names": ["NCCL_IB_DISABLE"], "unless": ["zero", "efa"], "when": ["over-sockets"],
		"severity": "low", "confidence": "possible",
		"why": "keeps NCCL from RDMA, RoCE as well as InfiniBand, if there is any here, and its log shows traffic over TCP",
	},
	{
		"names": ["NCCL_NET"], "text": ["socket"], "when": ["rdma"],
		"severity": "medium", "confidence": "likely",
		"why": "sends traffic between machines over TCP, though this machine has RDMA NICs",
	},
	{
		"names": ["NCCL_NET_PLUGIN"], "text": ["none"], "when": ["efa"],
		"severity": "high", "confidence": "likely",
		"why": "keeps NCCL from the plugin (aws-ofi-nccl) that EFA needs: traffic between machines goes over TCP",
	},
	{
		"names": ["NCCL_NET_PLUGIN"], "when": ["no-plugin"], "like": `^[^n]|^n[^o]`,
		"severity": "low", "confidence": "possible",
		"why": "names a network plugin, and no libnccl-net library is found here: NCCL goes on without it",
		"remedies": ["unset-env", "install-ofi-plugin"],
	},
	{
		"names": ["NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME"], "like": `^=?lo$`, "when": ["rdma"],
		"severity": "medium", "confidence": "possible",
		"why": "confines NCCL to the loopback interface: a job over several machines cannot start",
		"remedies": ["unset-env", "set-socket-ifname"],
	},
	{
		"names": ["NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME"], "like": `^=?lo$`,
		"severity": "low", "confidence": "possible",
		"why": "confines NCCL to the loopback interface: a job over several machines cannot start",
		"remedies": ["unset-env", "set-socket-ifname"],
	},
	{
		"names": ["NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME"], "like": `^=?(docker|virbr|br-|veth|cni|flannel)`,
		"severity": "medium", "confidence": "likely",
		"why": "names a bridge that other machines cannot reach",
		"remedies": ["unset-env", "set-socket-ifname"],
	},
	{
		"names": ["NCCL_SOCKET_IFNAME"], "when": ["image"], "like": `^=?[a-z]`,
		"severity": "low", "confidence": "possible",
		"why": "names an interface, and machines that run this image name theirs differently: where it is absent NCCL does not start",
	},
	{
		"names": ["NCCL_COMM_ID"], "like": `^(127\.|localhost|\[?::1)`, "when": ["rdma"],
		"severity": "medium", "confidence": "possible",
		"why": "has ranks meet at the loopback address: a job over several machines cannot start",
	},
	{
		"names": ["NCCL_COMM_ID"], "like": `^(127\.|localhost|\[?::1)`,
		"severity": "low", "confidence": "possible",
		"why": "has ranks meet at the loopback address: a job over several machines cannot start",
	},
	{
		"names": ["NCCL_NET_GDR_LEVEL"], "like": `^(LOC|0)$`, "when": ["rdma"],
		"severity": "medium", "confidence": "likely",
		"why": "switches GPUDirect RDMA off: traffic between machines goes through host memory",
		"remedies": ["unset-env", "set-net-gdr-level"],
	},
	{
		"names": ["NCCL_NET_GDR_LEVEL"], "like": `^(SYS|[45])$`, "when": ["rdma"],
		"severity": "info", "confidence": "possible",
		"why": "has NICs reach GPUs across sockets, which can be slower than through host memory",
		"remedies": ["unset-env", "set-net-gdr-level"],
	},
	{
		"names": ["NCCL_NET_GDR_READ", "NCCL_DMABUF_ENABLE", "NCCL_NET_GDR_C2C"], "is": [0], "when": ["rdma"],
		"severity": "low", "confidence": "possible",
		"why": "takes away a part of GPUDirect RDMA",
	},
	{
		"names": ["NCCL_IB_GID_INDEX"], "unless": ["zero"], "when": ["rdma", "nccl>=2.21"],
		"severity": "low", "confidence": "likely",
		"why": "fixes the index of a GID, which differs between NICs and changes with their addresses; since 2.21 NCCL finds it itself",
	},
	{
		"names": ["NCCL_IB_HCA"], "like": `^\^?([a-z0-9_:]+,)*[a-z0-9]+_[0-9](:[0-9]+)?(,|$)`, "when": ["many-nics"],
		"severity": "low", "confidence": "possible",
		"why": "matches by prefix, so that mlx5_1 selects mlx5_10 too; write =mlx5_1 for an exact match",
		"remedies": ["set-ib-hca"],
	},
	{
		"names": ["NCCL_IB_TIMEOUT"], "at_most": 13, "when": ["rdma"],
		"severity": "low", "confidence": "likely",
		"why": "has RDMA give up after less than 34 ms (4.096 us x 2^n); the default was never below 14, and is 20 since 2.23",
	},
	{
		"names": ["NCCL_IB_RETRY_CNT"], "at_most": 6, "when": ["rdma"],
		"severity": "low", "confidence": "likely",
		"why": "has RDMA give up after fewer retries than the default (7)",
	},
	{
		"names": ["NCCL_IB_PCI_RELAXED_ORDERING"], "is": [0], "when": ["rdma", "guest"],
		"severity": "low", "confidence": "likely",
		"why": "forbids relaxed ordering, without which RDMA is slow in virtual machines",
	},
	{
		"names": ["NCCL_PXN_DISABLE"], "unless": ["zero"], "when": ["rdma", "nvlink"],
		"severity": "low", "confidence": "likely",
		"why": "keeps NCCL from passing messages over NVLink to the GPU that is next to the right NIC",
	},
	{
		"names": ["FI_PROVIDER", "OFI_NCCL_PROVIDER"], "like": `(?i)^(tcp|sockets|udp)\b`, "when": ["efa"],
		"severity": "high", "confidence": "likely",
		"why": "keeps libfabric from EFA: traffic between machines goes over TCP",
		"source": efa_guide,
	},
	{
		# HPE's guide for RCCL and NCCL over Slingshot, as OLCF's users are told of
		# it; LUMI's guide says the same (LUMI-AI-Guide pull 118).
		"names": ["FI_MR_CACHE_MONITOR"], "text": ["memhooks"], "when": ["cxi"],
		"said": ["torch-watchdog-timeout", "torch-heartbeat-timeout"],
		"severity": "critical", "confidence": "likely",
		"why": "has libfabric watch memory by hooks in the allocator, with which NCCL and RCCL can hang over Slingshot (cxi), as the job did: HPE's guide asks for userfaultfd; kdreg2 follows it where it is installed",
		"remedies": ["other", "unset-env"],
		"source": "https://github.com/olcf/olcf-user-docs/issues/947",
	},
	{
		"names": ["FI_MR_CACHE_MONITOR"], "text": ["memhooks"], "when": ["cxi"],
		"severity": "low", "confidence": "possible",
		"why": "has libfabric watch memory by hooks in the allocator, with which NCCL and RCCL can hang over Slingshot (cxi); HPE's guide asks for userfaultfd; kdreg2 follows it where it is installed",
		"remedies": ["other", "unset-env"],
		"source": "https://github.com/olcf/olcf-user-docs/issues/947",
	},
	{
		"names": ["FI_EFA_USE_DEVICE_RDMA"], "text": ["0", "n", "no", "false", "off"], "when": ["efa"],
		"severity": "medium", "confidence": "likely",
		"why": "has EFA emulate RDMA, which is slow",
		"source": efa_guide,
	},
	{
		"names": ["OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK", "OFI_NCCL_DISABLE_NATIVE_RDMA_CHECK"], "unless": ["zero"],
		"severity": "low", "confidence": "possible",
		"why": "switches off a check of aws-ofi-nccl that would tell of a broken GPUDirect RDMA",
		"source": ofi_guide,
	},
	{
		"names": ["UCX_TLS"], "lacks": ["cuda", "cuda_copy", "cuda_ipc", "gdr_copy", "all", "gpu"], "when": ["nvidia"],
		"severity": "low", "confidence": "possible",
		"why": "lists the transports of UCX without cuda: MPI and UCX cannot move data of GPUs directly",
		"source": "https://openucx.readthedocs.io/en/master/faq.html",
	},
	{
		"names": ["UCX_TLS"], "lacks": ["rocm", "rocm_copy", "rocm_ipc", "all", "gpu"], "when": ["amd"], "unless": ["nvidia"],
		"severity": "low", "confidence": "possible",
		"why": "lists the transports of UCX without rocm: MPI and UCX cannot move data of GPUs directly",
		"source": "https://openucx.readthedocs.io/en/master/faq.html",
	},
]

# tuning are settings that force what NCCL and CUDA choose themselves.
tuning := [
	{
		"names": ["NCCL_PROTO"], "unless": ["protocols-known"],
		"severity": "high", "confidence": "likely",
		"why": "names a protocol that NCCL does not know (LL, LL128, Simple): since 2.24 it then refuses to start",
	},
	{
		"names": ["NCCL_ALGO"], "unless": ["algorithms-known"],
		"severity": "high", "confidence": "likely",
		"why": "names an algorithm that NCCL does not know (Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT): since 2.24 it then refuses to start",
	},
	{
		"names": ["NCCL_PROTO"], "like": `(?i)^([a-z]+:)?([a-z]+,)*LL128`, "unless": ["all-nvlink"],
		"severity": "medium", "confidence": "possible",
		"why": "forces LL128 also on paths that do not keep 128 bytes together: there it corrupts data",
	},
	{
		"names": ["NCCL_PROTO"], "text": ["ll"],
		"severity": "medium", "confidence": "likely",
		"why": "forces the protocol LL, which spends half of the bandwidth on flags",
	},
	{
		"names": ["NCCL_PROTO", "NCCL_ALGO"],
		"severity": "low", "confidence": "likely",
		"why": "overrides NCCL's choice by size and topology; it is meant for tests",
	},
	{
		"names": ["NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS"], "at_most": 4, "when": ["nvlink"], "unless": ["unset-number"],
		"severity": "medium", "confidence": "likely",
		"why": "leaves NCCL too few channels to fill NVLink",
	},
	{
		"names": ["NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS"], "at_most": 1, "unless": ["unset-number"],
		"severity": "low", "confidence": "possible",
		"why": "leaves NCCL one channel, which may not fill the links",
	},
	{
		"names": ["NCCL_NTHREADS"], "at_most": 128, "unless": ["unset-number"],
		"severity": "low", "confidence": "possible",
		"why": "gives NCCL's kernels fewer threads than links of today need",
	},
	{
		"names": ["NCCL_BUFFSIZE"], "at_most": 1048575, "unless": ["unset-number"],
		"severity": "low", "confidence": "possible",
		"why": "makes NCCL's buffers smaller than 1 MiB (the default is 4 MiB): large messages lose bandwidth",
	},
	{
		"names": ["CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING"], "unless": ["zero"],
		"severity": "medium", "confidence": "likely",
		"why": "makes each kernel launch wait: computing and communication no longer overlap, and ranks can deadlock",
		"source": "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#cuda-environment-variables",
	},
	{
		"names": ["NCCL_DEBUG"], "text": ["trace"],
		"severity": "info", "confidence": "likely",
		"why": "writes a great deal, which slows start-up; it is meant for a search for faults",
	},
	{
		"names": ["NCCL_DEBUG"], "text": ["version", "warn", "info", "abort", "none", "attn"], "silent": true,
	},
	{
		"names": ["NCCL_DEBUG"],
		"severity": "info", "confidence": "likely", "inert": true,
		"why": "is no level that NCCL knows (VERSION, WARN, INFO, ABORT, TRACE): nothing is written",
	},
	{
		"names": ["NCCL_IGNORE_CPU_AFFINITY", "NCCL_CUMEM_HOST_ENABLE"], "is": [0, 1], "silent": true,
	},
	{
		"names": ["NCCL_LAUNCH_MODE"], "text": ["group"],
		"severity": "info", "confidence": "likely",
		"why": "is deprecated since NCCL 2.9, and PARALLEL is the default",
	},
]

# dead are variables that nothing reads any more.
dead := [
	gone("NCCL_IB_CUDA_SUPPORT", "2.4", "NCCL_NET_GDR_LEVEL"),
	gone("NCCL_IB_GDR_LEVEL", "2.4", "NCCL_NET_GDR_LEVEL"),
	gone("NCCL_RINGS", "2.5", "NCCL_GRAPH_FILE"),
	gone("NCCL_LL_THRESHOLD", "2.5", "NCCL_PROTO"),
	gone("NCCL_TREE_THRESHOLD", "2.5", "NCCL_ALGO"),
	gone("NCCL_SINGLE_RING_THRESHOLD", "2.3", "nothing"),
	gone("NCCL_THREAD_THRESHOLD", "2.5", "NCCL_NTHREADS"),
	gone("NCCL_GRAPH", "2.6", "NCCL_GRAPH_FILE"),
	gone("NCCL_SHARED_BUFF_COUNT", "2.9", "nothing"),
	gone("NCCL_GDRCOPY_TAIL_ENABLE", "2.12", "nothing"),
	gone("NCCL_AGG_ALLOC_MODE", "2.13", "nothing"),
	gone("NCCL_AGG_CHANNEL_SIZE", "2.20", "nothing"),
	gone("NCCL_MNNVL", "2.21", "NCCL_MNNVL_ENABLE"),
	gone("NCCL_CUDA_PATH", "2.21", "LD_LIBRARY_PATH"),
	gone("NCCL_WORK_FIFO_DEPTH", "2.22", "NCCL_WORK_FIFO_BYTES"),
	gone("NCCL_PROXY_PROFILE", "2.23", "NCCL_PROFILER_PLUGIN"),
	{
		"names": ["NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT", "NCCL_DESYNC_DEBUG"],
		"severity": "info", "confidence": "likely",
		"why": "has a new name since PyTorch 2.2, with TORCH_ before it; the old one is deprecated",
		"source": torch_guide,
	},
	{
		"names": ["OFI_NCCL_ENDPOINT_PER_COMM"],
		"severity": "info", "confidence": "likely", "inert": true,
		"why": "is read by no present version of aws-ofi-nccl",
		"source": ofi_guide,
	},
]

# gone is the row of a variable that NCCL read before a version, and what took
# its place. With RCCL, which follows NCCL at a distance, little is lost by it.
gone(name, version, successor) := {
	"names": [name], "unless": [sprintf("nccl<%s", [version])],
	"severity": "info", "confidence": "likely", "inert": true,
	"why": sprintf("is not read any more since NCCL %s%s", [version, successor_remark(successor)]),
	"source": guide,
}

successor_remark("nothing") := ""

successor_remark(name) := sprintf(" (see %s)", [name]) if name != "nothing"

# others are settings of frameworks and runtimes.
others := [
	{
		"names": ["TORCH_NCCL_BLOCKING_WAIT"], "unless": ["zero"],
		"severity": "low", "confidence": "likely",
		"why": "makes the CPU wait in each collective, which PyTorch advises for tests only",
		"source": torch_guide,
	},
	{
		"names": ["TORCH_NCCL_ASYNC_ERROR_HANDLING"], "text": ["0"],
		"severity": "low", "confidence": "likely",
		"why": "has a job hang in place of ending when a collective fails",
		"source": torch_guide,
	},
	{
		"names": ["NVSHMEM_DISABLE_P2P"], "text": ["1", "y", "yes", "true", "on"], "when": ["p2p-proven"],
		"severity": "medium", "confidence": "likely", "measured": true,
		"why": "keeps NVSHMEM from peer access, which works here",
		"source": nvshmem_guide,
	},
	{
		"names": ["NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST"], "text": ["1", "y", "yes", "true", "on"], "when": ["multicast"],
		"severity": "info", "confidence": "likely",
		"why": "keeps symmetric memory from NVLink multicast",
		"source": nvshmem_guide,
	},
	{
		"names": ["HSA_ENABLE_SDMA", "HSA_ENABLE_PEER_SDMA"], "text": ["0", "false"], "when": ["amd"], "unless": ["one-gpu"],
		"severity": "low", "confidence": "possible",
		"why": "copies between GPUs with kernels in place of the copy engines; it is a workaround and slower for peer copies",
		"source": "https://rocm.docs.amd.com/projects/ROCR-Runtime/en/docs-7.1.1/environment_variables.html",
	},
	{
		"names": ["HSA_OVERRIDE_GFX_VERSION"], "when": ["amd"], "unless": ["one-gpu"],
		"severity": "low", "confidence": "possible",
		"why": "gives all GPUs one instruction set: with GPUs of different kinds kernels fail",
		"source": "https://rocm.docs.amd.com/projects/ROCR-Runtime/en/docs-7.1.1/environment_variables.html",
	},
]

# levels are the distances that NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL take, from
# the nearest (topoPathTypeStr of nccl src/graph/topo.cc).
levels := ["LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS"]

# old_levels are what their numbers mean (levelsOldToNew, src/graph/paths.cc).
old_levels := ["LOC", "PIX", "PXB", "PHB", "SYS", "SYS"]

# path_levels are the words of nvidia-smi in those of NCCL, which has one
# processor per NUMA node.
path_levels := {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS"}

# algorithms and protocols are the names that NCCL_ALGO and NCCL_PROTO take, in
# lower case (ncclAlgoStr and ncclProtoStr, src/init.cc; "collnet" was taken
# until 2.13).
algorithms := {"tree", "ring", "collnetdirect", "collnetchain", "collnet", "nvls", "nvlstree", "pat"}

protocols := {"ll", "ll128", "simple"}

# known are the names of all variables that NCCL 1.2 to 2.30 and RCCL 2.21 read
# (from their sources), without NCCL_, and those that builds, images and PyTorch
# set beside them.
known := {concat("", ["NCCL_", n]) | some n in regex.split(`\s+`, trim_space(known_names))}

known_names := `
AGG_ALLOC_MODE AGG_CHANNEL_SIZE ALGO ALLGATHERV_ENABLE ALLOC_P2P_NET_LL_BUFFERS
ASYNC_ERROR_HANDLING BLOCKING_WAIT BUFFSIZE CGA_CLUSTER_SIZE CHECK_MODE CHECK_POINTERS
CHUNK_SIZE CLIQUE_ALLREDUCE_BYTE_LIMIT CLIQUE_ALLREDUCE_NCHANNELS CLIQUE_IGNORE_TOPO
COLLNET_ENABLE COLLNET_NODE_THRESHOLD COMM_BLOCKING COMM_ID
COMM_SHRINK_SHARE_RESOURCES COMM_SPLIT_SHARE_RESOURCES CONF_FILE
CONNECT_ROUND_MAX_PEERS CREATE_THREAD_CONTEXT CROSS_NIC CTA_POLICY CUDA_PATH
CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG DEBUG_FILE DEBUG_SUBSYS DEBUG_TIMESTAMP_FORMAT
DEBUG_TIMESTAMP_LEVELS DESYNC_DEBUG DEV_API_JIT DIR DISABLE_MEM_MANAGER DMABUF_ENABLE
DYNAMIC_CHUNK_SIZE ELASTIC_BUFFER_REGISTER ENABLE_CLIQUE ENABLE_INTRANET
ENABLE_SIGNALHANDLER ENABLE_VERSION_CHECK ENV_PLUGIN FASTRAK_CTRL_DEV FASTRAK_IFNAME
FORCE_ENABLE_GDRDMA GDAKI_USE_RELIABLE_DB GDRCOPY_ENABLE GDRCOPY_FIFO_ENABLE
GDRCOPY_FLUSH_ENABLE GDRCOPY_SYNC_ENABLE GDRCOPY_TAIL_ENABLE GDR_FLUSH_DISABLE
GIN_CONNECTION_RAIL GIN_COUNTER_POOL_SIZE GIN_ENABLE GIN_ERROR_QUERY_SEC
GIN_EXCLUSIVE_CONTEXTS GIN_GDAKI_MAX_DEST_RD_ATOMIC GIN_GDAKI_MAX_QP_RD_ATOMIC
GIN_GDAKI_NIC_HANDLER GIN_GDAKI_QP_DEPTH GIN_IB_TC GIN_NCONNECTIONS GIN_NCONTEXTS
GIN_PLUGIN GIN_PLUGIN_REF_COUNT GIN_PROXY_QUEUE_SIZE GIN_SIGNAL_POOL_SIZE GIN_TYPE
GRAPH GRAPH_DUMP_FILE GRAPH_DUMP_FILE_RANK GRAPH_FILE GRAPH_HELPER_DISABLE
GRAPH_MIXING_SUPPORT GRAPH_REGISTER GRAPH_STREAM_ORDERING GROUP_CUDA_STREAM HOME
HOSTID IBVERBS_LIB IB_ADAPTIVE_ROUTING IB_ADDR_FAMILY IB_ADDR_RANGE IB_AR_THRESHOLD
IB_CUDA_SUPPORT IB_DATA_DIRECT IB_DEVICE_PCI_ORDER IB_DISABLE IB_ECE_ENABLE IB_FIFO_TC
IB_GDR_LEVEL IB_GID_INDEX IB_HCA IB_MERGE_NICS IB_MERGE_VFS IB_MQP_RETRY_ALL
IB_MQP_RETRY_CNT IB_MQP_RETRY_SLEEP_MSEC IB_OOO_RQ IB_PCI_RELAXED_ORDERING IB_PKEY
IB_PREPOST_RECEIVE_WORK_REQUESTS IB_QPS_PER_CONNECTION IB_QUERY_PORT_SPEED
IB_RECEIVER_SIDE_MATCHING_SCHEME IB_RESILIENCY_PORT_FAILOVER
IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY
IB_RESILIENCY_PORT_RECOVERY IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX
IB_RESILIENCY_PORT_RECOVERY_START_DELAY IB_RETRY_CNT IB_RETURN_ASYNC_EVENTS
IB_ROCE_VERSION_NUM IB_ROUTABLE_FLID_GID_INDEX IB_SL IB_SPLIT_DATA_ON_QPS
IB_SUBNET_AWARE_ROUTING IB_SUBNET_PREFIX_LEN IB_TC IB_TIMEOUT IB_USE_INLINE
IB_WARN_RAIL_LOCAL IGNORE_COLLNET_MISMATCH IGNORE_CPU_AFFINITY IGNORE_DISABLED_P2P
IGNORE_NET_MISMATCH INCLUDE_DIR INSPECTOR_COLL_POOL_SIZE INSPECTOR_COMM_POOL_SIZE
INSPECTOR_DUMP_COLL_RING_SIZE INSPECTOR_DUMP_DIR INSPECTOR_DUMP_MIN_SIZE_BYTES
INSPECTOR_DUMP_P2P_RING_SIZE INSPECTOR_DUMP_THREAD_ENABLE
INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS INSPECTOR_DUMP_VERBOSE INSPECTOR_ENABLE
INSPECTOR_ENABLE_P2P INSPECTOR_P2P_POOL_SIZE INSPECTOR_POOL_GROW INSPECTOR_PROM_DUMP
INSPECTOR_REQUIRE_KERNEL_TIMING INTRANET_THRESHOLD IPC_USE_ABSTRACT_SOCKET
KERNEL_COLL_TRACE_ENABLE L1_SHARED_MEMORY_CARVEOUT LAUNCH_MODE LAUNCH_ORDER_IMPLICIT
LAUNCH_RACE_FATAL LEGACY_CUDA_REGISTER LIBRARY LIB_DIR LL128_BUFFSIZE LL128_C2C
LL128_FORCE_ENABLE LL128_NTHREADS LL_BUFFSIZE LL_THRESHOLD LOCAL_REGISTER
LSA_TEAM_SIZE MAX_CTAS MAX_NCHANNELS MAX_NRINGS MAX_P2P_NCHANNELS MEM_SYNC_DOMAIN
MIN_CTAS MIN_NCHANNELS MIN_NRINGS MIN_P2P_NCHANNELS MLOPART_RDMA_ENABLE MNNVL
MNNVL_CLIQUE_ID MNNVL_CROSS_CLIQUE MNNVL_ENABLE MNNVL_RAIL_PER_HOST
MNNVL_SCATTER_NETS_ENABLE MNNVL_UUID MODEL_MATCHING_DISABLE MSCCLPP_ENABLE
MSCCLPP_THRESHOLD MSCCL_ENABLE MSCCL_ENABLE_SINGLE_PROCESS MSCCL_FORCE_ENABLE
MSCCL_FORCE_FULLOPS MSCCL_WORK_FIFO_DEPTH MULTI_RANK_GPU_ENABLE MULTI_SEGMENT_REGISTER
NCHANNELS_PER_NET_PEER NCHANNELS_PER_PEER NET NETDEVS_POLICY NET_CONTIGUOUS_MEM
NET_DISABLE_INTRA NET_FORCE_FLUSH NET_FORCE_MERGE NET_GDR_C2C NET_GDR_LEVEL
NET_GDR_MLOPART NET_GDR_READ NET_MERGE_LEVEL NET_MERGE_POLICY
NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD NET_PLUGIN NET_PLUGIN_REF_COUNT
NET_SHARED_BUFFERS NET_SHARED_COMMS NO_CACHE NSOCKS_PERTHREAD NTHREADS NUM_RMA_CTX
NVB_DISABLE NVB_PRECONNECT NVLINK_UTIL_CENTRIC_SCHED_ENABLE NVLSTREE_MAX_CHUNKSIZE
NVLS_CHUNKSIZE NVLS_ENABLE NVLS_NCHANNELS NVTX_DISABLE OOB_NET_ENABLE OOB_NET_IFNAME
P2P_DIRECT_DISABLE P2P_DISABLE P2P_EPOCH_ENABLE P2P_LEVEL P2P_LL_THRESHOLD
P2P_MAX_PEERS P2P_NET_CHUNKSIZE P2P_NET_DISABLE P2P_NET_THRESHOLD P2P_NVL_CHUNKSIZE
P2P_PCI_CHUNKSIZE P2P_PER_CHANNEL_NET_BW P2P_PXN_LEVEL P2P_READ_ENABLE
P2P_SCHEDULE_GROUP_SIZE P2P_USE_CUDA_MEMCPY PARAM_DUMP_ALL PAT_ENABLE
PIVOT_ALLTOALL_ENABLE PROFILER_CE_POLLER_INTERVAL_MICROSECONDS PROFILER_CE_TIMING
PROFILER_PLUGIN PROFILE_CE_BATCH_POOL_SIZE PROFILE_CE_COLL_POOL_SIZE
PROFILE_CE_SYNC_POOL_SIZE PROFILE_COLL_API_POOL_SIZE PROFILE_COLL_POOL_SIZE
PROFILE_DUMP_FILE PROFILE_EVENT_MASK PROFILE_GROUP_API_POOL_SIZE
PROFILE_GROUP_POOL_SIZE PROFILE_KERNEL_LAUNCH_POOL_SIZE PROFILE_P2P_API_POOL_SIZE
PROFILE_P2P_POOL_SIZE PROFILE_PROXY_CTRL_POOL_SIZE PROFILE_PROXY_DETACH_POOL_SIZE
PROGRESS_APPENDOP_FREQ PROTO PROXY_APPEND_BATCH_SIZE PROXY_CPUSET PROXY_DUMP_SIGNAL
PROXY_PROFILE PXN_C2C PXN_DISABLE RAS_ADDR RAS_ENABLE RAS_TIMEOUT_FACTOR
REPORT_CONNECT_PROGRESS RINGS RINGS_REMAP RMA_DISABLE RMA_PLUGIN RMA_PLUGIN_REF_COUNT
RMA_PROXY_DUMP_SIGNAL RMA_PROXY_QUEUE_SIZE ROOT ROOT_DIR RUNTIME_CONNECT
SET_CPU_STACK_SIZE SET_STACK_SIZE SET_THREAD_NAME SHADOW_MEMPOOL_MAX_SIZE
SHARED_BUFF_COUNT SHM_DISABLE SHM_LOCALITY SHM_MEMCPY_MODE SHM_USE_CUDA_MEMCPY
SINGLE_PROC_MEM_REG_ENABLE SINGLE_RING_THRESHOLD SOCKET_FAMILY SOCKET_IFNAME
SOCKET_INLINE SOCKET_MAGIC SOCKET_MIN_TASKSIZE SOCKET_NTHREADS
SOCKET_POLL_TIMEOUT_MSEC SOCKET_RCVBUF SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC
SOCKET_SNDBUF STACK_SIZE_OVERRIDE SYM_CE_THRESHOLD SYM_CTAS SYM_GIN_KERNELS_ENABLE
SYM_KERNEL SYM_NOWIN_ENABLE SYM_REUSE_SYSMEM_HANDLES SYM_RS_GIN_CHUNK_SIZE
SYM_TMA_ENABLE THREAD_THRESHOLD THREAD_THRESHOLDS TOPO_DUMP_FILE TOPO_DUMP_FILE_RANK
TOPO_FILE TOPO_SPLIT_MLOPART TREE_THRESHOLD TUNER_CONFIG_FILE TUNER_PLUGIN
UID_STAGGER_RATE UID_STAGGER_THRESHOLD UNPACK_DOUBLE_NCHANNELS USE_COMM_NONBLOCKING
USE_ROCM_SMI_LIB VERSION WARN_ENABLE_DEBUG_INFO WIN_ENABLE WIN_STRIDE WORK_ARGS_BYTES
WORK_FIFO_BYTES WORK_FIFO_DEPTH
`

# numbers are those of them that NCCL reads as a number (NCCL_PARAM).
numbers := {concat("", ["NCCL_", n]) | some n in regex.split(`\s+`, trim_space(number_names))}

number_names := `
ALLGATHERV_ENABLE ALLOC_P2P_NET_LL_BUFFERS BUFFSIZE CGA_CLUSTER_SIZE CHECK_POINTERS
CHUNK_SIZE COLLNET_ENABLE COLLNET_NODE_THRESHOLD COMM_BLOCKING
COMM_SHRINK_SHARE_RESOURCES COMM_SPLIT_SHARE_RESOURCES CONNECT_ROUND_MAX_PEERS
CROSS_NIC CUMEM_ENABLE CUMEM_HOST_ENABLE DEV_API_JIT DISABLE_MEM_MANAGER DMABUF_ENABLE
ELASTIC_BUFFER_REGISTER ENABLE_VERSION_CHECK GDAKI_USE_RELIABLE_DB GDRCOPY_ENABLE
GDRCOPY_FIFO_ENABLE GDRCOPY_FLUSH_ENABLE GDRCOPY_SYNC_ENABLE GDR_FLUSH_DISABLE
GIN_ENABLE GIN_ERROR_QUERY_SEC GIN_GDAKI_MAX_DEST_RD_ATOMIC GIN_GDAKI_MAX_QP_RD_ATOMIC
GIN_GDAKI_NIC_HANDLER GIN_GDAKI_QP_DEPTH GIN_IB_TC GIN_NCONNECTIONS
GIN_PLUGIN_REF_COUNT GIN_PROXY_QUEUE_SIZE GIN_TYPE GRAPH_DUMP_FILE_RANK
GRAPH_HELPER_DISABLE GRAPH_MIXING_SUPPORT GRAPH_REGISTER GRAPH_STREAM_ORDERING
GROUP_CUDA_STREAM IB_ADAPTIVE_ROUTING IB_AR_THRESHOLD IB_DATA_DIRECT
IB_DEVICE_PCI_ORDER IB_DISABLE IB_ECE_ENABLE IB_FIFO_TC IB_GID_INDEX IB_MERGE_NICS
IB_MERGE_VFS IB_MQP_RETRY_ALL IB_MQP_RETRY_CNT IB_MQP_RETRY_SLEEP_MSEC IB_OOO_RQ
IB_PCI_RELAXED_ORDERING IB_PKEY IB_PREPOST_RECEIVE_WORK_REQUESTS IB_QPS_PER_CONNECTION
IB_QUERY_PORT_SPEED IB_RECEIVER_SIDE_MATCHING_SCHEME IB_RESILIENCY_PORT_FAILOVER
IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY
IB_RESILIENCY_PORT_RECOVERY IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE
IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX
IB_RESILIENCY_PORT_RECOVERY_START_DELAY IB_RETRY_CNT IB_RETURN_ASYNC_EVENTS
IB_ROCE_VERSION_NUM IB_ROUTABLE_FLID_GID_INDEX IB_SL IB_SPLIT_DATA_ON_QPS
IB_SUBNET_AWARE_ROUTING IB_SUBNET_PREFIX_LEN IB_TC IB_TIMEOUT IB_USE_INLINE
IB_WARN_RAIL_LOCAL IGNORE_COLLNET_MISMATCH IGNORE_CPU_AFFINITY IGNORE_DISABLED_P2P
IGNORE_NET_MISMATCH IPC_USE_ABSTRACT_SOCKET L1_SHARED_MEMORY_CARVEOUT
LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL LEGACY_CUDA_REGISTER LL128_BUFFSIZE LL128_C2C
LL128_NTHREADS LL_BUFFSIZE LOCAL_REGISTER LSA_TEAM_SIZE MAX_CTAS MAX_NCHANNELS
MAX_NRINGS MAX_P2P_NCHANNELS MEM_SYNC_DOMAIN MIN_CTAS MIN_NCHANNELS MIN_NRINGS
MIN_P2P_NCHANNELS MLOPART_RDMA_ENABLE MNNVL_CLIQUE_ID MNNVL_CROSS_CLIQUE MNNVL_ENABLE
MNNVL_RAIL_PER_HOST MNNVL_SCATTER_NETS_ENABLE MNNVL_UUID MULTI_RANK_GPU_ENABLE
MULTI_SEGMENT_REGISTER NCHANNELS_PER_NET_PEER NET_DISABLE_INTRA NET_FORCE_FLUSH
NET_GDR_C2C NET_GDR_MLOPART NET_GDR_READ NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD
NET_PLUGIN_REF_COUNT NET_SHARED_BUFFERS NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS
NUM_RMA_CTX NVB_DISABLE NVB_PRECONNECT NVLINK_UTIL_CENTRIC_SCHED_ENABLE
NVLSTREE_MAX_CHUNKSIZE NVLS_CHUNKSIZE NVLS_ENABLE NVLS_NCHANNELS NVTX_DISABLE
OOB_NET_ENABLE P2P_DIRECT_DISABLE P2P_EPOCH_ENABLE P2P_LL_THRESHOLD P2P_MAX_PEERS
P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PER_CHANNEL_NET_BW
P2P_PXN_LEVEL P2P_READ_ENABLE P2P_SCHEDULE_GROUP_SIZE P2P_USE_CUDA_MEMCPY PAT_ENABLE
PROGRESS_APPENDOP_FREQ PROXY_APPEND_BATCH_SIZE PROXY_DUMP_SIGNAL PXN_C2C PXN_DISABLE
RAS_ENABLE RAS_TIMEOUT_FACTOR REPORT_CONNECT_PROGRESS RMA_DISABLE RMA_PLUGIN_REF_COUNT
RMA_PROXY_DUMP_SIGNAL RMA_PROXY_QUEUE_SIZE RUNTIME_CONNECT SET_CPU_STACK_SIZE
SET_STACK_SIZE SHADOW_MEMPOOL_MAX_SIZE SHM_DISABLE SHM_LOCALITY
SINGLE_PROC_MEM_REG_ENABLE SOCKET_INLINE SOCKET_MIN_TASKSIZE SOCKET_NTHREADS
SOCKET_POLL_TIMEOUT_MSEC SOCKET_RCVBUF SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC
SOCKET_SNDBUF SYM_CE_THRESHOLD SYM_CTAS SYM_GIN_KERNELS_ENABLE SYM_NOWIN_ENABLE
SYM_REUSE_SYSMEM_HANDLES SYM_RS_GIN_CHUNK_SIZE SYM_TMA_ENABLE TOPO_DUMP_FILE_RANK
TOPO_SPLIT_MLOPART UID_STAGGER_RATE UID_STAGGER_THRESHOLD UNPACK_DOUBLE_NCHANNELS
WIN_ENABLE WIN_STRIDE WORK_ARGS_BYTES WORK_FIFO_BYTES
`

# misspelt are names that people write and nothing reads, beyond those that are
# one letter away from a real one or have its words in another order.
misspelt := {
	"NCCL_P2P_ENABLE": "NCCL_P2P_DISABLE",
	"NCCL_IB_ENABLE": "NCCL_IB_DISABLE",
	"NCCL_SHM_ENABLE": "NCCL_SHM_DISABLE",
	"NCCL_NVLS_DISABLE": "NCCL_NVLS_ENABLE",
	"NCCL_CUMEM_DISABLE": "NCCL_CUMEM_ENABLE",
	"NCCL_NVLINK_DISABLE": "NCCL_P2P_DISABLE",
	"NCCL_IFNAME": "NCCL_SOCKET_IFNAME",
	"NCCL_NET_IFNAME": "NCCL_SOCKET_IFNAME",
	"NCCL_INTERFACE": "NCCL_SOCKET_IFNAME",
	"NCCL_IB_IFNAME": "NCCL_IB_HCA",
	"NCCL_HCA": "NCCL_IB_HCA",
	"NCCL_GDR_LEVEL": "NCCL_NET_GDR_LEVEL",
	"NCCL_GDR_READ": "NCCL_NET_GDR_READ",
	"NCCL_GID_INDEX": "NCCL_IB_GID_INDEX",
	"NCCL_LOG_LEVEL": "NCCL_DEBUG",
	"NCCL_BUFFER_SIZE": "NCCL_BUFFSIZE",
	"NCCL_PROTOCOL": "NCCL_PROTO",
	"NCCL_ALGORITHM": "NCCL_ALGO",
}
