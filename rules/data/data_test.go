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

// TestTables reads each table: its type knows all that it says.
func TestTables(t *testing.T) {
	for name, table := range tables {
		err := read(name, table.empty())
		expect.That(t, err == nil, "%s: %v", name, err)
	}
}

// TestFiles checks that each YAML file is a table.
func TestFiles(t *testing.T) {
	names := expect.Value(filepath.Glob("*.yaml"))(t)
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".yaml")
	}
	if !slices.Equal(names, Names()) {
		t.Errorf("files of tables: %v, want %v", names, Names())
	}
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
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set", v.Type().Field(i).Name)
		}
	}
	for name, share := range map[string]float64{
		"wrong_path": table.WrongPath, "staged": table.Staged,
	} {
		expect.That(t, share > 0 && share < 1, "%s is %v", name, share)
	}
	if d := table.Detour; d.Least >= d.Most || d.Least < table.Staged {
		t.Errorf("a detour is %+v of a link, staging %v", d, table.Staged)
	}
	expect.That(t, table.StagedFaster > 1 && table.StagedBeatsCrowd >= table.StagedFaster, "host memory is faster by %v, and %v in a crowd", table.StagedFaster, table.StagedBeatsCrowd)
	if table.MemlockTooLowBytes >= table.MemlockLowBytes || table.ShmDefaultBytes >= table.ShmRecommendedBytes || table.BARDefaultBytes >= table.BARFixedMostBytes || table.BusyPercent >= table.SpinningPercent {
		t.Error("a limit lies on the wrong side of another")
	}
	want := int64(4*1024+512+4800+4) * 1024
	expect.That(t, table.ShmConnectionBytes == want, "shm_connection_bytes is %d, want %d: Simple, LL, LL128 and a page", table.ShmConnectionBytes, want)
	checkSources(t, "thresholds", table.Sources...)
}

// TestCUDADrivers checks that a newer CUDA needs a newer driver.
func TestCUDADrivers(t *testing.T) {
	last := 0
	old, major := Thresholds().OldCUDADrivers, Thresholds().CUDADrivers
	for _, branch := range []int{old["7.0"], old["7.5"], old["8.0"], old["9.0"], old["9.1"], old["9.2"], old["10.0"], old["10.1"], old["10.2"], major["11"], major["12"], major["13"]} {
		expect.That(t, branch > last, "driver %d comes after %d", branch, last)
		last = branch
	}
	expect.That(t, len(old)+len(major) == 12, "%d releases of CUDA, want 12", len(old)+len(major))
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
			if names[name]++; names[name] > 2 {
				t.Errorf("%s stands in a row that is never reached", name)
			}
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
		if len(n.When) == 0 || (n.Remedy == "") == (len(n.Environment) == 0) || !sentence.MatchString(n.Reason) {
			t.Errorf("row %d: when %v, remedy %q, environment %v, reason %q", i+1, n.When, n.Remedy, n.Environment, n.Reason)
		}
	}
}
