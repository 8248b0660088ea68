package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// port is a bridge with a link of PCIe 5.0 x16.
func port(address, kind string, ancestors ...string) facts.PCIDevice {
	return facts.PCIDevice{Address: address, Kind: "bridge", PortType: kind, Ancestors: ancestors, Link: at(32, 16, 32, 16)}
}

// at is a link that runs at one speed and width and can do another.
func at(speed float64, width int, maxSpeed float64, maxWidth int) *facts.PCIeLink {
	return &facts.PCIeLink{SpeedGTs: speed, Width: width, MaxSpeedGTs: maxSpeed, MaxWidth: maxWidth}
}

// card is a GPU below bridges.
func card(address string, link *facts.PCIeLink, ancestors ...string) facts.PCIDevice {
	return facts.PCIDevice{Address: address, Kind: "gpu", Vendor: "0x10de", Link: link, Ancestors: ancestors}
}

func drawn(faults []Fault, devices ...facts.PCIDevice) *Machine {
	return New(&facts.Facts{PCI: &facts.PCIFacts{Devices: devices}}, faults)
}

func numbers(all []Fault) []int { return expect.Map(all, func(f Fault) int { return f.Number }) }

// text is a picture as a tree, for comparison.
func text(m *Machine) string {
	var b strings.Builder
	for _, r := range m.Rows(true) {
		fmt.Fprint(&b, r.Lead, r.Label())
		if r.Up != nil {
			fmt.Fprintf(&b, " [%s, %s]", r.Up.Speed, r.Up.Rate)
		}
		if len(r.Faults) > 0 {
			fmt.Fprint(&b, " ", numbers(r.Faults))
		}
		if r.Up != nil && len(r.Up.Faults) > 0 {
			fmt.Fprint(&b, " link ", numbers(r.Up.Faults))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestTree(t *testing.T) {
	const root, up, down, far = "0000:00:01.0", "0000:01:00.0", "0000:02:00.0", "0000:02:01.0"
	m := drawn(
		[]Fault{{Number: 1, Severity: "high", Places: []string{down}}, {Number: 2, Severity: "low", Places: []string{"0000:04:00.0"}}},
		port(root, "root-port"), port(up, "upstream-port", root), port(down, "downstream-port", root, up), port(far, "downstream-port", root, up),
		card("0000:03:00.0", at(32, 16, 32, 16), root, up, down), card("0000:04:00.0", at(2.5, 8, 32, 16), root, up, far),
		facts.PCIDevice{Address: "0000:05:00.0", Kind: "nic", Driver: "mlx5_core"},
		facts.PCIDevice{Address: "0000:05:00.1", Kind: "nic", Virtual: true},
		facts.PCIDevice{Address: "0000:06:00.0", Kind: "gpu", Vendor: "0x1a03"}, // A console.
	)
	want := `Processors
|- Root port  0000:00:01.0
|  ` + "`" + `- Switch  0000:01:00.0 [5.0 x16, 63 GB/s]
|     |- GPU 0  0000:03:00.0 [5.0 x16, 63 GB/s] link [1]
|     ` + "`" + `- GPU 1  0000:04:00.0 [5.0 x8 of x16, 32 GB/s] [2]
` + "`" + `- NIC  0000:05:00.0
`
	expect.NoDiff(t, want, text(m), "it")
}

// TestUnreadPorts checks that the kinds of bridges follow from their order where config space cannot be read.
func TestUnreadPorts(t *testing.T) {
	a, b, c := "0000:00:01.0", "0000:01:00.0", "0000:02:00.0"
	unread := func(address string, ancestors ...string) facts.PCIDevice {
		return facts.PCIDevice{Address: address, Kind: "bridge", Ancestors: ancestors}
	}
	m := drawn(nil, unread(a), unread(b, a), unread(c, a, b), card("0000:03:00.0", nil, a, b, c))
	kinds := expect.Map(m.Rows(true), func(r Row) Kind { return r.Kind })
	expect.NoDiff(t, []Kind{Processors, RootPort, Switch, GPU}, kinds, "it")
	got := m.Root.Below[0].Below[0].Below[0].Up
	expect.That(t, got != nil && got.Port == c, "the link above the GPU is %+v, want one at port %s", got, c)
}

func TestLink(t *testing.T) {
	for _, tt := range []struct {
		name         string
		lower, upper *facts.PCIeLink
		fault        bool
		speed, rate  string
		short        bool
	}{
		{"at its best", at(32, 16, 32, 16), at(32, 16, 32, 16), false, "5.0 x16", "63 GB/s", false},
		{"an idle GPU", at(2.5, 16, 32, 16), at(2.5, 16, 32, 16), false, "5.0 x16", "63 GB/s", false},
		{"held at a low speed", at(2.5, 16, 32, 16), at(2.5, 16, 32, 16), true, "1.0 x16 of 5.0 x16", "4.0 GB/s", false},
		{"half of its lanes", at(16, 8, 16, 16), at(16, 8, 16, 16), false, "4.0 x8 of x16", "16 GB/s", true},
		{"a port of half the lanes", at(16, 8, 16, 16), at(16, 8, 16, 8), false, "4.0 x8", "16 GB/s", false},
		{"a port that a hypervisor emulates", at(32, 16, 32, 16), at(2.5, 1, 2.5, 1), false, "5.0 x16", "63 GB/s", false},
		{"a speed of no generation", at(20, 4, 20, 4), nil, false, "20 GT/s x4", "9.8 GB/s", false},
	} {
		root := facts.PCIDevice{Address: "0000:00:01.0", Kind: "bridge", PortType: "root-port", Link: tt.upper}
		var faults []Fault
		if tt.fault {
			faults = []Fault{{Number: 1, Severity: "high", Places: []string{"0000:01:00.0"}, OnLink: true}}
		}
		m := drawn(faults, root, card("0000:01:00.0", tt.lower, root.Address))
		got := m.Root.Below[0].Below[0].Up
		expect.That(t, got != nil && got.Speed == tt.speed && got.Rate == tt.rate && got.Short == tt.short && (len(got.Faults) > 0) == tt.fault, "%s: got %+v", tt.name, got)
	}
}

// TestNothingToDraw checks that there is no picture where nothing is known to draw.
func TestNothingToDraw(t *testing.T) {
	for name, f := range map[string]*facts.Facts{
		"no GPU":           {PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{{Address: "0000:05:00.0", Kind: "nic"}}}},
		"nothing read":     {},
		"names of GPUs":    {GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Address: "GPU0"}, {Address: "GPU1"}}}},
		"a GPU that hangs": {GPUs: &facts.GPUFacts{Devices: []facts.GPU{{}}}},
	} {
		expect.That(t, New(f, nil) == nil, "%s: there is a picture", name)
	}
}

// linked are GPUs with pairs between them.
func linked(n int, pairs ...facts.Pair) *facts.Facts {
	f := &facts.Facts{GPUs: &facts.GPUFacts{}, Links: &facts.LinkFacts{Pairs: pairs}}
	for i := range n {
		f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{
			Address: gpu(i), Index: &i, Name: "NVIDIA H200", MemoryBytes: 141 << 30, NVLinks: []facts.NVLink{{Active: true, Version: 4}},
		})
	}
	return f
}

func gpu(i int) string { return fmt.Sprintf("0000:%02x:00.0", i+1) }

func TestJoins(t *testing.T) {
	nvlink := func(a, b, links int, through bool) facts.Pair {
		return facts.Pair{A: gpu(a), B: gpu(b), Kind: "gpu-gpu", NVLinks: &links, NVSwitch: through, NVLinkGBps: 25 * float64(links)}
	}
	xgmi := func(a, b int, hops int) facts.Pair {
		return facts.Pair{A: gpu(a), B: gpu(b), Kind: "gpu-gpu", LinkType: "xgmi", XGMIGBps: 64, Hops: &hops}
	}
	for _, tt := range []struct {
		name  string
		facts *facts.Facts
		want  []string
		links string // Of GPU 0.
	}{
		{"a switch", linked(3, nvlink(0, 1, 18, true), nvlink(0, 2, 18, true), nvlink(1, 2, 18, true)), []string{"NVLink 4 through NVSwitch joins GPUs 0 to 2, each to each: 18 links, 450 GB/s each way"}, "NVLink 4 x18"},
		{"bridges", linked(4, nvlink(0, 1, 4, false), nvlink(2, 3, 4, false)), []string{"NVLink 4 joins GPU 0 and 1, GPU 2 and 3: 4 links, 100 GB/s each way"}, "NVLink 4 x4"},
		{"one bridge", linked(2, nvlink(0, 1, 1, false)), []string{"NVLink 4 joins GPU 0 and GPU 1: 1 link, 25 GB/s each way"}, "NVLink 4 x1"},
		{"xGMI", linked(3, xgmi(0, 1, 1), xgmi(1, 2, 1), xgmi(0, 2, 2)), []string{"xGMI joins GPU 0 and 1, GPU 1 and 2: 64 GB/s each way"}, "xGMI to 1 GPU"},
		{"PCIe", linked(2, facts.Pair{A: gpu(0), B: gpu(1), Kind: "gpu-gpu", NVLinks: new(int)}), nil, ""},
	} {
		tt.facts.PCI = &facts.PCIFacts{Devices: []facts.PCIDevice{port("0000:00:01.0", "root-port"), card(gpu(0), at(32, 16, 32, 16), "0000:00:01.0")}}
		m := New(tt.facts, nil)
		got := expect.Map(m.Joins, Join.String)
		expect.NoDiff(t, tt.want, got, "%s", tt.name)
		expect.Equal(t, tt.links, m.Root.Below[0].Below[0].Links, "%s: links of GPU 0", tt.name)
	}
}

// forest is PCI devices of many shapes: root ports with GPUs, switches, switches below
// switches, on several NUMA nodes.
func forest(seed int) []facts.PCIDevice {
	var all []facts.PCIDevice
	next := seed
	random := func(n int) int { next = (next*1103515245 + 12345) & 0x7fffffff; return next >> 8 % 32 % n }
	bus := 0
	address := func() string { bus++; return fmt.Sprintf("0000:%02x:00.0", bus) }
	var below func(depth, node int, ancestors []string)
	below = func(depth, node int, ancestors []string) {
		for range 1 + random(5) {
			d := card(address(), at(16, 1<<random(5), 32, 16), ancestors...)
			d.NUMANode = &node
			if depth < 3 && random(4) == 0 {
				up := port(d.Address, "upstream-port", ancestors...)
				down := port(address(), "downstream-port", append(slices.Clone(ancestors), up.Address)...)
				all = append(all, up, down)
				below(depth+1, node, append(slices.Clone(ancestors), up.Address, down.Address))
				continue
			}
			all = append(all, d)
		}
	}
	for node := range 1 + random(4) {
		for range 1 + random(3) {
			root := port(address(), "root-port")
			all = append(all, root)
			below(0, node, []string{root.Address})
		}
	}
	return all
}

// shapes are all shapes of a picture.
func shapes(p *Picture) (all []*Node) {
	var add func(s *Node)
	add = func(s *Node) {
		all = append(all, s)
		for _, below := range s.Below {
			add(below)
		}
	}
	for _, s := range append(p.Fabric, p.Tree) {
		if s != nil {
			add(s)
		}
	}
	return all
}

// drawn counts the shapes of a kind, and the faults that are marked.
func (p *Picture) drawn(kind Kind) (n, marked int) {
	marks := map[int]bool{} // What lies at a port is marked on each link below it.
	for _, s := range shapes(p) {
		if s.Kind == kind {
			n++
		}
		for _, f := range s.Marks() {
			marks[f.Number] = true
		}
	}
	return n, len(marks)
}

// TestDraw checks that each GPU is drawn once and each fault is marked.
func TestDraw(t *testing.T) {
	for seed := range 200 {
		devices := forest(seed)
		var faults []Fault
		gpus := 0
		for i, d := range devices {
			if d.Kind == "gpu" {
				gpus++
			}
			if i%3 == 0 {
				faults = append(faults, Fault{Number: len(faults) + 1, Severity: "high", Places: []string{d.Address}, OnLink: i%2 == 0})
			}
		}
		n, marked := drawn(faults, devices...).Picture().drawn(GPU)
		expect.That(t, n == gpus && marked == len(faults), "seed %d: %d of %d GPUs and %d of %d faults are drawn", seed, n, gpus, marked, len(faults))
	}
}

// TestFabric checks that GPUs that NVSwitches join stand at these, that of PCIe only the way to a fault is drawn,
// and that a pair of GPUs and an incomplete fabric are drawn as a tree.
func TestFabric(t *testing.T) {
	for _, tt := range []struct {
		gpus, pairs    int
		fault          string
		bridges, tiles int
	}{{8, 28, "", 0, 8}, {8, 28, gpu(3), 1, 9}, {8, 28, "0000:00:05.0", 1, 8}, {8, 27, "", 8, 8}, {2, 1, "", 2, 2}} {
		var all []facts.Pair
		for a := range tt.gpus {
			for b := range a {
				p := between(b, a, "SYS", 18)
				p.NVSwitch = true
				all = append(all, p)
			}
		}
		f := linked(tt.gpus, all[:tt.pairs]...)
		f.PCI = &facts.PCIFacts{}
		for i := range tt.gpus {
			root := fmt.Sprintf("0000:00:%02x.0", i+1)
			f.PCI.Devices = append(f.PCI.Devices, port(root, "root-port"), card(gpu(i), at(32, 16, 32, 16), root))
		}
		m := New(f, []Fault{{Number: 1, Severity: "high", Places: []string{tt.fault}}})
		p := m.Picture()
		bridges, _ := p.drawn(RootPort)
		tiles, marked := p.drawn(GPU)
		expect.That(t, bridges == tt.bridges && tiles == tt.tiles && (marked > 0) == (tt.fault != ""), "%+v: %d root ports, %d GPUs and %d marks", tt, bridges, tiles, marked)
	}
}

// placed are GPUs below root ports, on two NUMA nodes.
func placed(n int, pairs ...facts.Pair) *facts.Facts {
	f := linked(n, pairs...)
	f.NUMA = &facts.NUMAFacts{Nodes: []facts.NUMANode{{ID: 0, CPUs: "0-7"}, {ID: 1, CPUs: "8-15"}}}
	f.PCI = &facts.PCIFacts{Devices: []facts.PCIDevice{port("0000:00:01.0", "root-port")}}
	for i := range n {
		node := i * 2 / n
		d := card(gpu(i), at(2.5, 16, 32, 16), "0000:00:01.0")
		d.NUMANode = &node
		f.PCI.Devices = append(f.PCI.Devices, d)
	}
	return f
}

func toNIC(i int, nic, path string, gbps float64) facts.Pair {
	return facts.Pair{A: gpu(i), B: nic, Kind: "gpu-nic", Path: path, Narrowest: &facts.NarrowestLink{BestGBps: gbps}}
}

func between(a, b int, path string, nvlinks int) facts.Pair {
	return facts.Pair{A: gpu(a), B: gpu(b), Kind: "gpu-gpu", Path: path, NVLinks: &nvlinks}
}

func TestNear(t *testing.T) {
	f := placed(2, between(0, 1, "SYS", 0), toNIC(0, "0000:90:00.0", "PXB", 31.5), toNIC(0, "0000:91:00.0", "NODE", 63), toNIC(1, "0000:90:00.0", "SYS", 0),
		facts.Pair{A: gpu(0), B: "0000:a0:00.0", Kind: "gpu-nvme", Path: "PIX"})
	f.NICs = &facts.NICFacts{RDMA: []facts.RDMAPort{{Device: "mlx5_0", Address: "0000:90:00.0"}, {Device: "mlx5_1", Address: "0000:91:00.0"}}}
	m := New(f, nil)
	want := []Near{{GPU: "GPU 0", NICs: "mlx5_0 (PXB, 32 GB/s)", Drives: "0000:a0:00.0 (PIX)", CPUs: "0-7"}, {GPU: "GPU 1", NICs: "mlx5_0 (SYS)", CPUs: "8-15"}}
	expect.NoDiff(t, want, m.Near, "it")
	expect.Equal(t, "NIC mlx5_0 (PXB, 32 GB/s), NVMe 0000:a0:00.0 (PIX), CPUs 0-7", m.Near[0].String(), "it")
	f.Links.VirtualTopology = new(true)
	m = New(f, nil)
	expect.That(t, len(m.Near) == 0, "of hidden paths: %v", m.Near)
}
