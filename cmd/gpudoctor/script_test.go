package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

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
