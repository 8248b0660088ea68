package checks

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func gatherAMD(t *testing.T, m *host.Memory) *facts.Facts {
	t.Helper()
	f, _ := Gather(t.Context(), host.New(m), gather.Options{})
	expect.Must(t, f.GPUs != nil && f.Links != nil, "no GPUs or links: %v", f.Unknown)
	return f
}

// gapsOfGPUs lists what is not known of the GPUs, "fact: reason".
func gapsOfGPUs(f *facts.Facts) []string {
	var list []string
	for _, u := range f.Unknown {
		if u.Section == "gpus" && u.Fact != "devices" && u.Fact != "driver.fabric_manager.running" {
			list = append(list, u.Fact+": "+u.Reason)
		}
	}
	return list
}

func TestAMDAccelerator(t *testing.T) {
	m := amdMachine(t, "model-mi300x8")
	m.AddFile("/opt/rocm/.info/version", []byte("6.4.1-83\n"))
	dir := expect.Value(host.New(m).Real(deviceFile("0000:08:00.0", "")))(t)
	m.AddFile(dir+"/ras/umc_err_count", []byte("ue: 2\nce: 17\nde: 5\n"))
	m.AddFile(dir+"/ras/xgmi_wafl_err_count", []byte("ue: 3\nce: 1\n"))
	m.AddFile(dir+"/ras/sdma_err_count", []byte("Query currently inaccessible\n"))
	m.AddFile(dir+"/ras/gpu_vram_bad_pages", []byte("0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P\n"))
	m.AddFile(kfdProcesses+"/777/vram_50001", []byte("4294967296\n"))
	m.AddFile(kfdProcesses+"/777/vram_50002", []byte("0\n"))
	m.AddFile("/proc/777/comm", []byte("python3\n"))
	f := gatherAMD(t, m)
	want := facts.GPU{
		Address: "0000:08:00.0", Vendor: "amd", InPCI: true, Name: "AMD Instinct MI300X OAM", Architecture: "gfx942", Integrated: new(false),
		MemoryBytes: 196592 << 20, MemoryUsedBytes: new(int64(297029632)), VisibleMemoryBytes: new(int64(196592 << 20)),
		KFD:        &facts.KFDNode{Node: 2},
		VBIOS:      "113-M3000100-102",
		RAS:        []facts.RASBlock{{Block: "gfx"}, {Block: "mmhub"}, {Block: "pcie_bif"}, {Block: "umc", Uncorrectable: 2, Deferred: 5}, {Block: "xgmi_wafl", Uncorrectable: 3}},
		XGMIErrors: new(3), RetiredPages: new(2),
		Processes: []facts.GPUProcess{{PID: 777, Name: "python3"}},
	}
	expect.NoDiff(t, want, f.GPUs.Devices[0], "GPU")
	got := f.GPUs.Devices[1].Processes
	expect.That(t, got != nil && len(got) == 0, "a GPU that a process opened and holds no memory on is used by %v", got)
	expect.NoDiff(t, []string{`devices.ras: 0000:08:00.0: sdma_err_count says "Query currently inaccessible"`}, gapsOfGPUs(f), "unknown")
	driver := &facts.AMDDriver{
		Loaded: new(true), Version: "6.12.12", KFD: "ok", ROCm: "6.4.1-83",
		Parameters:   map[string]string{"pcie_p2p": "Y", "use_xgmi_p2p": "1", "noretry": "-1", "no_system_mem_limit": "N", "gpu_recovery": "-1", "ras_enable": "-1"},
		KernelConfig: map[string]string{"CONFIG_HSA_AMD": "y", "CONFIG_HSA_AMD_P2P": "y", "CONFIG_PCI_P2PDMA": "y", "CONFIG_DMABUF_MOVE_NOTIFY": "y"},
	}
	expect.NoDiff(t, driver, f.GPUs.AMD, "driver")
	pairs := 0
	for _, p := range f.Links.Pairs {
		if p.Kind != pairGPUs {
			continue
		}
		pairs++
		expect.That(t, p.LinkType == "xgmi" && p.XGMIGBps == 64 && *p.Hops == 1 && *p.Accessible, "pair %+v", p)
	}
	expect.That(t, pairs == 28, "%d pairs, want 28", pairs)
	busy := busyAMD(t.Context(), host.New(m), 0)
	expect.That(t, len(busy) == 1 && busy["0000:08:00.0"] == (probe.User{PID: 777, Program: "python3"}), "busy: %v", busy)
}

func TestAMDGivesUpOnAGPUThatHangs(t *testing.T) {
	m := amdMachine(t, "model-mi300x8")
	dir := expect.Value(host.New(m).Real(deviceFile("0000:40:00.0", "")))(t)
	for _, block := range []string{"gfx", "mmhub", "pcie_bif", "sdma", "umc", "xgmi_wafl"} {
		m.AddError(dir+"/ras/"+block+"_err_count", host.ErrSlow)
	}
	f := gatherAMD(t, m)
	got := gapsOfGPUs(f)
	expect.That(t, len(got) == 1 && strings.HasPrefix(got[0], "devices.ras: read "), "unknown: %q", got)
	expect.That(t, f.GPUs.Devices[2].RAS == nil && f.GPUs.Devices[2].XGMIErrors == nil && len(f.GPUs.Devices[3].RAS) == 6, "RAS %v and %v", f.GPUs.Devices[2].RAS, f.GPUs.Devices[3].RAS)
}

// twoAMD is the workstation with the topology that a test gives.
func twoAMD(t *testing.T, nodes []aNode) *host.Memory {
	t.Helper()
	m := amdMachine(t, "model-r9700x4", "kfd/topology")
	addKFD(m, nodes)
	return m
}

// pairOfAMD returns the pair of the first two GPUs.
func pairOfAMD(f *facts.Facts) *facts.Pair { return f.Links.Between("0000:03:00.0", "0000:06:00.0") }

func TestAMDAccess(t *testing.T) {
	const a, b = "0000:03:00.0", "0000:06:00.0"
	nodes := func(first, second []aLink) []aNode {
		return []aNode{aProcessor(), {aGPU(7, a).id, aGPU(7, a).properties, nil, first}, {aGPU(8, b).id, aGPU(8, b).properties, nil, second}}
	}
	for _, tt := range []struct {
		name     string
		nodes    []aNode
		change   func(m *host.Memory)
		want     *bool
		linkType string
	}{
		{"both ways", nodes([]aLink{aPeer(2)}, []aLink{aPeer(1)}), nil, new(true), "pcie"},
		{"one way", nodes([]aLink{aPeer(2)}, nil), nil, new(false), "pcie"},
		{"the other way", nodes(nil, []aLink{aPeer(1)}), nil, new(false), "pcie"},
		{"refused", nodes(nil, nil), nil, new(false), "pcie"},
		{"a link of another kind", nodes([]aLink{{2, 4, 1, 0, 0, 0}}, []aLink{{1, 4, 1, 0, 0, 0}}), nil, new(true), ""},
		{"a link to nowhere", nodes([]aLink{aPeer(99)}, nil), nil, new(false), "pcie"},
		{"a link that may not be read", nodes(nil, nil), func(m *host.Memory) { m.AddError(kfdNodes+"/1/p2p_links/0/properties", fs.ErrPermission) }, nil, ""},
		{"a link that is cut off", nodes(nil, nil), func(m *host.Memory) {
			m.AddFile(kfdNodes+"/1/p2p_links/0/properties", []byte("type 2\nversion_major 0\nnode_to"))
		}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := twoAMD(t, tt.nodes)
			if tt.change != nil {
				tt.change(m)
			}
			p := pairOfAMD(gatherAMD(t, m))
			expect.NoDiff(t, tt.want, p.Accessible, "accessible")
			expect.Equal(t, tt.linkType, p.LinkType, "link")
			// Of GPUs that are not listed nothing is said.
			p = gatherAMD(t, m).Links.Between(a, "0000:e3:00.0")
			expect.That(t, p.Accessible == nil && p.LinkType == "", "a GPU that is not listed: %+v", p)
		})
	}
	t.Run("a kernel that has no p2p_links", func(t *testing.T) {
		m := &host.Memory{}
		m.AddFile(kfdNodes+"/1/gpu_id", []byte("7\n"))
		m.AddDir(kfdNodes + "/1/io_links")
		_, all, err := readKFDLinks(t.Context(), host.New(m), 1, "io_links")
		expect.That(t, all && err == nil, "io_links: %v, %v", all, err)
		_, all, err = readKFDLinks(t.Context(), host.New(m), 1, "p2p_links")
		expect.That(t, !all && errors.Is(err, fs.ErrNotExist), "p2p_links: %v, %v", all, err)
	})
}

func TestAMDTopologyUnreadable(t *testing.T) {
	a, b := aGPU(7, "0000:03:00.0"), aGPU(8, "0000:06:00.0")
	all := []aNode{aProcessor(), a, b, aGPU(9, "0000:e3:00.0"), aGPU(10, "0000:e6:00.0")}
	many := []aNode{}
	for i := range maxKFDNodes + 10 {
		many = append(many, aGPU(int64(i+1), fmt.Sprintf("0001:%02x:00.0", i%200)))
	}
	for _, tt := range []struct {
		name   string
		nodes  []aNode
		change func(m *host.Memory)
		state  string
		listed int
		want   string
	}{
		{"whole", all, nil, "ok", 4, ""},
		{"a GPU is not listed", all[:4], nil, "ok", 3, "devices.kfd: amdgpu drives GPUs that the compute driver's topology does not list: 0000:e6:00.0"},
		{"a node is denied", all, func(m *host.Memory) {
			m.AddError(kfdNodes+"/4/gpu_id", fs.ErrPermission)
		}, "partial", 3, "devices.kfd: 1 nodes of " + kfdNodes + " cannot be read; a container can read only the nodes of the GPUs that it was given"},
		{"properties are denied", all, func(m *host.Memory) {
			m.AddError(kfdNodes+"/4/properties", fs.ErrPermission)
		}, "partial", 3, "devices.kfd: 1 nodes of " + kfdNodes + " cannot be read; a container can read only the nodes of the GPUs that it was given"},
		{"a node is cut off", all, func(m *host.Memory) {
			m.AddFile(kfdNodes+"/4/properties", []byte("cpu_cores_count 0\nlocation_i"))
		}, "partial", 3, "devices.kfd: 1 nodes of " + kfdNodes + " cannot be read; a container can read only the nodes of the GPUs that it was given"},
		{"a node is empty", all, func(m *host.Memory) {
			m.AddFile(kfdNodes+"/4/properties", nil)
			m.AddFile(kfdNodes+"/3/gpu_id", []byte("not a number\n"))
		}, "partial", 2, "devices.kfd: 2 nodes of " + kfdNodes + " cannot be read; a container can read only the nodes of the GPUs that it was given"},
		{"hostile numbers", []aNode{{id: 5, properties: []string{
			"location_id 18446744073709551615", "domain 18446744073709551615", "simd_count 18446744073709551615", "simd_per_cu 0", "num_xcc 18446744073709551615",
			"gfx_target_version 18446744073709551615", "hive_id 18446744073709551615", "drm_render_minor 99999999999", "hive_id -1", "domain x", "\x00\xff 1", strings.Repeat("x", 1<<16),
		}}}, nil, "ok", 0, "devices.kfd: amdgpu drives GPUs that the compute driver's topology does not list: 0000:03:00.0, 0000:06:00.0, 0000:e3:00.0, 0000:e6:00.0"},
		{"too many nodes", many, nil, "partial", 0, fmt.Sprintf("devices.kfd: more than %d nodes in %s, or reading them took too long; the rest was not read", maxKFDNodes, kfdNodes)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := twoAMD(t, tt.nodes)
			if tt.change != nil {
				tt.change(m)
			}
			f := gatherAMD(t, m)
			listed := 0
			for _, g := range f.GPUs.Devices {
				if g.InPCI && g.KFD != nil {
					listed++
				}
			}
			expect.That(t, f.GPUs.AMD.KFD == tt.state && listed == tt.listed, "%s, %d GPUs; want %s, %d", f.GPUs.AMD.KFD, listed, tt.state, tt.listed)
			i := slices.IndexFunc(gapsOfGPUs(f), func(s string) bool { return strings.HasPrefix(s, "devices.kfd:") })
			got := ""
			if i >= 0 {
				got = gapsOfGPUs(f)[i]
			}
			expect.That(t, got == tt.want, "unknown:\n got %q\nwant %q", got, tt.want)
		})
	}
}

func TestAMDNoTopology(t *testing.T) {
	for _, tt := range []struct {
		name        string
		change      func(m *host.Memory)
		state, want string
	}{
		{"absent, as in a container that hides it", func(*host.Memory) {}, "absent", "/sys/class/kfd/kfd does not exist"},
		{"not to be listed", func(m *host.Memory) { m.AddError(kfdNodes, fs.ErrPermission) }, "unreadable", "list " + kfdNodes + ": permission denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := checktest.Rebuilt(t, "model-r9700x4", "class/kfd")
			tt.change(m)
			f := gatherAMD(t, m)
			expect.Must(t, f.GPUs.AMD != nil && f.GPUs.AMD.KFD == tt.state && *f.GPUs.AMD.Loaded, "driver %+v", f.GPUs.AMD)
			expect.That(t, slices.ContainsFunc(gapsOfGPUs(f), func(s string) bool { return strings.Contains(s, tt.want) }), "unknown: %q does not tell %q", gapsOfGPUs(f), tt.want)
			for _, p := range f.Links.Pairs {
				expect.That(t, p.Accessible == nil && p.LinkType == "", "pair %+v", p)
			}
		})
	}
	t.Run("no GPU of AMD", func(t *testing.T) {
		m := checktest.Rebuilt(t, "h200x2")
		addKFD(m, []aNode{aProcessor(), aGPU(1, "0000:99:00.0")})
		f := gatherAMD(t, m)
		expect.That(t, f.GPUs.AMD == nil && len(f.GPUs.Devices) == 2, "%+v", f.GPUs)
	})
}

func TestAMDPartitions(t *testing.T) {
	for name, encode := range map[string]func(location, partition int) int{
		"in the high bits":                 func(l, p int) int { return l | p<<28 },
		"in the place of the function":     func(l, p int) int { return l | p },
		"all partitions have one location": func(l, _ int) int { return l },
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []aNode{aProcessor(), aProcessor()}
			for i := range 8 {
				for p := range 8 {
					n := aGPU(int64(1000*(i+1)+p), fmt.Sprintf("0000:%02x:00.0", 0x08+0x1c*i), "simd_count 152", "simd_per_cu 4", "num_xcc 1", fmt.Sprintf("drm_render_minor %d", 128+8*i+p), "gfx_target_version 90402", "hive_id 144115188075855873")
					n.properties[2] = fmt.Sprintf("location_id %d", encode((0x08+0x1c*i)<<8, p))
					for to := 2; to < 2+64; to++ {
						if to != len(nodes) {
							n.io = append(n.io, aLink{to, 11, 15, 64000, 64000, 1}) // xGMI.
						}
					}
					nodes = append(nodes, n)
				}
			}
			m := amdMachine(t, "model-mi300x8", "kfd/topology")
			addKFD(m, nodes)
			for p := range 3 {
				m.AddFile(fmt.Sprintf("%s/42/vram_%d", kfdProcesses, 1000+p), []byte("1048576\n"))
			}
			f := gatherAMD(t, m)
			expect.Must(t, len(f.GPUs.Devices) == 8, "%d GPUs, want 8", len(f.GPUs.Devices))
			g := f.GPUs.Devices[0]
			want := &facts.KFDNode{Node: 2, Nodes: []int{2, 3, 4, 5, 6, 7, 8, 9}}
			expect.NoDiff(t, want, g.KFD, "node")
			expect.That(t, len(g.Processes) == 1, "GPU %+v", g)
			p := f.Links.Between(g.Address, f.GPUs.Devices[7].Address)
			expect.That(t, p.XGMIGBps == 64 && *p.Accessible, "pair %+v", p)
		})
	}
}

func TestAMDIntegrated(t *testing.T) {
	const card, apu = "0000:03:00.0", "0000:00:08.0"
	m := amdMachine(t, "model-r9700x4", "kfd/topology", "0000:06:00.0", "0000:e3:00.0", "0000:e6:00.0")
	addKFD(m, []aNode{aProcessor(), aGPU(11, card, "gfx_target_version 120001"), aGPU(12, apu, "gfx_target_version 100306")})
	addFunction(m, "pci0000:00", apu, "0x030000", "0x1002", "0x164e")
	m.AddLink(deviceFile(apu, "driver"), "../../../bus/pci/drivers/amdgpu")
	f := gatherAMD(t, m)
	got := make(map[string]string)
	for _, g := range f.GPUs.Devices {
		got[g.Address] = fmt.Sprint(g.Architecture, " ", *g.Integrated, " ", g.InPCI, " ", g.KFD.Node)
	}
	expect.NoDiff(t, map[string]string{card: "gfx1201 false true 1", apu: "gfx1036 true true 2"}, got, "GPUs")
	expect.Len(t, 0, f.Links.Pairs, "the integrated GPU is in a pair")
}

func TestAMDRate(t *testing.T) {
	mi300 := func(device string) *topology {
		return &topology{devices: map[string]*facts.PCIDevice{"a": {Device: device}, "b": {Device: device}}}
	}
	for _, tt := range []struct {
		name, device string
		link         kfdLink
		want         float64
	}{
		{"as the driver says", "0x74a1", kfdLink{"weight": 15, "min_bandwidth": 64000, "max_bandwidth": 64000}, 64},
		{"a driver that takes each link for one of 25 GT/s", "0x74a1", kfdLink{"weight": 15, "min_bandwidth": 50000, "max_bandwidth": 50000}, 64},
		{"MI355X by a driver that knows MI300 only", "0x75a3", kfdLink{"weight": 15, "min_bandwidth": 64000, "max_bandwidth": 64000}, 76.5},
		{"four links", "0x740c", kfdLink{"weight": 15, "min_bandwidth": 50000, "max_bandwidth": 200000}, 200},
		{"a model that is not known", "0xffff", kfdLink{"weight": 15, "min_bandwidth": 80000, "max_bandwidth": 160000}, 160},
		{"within a package", "0x74a1", kfdLink{"weight": 13, "min_bandwidth": 64000, "max_bandwidth": 64000}, 64},
		{"over another GPU", "0x740c", kfdLink{"weight": 30, "min_bandwidth": 50000, "max_bandwidth": 50000}, 0},
		{"a guest that is told nothing", "0x74b5", kfdLink{"weight": 15}, 64},
		{"nothing told, and the number of links differs", "0x740c", kfdLink{"weight": 15}, 0},
		{"nonsense", "0x740c", kfdLink{"weight": 15, "min_bandwidth": 1, "max_bandwidth": 1 << 40}, 0},
	} {
		expect.Equal(t, tt.want, mi300(tt.device).xgmiGBps(&facts.Pair{A: "a", B: "b"}, tt.link), "%s", tt.name)
	}
}

func TestAMDExpectation(t *testing.T) {
	xgmi := func(rate float64) facts.Pair {
		return facts.Pair{A: "0000:08:00.0", B: "0000:09:00.0", Kind: pairGPUs, LinkType: linkXGMI, XGMIGBps: rate, NVLinks: new(0), Narrowest: &facts.NarrowestLink{BestGBps: 31.5}}
	}
	unasked := xgmi(0)
	unasked.LinkType = ""
	for _, tt := range []struct {
		name, test, device string
		pair               facts.Pair
		gbps, expected     float64
		want               probe.Outcome
	}{
		{"one link, copy engine", probe.TestCopy, "0x74a1", xgmi(64), 33.9, 64, probe.OK},
		{"one link, kernels", probe.TestStore, "0x74a1", xgmi(64), 47.7, 64, probe.OK},
		{"one link, both ways", probe.TestBidirectional, "0x74a1", xgmi(64), 43.9, 128, probe.OK},
		{"one link, as slow as PCIe 3.0", probe.TestCopy, "0x74a1", xgmi(64), 12, 64, probe.Slow},
		{"four links: one copy engine fills one", probe.TestCopy, "0x740c", xgmi(200), 37, 50, probe.OK},
		{"four links, kernels", probe.TestStore, "0x740c", xgmi(200), 60, 200, probe.Slow},
		{"over another GPU", probe.TestCopy, "0x740c", xgmi(0), 1, 0, probe.OK},
		{"it may be xGMI or PCIe", probe.TestCopy, "0x740c", unasked, 1, 0, probe.OK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &facts.Facts{
				PCI:   &facts.PCIFacts{Devices: []facts.PCIDevice{{Address: tt.pair.A, Device: tt.device}, {Address: tt.pair.B, Device: tt.device}}},
				GPUs:  &facts.GPUFacts{Devices: []facts.GPU{{Address: tt.pair.A, Vendor: pci.WordAMD}, {Address: tt.pair.B, Vendor: pci.WordAMD}}},
				Links: &facts.LinkFacts{Pairs: []facts.Pair{tt.pair}},
			}
			transfer := probe.Transfer{Test: tt.test, Source: tt.pair.A, Destination: tt.pair.B, Outcome: probe.OK, GBps: &tt.gbps}
			judgeSpeed(f, 2, &transfer)
			got := 0.0
			if transfer.ExpectedGBps != nil {
				got = *transfer.ExpectedGBps
			}
			expect.That(t, got == tt.expected && transfer.Outcome == tt.want, "expected %v, %s (%s); want %v, %s", got, transfer.Outcome, transfer.Reason, tt.expected, tt.want)
		})
	}
}

func TestROCmVersion(t *testing.T) {
	for text, want := range map[string]string{"6.4.1-83\n": "6.4.1-83", "7.1.0\n": "7.1.0", "<html>\n": "", "": ""} {
		m := &host.Memory{}
		m.AddFile("/opt/rocm/.info/version", []byte(text))
		c := &gpuGathering{Gathering: checktest.On(m, &facts.Facts{})}
		expect.Equal(t, want, c.readROCm(), "%q", text)
	}
}

func TestAMDSnapshotHidesIdentifiers(t *testing.T) {
	m := amdMachine(t, "model-mi300x8")
	for i := range 8 {
		file := fmt.Sprintf("%s/%d/properties", kfdNodes, 2+i)
		before := expect.Value(m.ReadFile(file, 4096))(t)
		m.AddFile(file, bytes.Replace(before, []byte("hive_id 144115188075855873"), []byte("hive_id 9876543210987654321\nunique_id 1234567890123456789"), 1))
	}
	h, recording := host.New(m).Record()
	_, _ = Gather(t.Context(), h, gather.Options{})
	var file strings.Builder
	expect.NoError(t, recording.Write(&file, host.RecordOptions{Version: "test"}))
	for _, secret := range []string{"9876543210987654321", "1234567890123456789"} {
		expect.That(t, !strings.Contains(file.String(), secret), "the snapshot shows %s", secret)
	}
}

func FuzzKFD(f *testing.F) {
	f.Add("7\n", "cpu_cores_count 0\nlocation_id 768\ndomain 0\ngfx_target_version 90402\nhive_id 5\n", "type 11\nnode_to 2\nweight 15\nmin_bandwidth 50000\nmax_bandwidth 50000\nflags 1\n", "ue: 0\nce: 0\n")
	f.Add("x", "location_id 18446744073709551615\ndomain 99999\n", "type 2\nnode_to 1\n", "Query currently inaccessible\n")
	f.Add("-1\n", "", "node_to 2\ntype 2", "ue: 99999999999999999999\nce: -1\nde: x\n")
	// The PCI tree is read by several goroutines: that would make the coverage change from run to run.
	tree := checktest.On(amdMachine(f, "model-r9700x4"), &facts.Facts{})
	expect.NoError(f, pci.Check.Gather(f.Context(), tree))
	f.Fuzz(func(t *testing.T, id, properties, link, counters string) {
		m := twoAMD(t, []aNode{aProcessor(), aGPU(7, "0000:03:00.0"), aGPU(8, "0000:06:00.0")})
		m.AddFile(kfdNodes+"/1/gpu_id", []byte(id))
		m.AddFile(kfdNodes+"/1/properties", []byte(properties))
		m.AddFile(kfdNodes+"/2/io_links/0/properties", []byte(link))
		dir := expect.Value(host.New(m).Real(deviceFile("0000:03:00.0", "")))(t)
		m.AddFile(dir+"/ras/umc_err_count", []byte(counters))
		m.AddFile(dir+"/ras/gpu_vram_bad_pages", []byte(counters))
		pci := checktest.On(m, &facts.Facts{PCI: tree.Facts.PCI})
		for _, c := range []*gather.Check{gpusCheck, linksCheck} {
			expect.NoError(t, c.Gather(t.Context(), pci))
		}
		n := len(pci.Facts.GPUs.Devices)
		expect.That(t, n <= 6, "%d GPUs", n)
		for _, p := range pci.Facts.Links.Pairs {
			expect.That(t, p.XGMIGBps >= 0 && p.XGMIGBps <= 10_000_000, "%v GB/s", p.XGMIGBps)
		}
	})
}

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
