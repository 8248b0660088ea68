package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// programs are what this binary is under another name: the program with something changed.
var programs = map[string]func(){}

func TestMain(m *testing.M) {
	checks.ChildMain() // In tests that call functions, this binary starts itself.
	if programs[filepath.Base(os.Args[0])] == nil {
		ruleMemory = math.MaxUint64 / 2 // What other tests take is not the rules'.
	}
	testscript.Main(beside{m}, programs)
}

func inProcess(line ...string) (code int, stdout, stderr string) {
	var out, said bytes.Buffer
	code = run(append([]string{"gpudoctor"}, line...), &out, &said)
	return code, out.String(), said.String()
}

func decoded[T any, Text string | []byte](tb testing.TB, raw Text) T {
	tb.Helper()
	var v T
	err := json.Unmarshal([]byte(raw), &v)
	expect.Must(tb, err == nil, "%v: %.500s", err, raw)
	return v
}

func writtenAs(format string, d *report.Document, style report.Style) string {
	var b bytes.Buffer
	f, _ := report.FormatNamed(format)
	if err := f.Write(&b, d, style); err != nil {
		return err.Error()
	}
	return b.String()
}

func ended(t *testing.T, c *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	expect.Must(t, c.ProcessState != nil, "%v", err)
	return c.ProcessState.ExitCode(), out.String(), said.String()
}

func together(t *testing.T, c *exec.Cmd) (string, int) {
	t.Helper()
	out, err := c.CombinedOutput()
	expect.Must(t, c.ProcessState != nil, "%v", err)
	return string(out), c.ProcessState.ExitCode()
}

// withRace reports whether the tests are built with the race detector; the program is built as they are.
func withRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// beside runs tests with the program in PATH. It is built, and no other name of this binary, which starts three
// times as slowly: a check is four processes, and the tests run some thousand checks.
type beside struct{ tests *testing.M }

func (b beside) Run() int {
	dir, err := os.MkdirTemp("", "program")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // It is a temporary folder.
	build := exec.Command("go", "build", "-o", dir, fmt.Sprint("-race=", withRace()), ".")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	if os.Getenv("GOGC") == "" { // A machine for tests has memory enough to collect garbage more rarely.
		debug.SetGCPercent(400)
	}
	expect.SideBySide(2)
	return b.tests.Run()
}

// maxSize is the most bytes that the stripped program may have: 45 MB.
const maxSize = 45_000_000

// releaseTags are the build tags of a release: without urfave/cli's generator of manual pages the program is 250 KB smaller.
const releaseTags = "urfave_cli_no_docs"

// TestSize holds the program to its size. The release is larger by its relocations.
func TestSize(t *testing.T) {
	expect.NotShort(t, "it links the program")
	expect.NotByDay(t, "with another tag than the tests, much is compiled again")
	file := filepath.Join(t.TempDir(), "gpudoctor")
	out, err := exec.Command("go", "build", "-tags="+releaseTags, "-ldflags=-s -w", "-o", file, ".").CombinedOutput()
	expect.Must(t, err == nil, "%v\n%s", err, out)
	info := expect.Value(os.Stat(file))(t)
	expect.That(t, info.Size() <= maxSize, "the stripped program has %d bytes, more than %d; go version -m and go tool nm -size show what is in it", info.Size(), maxSize)
	t.Logf("%d bytes", info.Size())
	for _, script := range []string{"../../.ci/release", "../../Dockerfile"} {
		expect.That(t, strings.Contains(string(expect.Value(os.ReadFile(script))(t)), releaseTags), "%s builds without %s", script, releaseTags)
	}
}

// elsewhereProgram is gpudoctor on a system that is not Linux.
const elsewhereProgram = "gpudoctor-elsewhere"

func init() {
	programs[elsewhereProgram] = func() {
		liveSystem = "darwin"
		main()
	}
}

func program(b *testing.B) string {
	b.Helper()
	file := filepath.Join(b.TempDir(), "gpudoctor")
	build := exec.Command("go", "build", "-o", file, ".")
	build.Stderr = os.Stderr
	expect.NoError(b, build.Run())
	return file
}

// BenchmarkCheckFrom measures the whole line over the facts of eight GPUs, the
// start of the program and the most memory that it held included.
func BenchmarkCheckFrom(b *testing.B) {
	file := program(b)
	facts := filepath.Join(b.TempDir(), "facts.json")
	expect.NoError(b, writeFacts(facts, eightGPUs()))
	var most int64
	for b.Loop() {
		run := exec.Command(file, "check", "--fail-on", "none", "--format", "json", "--from", facts)
		expect.NoError(b, run.Run())
		if usage, ok := run.ProcessState.SysUsage().(*syscall.Rusage); ok {
			most = max(most, usage.Maxrss)
		}
	}
	b.ReportMetric(float64(most)/(1<<10), "MiB-rss") // Linux counts ru_maxrss in KiB (getrusage(2)).
}

// TestScripts runs the program as a person does.
func TestScripts(t *testing.T) {
	policy := expect.Value(filepath.Abs(filepath.Join("testdata", "policy")))(t)
	schema := expect.Value(filepath.Abs(filepath.Join("..", "..", "docs", "report.schema.json")))(t)
	names := []string{"*"}
	if expect.FewRows() { // The others have little side by side that the race detector could look at.
		names = []string{"pipe", "signal", "terminal"}
	}
	var files []string
	for _, name := range names {
		found, err := filepath.Glob(filepath.Join("testdata", "script", name+".txtar"))
		expect.Must(t, err == nil && len(found) > 0, "no script %s: %v", name, err)
		files = append(files, found...)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, "POLICY="+policy, "LANG=C.UTF-8")
			for _, severity := range []string{"critical", "high", "medium", "low", "info"} {
				f := eightGPUs()
				f.Env.Variables = []facts.Variable{{Name: "NCCL_TEST_GATE", Value: severity, Source: "environment", Effective: true}}
				if err := writeFacts(filepath.Join(e.WorkDir, severity+".json"), f); err != nil {
					return err
				}
			}
			untried := eightGPUs()
			untried.Transfers = nil
			untried.Unknown = []facts.Unknown{{Section: "transfers", Reason: "the probe was not asked for"}}
			none := eightGPUs()
			none.GPUs.Devices, none.Transfers = []facts.GPU{}, nil
			one := eightGPUs()
			one.GPUs.Devices, one.Links.Pairs = one.GPUs.Devices[:1], nil
			one.Transfers = &probe.Report{Mode: probe.Quick, Outcome: probe.OK, Devices: one.Transfers.Devices[:1]}
			for name, f := range map[string]*facts.Facts{"healthy.json": eightGPUs(), "untried.json": untried, "no-gpu.json": none, "one-gpu.json": one} {
				if err := writeFacts(filepath.Join(e.WorkDir, name), f); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			// follows-schema FILE: a report keeps the published contract.
			"follows-schema": func(ts *testscript.TestScript, _ bool, args []string) {
				s, err := validator.NewCompiler().Compile(schema)
				ts.Check(err)
				v, err := validator.UnmarshalJSON(strings.NewReader(ts.ReadFile(args[0])))
				ts.Check(err)
				ts.Check(s.Validate(v))
			},
		},
	})
}

// exits is "exits CODE PROGRAM ARGUMENTS...": the program must end with that code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s ended with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

func writeFacts(file string, f *facts.Facts) error {
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o666)
}

// eightGPUs is the facts of a healthy machine with eight GPUs on NVSwitches.
func eightGPUs() *facts.Facts {
	f := fixtures.H200s(8)
	f.Host = &facts.HostFacts{Kernel: "6.8.0", Arch: "amd64"}
	f.IOMMU, f.NUMA, f.Unknown, f.Links.VirtualTopology = nil, nil, nil, nil
	return f
}
