package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// The tests here hold, by enumeration, that nothing that failed in the probe is ever taken for health: whatever failed,
// in which stage, with which code, for which profile, and whichever rules were left out.

// variant is one way in which the probe of a healthy machine comes out.
type variant struct {
	name   string
	change func(r *probe.Report)
	// failed is true where something failed, slow where something was slow only. Else something is unknown.
	failed, slow bool
	// harmless is true where what is unknown is no failure of the probe.
	harmless bool
}

type selection struct {
	name       string
	profile    rules.Profile
	only, skip []string
	failOn     report.Threshold
}

func judge(tb testing.TB, k knowledge, f *facts.Facts, s selection) *report.Document {
	tb.Helper()
	verdict := expect.Value(k.rules.Evaluate(context.Background(), f, rules.Options{Profile: s.profile, Only: s.only, Skip: s.skip, Memory: ruleMemory}))(tb)
	ranking := requestFor(cmp.Or(s.profile, rules.Training)).rank(k.remedies, verdict.Findings, f)
	return report.New(report.Input{
		Profile: s.profile, FailOn: s.failOn, Only: s.only, Probed: true, Rules: k.rules.Rules(), Facts: f, Verdict: *verdict, Advice: ranking.Advice, Withheld: ranking.Withheld,
	})
}

func concluded(tb testing.TB, path string) *report.Document {
	tb.Helper()
	g := collect(tb.Context(), source{from: []string{path}}, gather.Options{})
	expect.NoError(tb, g.err)
	return judge(tb, learnt(tb), g.facts, selection{profile: rules.Training, failOn: report.Threshold(rules.High)})
}

// healthyPair is the recorded machine with two H200, and what its probe said.
func healthyPair(tb testing.TB) *facts.Facts {
	tb.Helper()
	g := source{from: []string{examplePrefix + "h200x2"}}.machine(tb.Context(), gather.Options{})
	expect.NoError(tb, g.err)
	return g.facts
}

var allTests = []string{
	probe.TestCopy, probe.TestCopyRead, probe.TestStore, probe.TestLoad, probe.TestBidirectional, probe.TestAllAtOnce, probe.TestHandshake,
	probe.TestLatency, probe.TestAtomics, probe.TestStaged, probe.TestInterprocess, probe.TestHostToDevice, probe.TestDeviceToHost,
}

// stages are the steps of the probe that are no test.
var stages = []string{"", "load library", "cuInit", "hipInit", "devices", "peer access query", "contexts", "memory", "kernels", "self-check", "peer access", "cleanup"}

// codes are the error codes that cuda.h (CUDA 13, cudaError_enum) and
// hip_runtime_api.h (ROCm 6, hipError_t) define, and made-up ones.
var codes = []int{
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 17, 18, 21, 34, 35, 36, 46, 52, 98, 100, 101, 102, 200, 201, 202, 205, 206, 207, 208, 209, 210, 211, 212,
	213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 300, 301, 302, 303, 304, 400, 401, 402, 500, 600, 700, 701, 702, 703,
	704, 705, 708, 709, 710, 711, 712, 713, 714, 715, 716, 717, 718, 719, 720, 721, 800, 801, 802, 803, 804, 805, 806, 807, 808, 809, 810, 811,
	812, 900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 913, 914, 915, 916, 917, 918, 999, 1052, 1053, 1054, -1, 33, 150, 4711,
}

// classCodes are one code of each class that rules tell apart, and a made-up one.
var classCodes = []int{0, 2, 100, 209, 214, 217, 304, 711, 719, 801, 802, 803, 999, 4711}

// ends are the causes of a process that ended, or made no progress, not by the driver's doing.
var ends = []probe.Cause{probe.CauseKilled, probe.CauseShortage, probe.CauseBug, probe.CauseEnded, probe.CauseStalled}

var fewCodes = []int{0, 100, 217, 719, 803}

// explaining are the rules that account for a failure of the probe.
var explaining = []string{
	"p2p-broken-platform", "p2p-slow", "gpu-fault", "driver-hang", "fabric-manager", "driver-library-mismatch", "gpu-visibility", "container-caps",
	"acs-redirect", "iommu-translation", "nvlink-down",
}

// selections are the ways in which rules are chosen. The first is the plain one.
func selections(k knowledge) []selection {
	others := slices.DeleteFunc(k.ruleIDs(), func(id string) bool { return id == "env-misconfig" })
	return []selection{
		{name: "all", profile: rules.Training, failOn: report.Threshold(rules.High)},
		{name: "image", profile: rules.Image, failOn: report.Threshold(rules.High)},
		{name: "no explanation", profile: rules.Training, failOn: report.Threshold(rules.High), skip: explaining},
		{name: "no last resort", profile: rules.Training, failOn: report.Threshold(rules.High), skip: []string{"transfer-failed"}},
		{name: "neither", profile: rules.Training, failOn: report.Threshold(rules.High), skip: append([]string{"transfer-failed"}, explaining...)},
		{name: "one rule", profile: rules.Training, failOn: report.Threshold(rules.High), only: []string{"env-misconfig"}},
		{name: "all but one left out", profile: rules.Training, failOn: report.Threshold(rules.High), skip: others},
		{name: "nothing may fail", profile: rules.Training, failOn: report.Never},
		{name: "critical", profile: rules.Training, failOn: report.Threshold(rules.Critical)},
	}
}

// transfersOf are the transfers of one test between the two GPUs, or with the host's memory.
func transfersOf(test, a, b string) []probe.Transfer {
	switch test {
	case probe.TestHostToDevice:
		return []probe.Transfer{{Test: test, Source: "node0", Destination: a}, {Test: test, Source: "node0", Destination: b}}
	case probe.TestDeviceToHost:
		return []probe.Transfer{{Test: test, Source: a, Destination: "node0"}, {Test: test, Source: b, Destination: "node0"}}
	case probe.TestInterprocess:
		return []probe.Transfer{{Test: test, Source: a, Destination: b, Way: "cuMem"}, {Test: test, Source: a, Destination: b, Way: "cudaIpc"}}
	}
	return []probe.Transfer{{Test: test, Source: a, Destination: b}, {Test: test, Source: b, Destination: a}}
}

func put(r *probe.Report, t probe.Transfer) {
	r.Transfers = append(slices.DeleteFunc(slices.Clone(r.Transfers), func(x probe.Transfer) bool {
		return x.Test == t.Test && x.Source == t.Source && x.Destination == t.Destination && x.Way == t.Way
	}), t)
}

// transferVariants are the ways in which transfers come out, so many of a test.
func transferVariants(in []string, all []int, count int, a, b string) []variant {
	var list []variant
	add := func(test string, outcome probe.Outcome, code int, cause probe.Cause) {
		list = append(list, variant{
			name: fmt.Sprintf("%d x %s %s %d %s", count, test, outcome, code, cause), failed: outcome.Failed(), slow: outcome == probe.Slow,
			harmless: cause == probe.CauseUnavailable,
			change: func(r *probe.Report) {
				for _, t := range transfersOf(test, a, b)[:count] {
					t.Outcome, t.ErrorCode, t.Cause, t.Reason = outcome, code, cause, "x"
					if code != 0 {
						t.ErrorName, t.Call = fmt.Sprintf("ERROR_%d", code), "cuMemcpyDtoDAsync_v2"
					}
					if outcome == probe.Slow {
						rate, expected, fraction, threshold := 9.0, 450.0, 0.02, 0.8
						t.GBps, t.ExpectedGBps, t.Fraction, t.Threshold = &rate, &expected, &fraction, &threshold
					}
					put(r, t)
				}
			},
		})
	}
	for _, test := range in {
		for _, outcome := range []probe.Outcome{probe.Corrupt, probe.Hang, probe.Slow} {
			add(test, outcome, 0, "")
		}
		for _, code := range all {
			add(test, probe.Error, code, "")
		}
		for _, cause := range append(slices.Clone(ends[:1]),
			"", probe.CauseClock, probe.CauseImplausible, probe.CauseProtocol, probe.CauseDeadline, probe.CauseUnavailable, probe.CauseNoMemory, probe.CauseJudge,
		) {
			add(test, probe.Unknown, 0, cause)
		}
	}
	return list
}

// wholeVariants are the ways in which the probe as a whole, or one GPU, fails.
func wholeVariants(all []int, in []string, a string) []variant {
	var list []variant
	zero := 0
	for _, stage := range in {
		add := func(name string, failed bool, change func(r *probe.Report)) {
			list = append(list, variant{name: "stage " + stage + ": " + name, failed: failed, change: func(r *probe.Report) {
				r.Stage, r.Reason = stage, "x"
				r.Transfers, r.Devices, r.Peers = []probe.Transfer{}, []probe.Device{}, []probe.Peer{}
				change(r)
			}})
		}
		for _, code := range all {
			add(fmt.Sprintf("error %d", code), true, func(r *probe.Report) {
				r.Outcome, r.ErrorCode, r.ErrorName = probe.Error, code, fmt.Sprintf("ERROR_%d", code)
			})
		}
		add("hang", true, func(r *probe.Report) { r.Outcome = probe.Hang })
		add("corrupt", true, func(r *probe.Report) { r.Outcome = probe.Corrupt })
		add("crash", true, func(r *probe.Report) { r.Outcome, r.Signal = probe.Error, "SIGSEGV" })
		add("exit 0", true, func(r *probe.Report) { r.Outcome, r.Cause, r.ExitCode = probe.Error, probe.CauseExited, &zero })
		add("flood", true, func(r *probe.Report) { r.Outcome, r.Cause = probe.Error, probe.CauseFlooded })
		few := ends[:1]
		if stage == "cuInit" {
			few = ends
		}
		for _, cause := range append(slices.Clone(few), probe.CauseProtocol, probe.CauseDeadline, probe.CauseGaveUp, probe.CauseNoLibrary, probe.CauseStatic, probe.CauseIncompatible, "") {
			add("unknown "+string(cause), false, func(r *probe.Report) {
				r.Outcome, r.Cause = probe.Unknown, cause
				if slices.Contains(ends, cause) {
					r.Signal = "SIGKILL"
				}
			})
		}
		add("nothing was said", false, func(r *probe.Report) { r.Outcome, r.Stage = probe.OK, "" })
	}
	for _, code := range all {
		list = append(list, variant{name: fmt.Sprintf("GPU error %d", code), failed: code != 2 && code != 46, harmless: code != 2, change: func(r *probe.Report) {
			lose(r, a, probe.Device{Outcome: probe.Error, ErrorCode: code, ErrorName: fmt.Sprintf("ERROR_%d", code), Reason: "x"})
		}})
	}
	for outcome, failed := range map[probe.Outcome]bool{probe.Hang: true, probe.Corrupt: true} {
		list = append(list, variant{name: "GPU " + string(outcome), failed: failed, change: func(r *probe.Report) { lose(r, a, probe.Device{Outcome: outcome}) }})
	}
	list = append(list,
		variant{name: "GPU busy", harmless: true, change: func(r *probe.Report) {
			lose(r, a, probe.Device{Outcome: probe.Unknown, Cause: probe.CauseBusy, User: &probe.User{PID: 7, Program: "python3"}})
		}},
		variant{name: "GPU without memory", change: func(r *probe.Report) {
			lose(r, a, probe.Device{Outcome: probe.Unknown, Cause: probe.CauseNoMemory, ErrorCode: 2})
		}},
		variant{name: "GPU whose check does not work", change: func(r *probe.Report) {
			lose(r, a, probe.Device{Outcome: probe.Unknown, Cause: probe.CauseJudge})
		}},
		variant{name: "GPU left out without a word", change: func(r *probe.Report) { lose(r, a, probe.Device{Outcome: probe.Unknown}) }},
	)
	return list
}

func lose(r *probe.Report, address string, as probe.Device) {
	r.Devices = slices.Clone(r.Devices)
	for i := range r.Devices {
		if r.Devices[i].Address == address {
			as.Address = address
			r.Devices[i] = as
		}
	}
	r.Transfers = slices.Clone(r.Transfers)
	for i, t := range r.Transfers {
		if t.Source == address || t.Destination == address {
			r.Transfers[i] = probe.Transfer{Test: t.Test, Source: t.Source, Destination: t.Destination, Outcome: probe.Unknown, Cause: probe.CauseDevice, Reason: "x"}
		}
	}
}

// wrong says how a report takes a failure for health; empty where it does not.
func wrong(d *report.Document, v variant, s selection) string {
	plain, quiet, marked := writtenAs("text", d, report.Style{}), writtenAs("text", d, report.Style{Quiet: true}), writtenAs("markdown", d, report.Style{})
	var document struct {
		Verdict struct {
			State    report.State `json:"state"`
			ExitCode int          `json:"exit_code"`
			Reasons  []any        `json:"reasons"`
		} `json:"verdict"`
	}
	if err := json.Unmarshal([]byte(writtenAs("json", d, report.Style{})), &document); err != nil {
		return err.Error()
	}
	headline := ""
	for line := range strings.Lines(plain) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "paths" {
			headline = fields[1]
			break
		}
	}
	code := d.Verdict.ExitCode
	switch {
	case document.Verdict.State != d.Verdict.State || document.Verdict.ExitCode != code:
		return "the JSON differs from the verdict"
	case v.harmless && !v.failed && len(s.only) > 0:
		return "" // Who asks for one rule does not ask for what could not be tried.
	case d.Verdict.State == report.Healthy:
		return "the state is healthy"
	case len(document.Verdict.Reasons) == 0:
		return "the verdict has no reason"
	case strings.Contains(plain, "Healthy"), strings.Contains(marked, "## gpudoctor: healthy"):
		return "the text says healthy"
	case v.failed && code == exitOK:
		return "the exit code is 0"
	case v.failed && headline != "problem":
		return "the headline says " + headline
	case v.failed && strings.Contains(plain, "No problems found"):
		return "the closing line says that there are no problems"
	case v.failed && !strings.Contains(quiet, "exit "):
		return "--quiet says nothing"
	case !v.failed && !v.slow && !v.harmless && s.profile == rules.Training && len(s.only) == 0 && code == exitOK:
		return "the probe failed, and the exit code is 0"
	case headline == "ok":
		return "the headline says ok"
	case d.Transfers != nil && slices.Contains(ends, d.Transfers.Cause) && (headline == "problem" || blames(d)):
		return "the driver is blamed for the end of the process"
	}
	return ""
}

func blames(d *report.Document) bool {
	return slices.ContainsFunc(d.Findings, func(f rules.Finding) bool { return slices.Contains([]string{"driver-hang", "transfer-failed"}, f.Rule) })
}

// learnt is what the program knows, compiled for whatever facts there are. All tests share it, which nothing changes.
func learnt(tb testing.TB) knowledge {
	tb.Helper()
	return expect.Value(everything())(tb)
}

var everything = sync.OnceValues(func() (knowledge, error) {
	k, err := learn("")
	if err != nil {
		return k, err
	}
	return k, errors.Join(
		k.rules.Compile(rules.Options{Profile: rules.Training}), k.rules.Compile(rules.Options{Profile: rules.Image}), k.rules.Compile(rules.Options{Profile: rules.Launch}))
})

func learntFor(tb testing.TB, profile rules.Profile) knowledge {
	tb.Helper()
	k := expect.Value(learn(""))(tb)
	expect.NoError(tb, k.rules.Compile(rules.Options{Profile: profile}))
	return k
}

// TestFailureIsNeverHealth enumerates test x outcome x stage x error code x profile x rules chosen.
func TestFailureIsNeverHealth(t *testing.T) {
	t.Parallel()
	base := healthyPair(t)
	known := map[rules.Profile]knowledge{}
	for _, p := range []rules.Profile{rules.Training, rules.Image} {
		known[p] = learntFor(t, p)
	}
	chosen := selections(known[rules.Training])
	d := judge(t, known[rules.Training], base, chosen[0])
	expect.Must(t, d.Verdict.State == report.Healthy && d.Verdict.ExitCode == exitOK, "the machine that faults are put into is %s itself: %v", d.Verdict.State, d.Verdict.Reasons)
	a, b := base.Transfers.Devices[0].Address, base.Transfers.Devices[1].Address
	type one struct {
		variant
		selection
	}
	var list []one
	// Every code in one place of each kind, one of each class in all places, and a
	// few in all tests and some stages with all selections.
	for _, v := range slices.Concat(
		transferVariants([]string{probe.TestCopy}, codes, 1, a, b), transferVariants([]string{probe.TestCopy}, fewCodes, 2, a, b),
		transferVariants(allTests[1:], classCodes, 1, a, b), wholeVariants(codes, []string{"cuInit"}, a),
		wholeVariants(fewCodes, append(slices.Clone(stages), probe.TestCopy), a),
	) {
		list = append(list, one{v, chosen[0]})
	}
	for _, v := range slices.Concat(transferVariants(allTests, fewCodes, 1, a, b), wholeVariants(fewCodes, []string{"cuInit", "contexts", probe.TestCopy}, a)) {
		for _, s := range chosen[1:] {
			list = append(list, one{v, s})
		}
	}
	step := 1
	if testing.Short() {
		step = 97 // The race detector makes each many times as slow.
	} else if expect.FewRows() {
		step = 3
	}
	try := expect.EachNth(16) // By day these, and one of each selection, test, stage, outcome, code and cause, as the names have them.
	var made, faults atomic.Int64
	work := make(chan one)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for o := range work {
				f, r := *base, *base.Transfers
				f.Transfers = &r
				o.change(&r)
				made.Add(1)
				why := wrong(judge(t, known[o.profile], &f, o.selection), o.variant, o.selection)
				expect.That(t, why == "" || faults.Add(1) >= 40, "%s; %s: %s", o.variant.name, o.selection.name, why)
			}
		})
	}
	for i := 0; i < len(list); i += step {
		if try(append(strings.Fields(list[i].variant.name), "selection "+list[i].selection.name)...) {
			work <- list[i]
		}
	}
	close(work)
	wg.Wait()
	expect.Equal(t, 0, faults.Load(), "of %d failures, those that are taken for health", made.Load())
	t.Logf("%d combinations", made.Load())
}

func exampleFacts(t *testing.T, name string) *facts.Facts {
	t.Helper()
	g := source{from: []string{examplePrefix + name}}.machine(t.Context(), gather.Options{})
	expect.NoError(t, g.err)
	return g.facts
}

func oneGPU(f *facts.Facts) *facts.Facts {
	one := *f
	gpus, links, transfers, tree := *f.GPUs, *f.Links, *f.Transfers, *f.PCI
	first := gpus.Devices[0].Address
	gpus.Devices, gpus.P2P, transfers.Devices = gpus.Devices[:1], []facts.GPUPeer{}, transfers.Devices[:1]
	transfers.Peers, transfers.Transfers = []probe.Peer{}, []probe.Transfer{}
	links.Pairs = slices.DeleteFunc(slices.Clone(links.Pairs), func(p facts.Pair) bool { return p.Kind == "gpu-gpu" })
	tree.Devices = slices.DeleteFunc(slices.Clone(tree.Devices), func(d facts.PCIDevice) bool { return d.Kind == "gpu" && d.Address != first })
	one.GPUs, one.Links, one.Transfers, one.PCI = &gpus, &links, &transfers, &tree
	return &one
}

func healthyFacts(t *testing.T) map[rules.Profile]map[string]*facts.Facts {
	t.Helper()
	pair := exampleFacts(t, "h200x2")
	folder, _ := judgedFiles(t, filepath.Join("..", "..", "fixtures", "launches", "pod-rdma-healthy.txtar"), "")
	return map[rules.Profile]map[string]*facts.Facts{
		rules.Training: {
			"two GPUs": pair, "four GPUs": exampleFacts(t, "h200x4"), "one GPU": oneGPU(pair), "eight GPUs of AMD's": exampleFacts(t, "model-mi300x8"),
			"a container": exampleFacts(t, "model-p5"),
		},
		rules.Image:  {"an image": judgeImage(t, imagetest.Write(t, goodImages[0].img, imagetest.Docker), nil).Facts()},
		rules.Launch: {"files of a job": folder.Facts()},
	}
}

// holders are the objects of a document that hold the last part of a path.
func holders(at any, path []string) []map[string]any {
	switch at := at.(type) {
	case []any:
		var all []map[string]any
		for _, one := range at {
			all = append(all, holders(one, path)...)
		}
		return all
	case map[string]any:
		switch {
		case len(path) > 1:
			return holders(at[path[0]], path[1:])
		case path[0] == "verified" && at["test"] != probe.TestCopy: // Of the others, less is required.
			return nil
		}
		return []map[string]any{at}
	}
	return nil
}

// removing calls a function with documents that lack the fact at a path in one place, the first
// and the last, or its whole section.
func removing(t *testing.T, f *facts.Facts, path string, do func(how string, f *facts.Facts)) {
	t.Helper()
	keys := strings.Split(strings.ReplaceAll(path, "[]", ""), ".")
	name := keys[len(keys)-1]
	try := func(how string, change func(document map[string]any) bool) {
		document := decoded[map[string]any](t, expect.Value(json.Marshal(f))(t))
		if !change(document) {
			return
		}
		do(how, decoded[*facts.Facts](t, expect.Value(json.Marshal(document))(t)))
	}
	for i, all := 0, len(holders(decoded[map[string]any](t, expect.Value(json.Marshal(f))(t)), keys)); i < all; i += max(1, all-1) { // The first and the last.
		for _, left := range []any{nil, string(probe.Unknown)} {
			try(fmt.Sprintf("%s of %d: %v", name, i, left), func(document map[string]any) bool {
				holder := holders(document, keys)[i]
				old := holder[name]
				switch {
				case name == "sm_tests": // It says why something is missing.
					holder[name], old = "no PTX compiler", left
				case left == nil:
					delete(holder, name)
				case name == "outcome":
					holder[name] = left
				default:
					return false
				}
				return old != nil
			})
		}
	}
	for _, said := range []bool{false, true} {
		try("whole section", func(document map[string]any) bool {
			delete(document, keys[0])
			if said {
				document["unknown"] = []any{map[string]any{"section": keys[0], "reason": "permission denied"}}
			}
			return true
		})
	}
}

// TestRequiredFacts checks that what is healthy is so as it stands, and in no way in which
// one of the facts is missing that the table requires.
func TestRequiredFacts(t *testing.T) {
	t.Parallel()
	k := learnt(t)
	tried, try := map[string]int{}, expect.EachNth(1)
	for profile, machines := range healthyFacts(t) {
		for name, f := range machines {
			s := selection{name: name, profile: profile, failOn: report.Threshold(rules.High)}
			if d := judge(t, k, f, s); d.Verdict.State != report.Healthy {
				t.Errorf("%s is %s: %v", name, d.Verdict.State, d.Verdict.Reasons)
				continue
			}
			for _, r := range data.Required().Required {
				if !slices.Contains(r.Profiles, string(profile)) || r.If == "nvidia-found" && name == "eight GPUs of AMD's" {
					continue
				}
				removing(t, f, r.Fact, func(how string, f *facts.Facts) {
					if !try(r.Fact) {
						return
					}
					tried[r.Fact]++
					expect.That(t, judge(t, k, f, s).Verdict.State != report.Healthy, "%s without %s (%s) is healthy", name, r.Fact, how)
				})
			}
		}
	}
	for _, r := range data.Required().Required {
		expect.That(t, tried[r.Fact] != 0, "%s was never missing", r.Fact)
	}
	t.Logf("%v", slices.Sorted(maps.Values(tried)))
}

// TestNVMLIsRequired checks that no answer of NVML but a complete one lets a machine with NVIDIA GPUs be healthy.
func TestNVMLIsRequired(t *testing.T) {
	t.Parallel()
	k, pair := learnt(t), exampleFacts(t, "h200x2")
	for name, base := range map[string]*facts.Facts{"two GPUs": pair, "one GPU": oneGPU(pair)} {
		for _, outcome := range []string{"", "hang", "crashed", "ended", "not-found", "not-built", "error", "not-asked", "new word"} {
			f, gpus := *base, *base.GPUs
			gpus.NVML = outcome
			f.GPUs = &gpus
			d := judge(t, k, &f, selection{profile: rules.Training, failOn: report.Threshold(rules.High)})
			expect.That(t, d.Verdict.State != report.Healthy, "%s, NVML %q: healthy", name, outcome)
		}
	}
}
