package checks

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
)

// aNode is a node of a made-up topology of amdkfd. Node numbers are the places in the list.
type aNode struct {
	// id is the driver's number for a GPU; 0 is a processor.
	id int64
	// properties are lines of the file, "name value".
	properties []string
	io, peers  []aLink
}

// aLink is a link from a node.
type aLink struct{ to, kind, weight, least, most, flags int }

// aPeer is what the driver says of a GPU that is reached over PCIe.
func aPeer(to int) aLink { return aLink{to, 2, 40, 312, 64000, 3} }

// addKFD puts the topology in place as Linux 6.8 shows it.
func addKFD(m *host.Memory, nodes []aNode) {
	m.AddFile(kfdClass+"/topology/generation_id", []byte("2\n"))
	m.AddDir(kfdProcesses)
	for i, n := range nodes {
		dir := fmt.Sprintf("%s/%d", kfdNodes, i)
		m.AddFile(dir+"/gpu_id", fmt.Appendf(nil, "%d\n", n.id))
		m.AddFile(dir+"/properties", []byte(strings.Join(n.properties, "\n")+"\n"))
		m.AddDir(dir + "/io_links")
		m.AddDir(dir + "/p2p_links")
		for kind, links := range map[string][]aLink{"io_links": n.io, "p2p_links": n.peers} {
			for j, l := range links {
				m.AddFile(fmt.Sprintf("%s/%s/%d/properties", dir, kind, j), fmt.Appendf(nil,
					"type %d\nversion_major 0\nversion_minor 0\nnode_from %d\nnode_to %d\nweight %d\nmin_latency 0\nmax_latency 0\nmin_bandwidth %d\nmax_bandwidth %d\nrecommended_transfer_size 0\nflags %d\n",
					l.kind, i, l.to, l.weight, l.least, l.most, l.flags))
			}
		}
	}
}

// aProcessor is a node of a processor, aGPU one of a GPU at an address "0000:0c:00.0", with more lines.
func aProcessor() aNode {
	return aNode{properties: []string{"cpu_cores_count 64", "simd_count 0", "vendor_id 4130", "location_id 0", "hive_id 0"}}
}

func aGPU(id int64, address string, more ...string) aNode {
	var domain, bus, device, function int
	if _, err := fmt.Sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function); err != nil {
		panic(err)
	}
	return aNode{id: id, properties: append([]string{
		"cpu_cores_count 0", "vendor_id 4098", fmt.Sprintf("location_id %d", bus<<8|device<<3|function), fmt.Sprintf("domain %d", domain),
	}, more...)}
}

// amdMachine is a recorded machine with GPUs of AMD, without files whose path contains one of some words, on which the
// GPUs may be used.
func amdMachine(tb testing.TB, name string, without ...string) *host.Memory {
	tb.Helper()
	m := checktest.Rebuilt(tb, name, without...)
	m.AddDir("/dev/dri")
	for i := range 9 {
		node := "/dev/kfd"
		if i < 8 {
			node = fmt.Sprintf("/dev/dri/renderD%d", 128+i)
		}
		m.AddInfo(node, host.FileInfo{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o660})
		m.Answer(host.AskAccess+node, "rw")
	}
	m.Answer(host.AskNVML, nvml.Answer{Outcome: nvml.NotFound, Reason: "libnvidia-ml.so.1 is not found"})
	m.Answer(host.AskUname, host.Uname{Node: "host-1", Release: "6.8.0-60-generic", Machine: "x86_64"})
	m.Answer(host.AskEnviron, []string{})
	m.Answer(host.AskKernelConfig, host.KernelConfig{Source: "/boot/config-6.8.0-60-generic", Options: map[string]string{
		"CONFIG_HSA_AMD": "y", "CONFIG_HSA_AMD_P2P": "y", "CONFIG_PCI_P2PDMA": "y", "CONFIG_DMABUF_MOVE_NOTIFY": "y",
	}})
	return m
}
