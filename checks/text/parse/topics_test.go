package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// speaks are words by which people speak of each topic.
var speaks = map[string]string{
	"env-misconfig": "expandable_segments",
	"imex":          "an IMEX domain", "mig-mode": "two MIG instances", "nvls-multicast": "NVLS", "fabric-manager": "the fabric manager", "nvlink-down": "an NVLink bridge",
	"amd-xgmi": "XGMI", "shm-too-small": "/dev/shm", "ipc-namespace": "two containers", "memlock-limit": "locked memory", "process-limits": "too many open files", "acs-redirect": "ACS",
	"iommu-translation": "the IOMMU", "bar-too-small": "resizable BAR", "gdr-module-missing": "GPUDirect RDMA", "roce-gid": "the GID index", "roce-mtu-pfc": "PFC and ECN",
	"ofi-plugin": "libfabric", "ib-port-down": "InfiniBand", "numa-affinity": "NUMA nodes", "gpu-fault": "an Xid", "pcie-link-degraded": "a riser", "pcie-atomics": "PCIe atomics",
	"build-unsupported": "compute capability 12.0", "driver-library-mismatch": "NVML", "driver-not-loaded": "modprobe", "cuda-driver-too-old": "an insufficient driver",
	"wrong-nic": "the network interface", "firewall": "iptables", "gpu-visibility": "CUDA_VISIBLE_DEVICES", "container-caps": "seccomp", "sys-not-mounted": "sysfs", "hsa-config": "XNACK",
	"oom": "memory, out of memory,", "rccl-bug": "RCCL", "nccl-bug": "a regression", "p2p-unsupported-gpu": "canAccessPeer, which is 0", "p2p-broken-platform": "P2P copies",
	"app-mismatch": "the last batch", "gdr-topology": "the topology of the VM",
}

// withoutKinds reads texts of which nothing but the topics is looked for.
var withoutKinds = NewRegistry()

// topicsOf are the causes of which a text speaks.
func topicsOf(t *testing.T, text string) (causes []string) {
	t.Helper()
	r := withoutKinds.NewReading()
	expect.NoError(t, r.Read(t.Context(), "issue.md", strings.NewReader(text)))
	for _, topic := range r.Finish().Texts[0].Topics {
		causes = append(causes, topic.Cause)
	}
	return causes
}

// TestTopics checks of each topic that it is noted where a person complains and writes of it, and nowhere else: not where
// nothing fails, where the trouble is over, where the person says that it is something else, or in a program's output.
func TestTopics(t *testing.T) {
	expect.Len(t, len(speaks), data.Topics().Topics, "topics with words")
	for _, topic := range data.Topics().Topics {
		words := speaks[topic.Cause]
		for text, want := range map[string]string{
			"Our training hangs at its start, and I wonder about %s here.\n":                           topic.Cause,
			"The training hangs at its start.\n\nMy colleague mentioned %s to me yesterday.\n":         topic.Cause,
			"Our training is well, and I like %s here very much.\n":                                    "",
			"Our training hung, which we solved by looking at %s here.\n\n[x] Everything works now.\n": "",
			"Our training fails at its start.\n\nIt is not the fault of %s as we have checked.\n":      "",
			"node7:4021:4077 [0] NCCL INFO training hangs, I wonder about %s in our cluster\n":         "",
			"```\nOur training hangs at its start, and I wonder about %s here.\n```\n":                 "",
		} {
			got := topicsOf(t, fmt.Sprintf(text, words))
			if want == "" {
				expect.Equal(t, 0, len(got), "%q speaks of %v", fmt.Sprintf(text, words), got)
				continue
			}
			expect.That(t, len(got) > 0 && got[0] == want, "%q speaks of %v, want %s", fmt.Sprintf(text, words), got, want)
		}
	}
	expect.Equal(t, 0, len(topicsOf(t, "Our training fails at its start.\n\nThere is no Xid in the journal.\n")), "what is not there is a topic")
}
