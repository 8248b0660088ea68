package checks

import (
	"context"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestCandidates checks which copy of the library a job would load.
func TestCandidates(t *testing.T) {
	t.Parallel()
	lib := func(path, foundBy string) facts.Library {
		return facts.Library{Kind: "libnccl", Path: path, FoundBy: foundBy, Version: "2.28.9"}
	}
	cache, python, named, preloaded := lib("/usr/lib/libnccl.so.2", "ld_cache"), lib("/venv/nvidia/nccl/lib/libnccl.so.2", "python"), lib("/opt/nccl/libnccl.so.2", "ld_library_path"), lib("/x/libnccl.so.2", "ld_preload")
	again := lib("/opt/link/libnccl.so.2", "ld_cache")
	again.RealPath = named.Path
	stub := lib("/usr/local/cuda/lib64/stubs/libnccl.so.2", "ld_library_path")
	stub.Stub = true
	rccl := facts.Library{Kind: "librccl", Path: "/opt/rocm/lib/librccl.so.1", FoundBy: "ld_cache"}
	amd := &facts.GPUFacts{Devices: []facts.GPU{{Address: "0000:06:00.0", Vendor: "amd"}}}
	for _, tt := range []struct {
		name  string
		files []facts.Library
		gpus  *facts.GPUFacts
		nccl  string
		want  []string
	}{
		{"nothing", nil, nil, "", nil},
		{"the loader's cache", []facts.Library{cache}, nil, "", []string{cache.Path}},
		{"Python before the cache", []facts.Library{cache, python}, nil, "", []string{python.Path, cache.Path}},
		{"LD_LIBRARY_PATH before Python", []facts.Library{named, cache, python}, nil, "", []string{named.Path, python.Path, cache.Path}},
		{"LD_PRELOAD before all", []facts.Library{preloaded, named, python}, nil, "", []string{preloaded.Path, named.Path, python.Path}},
		{"no stub, no copy twice", []facts.Library{stub, named, again}, nil, "", []string{named.Path}},
		{"as asked", []facts.Library{named}, nil, "/my/libnccl.so", []string{"/my/libnccl.so"}},
		{"AMD", []facts.Library{cache, rccl}, amd, "", []string{rccl.Path}},
		{"NVIDIA", []facts.Library{cache, rccl}, nil, "", []string{cache.Path}},
	} {
		f := &facts.Facts{Libraries: &facts.LibraryFacts{Files: tt.files}, GPUs: tt.gpus}
		got := expect.Map(candidates(gather.New(nil, f, gather.Options{NCCL: tt.nccl})), func(c probe.Candidate) string { return c.Path })
		expect.NoDiff(t, tt.want, got, "%s", tt.name)
	}
}

// TestAbsent checks which causes mean that there is nothing to run.
func TestAbsent(t *testing.T) {
	t.Parallel()
	for cause, want := range map[probe.Cause]bool{probe.CauseNoLibrary: true, probe.CauseNoDevice: true, probe.CauseBusy: false, probe.CauseKilled: false, "": false} {
		expect.That(t, absent(cause) == want, "%q: %t", cause, !want)
	}
}

// TestCollectivesAfterFailure checks that collectives are run only where the probe of pairs came to its
// end, or was not requested, and that a failure of theirs is never lost.
func TestCollectivesAfterFailure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pairs *probe.Report
		ran   bool
	}{
		{nil, true},
		{&probe.Report{Outcome: probe.OK}, true},
		{&probe.Report{Outcome: probe.Hang}, false},
		{&probe.Report{Outcome: probe.Error}, false},
		{&probe.Report{Outcome: probe.Unknown}, false},
	} {
		for _, outcome := range []probe.Outcome{probe.OK, probe.Hang, probe.Error, probe.Corrupt, probe.Unknown} {
			g := gather.New(nil, &facts.Facts{Transfers: tt.pairs}, gather.Options{Collectives: probe.Full})
			ran := false
			g.Collectives = func(_ context.Context, _ collective.Options, r *probe.Collectives) error {
				ran, r.Outcome, r.Reason = true, outcome, "x"
				return nil
			}
			expect.NoError(t, gatherCollectives(t.Context(), g))
			if ran != tt.ran || ran != (g.Facts.Collectives != nil) || ran && g.Facts.Collectives.Outcome != outcome {
				t.Errorf("pairs %+v, collectives %s: ran %t, %+v", tt.pairs, outcome, ran, g.Facts.Collectives)
			}
			expect.That(t, (len(g.Unknowns()) > 0) == (!ran || outcome == probe.Unknown), "pairs %+v, collectives %s: unknown %+v", tt.pairs, outcome, g.Unknowns())
		}
	}
}

// TestDue checks, for every combination of a library, a GPU, a variable and a failed pair, when
// collectives that nobody asked for are run, and which settings count.
func TestDue(t *testing.T) {
	t.Parallel()
	library := &facts.LibraryFacts{Files: []facts.Library{{Kind: "libnccl", Path: "/usr/lib/libnccl.so.2", FoundBy: "ld_cache"}}}
	pair := func(test string, outcome probe.Outcome) []probe.Transfer {
		return []probe.Transfer{{Test: test, Source: "0000:06:00.0", Destination: "0000:07:00.0", Outcome: outcome}}
	}
	for _, libraries := range []*facts.LibraryFacts{nil, {}, library} {
		for _, devices := range [][]probe.Device{nil, {{}}} {
			for _, transfers := range [][]probe.Transfer{
				nil, pair(probe.TestCopy, probe.OK), pair(probe.TestCopy, probe.Slow), pair(probe.TestCopy, probe.Unknown), pair(probe.TestStaged, probe.Error),
				pair(probe.TestCopy, probe.Corrupt), pair(probe.TestStore, probe.Hang), pair(probe.TestCopy, probe.Error),
			} {
				failed := len(transfers) > 0 && transfers[0].Outcome.Failed() && transfers[0].Test != probe.TestStaged
				for _, v := range []struct {
					variable facts.Variable
					counts   bool
				}{
					{facts.Variable{Name: "UCX_TLS", Value: "all", Source: "environment", Effective: true}, false},
					{facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "1", Source: "environment", Effective: true}, true},
					{facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "", Source: "environment", Effective: true}, false},
					{facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "1", Source: "/etc/nccl.conf", Effective: false}, false},
					{facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "1", Source: "/etc/nccl.conf", Effective: true}, true},
					{facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "1", Source: "/etc/rccl.conf", Effective: true}, false},
					{facts.Variable{Name: "NCCL_DEBUG_SUBSYS", Value: "INIT", Source: "environment", Effective: true}, false},
					{facts.Variable{Name: "NCCL_NVLS_ENABLE", Value: "0", Source: "environment", Effective: true}, false},
				} {
					f := &facts.Facts{
						Libraries: libraries, Transfers: &probe.Report{Outcome: probe.OK, Devices: devices, Transfers: transfers},
						Env: &facts.EnvFacts{Variables: []facts.Variable{v.variable}},
					}
					want := libraries == library && devices != nil && (failed || v.counts)
					g := gather.New(nil, f, gather.Options{Collectives: probe.Quick, CollectivesIfDue: true})
					ran := false
					g.Collectives = func(_ context.Context, asked collective.Options, r *probe.Collectives) error {
						ran, r.Outcome = true, probe.OK
						expect.That(t, (asked.Files[v.variable.Name] != "") == (v.variable.Effective && v.variable.Source == "/etc/nccl.conf"), "%+v: the settings of files are %v", v.variable, asked.Files)
						return nil
					}
					expect.NoError(t, gatherCollectives(t.Context(), g))
					if ran != want || (f.Collectives != nil) != want || len(g.Unknowns()) > 0 {
						t.Errorf("%d devices, %+v, %+v: ran %t, want %t; unknown %+v", len(devices), transfers, v.variable, ran, want, g.Unknowns())
					}
				}
			}
		}
	}
	g := gather.New(nil, &facts.Facts{}, gather.Options{CollectivesIfDue: true})
	expect.That(t, !due(g), "without the probe of pairs, they are due")
}
