package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
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

// inProcess runs a command line in this process.
func inProcess(line ...string) (code int, stdout, stderr string) {
	var out, said bytes.Buffer
	code = run(append([]string{"gpudoctor"}, line...), &out, &said)
	return code, out.String(), said.String()
}

// decoded is what a document says, as a value of a type.
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

// ended runs a program, and returns how it ended, whatever its exit code is.
func ended(t *testing.T, c *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	err := c.Run()
	expect.Must(t, c.ProcessState != nil, "%v", err)
	return c.ProcessState.ExitCode(), out.String(), said.String()
}

// together runs a program, and returns all that it writes and its exit code.
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

// releaseTags are the build tags of a release: without the generator of manual pages of
// urfave/cli, which manual.go replaces, the program is 250 KB smaller.
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

// TestLinked checks that the parts of OPA that would make the program 5 MB larger are
// not linked: the rules are evaluated by v1/topdown.
func TestLinked(t *testing.T) {
	list := expect.Value(exec.Command("go", "list", "-deps", ".").Output())(t)
	const opa = "github.com/open-policy-agent/opa/"
	packages := strings.Fields(string(list))
	for _, name := range packages {
		for _, heavy := range []string{opa + "v1/rego", opa + "v1/bundle", opa + "internal/compiler/wasm", "google.golang.org/protobuf/"} {
			expect.That(t, !strings.HasPrefix(name, heavy), "the program links %s", name)
		}
	}
	expect.That(t, slices.Contains(packages, opa+"v1/topdown"), "%sv1/topdown is not among the %d packages", opa, len(packages))
}

// elsewhereProgram is gpudoctor on a system that is not Linux.
const elsewhereProgram = "gpudoctor-elsewhere"

func init() {
	programs[elsewhereProgram] = func() {
		liveSystem = "darwin"
		main()
	}
}
