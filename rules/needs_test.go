package rules

import (
	"fmt"
	goast "go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

func TestConditions(t *testing.T) {
	made := facts.Communicator{Ranks: 8, Started: 8, Completed: 8}
	begun := facts.Communicator{Ranks: 8, Started: 8, Completed: 7}
	wide := facts.Communicator{Ranks: 16, Started: 1, Completed: 1, Nodes: 2}
	near, far := facts.Transport{Kind: "shm"}, facts.Transport{Kind: "net"}
	setting, failure := facts.Message{Role: "setting"}, facts.Message{Role: "category"}
	logs := func(c []facts.Communicator, ways []facts.Transport, said ...facts.Message) *facts.Facts {
		return &facts.Facts{Logs: &facts.LogFacts{Communicators: c, Transports: ways, Messages: said}}
	}
	type (
		comms = []facts.Communicator
		ways  = []facts.Transport
	)
	rate := 12.5
	probed := func(outcomes ...probe.Transfer) *facts.Facts {
		return &facts.Facts{Transfers: &probe.Report{Outcome: probe.OK, Transfers: outcomes}}
	}
	transfer := func(test string, outcome probe.Outcome, gbps *float64) probe.Transfer {
		return probe.Transfer{Test: test, Outcome: outcome, GBps: gbps}
	}
	for name, tt := range map[string]struct {
		facts *facts.Facts
		want  string // The conditions that hold.
	}{
		"nothing":                     {&facts.Facts{}, ""},
		"an empty log":                {logs(nil, nil), ""},
		"messages alone":              {logs(nil, nil, setting, failure), ""},
		"channels alone":              {logs(nil, ways{near}), ""},
		"made, no channel":            {logs(comms{made}, nil), ""},
		"made":                        {logs(comms{made}, ways{near}), "job-connected job-told"},
		"made, and a failure":         {logs(comms{made}, ways{near}, failure), "job-connected job-told"},
		"cut":                         {&facts.Facts{Logs: &facts.LogFacts{Communicators: comms{made}, Transports: ways{near}, Truncated: true}}, ""},
		"a text that was cut":         {&facts.Facts{Logs: logs(comms{made}, ways{near}).Logs, Texts: []facts.Text{{Name: "x", Kinds: []facts.TextKind{{Kind: "nccl-log"}}, Problem: "p"}}}, ""},
		"a text that was not read":    {&facts.Facts{Logs: logs(comms{made}, ways{near}).Logs, Texts: []facts.Text{{Name: "x", Problem: "p", Unread: facts.UnreadSize}}}, ""},
		"another was not read":        {&facts.Facts{Logs: logs(comms{made}, ways{near}).Logs, Texts: []facts.Text{{Name: "x.png", Problem: "binary data"}}}, "job-connected job-told"},
		"one of two not made":         {logs(comms{made, begun}, ways{near}), ""},
		"not made, and a setting":     {logs(comms{begun}, nil, setting), ""},
		"not made, and a failure":     {logs(comms{begun}, nil, failure), "job-told"},
		"of two hosts, no network":    {logs(comms{wide}, ways{near}), ""},
		"of two hosts":                {logs(comms{wide}, ways{near, far}), "job-connected job-told"},
		"no transfer":                 {probed(), ""},
		"through host memory alone":   {probed(transfer("host-staged", probe.OK, &rate)), ""},
		"copied":                      {probed(transfer(probe.TestCopy, probe.OK, &rate)), "transfers-measured transfers-tried"},
		"copied, not measured":        {probed(transfer(probe.TestCopy, probe.OK, nil)), "transfers-tried"},
		"failed":                      {probed(transfer(probe.TestCopy, probe.Corrupt, nil)), "transfers-measured transfers-tried"},
		"one of two unknown":          {probed(transfer(probe.TestCopy, probe.OK, &rate), transfer(probe.TestCopy, probe.Unknown, nil)), ""},
		"an outcome that is not told": {probed(transfer(probe.TestCopy, "", &rate)), ""},
	} {
		var got []string
		holds := func(id string) bool { return conditions[id].holds(tt.facts) }
		for _, id := range slices.Sorted(maps.Keys(conditions)) {
			if holds(id) && id != "texts-given" && id != "job-told-if-given" {
				got = append(got, id)
			}
		}
		given := tt.facts.Logs != nil || tt.facts.Texts != nil
		expect.That(t, holds("texts-given") == given && holds("job-told-if-given") == (!given || holds("job-told")), "%s: texts are given: %v; job-told-if-given: %v", name, holds("texts-given"), holds("job-told-if-given"))
		expect.That(t, strings.Join(got, " ") == tt.want, "%s: %q hold, want %q", name, got, tt.want)
	}
}

// TestUnknown checks that the table has a sentence for each fact that rules ask for and for each section that they
// need, and for nothing else.
func TestUnknown(t *testing.T) {
	set := compiledSet(t)
	modules := expect.Value(set.modulesOf(set.everything()))(t)
	sentences, named := data.Unknown().Facts, map[string]bool{}
	for _, rule := range set.Rules() {
		asks := asked(modules[rule.File])
		for _, need := range slices.Concat(slices.Concat(rule.Needs...), asks) {
			if conditions[need].guard {
				continue
			}
			path := pathOf(need)
			section := Missing{Fact: path}.Section()
			named[path], named[section] = true, true
			expect.That(t, sentences[section] != "", "%s: no sentence for the section %s", rule.ID, section)
		}
		for _, path := range asks {
			expect.That(t, sentences[path] != "", "%s: no sentence for %s", rule.ID, path)
		}
	}
	for path := range sentences {
		expect.That(t, named[path], "no rule needs %s", path)
	}
}

// TestLacks checks what is said of a need that is not met.
func TestLacks(t *testing.T) {
	input := expect.Value(ast.InterfaceToValue(map[string]any{"gpus": map[string]any{"nvml": "ok"}}))(t)
	for name, tt := range map[string]struct {
		need Need
		want []Missing
	}{
		"known":               {Need{"gpus.nvml"}, nil},
		"a fact":              {Need{"gpus.nvswitches"}, []Missing{{Fact: "gpus.nvswitches", Words: "it is not known whether there are NVSwitches"}}},
		"a whole section":     {Need{"kernel_log.events"}, []Missing{{Fact: "kernel_log", Words: "the kernel log was not readable"}}},
		"a condition":         {Need{"one-gpu"}, []Missing{{Fact: "gpus.devices", Words: "the machine has several GPUs"}}},
		"a condition's facts": {Need{"job-told"}, []Missing{{Fact: "logs", Words: "no log of a job was given"}}},
		"one of two": {Need{"gpus.nvswitches", "job-told"}, []Missing{
			{Fact: "gpus.nvswitches", Words: "needed, unless a log shows how far a job came"},
			{Fact: "logs.communicators", Words: "no log of a run with NCCL_DEBUG=INFO shows how far it came"},
		}},
	} {
		expect.NoDiff(t, tt.want, unmet([]Need{tt.need}, &facts.Facts{}, input), "%s", name)
	}
}

// TestKnown checks when what stands at a path is known.
func TestKnown(t *testing.T) {
	input := expect.Value(ast.InterfaceToValue(map[string]any{
		"a": map[string]any{"empty": []any{}, "none": "", "text": "x", "no": false, "zero": 0, "list": []any{map[string]any{"b": 1}, map[string]any{"c": 2}}},
	}))(t)
	for path, want := range map[string]bool{
		"a": true, "a.empty": true, "a.empty[].b": false, "a.none": false, "a.text": true, "a.no": true, "a.zero": true, "a.list[].b": true, "a.list[].c": true,
		"a.list[].d": false, "a.list.b": false, "a.text.b": false, "a[].text": false, "b": false, "b[].c": false,
	} {
		expect.Equal(t, want, known(input, keysOf(path)), "%s is known", path)
	}
}

func pathOf(need string) string {
	if c, ok := conditions[need]; ok {
		return c.fact
	}
	return need
}

// TestHealthyCasesPass checks that a rule is not skipped in its own healthy case:
// that it finds nothing there is worth something only if it could judge.
func TestHealthyCasesPass(t *testing.T) {
	set := compiledSet(t)
	cases := expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t)
	judged := 0
	for _, c := range cases {
		id, ok := strings.CutSuffix(c.Name, "-healthy")
		if _, known := set.Rule(id); !ok || !known {
			continue
		}
		v := expect.Value(set.Evaluate(t.Context(), c.Facts, Options{Profile: Profile(c.Want.Profile), Only: []string{id}}))(t)
		expect.Len(t, 0, v.Skipped, "case %s: skipped rules", c.Name)
		judged++
	}
	expect.That(t, judged == len(set.Rules()), "%d healthy cases of %d rules", judged, len(set.Rules()))
}

// saysNo are kinds of facts whose absence says no, or which something else
// stands in for, so that a rule may pass without them.
var saysNo = map[string]string{
	"acs-redirect pci.devices[].acs":                  "extended is true, so the port has no ACS capability",
	"amd-p2p-off gpus.amd.kernel_config":              "amdgpu has the parameter pcie_p2p only where the kernel was built with peer access",
	"container-caps container.attempts":               "get_mempolicy tells of the same filter",
	"container-caps container.driver_devices":         "gpus.devices names the GPUs as well",
	"cuda-driver-too-old gpus.driver.cuda_version":    "it follows from the driver's branch",
	"driver-library-mismatch libraries.files[].loads": "a mark that is left out where it is false",
	"driver-library-mismatch libraries.files[].stub":  "a mark that is left out where it is false",
	"nccl-version-mismatch libraries.files[].loads":   "a mark that is left out where it is false",
	"process-limits logs":                             "without a text, the machine alone is judged",
	"gdr-module-missing gpudirect":                    "it is tried only with the full probe; modules and versions are judged then",
	"gdr-module-missing gpudirect.nics":               "the same",
	"numa-affinity numa.balancing":                    "a kernel that cannot balance has no such setting (CONFIG_NUMA_BALANCING)",
	"nvlink-down gpus.devices[].fabric.unhealthy":     "a list that is left out where it is empty",
	"shm-too-small container.attempts":                "it is not tried without the probe; sizes and mounts are judged then",
	"user-in-image image.user":                        "an image without USER runs as root",
	"pcie-link-degraded pci.devices[].port_type":      "it tells a switch's own link from that of the GPU below it, which is judged all the same",

	"amd-p2p-off gpus.amd.kernel_config.CONFIG_HSA_AMD_P2P": "as gpus.amd.kernel_config",
}

// TestUnknownNeverPasses checks that what is not known never lets a rule pass that finds a fault where it is known: in
// every case in which rules fire, each kind of fact is taken away in turn. A rule may still fire, be skipped, or have
// nothing to judge. In CI each rule loses each kind whose name its file mentions once, and every 32nd is tried; by day
// only these.
func TestUnknownNeverPasses(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	set := compiledSet(t)
	cases := expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t)
	tried, fired, used, try := 0, map[string]bool{}, map[string]bool{}, expect.EachNth(32)
	texts := map[string]string{} // By rule.
	for _, rule := range set.Rules() {
		text := expect.Value(os.ReadFile(rule.File))(t)
		texts[rule.ID] = string(text)
	}
	for _, c := range cases {
		v := expect.Value(set.Evaluate(t.Context(), c.Facts, Options{Profile: Profile(c.Want.Profile)}))(t)
		ids := firedIn(v)
		if len(ids) == 0 {
			continue
		}
		for _, id := range ids {
			fired[id] = true
		}
		document := reread[map[string]any](t, c.Facts)
		for _, kind := range kindsOf(document) {
			var classes []string
			name := kind[strings.LastIndexByte(kind, '.')+1:]
			for _, id := range ids {
				if strings.Contains(texts[id], strings.TrimSuffix(name, "[]")) || saysNo[id+" "+kind] != "" {
					classes = append(classes, id+" "+kind)
				}
			}
			if expect.FewRows() {
				classes = nil
			}
			if !try(classes...) {
				continue
			}
			f := mutations[0].of(t, document, kind)
			if f == nil {
				continue
			}
			v := expect.Value(set.Evaluate(t.Context(), f, Options{Profile: Profile(c.Want.Profile), Only: ids}))(t)
			tried += len(ids)
			for _, id := range v.Passed {
				if key := id + " " + kind; always(t, f, kind) || unstated(Profile(c.Want.Profile), kind) {
					continue // It was not unknown.
				} else if saysNo[key] == "" {
					t.Errorf("case %s: %s fires, and passes where %s is not known", c.Name, id, kind)
				} else {
					used[key] = true
				}
			}
		}
	}
	for key := range saysNo {
		if !used[key] && expect.Night() { // By day the one case may be another.
			t.Errorf("%s needs no exception", key)
		}
	}
	expect.That(t, len(fired) == len(set.Rules()), "%d of %d rules fire in a case", len(fired), len(set.Rules()))
	t.Logf("%d times a kind of fact was taken from a rule that fires, of %d rules", tried, len(fired))
}

// firedIn lists the rules that found something, consequences among them.
func firedIn(v *Result) []string {
	fired := map[string]bool{}
	for _, f := range v.Findings {
		fired[f.Rule] = true
		for _, e := range f.Explains {
			fired[e.Rule] = true
		}
	}
	return slices.Sorted(maps.Keys(fired))
}

// TestNothingKnownNothingPasses checks that of an empty document no rule passes, in
// any profile, and that none which a machine would settle is said not to apply.
func TestNothingKnownNothingPasses(t *testing.T) {
	set := compiledSet(t)
	for _, f := range []*facts.Facts{{}, {Schema: facts.FactsSchema}, {Texts: []facts.Text{{Name: "x"}}}, {Logs: &facts.LogFacts{}}} {
		for _, profile := range []Profile{Training, Image, Launch} {
			v := expect.Value(set.Evaluate(t.Context(), f, Options{Profile: profile}))(t)
			expect.That(t, len(v.Passed)+len(v.Findings) == 0, "%+v, profile %s: %v passed, found %v", f, profile, v.Passed, v.Findings)
			for id, why := range v.NotApplicable {
				expect.That(t, why == noTexts && !toldByTexts(f), "%+v, profile %s: %s does not apply: %s", f, profile, id, why)
			}
		}
	}
}

// toldByOneLine are the rules that one line of a text may let pass, and the
// kinds of text whose line holds all that they need.
var toldByOneLine = map[string][]string{
	// A JSON document, which may stand on one line, holds a whole topology.
	"amd-xgmi": {"amd-smi-json"},
	// A variable is judged by itself.
	"env-misconfig": {"nccl-log", "environment", "command-line", "command", "dockerfile", "sbatch", "launch", "arguments"},
	// A sentence tells of several runs.
	"control-experiment": {"runs"},
	// The module is loaded: another uses it.
	"gdr-module-missing": {"lsmod"},
	// The state of one port, or the ports that NCCL uses.
	"ib-port-down": {"ibdev2netdev", "rdma-link", "ibv_devinfo", "nccl-log", "nccl-diagnostics", "ibstat", "ibstatus"},
}

// TestOneLineTexts checks that a text of one line lets no rule pass but those of which it holds all that they need:
// each example of the catalogue of messages, each line of the recorded texts, and each line of what the tests of
// package evidence read, which are of nearly every kind. By day that is every twelfth line. Of
// lines that give the same facts one is judged, by day every 32nd of these and one of each kind.
func TestOneLineTexts(t *testing.T) {
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	set := compiledSet(t)
	lines := map[string]bool{"node1:1234:1234 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>": true}
	add := func(text string) {
		for line := range strings.Lines(text) {
			lines[strings.TrimRight(line, "\n")] = true
		}
	}
	for _, s := range message.Statements() {
		for _, e := range s.Examples {
			add(e)
		}
	}
	recorded(t, add)
	literals(t, add)
	kinds, shapes, try := map[string]bool{}, map[string]bool{}, expect.EachNth(8)
	file := filepath.Join(t.TempDir(), "one.txt")
	for i, line := range slices.Sorted(maps.Keys(lines)) {
		if expect.FewRows() && i%12 > 0 {
			continue
		}
		expect.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
		read, err := text.Read(t.Context(), []string{file}, text.Options{})
		if err != nil {
			continue // Nothing was recognised.
		}
		var own []string
		for _, text := range read.Facts.Texts {
			for _, k := range text.Kinds {
				own = append(own, k.Kind)
				kinds[k.Kind] = true
			}
		}
		shape := fmt.Sprint(own, shapeOf(reread[map[string]any](t, read.Facts)), roles(read.Facts))
		if shapes[shape] {
			continue
		}
		shapes[shape] = true
		if !try(own...) {
			continue
		}
		v := expect.Value(set.Evaluate(t.Context(), read.Facts, Options{}))(t)
		for _, id := range v.Passed {
			expect.That(t, slices.ContainsFunc(own, func(k string) bool { return slices.Contains(toldByOneLine[id], k) }), "%s passes by one line of kind %q: %s", id, own, line)
		}
	}
	t.Logf("%d lines, %d different ones of %d kinds", len(lines), len(shapes), len(kinds))
	leastKinds, leastShapes := 70, 200
	if expect.FewRows() {
		leastKinds, leastShapes = 35, 100
	}
	expect.That(t, len(kinds) >= leastKinds && len(shapes) >= leastShapes, "%d different lines of %d kinds were judged", len(shapes), len(kinds))
}

// shapeOf is the kinds of facts in a document, without the fields of messages,
// which each row of the catalogue has of its own.
func shapeOf(document map[string]any) []string {
	return slices.DeleteFunc(kindsOf(document), func(kind string) bool { return strings.HasPrefix(kind, "logs.messages[].fields.") })
}

// roles are those of the messages of a log.
func roles(f *facts.Facts) []string {
	var all []string
	if f.Logs != nil {
		for _, m := range f.Logs.Messages {
			all = append(all, m.Role)
		}
	}
	return all
}

func recorded(t *testing.T, add func(string)) {
	t.Helper()
	files, err := filepath.Glob("../fixtures/texts/*.txtar")
	expect.Must(t, err == nil && len(files) > 0, "no recorded texts: %v", err)
	for _, file := range files {
		a := expect.Value(txtar.ParseFile(file))(t)
		for _, f := range a.Files {
			add(string(f.Data))
		}
	}
}

// literals gives every text in the tests under checks/text.
func literals(t *testing.T, add func(string)) {
	t.Helper()
	for _, f := range texttest.Samples {
		add(string(f.Data))
	}
	files := expect.Value(filepath.Glob("../checks/text/*/*_test.go"))(t)
	for _, file := range append(files, expect.Value(filepath.Glob("../checks/text/*_test.go"))(t)...) {
		parsed := expect.Value(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
		goast.Inspect(parsed, func(n goast.Node) bool {
			if literal, ok := n.(*goast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil {
					add(text)
				}
			}
			return true
		})
	}
}
