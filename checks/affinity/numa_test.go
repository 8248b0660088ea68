package affinity

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestNUMA(t *testing.T) {
	m := &host.Memory{}
	m.AddFile("/proc/sys/kernel/numa_balancing", []byte("1\n"))
	m.AddFile("/proc/self/status", []byte("Name:\tx\nCpus_allowed_list:\t8-11,40-43\nMems_allowed:\t1\nMems_allowed_list:\t0-1\n"))
	for name, files := range map[string][2]string{
		"node0": {"0-15,32-47\n", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB\n"},
		"node1": {"16-31,48-63\n", "Node 1 MemTotal:       2048 kB\n"},
		// A GPU's memory as a node, as on Grace Hopper.
		"node10": {"\n", "Node 10 MemTotal:       4096 kB\n"},
	} {
		m.AddFile(nodesFolder+"/"+name+"/cpulist", []byte(files[0]))
		m.AddFile(nodesFolder+"/"+name+"/meminfo", []byte(files[1]))
	}
	m.AddFile(nodesFolder+"/has_cpu", []byte("0-1\n"))
	g := checktest.On(m, &facts.Facts{})
	expect.NoError(t, Check.Gather(t.Context(), g))
	want := &facts.NUMAFacts{
		Nodes: []facts.NUMANode{
			{ID: 0, CPUs: "0-15,32-47", AllowedCPUs: new(8), MemoryBytes: 1 << 20},
			{ID: 1, CPUs: "16-31,48-63", AllowedCPUs: new(0), MemoryBytes: 2 << 20},
			{ID: 10, CPUs: "", AllowedCPUs: new(0), MemoryBytes: 4 << 20},
		},
		Balancing: new(1), AllowedCPUs: "8-11,40-43",
	}
	expect.NoDiff(t, want, g.Facts.NUMA, "section")
	expect.That(t, g.Unknowns() == nil, "unknown = %v, want none", g.Unknowns())
}

func TestNUMAMissing(t *testing.T) {
	m := &host.Memory{}
	m.AddFile(nodesFolder+"/node0/cpulist", []byte("0-zwei\n"))
	m.AddFile(nodesFolder+"/node0/meminfo", []byte("Node 0 MemFree: 1 kB\n"))
	m.AddFile("/proc/sys/kernel/numa_balancing", []byte("on\n"))
	g := checktest.On(m, &facts.Facts{})
	expect.NoError(t, Check.Gather(t.Context(), g))
	expect.NoDiff(t, &facts.NUMAFacts{Nodes: []facts.NUMANode{{}}}, g.Facts.NUMA, "section")
	got := expect.Map(g.Unknowns(), func(u facts.Unknown) string { return u.Fact + ": " + u.Reason })
	want := []string{
		`balancing: read /proc/sys/kernel/numa_balancing: not a number: "on"`,
		"allowed_cpus: /proc/self/status does not show the CPUs that this process may use",
		`nodes.cpus: read /sys/devices/system/node/node0/cpulist: not a list of CPUs: "0-zwei"`,
	}
	expect.NoDiff(t, want, got, "unknown")

	g = checktest.On(&host.Memory{}, &facts.Facts{})
	expect.NoError(t, Check.Gather(t.Context(), g))
	expect.That(t, g.Facts.NUMA.Nodes == nil && len(g.Unknowns()) != 0, "nodes = %v, unknown = %v; want no nodes, and the reason", g.Facts.NUMA.Nodes, g.Unknowns())
}

func TestParseCPUList(t *testing.T) {
	for in, want := range map[string]string{
		"":               "0",
		"0":              "1",
		"0-15,64-79\n":   "ffff000000000000ffff",
		"8-11,0-3,4,2-9": "fff",
		"5-3":            "<nil>",
		"0-4294967295":   "<nil>",
		"1,,2":           "<nil>",
		"-1":             "<nil>",
		"a-b":            "<nil>",
	} {
		got, err := ParseCPUList(in)
		expect.That(t, (err == nil) == (got != nil) && got.Text(16) == want, "%q = %s, %v; want %s", in, got.Text(16), err, want)
	}
}

func FuzzCPUList(f *testing.F) {
	f.Add("0-15,64-79", "8-71")
	f.Add("", "0")
	f.Add("5-3,1", "999999999999")
	f.Fuzz(func(t *testing.T, one, other string) {
		a, errA := ParseCPUList(one)
		b, errB := ParseCPUList(other)
		if errA != nil || errB != nil {
			return
		}
		expect.That(t, a.BitLen() <= maxCPU+1, "%q has %d bits", one, a.BitLen())
		n := common(a, b)
		expect.That(t, n == common(b, a) && n <= min(common(a, a), common(b, b)), "%q and %q have %d in common", one, other, n)
	})
}

func TestCPUList(t *testing.T) {
	for in, want := range map[string]string{"": "", "3": "3", "0,1,2,3,8": "0-3,8", "5,4,1": "1,4-5"} {
		expect.Equal(t, want, CPUList(expect.Value(ParseCPUList(in))(t)), "%q", in)
	}
	for in, want := range map[string]string{"ff,00000000": "32-39", "3": "0-1", "": "", "x": "", "-1": ""} {
		expect.Equal(t, want, CPUList(ParseMask(in)), "the mask %q", in)
	}
}
