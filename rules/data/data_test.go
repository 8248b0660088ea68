package data

import (
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestTables reads each table, which panics unless its type knows all that it says.
func TestTables(t *testing.T) {
	for name, read := range tables {
		expect.That(t, read() != nil, "%s is not read", name)
	}
}

// TestFiles checks that each YAML file is a table.
func TestFiles(t *testing.T) {
	names := expect.Value(filepath.Glob("*.yaml"))(t)
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".yaml")
	}
	expect.That(t, slices.Equal(names, Names()), "files of tables: %v, want %v", names, Names())
	expect.That(t, Table("no-table") == nil, "there is a table called no-table")
}

// checkSources checks that a row, or a table, says where it is from.
func checkSources(t *testing.T, of string, sources ...string) {
	t.Helper()
	expect.That(t, len(sources) > 0, "%s: no source", of)
	for _, source := range sources {
		u, err := url.Parse(source)
		expect.That(t, err == nil && u.Scheme == "https" && u.Host != "", "%s: the source %q is no https address", of, source)
	}
}

// TestLimits checks that no value was forgotten, and that none lies on the wrong side of another.
func TestLimits(t *testing.T) {
	table := Thresholds()
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		expect.That(t, !v.Field(i).IsZero(), "%s is not set", v.Type().Field(i).Name)
	}
	for name, share := range map[string]float64{"wrong_path": table.WrongPath, "staged": table.Staged} {
		expect.That(t, share > 0 && share < 1, "%s is %v", name, share)
	}
	d := table.Detour
	expect.That(t, d.Least < d.Most && d.Least >= table.Staged, "a detour is %+v of a link, staging %v", d, table.Staged)
	expect.That(t, table.StagedFaster > 1 && table.StagedBeatsCrowd >= table.StagedFaster, "host memory is faster by %v, and %v in a crowd", table.StagedFaster, table.StagedBeatsCrowd)
	expect.That(t, table.MemlockTooLowBytes < table.MemlockLowBytes && table.ShmDefaultBytes < table.ShmRecommendedBytes, "a limit lies on the wrong side of another")
	want := int64(4*1024+512+4800+4) * 1024
	expect.That(t, table.ShmConnectionBytes == want, "shm_connection_bytes is %d, want %d: Simple, LL, LL128 and a page", table.ShmConnectionBytes, want)
	checkSources(t, "thresholds", table.Sources...)
}

// TestCUDADrivers checks that a newer CUDA needs a newer driver.
func TestCUDADrivers(t *testing.T) {
	major := Thresholds().CUDADrivers
	expect.That(t, len(major) == 3 && 0 < major["11"] && major["11"] < major["12"] && major["12"] < major["13"], "drivers of CUDA: %v", major)
}

func TestDriverErrors(t *testing.T) {
	table := DriverErrors()
	classes, used, names := map[string]bool{}, map[string]bool{"other": true}, map[string]bool{}
	for _, c := range slices.Concat(table.Classes, table.NVML) {
		expect.That(t, !classes[c.Name] && c.Words != "" && len(c.Remedies) != 0, "class %q is there twice, says nothing or has no remedy", c.Name)
		classes[c.Name] = true
	}
	expect.That(t, classes["other"], "no class for a code that names no cause")
	last := 0
	for _, c := range table.Codes {
		expect.That(t, c.Code > last, "code %d comes after %d", c.Code, last)
		last = c.Code
		expect.That(t, !names[c.Name] && c.Name != "", "code %d: the name %q is given twice, or is empty", c.Code, c.Name)
		names[c.Name] = true
		expect.That(t, classes[c.Class], "code %d: unknown class %q", c.Code, c.Class)
		used[c.Class] = true
		expect.That(t, (!c.InGPU || c.Class == "hardware") && (!c.Untried || c.JudgedBy == ""), "code %d: in_gpu without hardware, or untried and judged by %q", c.Code, c.JudgedBy)
	}
	for _, c := range table.Classes {
		expect.That(t, used[c.Name], "no code is of the class %s", c.Name)
	}
	checkSources(t, "driver_errors", table.Sources...)
}

// TestExperiments checks that each switch says which values turn it off and what is at fault
// then, that words name switches, and that each pattern is right.
func TestExperiments(t *testing.T) {
	table := Experiments()
	checkSources(t, "experiments", table.Sources...)
	names := map[string]int{}
	for _, row := range table.Switches {
		checkSources(t, row.Words, row.Source)
		_, err := regexp.Compile(row.Off)
		expect.That(t, err == nil && row.Off != "" && len(row.Names) != 0 && row.Words != "" && len(row.Causes) != 0, "%v: something is missing (%v)", row.Names, err)
		expect.That(t, !regexp.MustCompile(row.Off).MatchString(""), "%v is off where it is not set", row.Names)
		expect.That(t, row.When == "" || row.When == "roce" || row.When == "infiniband", "%v: there is no network %q", row.Names, row.When)
		for _, name := range row.Names {
			names[name]++
			expect.That(t, names[name] <= 2, "%s stands in a row that is never reached", name)
		}
		checkCauses(t, row.Words, row.Causes)
	}
	for _, w := range table.Words {
		_, err := regexp.Compile(w.Like)
		expect.That(t, err == nil && names[w.Name] != 0, "%q names no switch (%v)", w.Like, err)
		row := table.Switches[slices.IndexFunc(table.Switches, func(s Switch) bool { return slices.Contains(s.Names, w.Name) })]
		expect.That(t, w.Value == "" || regexp.MustCompile(row.Off).MatchString(w.Value), "%q: with %q %s is not off", w.Like, w.Value, w.Name)
	}
	expect.That(t, table.Faster > 1, "a run is slow next to one that is %v times as fast", table.Faster)
}

// TestJobNeeds checks that each row says when, what and why, and that no row sets what another
// one under the same conditions does.
func TestJobNeeds(t *testing.T) {
	table := JobNeeds()
	checkSources(t, "job_needs", table.Sources...)
	sentence := regexp.MustCompile(`^[A-Z{].*\.$`)
	for i, n := range table.Needs {
		expect.That(t, len(n.When) != 0 && (n.Remedy == "") != (len(n.Environment) == 0) && sentence.MatchString(n.Reason), "row %d: when %v, remedy %q, environment %v, reason %q", i+1, n.When, n.Remedy, n.Environment, n.Reason)
	}
}

// severities are those of a finding, from the worst.
var severities = []string{"critical", "high", "medium", "low", "info"}

// severityOfClass is what a class that says nothing against the machine weighs.
var severityOfClass = map[string]string{"application": "low", "secondary": "info", "note": "info"}

func TestXIDs(t *testing.T) {
	table := XIDs()
	last, used := 0, map[string]bool{}
	for _, x := range table.XIDs {
		expect.That(t, x.Code > last, "Xid %d comes after %d", x.Code, last)
		last = x.Code
		expect.That(t, x.Name != "", "Xid %d has no name", x.Code)
		expect.That(t, table.Actions[x.Action] != nil, "Xid %d: unknown action %q", x.Code, x.Action)
		used[x.Action] = true
		switch want, harmless := severityOfClass[x.Class]; {
		case harmless && x.Severity != want:
			t.Errorf("Xid %d: severity %s, want %s of the class %s", x.Code, x.Severity, want, x.Class)
		case !harmless && !slices.Contains([]string{"fault", "link"}, x.Class):
			t.Errorf("Xid %d: unknown class %q", x.Code, x.Class)
		case !harmless && !slices.Contains(severities[:3], x.Severity):
			t.Errorf("Xid %d: severity %q of a fault", x.Code, x.Severity)
		}
	}
	for action := range table.Actions {
		expect.That(t, used[action], "no Xid has the action %s", action)
	}
	checkSources(t, "xids", table.Sources...)
}

func TestSXIDs(t *testing.T) {
	severity := map[int]string{}
	for s, codes := range XIDs().SXIDs {
		expect.That(t, s == "critical" || s == "high" || s == "noted", "SXids of severity %q", s)
		expect.That(t, slices.IsSorted(codes), "the SXids of severity %s are not sorted", s)
		for _, code := range codes {
			// The range is the driver's (ctrl_dev_nvswitch.h).
			expect.That(t, severity[code] == "" && code >= 10001 && code <= 30006, "SXid %d is %s, and %q before", code, s, severity[code])
			severity[code] = s
		}
	}
	expect.That(t, len(severity) > 0, "no SXid")
}

// TestRates checks that no value was forgotten, and that fractions are fractions.
func TestRates(t *testing.T) {
	table := Rates()
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		expect.That(t, !v.Field(i).IsZero(), "%s is not set", v.Type().Field(i).Name)
	}
	for test, s := range table.Shares {
		for _, share := range []float64{s.NVLink, s.PCIe, s.Far, s.Unknown, s.XGMI} {
			expect.That(t, share >= 0 && share < 1, "%s: the share %v is not between 0 and 1", test, share)
		}
		expect.That(t, s.PCIe != 0 && s.Far != 0 && s.Far <= s.PCIe && s.Unknown <= s.PCIe, "%s: a longer way counts as good only where a shorter one does, %+v", test, s)
	}
	for name, share := range map[string]float64{
		"collective": table.Collective.NVLink, "collective over PCIe": table.Collective.PCIe, "collective_network": table.CollectiveNetwork, "network": table.Network,
	} {
		expect.That(t, share > 0 && share < 1, "%s is %v", name, share)
	}
	checkSources(t, "rates", table.Sources...)
}

// TestPaths checks that each type of path has its share, and that a farther one has no larger one.
func TestPaths(t *testing.T) {
	table := Rates()
	last := table.Network
	for i, path := range table.Paths {
		share := table.GPUNetwork[path]
		expect.That(t, share > 0 && share <= last, "%s: a share of %v behind one of %v", path, share, last)
		last = share
		expect.Equal(t, i, PathRank(path), "%s has the rank", path)
	}
	expect.Len(t, len(table.Paths), table.GPUNetwork, "shares of the paths %v", table.Paths)
	expect.That(t, PathRank(table.GDRPath) != len(table.Paths) && PathRank("") == len(table.Paths), "paths %v, GPUDirect RDMA up to %s", table.Paths, table.GDRPath)
}

// TestPCIe checks the rates that the specification and data sheets give.
func TestPCIe(t *testing.T) {
	for _, tt := range []struct {
		gts   float64
		width int
		want  float64
	}{
		{2.5, 16, 4}, {5, 16, 8}, {8, 1, 0.985}, {8, 16, 15.754}, {16, 8, 15.754}, {16, 16, 31.508}, {32, 16, 63.015}, {64, 16, 121}, {20, 4, 9.846}, {1, 1, 0.1},
	} {
		expect.Equal(t, tt.want, PCIeGBps(tt.gts, tt.width), "%v GT/s x%d", tt.gts, tt.width)
	}
	for generation := 1; generation <= len(Rates().PCIe); generation++ {
		expect.Equal(t, generation, PCIeGeneration(PCIeSpeedGTs(generation)), "generation %d", generation)
		expect.That(t, PCIeSpeedGTs(generation) > PCIeSpeedGTs(generation-1), "generation %d is not faster than the one before", generation)
	}
	expect.That(t, PCIeGeneration(20) == 0 && PCIeSpeedGTs(0) == 0 && PCIeSpeedGTs(99) == 0, "a speed or a generation that there is not")
	floor := Rates().HostFloor.GBps()
	expect.That(t, floor >= 0.76 && floor <= 1, "host copies are wrong below %v GB/s", floor)
}

func TestPortName(t *testing.T) {
	for _, tt := range []struct {
		layer string
		gbps  float64
		want  string
	}{
		{"InfiniBand", 400, "NDR"}, {"InfiniBand", 123, ""}, {"Ethernet", 25, "25 GbE"}, {"Ethernet", 26, ""}, {"", 100, ""},
	} {
		expect.Equal(t, tt.want, PortName(tt.layer, tt.gbps), "%s at %v Gb/s", tt.layer, tt.gbps)
	}
}
