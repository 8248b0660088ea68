# METADATA
# title: Faults that versions of libraries have
# description: >-
#   A table of faults of NCCL, RCCL, ROCm and PyTorch that came with a version
#   or went with one, how each shows, and what helps; and the versions that the
#   texts or this machine show. The rules nccl-bug, rccl-bug and cumem-host read
#   it.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.known_faults

import data.gpudoctor.lib.logs
import data.gpudoctor.lib.surroundings

# rows are the faults.
#
#   id          of the row, for the finding's parameters
#   library     whose version counts: "nccl", "rccl", "rocm"
#   since       the first version that has it; left out: all before fixed
#   fixed       the first version that does not; left out: none is known
#   said        messages of which one must be there (ids of the catalogue)
#   lacks       a field that the message must not have
#   telltale    true: only versions with the fault say that, so that the
#               version need not be known
#   symptom     "hang", "crash", "corrupt", "fail": what a log must show
#               otherwise
#   when        circumstances that must be known to hold (holds, below)
#   confidence  "likely" where the message or the circumstances are particular
#               to the fault, "possible" where a mere symptom is
#   severity    default: high
#   fault       default: id; rows of one fault that show in different ways
#   what        to follow "NCCL 2.14.3 "
#   remedies
#   source
rows := array.concat(told, array.concat(architectures, array.concat(hangs, array.concat(failures, amd))))

notes(version) := sprintf("https://github.com/NVIDIA/nccl/releases/tag/v%s-1", [version])

# told are faults that state themselves.
told := [
	{
		"id": "nvlinks-beyond-twelve", "library": "nccl", "since": "2.7.3", "fixed": "2.15.1",
		"said": ["nccl-topo-no-reverse-path"], "confidence": "likely", "severity": "critical",
		"what": "looks at 12 NVLinks of a GPU at most (src/graph/xml.cc); Hopper has 18, so that it sees links one way and not back",
		"remedies": ["upgrade-nccl"], "source": notes("2.15.1"),
	},
	{
		"id": "nvlinks-beyond-six", "library": "nccl", "fixed": "2.7.3",
		"said": ["nccl-topo-no-reverse-path"], "confidence": "likely", "severity": "critical",
		"what": "looks at 6 NVLinks of a GPU at most (src/graph/xml.cc); Ampere has 12",
		"remedies": ["upgrade-nccl"], "source": notes("2.7.3"),
	},
	{
		"id": "blackwell-shared-memory", "library": "nccl", "since": "2.25.1", "fixed": "2.26.2",
		"said": ["nccl-shared-memory-exceeded"], "lacks": "arch", "telltale": true, "confidence": "confirmed", "severity": "critical",
		"what": "asks for more shared memory than Blackwell GPUs of compute capability 12.0 have, and its kernels fail with «invalid argument»",
		"remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl-tests/issues/287",
	},
	{
		"id": "unknown-pci-class", "library": "nccl", "since": "2.6.4", "fixed": "2.7.3",
		"said": ["nccl-topo-unknown-value"], "telltale": true, "confidence": "confirmed", "severity": "critical",
		"what": "gives up at a PCI class or a link speed that it does not know; newer ones take a default",
		"remedies": ["upgrade-nccl", "downgrade-nccl"], "source": "https://github.com/NVIDIA/nccl/issues/326",
	},
	{
		"id": "merged-nics-fallback", "library": "nccl", "since": "2.24.3", "fixed": "2.27.3",
		"said": ["nccl-topo-no-net-id"], "telltale": true, "confidence": "likely", "severity": "critical",
		"what": "merges NICs and, where it finds no tree between GPUs and NICs, falls back to NIC 0, which no longer exists then",
		"remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl/issues/1748",
	},
	{
		"id": "no-code-for-gpu", "library": "nccl",
		"said": ["nccl-cuda-no-kernel-image"], "telltale": true, "confidence": "likely", "severity": "critical",
		"what": "holds no code for this GPU: it is older than the GPU's architecture, or was built without it",
		"remedies": ["upgrade-nccl"], "source": "https://docs.nvidia.com/deeplearning/nccl/release-notes/index.html",
	},
]

# architectures are first versions that know a generation of GPUs.
architectures := [
	{
		"id": "before-ampere", "library": "nccl", "fixed": "2.7.3", "when": ["ampere"], "symptom": "fail", "confidence": "likely",
		"what": "is older than the support of Ampere (2.7.3)", "remedies": ["upgrade-nccl"], "source": notes("2.7.3"),
	},
	{
		"id": "before-hopper", "library": "nccl", "fixed": "2.15.1", "when": ["hopper"], "symptom": "fail", "confidence": "likely",
		"what": "is older than the support of Hopper (2.15.1)", "remedies": ["upgrade-nccl"], "source": notes("2.15.1"),
	},
	{
		"id": "before-blackwell", "library": "nccl", "fixed": "2.25.1", "when": ["blackwell"], "symptom": "fail", "confidence": "likely",
		"what": "is older than the support of Blackwell (2.25.1)", "remedies": ["upgrade-nccl"], "source": notes("2.25.1"),
	},
	{
		"id": "blackwell-workstation", "fault": "blackwell-shared-memory", "library": "nccl", "since": "2.25.1", "fixed": "2.26.2", "when": ["blackwell-12"], "symptom": "fail", "confidence": "likely",
		"what": "asks for more shared memory than Blackwell GPUs of compute capability 12.0 have", "remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl/issues/1637",
	},
	{
		"id": "before-spark", "library": "nccl", "fixed": "2.27.3", "when": ["spark"], "symptom": "fail", "confidence": "likely",
		"what": "is older than the support of DGX Spark (2.27.3)", "remedies": ["upgrade-nccl"], "source": notes("2.27.3"),
	},
	{
		"id": "fp8-kernels-before-blackwell", "library": "nccl", "since": "2.27.5", "fixed": "2.27.7", "when": ["before-blackwell"], "symptom": "fail", "confidence": "possible", "severity": "medium",
		"what": "may fail to start as it loads symmetric kernels for fp8 on GPUs older than Blackwell", "remedies": ["upgrade-nccl"], "source": notes("2.27.7"),
	},
]

# hangs are faults by which a job stands still without a word.
hangs := [
	{
		"id": "arm-proxy-slots", "library": "nccl", "fixed": "2.29.3", "when": ["arm"], "symptom": "hang", "confidence": "likely",
		"what": "loses slots of its queue on ARM processors until it stands still (a weak compare-and-swap, when built with gcc before 10)",
		"remedies": ["upgrade-nccl"], "source": notes("2.29.3"),
	},
	{
		"id": "proxy-order", "library": "nccl", "since": "2.28.3", "fixed": "2.28.9", "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "can hang at large scale, as the main and the proxy thread order operations differently", "remedies": ["upgrade-nccl"], "source": notes("2.28.9"),
	},
	{
		"id": "regression-2-29-2", "library": "nccl", "since": "2.29.2", "fixed": "2.29.3", "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "has a fault by which it can hang, for which PyTorch left this version out", "remedies": ["upgrade-nccl"], "source": "https://github.com/pytorch/pytorch/pull/174338",
	},
	{
		"id": "nvls-silent-fallback", "library": "nccl", "since": "2.27.3", "fixed": "2.29.2", "when": ["nvswitch"], "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "goes on without NVLS on the rank where NVLS fails to start while others use it, which hangs (NCCL_NVLS_ENABLE=0 avoids it)", "remedies": ["upgrade-nccl"],
		"source": "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-nvls-enable",
	},
	{
		"id": "work-queue-leak", "library": "nccl", "fixed": "2.22.3", "said": ["nccl-work-queue-full"], "confidence": "possible",
		"what": "loses room in its queue of work as CUDA graphs are launched, until all ranks wait for it for ever", "remedies": ["upgrade-nccl"],
		"source": "https://github.com/NVIDIA/nccl/issues/1251",
	},
	{
		"id": "mixed-gpus", "library": "nccl", "fixed": "2.26.2", "when": ["mixed-gpus"], "symptom": "hang", "confidence": "likely",
		"what": "can choose different algorithms on GPUs of different architectures, which hangs", "remedies": ["upgrade-nccl", "nccl-algo"], "source": notes("2.26.2"),
	},
	{
		"id": "mixed-cpus", "library": "nccl", "fixed": "2.22.3", "when": ["several-hosts"], "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "can hang when the nodes have processors of different types", "remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl/issues/1136",
	},
	{
		"id": "alltoall-cumem", "library": "nccl", "since": "2.19.1", "fixed": "2.20.3", "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "can hang as ranks connect for an all-to-all, when it allocates through cuMem (the default since 2.19)", "remedies": ["upgrade-nccl", "nccl-cumem-disable"], "source": "https://github.com/NVIDIA/nccl/issues/1116",
	},
	{
		"id": "split-share-connect", "library": "nccl", "since": "2.18.1", "fixed": "2.26.2", "when": ["split"], "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "can hang while it connects communicators that were split and share resources", "remedies": ["upgrade-nccl"], "source": notes("2.26.2"),
	},
	{
		"id": "launch-blocking", "library": "nccl", "since": "2.14.3", "fixed": "2.17.1", "when": ["launch-blocking"], "symptom": "hang", "confidence": "likely",
		"what": "hangs with CUDA_LAUNCH_BLOCKING=1", "remedies": ["upgrade-nccl", "unset-env"], "source": "https://github.com/NVIDIA/nccl/issues/750",
	},
	{
		"id": "hopper-ll128-pair", "library": "nccl", "since": "2.15.1", "fixed": "2.15.5", "when": ["hopper"], "symptom": "hang", "confidence": "likely",
		"what": "hangs on two Hopper GPUs with Ring and LL128", "remedies": ["upgrade-nccl", "nccl-proto"], "source": notes("2.15.5"),
	},
	{
		"id": "socket-shutdown", "library": "nccl", "since": "2.14.3", "fixed": "2.17.1", "symptom": "hang", "confidence": "possible", "severity": "low",
		"what": "does not always close its sockets so that the others notice, which can hang", "remedies": ["upgrade-nccl"], "source": "https://github.com/pytorch/pytorch/pull/97843",
	},
	{
		"id": "cubemesh", "library": "nccl", "since": "2.8.3", "fixed": "2.12.12", "when": ["cubemesh"], "symptom": "hang", "confidence": "likely",
		"what": "hangs on machines whose NVLinks form a cube mesh, without NVSwitch (DGX-1)", "remedies": ["upgrade-nccl"], "source": notes("2.12.12"),
	},
	{
		"id": "one-gpu-a-node", "library": "nccl", "since": "2.5.6", "fixed": "2.8.3", "when": ["several-hosts"], "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "can choose different protocols on different ranks with one GPU a node, which hangs or crashes", "remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl/issues/394",
	},
	{
		"id": "plugin-test-error", "library": "nccl", "fixed": "2.26.2", "when": ["net-plugin"], "symptom": "hang", "confidence": "possible", "severity": "low",
		"what": "hangs in place of failing when the network plugin returns an error", "remedies": ["upgrade-nccl"], "source": notes("2.26.2"),
	},
	{
		"id": "mnnvl-eighty-ranks", "library": "nccl", "since": "2.25.1", "fixed": "2.26.5", "when": ["grace-blackwell"], "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "can hang in all-to-all patterns over more than 80 ranks of multi-node NVLink", "remedies": ["upgrade-nccl"], "source": notes("2.26.5"),
	},
	{
		"id": "gdr-off-cx8", "library": "nccl", "since": "2.27.3", "fixed": "2.29.2", "when": ["grace-blackwell", "gdr-off"], "symptom": "hang", "confidence": "likely",
		"what": "hangs on GB200 and GB300 with ConnectX-8 when GPUDirect RDMA is switched off", "remedies": ["upgrade-nccl", "unset-env"], "source": notes("2.29.2"),
	},
]

# failures are faults that crash, fail or corrupt.
failures := [
	{
		"id": "bus-error-shm", "library": "nccl", "since": "2.5.6", "fixed": "2.19.1", "said": ["process-bus-error"], "confidence": "possible", "severity": "low",
		"what": "dies of a bus error where newer ones say that /dev/shm is too small", "remedies": ["upgrade-nccl"], "source": notes("2.19.1"),
	},
	{
		"id": "shm-creation-crash", "library": "nccl", "fixed": "2.18.3", "symptom": "crash", "confidence": "possible", "severity": "low",
		"what": "crashes where a file in shared memory cannot be created", "remedies": ["upgrade-nccl"], "source": notes("2.18.3"),
	},
	{
		"id": "nvls-dual-port-heap", "library": "nccl", "since": "2.18.1", "fixed": "2.20.3", "said": ["heap-corrupted"], "confidence": "likely",
		"what": "overruns its heap when it builds NVLS over several nodes whose NICs have two ports", "remedies": ["upgrade-nccl", "nccl-nvls-disable"], "source": "https://github.com/NVIDIA/nccl/issues/1043",
	},
	{
		"id": "numa-minus-one", "library": "nccl", "fixed": "2.23.4", "when": ["numa-unknown"], "symptom": "crash", "confidence": "likely",
		"what": "crashes where a device has no NUMA node (-1), as with virtual NICs", "remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl-tests/issues/233",
	},
	{
		"id": "nvls-registration-crash", "library": "nccl", "since": "2.27.3", "fixed": "2.28.7", "when": ["expandable-segments", "nvswitch"], "symptom": "crash", "confidence": "likely",
		"what": "can crash after it failed to register buffers of another allocator (expandable segments) for NVLS", "remedies": ["upgrade-nccl", "unset-env"], "source": notes("2.28.7"),
	},
	{
		"id": "ras-crash", "library": "nccl", "since": "2.24.3", "fixed": "2.27.3", "symptom": "crash", "confidence": "possible", "severity": "low",
		"what": "can crash in its RAS thread at the start or the end of a job (NCCL_RAS_ENABLE=0 avoids it)", "remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl/issues/1718",
	},
	{
		"id": "symmetric-small-messages", "library": "nccl", "since": "2.27.3", "fixed": "2.28.7", "symptom": "corrupt", "confidence": "possible", "severity": "medium",
		"what": "can corrupt small messages in its symmetric kernels", "remedies": ["upgrade-nccl"], "source": notes("2.28.7"),
	},
	{
		"id": "symmetric-unaligned", "library": "nccl", "since": "2.27.3", "fixed": "2.30.3", "symptom": "corrupt", "confidence": "possible", "severity": "medium",
		"what": "can corrupt data in its symmetric kernels with buffers that are not aligned", "remedies": ["upgrade-nccl"], "source": notes("2.30.3"),
	},
	{
		"id": "tree-ll128", "library": "nccl", "fixed": "2.18.3", "symptom": "corrupt", "confidence": "possible", "severity": "medium",
		"what": "can corrupt data with Tree and LL128 where each GPU has a NIC", "remedies": ["upgrade-nccl", "nccl-proto"], "source": notes("2.18.3"),
	},
	{
		"id": "ll128-nvlink-down", "library": "nccl", "fixed": "2.12.7", "symptom": "corrupt", "confidence": "possible", "severity": "medium",
		"what": "corrupts data with LL128 where an NVLink is down", "remedies": ["upgrade-nccl", "nccl-proto"], "source": "https://github.com/NVIDIA/nccl/issues/596",
	},
	{
		"id": "ll128-unaligned", "library": "nccl", "fixed": "2.15.5", "symptom": "corrupt", "confidence": "possible", "severity": "medium",
		"what": "can corrupt data with LL128 and buffers that are not aligned", "remedies": ["upgrade-nccl", "nccl-proto"], "source": notes("2.15.5"),
	},
	{
		"id": "graph-memory", "library": "nccl", "since": "2.19.1", "fixed": "2.22.3", "said": ["torch-out-of-memory"], "when": ["serving"], "confidence": "possible", "severity": "low",
		"what": "takes much more memory than others while CUDA graphs are captured, as it allocates through cuMem", "remedies": ["upgrade-nccl", "nccl-cumem-disable"], "source": "https://github.com/NVIDIA/nccl/issues/1234",
	},
	{
		"id": "peermem-kernel-6-6", "library": "nccl", "fixed": "2.23.4", "said": ["nccl-gdr-nic-disabled"], "when": ["kernel-6-6"], "confidence": "likely",
		"what": "looks for nvidia-peermem where kernels from 6.6 on do not show it (/sys/kernel/mm/memory_peers), and so does without GPUDirect RDMA", "remedies": ["upgrade-nccl"], "source": "https://github.com/NVIDIA/nccl/issues/1676",
	},
	{
		"id": "static-error-leak", "library": "nccl", "since": "2.28.3", "fixed": "2.28.7", "said": ["nccl-unhandled-cuda-error"], "confidence": "possible", "severity": "low",
		"what": "leaves an error of CUDA behind that the next kernel of a program seems to have", "remedies": ["upgrade-nccl"], "source": notes("2.28.7"),
	},
]

# amd are faults of RCCL and ROCm.
amd := [
	{
		"id": "gfx12-ll", "library": "rocm", "since": "7.2.0", "fixed": "7.13", "when": ["gfx12"], "confidence": "likely",
		"what": "brings an RCCL that chooses the protocol LL on gfx12 (RDNA4), whose memory ordering it lacks there: ranks hang with both GPUs at 100 %",
		"remedies": ["nccl-proto", "upgrade-rocm", "downgrade-nccl"], "source": "https://github.com/ROCm/rocm-systems/issues/5480",
	},
	{
		"id": "before-gfx12", "library": "rocm", "fixed": "6.3.0", "when": ["gfx12"], "symptom": "fail", "confidence": "likely",
		"what": "is older than the support of gfx12 in RCCL (ROCm 6.3.0)", "remedies": ["upgrade-rocm"], "source": "https://github.com/ROCm/rccl/blob/develop/CHANGELOG.md",
	},
	{
		"id": "mi350-ll", "library": "rocm", "since": "7.0.0", "fixed": "7.0.2", "when": ["gfx950"], "symptom": "hang", "confidence": "likely",
		"what": "brings an RCCL that can hang with the protocol LL on MI350 (missing fences)", "remedies": ["upgrade-rocm", "nccl-proto"], "source": "https://github.com/ROCm/rccl/pull/1946",
	},
	{
		"id": "proxy-early-end", "library": "rocm", "since": "6.4.0", "fixed": "6.4.1", "symptom": "hang", "confidence": "possible", "severity": "medium",
		"what": "brings an RCCL that rarely stops responding, as its proxy thread ends too early", "remedies": ["upgrade-rocm"], "source": "https://github.com/ROCm/rccl/pull/1702",
	},
	{
		"id": "async-memset", "library": "rocm", "fixed": "5.4.0", "said": ["rocr-memory-fault"], "confidence": "possible", "severity": "medium",
		"what": "brings an RCCL that can read memory before it is set", "remedies": ["upgrade-rocm"], "source": "https://github.com/ROCm/rccl/blob/develop/CHANGELOG.md",
	},
	{
		"id": "kernel-6-8-gdr", "library": "rocm", "fixed": "6.3.0", "when": ["kernel-6-8"], "said": ["rccl-gdr-no-peer-memory", "nccl-gdr-nic-disabled"], "confidence": "likely",
		"what": "does without GPUDirect RDMA on Linux 6.8 and newer (fixed with RCCL 2.21.5)", "remedies": ["upgrade-rocm"], "source": "https://github.com/ROCm/rccl/blob/develop/CHANGELOG.md",
	},
	{
		"id": "kernel-6-8-gdr-rccl", "library": "rccl", "fixed": "2.21.5", "when": ["kernel-6-8"], "said": ["rccl-gdr-no-peer-memory", "nccl-gdr-nic-disabled"], "confidence": "likely",
		"what": "looks for peer memory in a place that Linux 6.4 and newer do not have (/sys/kernel/mm/memory_peers), and so does without GPUDirect RDMA, though the NIC's driver offers it", "remedies": ["upgrade-rocm"], "source": "https://github.com/ROCm/rccl/pull/1328",
	},
	{
		"id": "hip-captured-event", "library": "rocm", "since": "7.0.0", "fixed": "7.2.2", "said": ["hip-captured-event"], "confidence": "likely",
		"what": "brings a HIP that refuses questions of another thread (PyTorch's watchdog) about an event while a graph is captured. PyTorch takes the answer for «not ready» since its pull 175377 of February 2026; before that do without graphs (--enforce-eager, --disable-cuda-graph)", "remedies": ["upgrade-rocm"], "source": "https://github.com/pytorch/pytorch/pull/175377",
	},
	{
		"id": "radeon-several-preview", "library": "rccl", "fixed": "2.18.3", "when": ["gfx11"], "symptom": "fail", "confidence": "likely",
		"what": "is of ROCm 5.7 or older, which knows several Radeon RX 7900 as a preview only; peer access fails with «invalid device pointer» until RCCL and the kernel driver are of ROCm 6",
		"remedies": ["upgrade-rocm", "nccl-p2p-disable"], "source": "https://github.com/ROCm/rccl/issues/1055",
	},
	{
		"id": "gfx11-first-collective", "library": "rccl", "since": "2.27.7", "said": ["rocr-memory-fault"], "when": ["gfx11"], "confidence": "likely",
		"what": "faults in its first collective over several gfx11 (RDNA3) GPUs",
		"remedies": ["downgrade-nccl", "nccl-proto", "upgrade-rocm"], "source": "https://github.com/ROCm/legacy-rocm-build/issues/6074",
	},
	{
		"id": "kernel-file", "library": "rccl", "since": "2.28.0", "said": ["hip-invalid-kernel-file"], "confidence": "likely",
		"what": "brings an RCCL that leaves the context of HIP broken after its start on some GPUs",
		"remedies": ["downgrade-nccl", "upgrade-rocm"], "source": "https://github.com/ROCm/rocm-systems/issues/5229",
	},
	{
		"id": "alltoallv-pcie", "library": "rocm", "since": "5.7.0", "fixed": "6.0.0", "symptom": "stall", "when": ["amd-pcie"], "confidence": "likely",
		"what": "brings an RCCL whose all-to-all hangs over four GPUs without xGMI (NCCL_MAX_P2P_NCHANNELS=2 avoids it)",
		"remedies": ["upgrade-rocm"], "source": "https://github.com/ROCm/legacy-rocm-build/issues/2554",
	},
	{
		"id": "pollara-alltoall", "library": "rocm", "since": "7.1.1", "fixed": "7.2.0", "when": ["pollara"], "confidence": "likely", "severity": "medium",
		"what": "brings an RCCL whose scatter and all-to-all are slow with Pollara NICs", "remedies": ["upgrade-rocm", "downgrade-nccl"], "source": "https://github.com/ROCm/legacy-rocm-build/issues/5717",
	},
]

# of_host_memory is true of an allocation that failed below NCCL's transport by
# shared memory, as the next lines of the same process show, in the versions that
# take it through cuMem without trying first: it asks for host memory, however
# CUDA names the error.
of_host_memory(m) if {
	endswith(m.fields.file, "alloc.h")
	some t in logs.by_id["nccl-shm-trace"]
	t.source == m.source
	object.get(t, "pid", 0) == object.get(m, "pid", 0)
	t.line > m.line
	t.line - m.line < 4
	some use in used.nccl
	in_range({"since": "2.24.3", "fixed": "2.26.3"}, use.version)
}

# in_range is true of a version that has a fault.
in_range(row, version) if {
	numbers := surroundings.version(version)
	not below(numbers, row)
	not above(numbers, row)
}

below(numbers, row) if numbers < surroundings.version(row.since)

above(numbers, row) if numbers >= surroundings.version(row.fixed)

# on_amd is true where the job runs on AMD's GPUs: RCCL answers there to NCCL's
# names.
on_amd if {
	some p in input.software
	p.name in {"rccl", "rocm", "hip"}
}

on_amd if surroundings.has_amd

on_amd if {
	some m in input.logs.messages
	m.program in {"rccl", "hip"}
}

# used are the versions of a library that count: those that a log states, which
# were loaded, else those of packages and of this machine's files where all of
# them say the same.
used.nccl := stated_nccl if {
	not on_amd
	count(stated_nccl) > 0
} else := installed_nccl if {
	not on_amd
	count({u.version | some u in installed_nccl}) == 1
}

used.rccl := stated_rccl if {
	count(stated_rccl) > 0
} else := installed_rccl if {
	count({u.version | some u in installed_rccl}) == 1
} else := set()

used.rocm := stated_rocm if {
	count(stated_rocm) > 0
} else := installed_rocm

stated_rccl contains {"version": p.version, "evidence": package_evidence(p)} if {
	some p in input.software
	p.name == "rccl"
}

# installed_rccl are the libraries of this machine whose version is known: the name
# of RCCL's file holds the version of its interface (librccl.so.1.0.60102), which
# is none of RCCL's.
installed_rccl contains {"version": l.version, "evidence": {"fact": "libraries.files", "value": l.version, "source": l.path}} if {
	some l in input.libraries.files
	l.kind == "librccl"
	regex.match(`^2\.`, l.version)
}

stated_rocm contains {"version": p.version, "evidence": package_evidence(p)} if {
	some p in input.software
	p.name == "rocm"
}

installed_rocm contains {"version": input.gpus.amd.rocm, "evidence": {"fact": "gpus.amd.rocm", "value": input.gpus.amd.rocm, "source": "/opt/rocm/.info/version"}} if {
	regex.match(`^[0-9]`, input.gpus.amd.rocm)
}

stated_nccl contains {"version": p.version, "evidence": package_evidence(p)} if {
	some p in input.software
	p.name == "nccl"
	p.manager in {"log", "torch"}
}

installed_nccl contains {"version": core(p.version), "evidence": package_evidence(p)} if {
	some p in input.software
	is_nccl_package(p.name)
	not p.manager in {"log", "torch"}
}

installed_nccl contains {"version": core(l.version), "evidence": {"fact": "libraries.files", "value": l.version, "source": l.path}} if {
	some l in surroundings.nccl
}

# is_nccl_package is true of the names under which managers of packages know NCCL.
is_nccl_package(name) if regex.match(`^(nvidia-nccl-cu[0-9]+|libnccl2?|nccl|vllm-nccl-cu[0-9]+)$`, name)

# core is a version without what a packager adds: "2.27.7-1+cuda12.9" and
# "2.19.3.1" are 2.27.7 and 2.19.3.
core(version) := regex.find_n(`^[0-9]+(?:\.[0-9]+){0,2}`, version, 1)[0]

package_evidence(p) := {
	"fact": sprintf("software[%s]", [p.name]),
	"value": p.version,
	"source": sprintf("%s:%d", [p.source, p.line]),
}

# gpu_names are the models that the facts or the texts name.
gpu_names contains sprintf("%s %s", [object.get(g, "name", ""), object.get(g, "architecture", "")]) if some g in input.gpus.devices

gpu_names contains name if {
	some b in input.benchmarks
	some name in b.gpu_names
}

# What somebody writes of his cards names them, too.
gpu_names contains m.fields.gpu if {
	some m in logs.by_id["prose-p2p-off-needed"]
	m.fields.gpu != ""
}

a_gpu(pattern) if {
	some name in gpu_names
	regex.match(pattern, name)
}

ampere := `(?i)\b(?:A100|A800|A30|A10|A40|A16|A2|A6000|A5000|A4000|RTX 30[5-9]0)\b|ampere`

hopper := `(?i)\b(?:H100|H200|H800|H20|GH200)\b|hopper`

blackwell := `(?i)\b(?:B100|B200|B300|GB200|GB300|GB10)\b|blackwell|RTX 50[5-9]0`

blackwell_12 := `(?i)RTX 50[5-9]0|RTX PRO \d+ Blackwell`

# holds is true of a circumstance that is known.
holds("ampere") if a_gpu(ampere)

holds("hopper") if a_gpu(hopper)

holds("blackwell") if a_gpu(blackwell)

holds("blackwell-12") if a_gpu(blackwell_12)

holds("spark") if a_gpu(`\bGB10\b`)

holds("grace-blackwell") if a_gpu(`\bGB[23]00\b`)

holds("before-blackwell") if {
	count(gpu_names) > 0
	every name in gpu_names {
		regex.match(concat("|", [ampere, hopper, `\b(?:V100|T4|L4|L40S?|RTX 40[5-9]0)\b`]), name)
	}
}

holds("gfx12") if a_gpu(`(?i)gfx12|R9700|RX 90[67]0`)

holds("gfx11") if a_gpu(`(?i)gfx110|RX 7[89]00|W7[89]00`)

holds("amd-pcie") if {
	count(input.links.pairs) > 0
	every p in input.links.pairs {
		p.link_type == "pcie"
	}
}

holds("gfx950") if a_gpu(`(?i)gfx950|MI35[05]`)

holds("arm") if input.host.arch == "arm64"

holds("arm") if a_gpu(`\b(?:GH200|GB200|GB300|GB10)\b`)

holds("mixed-gpus") if {
	families := {f | some f, pattern in {"ampere": ampere, "hopper": hopper, "blackwell": blackwell, "ada": `(?i)\b(?:L4|L40S?|RTX 40[5-9]0|RTX \d+ Ada)\b`}; a_gpu(pattern)}
	count(families) > 1
}

holds("several-hosts") if {
	some c in input.logs.communicators
	c.nodes > 1
}

holds("several-hosts") if {
	some c in input.logs.communicators
	count(c.hosts) > 1
}

holds("nvswitch") if surroundings.nvswitch

holds("nvswitch") if a_gpu(`(?i)\b(?:H100 80GB HBM3|H100 SXM|H200|H800|B200|B300|GB200|GB300)\b`)

holds("cubemesh") if {
	surroundings.nvlinked
	a_gpu(`(?i)V100-SXM2|P100-SXM2`)
}

holds("launch-blocking") if {
	some v in input.env.variables
	v.name == "CUDA_LAUNCH_BLOCKING"
	v.value == "1"
}

holds("gdr-off") if {
	some v in input.env.variables
	v.name == "NCCL_NET_GDR_LEVEL"
	v.value in {"LOC", "0"}
}

holds("expandable-segments") if {
	some v in input.env.variables
	v.name in {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}
	contains(lower(v.value), "expandable_segments:true")
}

holds("net-plugin") if {
	some n in input.logs.networks
	not n.name in {"IB", "Socket"}
}

holds("split") if {
	some m in input.logs.messages
	contains(m.text, "ncclCommSplit")
}

holds("numa-unknown") if {
	some d in input.pci.devices
	d.kind in {"nic", "gpu"}
	d.numa_node == -1
}

holds("serving") if {
	some p in input.software
	p.name in {"vllm", "sglang"}
}

holds("kernel-6-6") if surroundings.version(input.host.kernel) >= [6, 6]

holds("kernel-6-8") if surroundings.version(input.host.kernel) >= [6, 8]

# RCCL names the kernel in its log.
holds("kernel-6-8") if {
	some p in input.software
	p.name == "kernel"
	surroundings.version(p.version) >= [6, 8]
}

holds("pollara") if {
	some d in input.pci.devices
	d.vendor == "0x1dd8"
	d.kind == "nic"
}

# symptoms are the messages of each symptom.
symptoms := {
	"hang": {m | some id in ["torch-watchdog-timeout", "torch-heartbeat-timeout", "vllm-workers-stuck", "sglang-watchdog-timeout", "xla-collective-stuck", "horovod-stalled"]; some m in logs.by_id[id]},
	"stall": set(),
	"crash": logs.messages(["process-segmentation-fault", "process-segfault"]),
	"fail": {m | some m in logs.complaints; m.program in {"nccl", "pytorch", "frameworks", "cuda", "vllm"}; m.role != "consequence"},
	"corrupt": {m | some m in logs.by_id["llm-output-garbage"]},
}

# corrupted are tables of benchmarks that counted wrong values.
corrupted contains {"fact": "benchmarks", "value": b.wrong, "source": sprintf("%s:%d", [b.source, b.line])} if {
	some b in input.benchmarks
	b.wrong > 0
}

# shown is how a fault of the table shows here: {evidence, order}; undefined
# where it does not. Rows with neither message nor symptom show by their
# circumstances alone.
shown(row) := {"evidence": [logs.evidence(first)], "order": first.order} if {
	first := logs.first({m | some id in row.said; some m in logs.by_id[id]; not has_field(m, row)})
} else := {"evidence": [logs.evidence(first)], "order": first.order} if {
	first := logs.first(symptoms[row.symptom])
} else := {"evidence": sort(logs.stalled), "order": null} if {
	row.symptom == "stall"
	count(logs.stalled) > 0
} else := {"evidence": [e | some e in corrupted]} if {
	row.symptom == "corrupt"
	count(corrupted) > 0
} else := {"evidence": []} if {
	not row.said
	not row.symptom
}

has_field(m, row) if m.fields[row.lacks]

# fits is true of a row whose circumstances are all known to hold.
fits(row) if {
	every circumstance in object.get(row, "when", []) {
		holds(circumstance)
	}
}

# found are the faults of a library that show here, with the version that has
# them.
found[library] contains {"row": row, "version": use.version, "evidence": array.concat(how.evidence, [use.evidence]), "order": object.get(how, "order", null)} if {
	some row in rows
	library := row.library
	fits(row)
	how := shown(row)
	some use in used[library]
	in_range(row, use.version)
}

# telltale are faults that state themselves where no version is known.
telltale[library] contains {"row": row, "evidence": how.evidence, "order": how.order} if {
	some row in rows
	row.telltale
	library := row.library
	how := shown(row)
	not version_known[library]
}

version_known[library] if {
	some library, uses in used
	count(uses) > 0
}

# range_words says which versions have a fault.
range_words(row) := sprintf("%s up to before %s", [row.since, row.fixed]) if {
	row.since
	row.fixed
} else := sprintf("all before %s", [row.fixed]) if {
	row.fixed
} else := "no version without it is known"
