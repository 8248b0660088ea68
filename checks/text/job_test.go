package text_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// What the machine shows stays. A text adds what only tools print, ports where the machine has none, and what is of
// other hosts.
func TestJoinNetworks(t *testing.T) {
	own, told := facts.RDMAPort{Device: "mlx5_0", State: "active", Source: "/sys/x"}, facts.RDMAPort{Device: "mlx5_0", State: "down", Source: "a.txt"}
	other := facts.RDMAPort{Device: "mlx5_0", State: "down", Host: "node2", Source: "a.txt"}
	for name, tt := range map[string]struct{ machine, text, want facts.NICFacts }{
		"the machine's own ports stay": {facts.NICFacts{RDMA: []facts.RDMAPort{own}}, facts.NICFacts{RDMA: []facts.RDMAPort{told, other}}, facts.NICFacts{RDMA: []facts.RDMAPort{own, other}}},
		"a container without ports":    {facts.NICFacts{RDMA: []facts.RDMAPort{}}, facts.NICFacts{RDMA: []facts.RDMAPort{told}}, facts.NICFacts{RDMA: []facts.RDMAPort{told}}},
		"what only tools print": {
			facts.NICFacts{Modules: []string{}},
			facts.NICFacts{Providers: []string{"efa"}, Modules: []string{"efa"}, ModulesPartial: true},
			facts.NICFacts{Modules: []string{}, Providers: []string{"efa"}},
		},
		"interfaces": {
			facts.NICFacts{Interfaces: []facts.Interface{{Name: "lo"}}},
			facts.NICFacts{Interfaces: []facts.Interface{{Name: "eth9"}, {Name: "eth0", Host: "node2"}}},
			facts.NICFacts{Interfaces: []facts.Interface{{Name: "lo"}, {Name: "eth0", Host: "node2"}}},
		},
	} {
		expect.NoDiff(t, &tt.want, text.Join(&facts.Facts{NICs: &tt.machine}, &facts.Facts{NICs: &tt.text}).NICs, "%s: joined", name)
	}
}

// What gdscheck says replaces what the files of a machine show of GPUDirect Storage; the rest of the storage is
// that of the machine.
func TestJoinStorage(t *testing.T) {
	machine := &facts.StorageFacts{
		Drives: []facts.NVMeDrive{{Name: "nvme0"}},
		GDS:    &facts.GDS{Loaded: new(true), Version: "2.28", Config: "/etc/cufile.json", Drivers: map[string]string{"NVMe": "unsupported"}, Source: "/proc/driver/nvidia-fs"},
	}
	told := &facts.GDS{Version: "2.17", Drivers: map[string]string{"NVMe": "supported"}, Source: "gdscheck.txt", Line: 3}
	for name, tt := range map[string]struct{ machine, text, want *facts.StorageFacts }{
		"both": {machine, &facts.StorageFacts{GDS: told}, &facts.StorageFacts{
			Drives: machine.Drives,
			GDS:    &facts.GDS{Loaded: new(true), Version: "2.28", Config: "/etc/cufile.json", Drivers: told.Drivers, Source: "gdscheck.txt", Line: 3},
		}},
		"a text alone":               {&facts.StorageFacts{Drives: machine.Drives}, &facts.StorageFacts{GDS: told}, &facts.StorageFacts{Drives: machine.Drives, GDS: told}},
		"a text without GDS":         {machine, &facts.StorageFacts{}, machine},
		"a machine without anything": {nil, &facts.StorageFacts{GDS: told}, &facts.StorageFacts{GDS: told}},
	} {
		expect.NoDiff(t, tt.want, text.Join(&facts.Facts{Storage: tt.machine}, &facts.Facts{Storage: tt.text}).Storage, "%s: joined", name)
	}
}
