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
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// programs are what this binary is under another name: the program with something changed.
var programs = map[string]func(){}

func TestMain(m *testing.M) {
	checks.ChildMain()                              // In tests that call functions, this binary starts itself.
	if programs[filepath.Base(os.Args[0])] == nil { // Tests do not read the settings of whoever runs them.
		ruleMemory = math.MaxUint64 / 2 // What other tests take is not the rules'.
		if err := os.Setenv("XDG_CONFIG_HOME", os.DevNull); err != nil {
			panic(err)
		}
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

// writtenAs is a report in a format.
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
	build := exec.Command("go", slices.Concat([]string{"build", "-o", dir}, raceFlags, []string{"."})...)
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
	return b.tests.Run()
}
