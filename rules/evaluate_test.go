package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// policyOf loads a set of the rules in the given files alone.
func policyOf(t *testing.T, files map[string]string) (*Set, error) {
	t.Helper()
	own := make(map[string][]byte, len(files))
	for name, text := range files {
		own[name] = []byte(text)
	}
	s, err := load(nil, own)
	if err != nil {
		return nil, err
	}
	return s, s.keep(s.everything())
}

// ruleText writes a rule of that id with more metadata and a body.
func ruleText(id, metadata, body string) string {
	return "# METADATA\n# title: T\n# description: D\n# custom:\n#   remedies: [r]\n" + metadata +
		"package gpudoctor.rules." + strings.ReplaceAll(id, "-", "_") + "\n\n" + body
}

const (
	high = "#   severity: high\n#   confidence: likely\n"
	// fires finds a fault on whatever machine.
	fires = `findings contains {"subject": "host", "message": "m", "evidence": [{"fact": "f", "value": 1, "source": "s"}]}` + "\n"
)

// finds writes a rule's body that finds one fault with further keys.
func finds(more string) string { return strings.Replace(fires, `"message"`, more+`, "message"`, 1) }

func TestEvaluateOutcomes(t *testing.T) {
	s := expect.Value(policyOf(t, map[string]string{
		"fails.rego":      ruleText("fails", high, fires),
		"passes.rego":     ruleText("passes", high, "findings contains {} if false\n"),
		"skips.rego":      ruleText("skips", high, "findings contains {} if false\nmissing contains {\"fact\": \"pci.devices[].acs\", \"words\": \"hidden\"}\nnot_applicable contains \"no GPU\"\n"),
		"needs.rego":      ruleText("needs", high+"#   needs: [\"gpus.devices[].ecc\"]\n", "findings contains {} if false\n"),
		"not_here.rego":   ruleText("not-here", high, "findings contains {} if false\nnot_applicable contains \"no GPU\"\n"),
		"image_only.rego": ruleText("image-only", high+"#   profiles: [image]\n", "findings contains {} if false\n"),
		"breaks.rego":     ruleText("breaks", high, "findings contains {} if x == 1\nx := 1 if input.schema\nx := 2 if input.schema\n"),
	}))(t)
	f := &facts.Facts{Schema: facts.FactsSchema, Unknown: []facts.Unknown{{Section: "pci", Fact: "devices.acs", Reason: "config space beyond 64 bytes needs root"}}}
	got := expect.Value(s.Evaluate(t.Context(), f, Options{}))(t)
	expect.NoDiff(t, &Result{
		Findings: []Finding{{
			Rule: "fails", Cause: "fails", Severity: High, Confidence: Likely, Title: "T", Subject: "host", Message: "m",
			Evidence: []Evidence{{Fact: "f", Value: int64(1), Source: "s"}}, Remedies: []string{"r"},
		}},
		Passed: []string{"passes"},
		Skipped: []Skipped{
			faulty("breaks", "the rule failed: breaks.rego:12: eval_conflict_error: rule data.gpudoctor.rules.breaks.x produced conflicting values"),
			{Rule: "needs", Missing: []Missing{{Fact: "gpus", Words: "the GPUs are not known"}}},
			{Rule: "skips", Missing: []Missing{{Fact: "pci.devices[].acs", Reason: "config space beyond 64 bytes needs root", Words: "hidden"}}},
		},
		NotApplicable: map[string]string{"not-here": "no GPU"},
	}, got, "verdict")
}

func TestEvaluateChoice(t *testing.T) {
	s := expect.Value(policyOf(t, map[string]string{
		"one_a.rego": ruleText("one-a", high, fires),
		"one_b.rego": ruleText("one-b", high, fires),
		"img.rego":   ruleText("img", high+"#   profiles: [image]\n", fires),
	}))(t)
	for name, tt := range map[string]struct {
		opts Options
		want string // The rules that fire, or the error.
	}{
		"all":             {want: "one-a one-b"},
		"only":            {opts: Options{Only: []string{"one-b"}}, want: "one-b"},
		"skip":            {opts: Options{Skip: []string{"one-b"}}, want: "one-a"},
		"only and skip":   {opts: Options{Only: []string{"one-a"}, Skip: []string{"one-a"}}, want: ""},
		"image":           {opts: Options{Profile: Image}, want: "img one-a one-b"},
		"another profile": {opts: Options{Only: []string{"img"}}, want: ""},
		"misspelt":        {opts: Options{Only: []string{"one-c"}}, want: `unknown rule "one-c"; did you mean one-a?`},
		"unknown":         {opts: Options{Skip: []string{"something-else"}}, want: `unknown rule "something-else"`},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := s.Evaluate(t.Context(), &facts.Facts{}, tt.opts)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = strings.Join(expect.Map(v.Findings, func(f Finding) string { return f.Rule }), " ")
			}
			expect.Equal(t, tt.want, got, "it")
		})
	}
}

// faulty is a rule that is skipped because it is itself at fault.
func faulty(rule string, faults ...string) Skipped {
	return Skipped{Rule: rule, Missing: expect.Map(faults, func(fault string) Missing { return Missing{Words: fault} }), Fault: true}
}

func TestMalformedFinding(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"unknown key":       {finds(`"sujbect": "x"`), "it has invalid keys: sujbect"},
		"no evidence":       {`findings contains {"subject": "host", "message": "m"}` + "\n", "evidence is missing"},
		"no subject":        {`findings contains {"message": "m", "evidence": [{"fact": "f", "value": 1, "source": "s"}]}` + "\n", "subject is missing"},
		"not an object":     {`findings contains "host"` + "\n", "it is not an object"},
		"severity":          {finds(`"severity": "dire"`), `severity is "dire"`},
		"confidence":        {finds(`"confidence": 1`), "confidence is not a string"},
		"affects":           {finds(`"affects": ["0000:3B:00.0"]`), `affects holds "0000:3B:00.0", which is neither a PCI address in lower case nor GPU and a number`},
		"remedies":          {finds(`"remedies": "r"`), "remedies is not a list"},
		"steps":             {finds(`"steps": {"look": "a"}`), "steps is not a list"},
		"a step's look":     {finds(`"steps": [{"command": "c"}]`), "a step lacks look"},
		"a step's key":      {finds(`"steps": [{"look": "a", "cmd": "c"}]`), "steps[0] has invalid keys: cmd"},
		"params":            {finds(`"params": []`), "params is not an object"},
		"evidence's key":    {strings.Replace(fires, `"fact"`, `"x": 1, "fact"`, 1), "evidence[0] has invalid keys: x"},
		"evidence's source": {strings.Replace(fires, `, "source": "s"`, "", 1), "evidence lacks fact, value or source"},
	} {
		t.Run(name, func(t *testing.T) {
			s := expect.Value(policyOf(t, map[string]string{"bad.rego": ruleText("bad", high, tt.body)}))(t)
			v := expect.Value(s.Evaluate(t.Context(), &facts.Facts{}, Options{}))(t)
			want := &Result{NotApplicable: map[string]string{}, Skipped: []Skipped{faulty("bad", "the rule returned a malformed finding: "+tt.want)}}
			expect.NoDiff(t, want, v, "verdict")
		})
	}
}

// TestMalformedAmongOthers checks that a malformed finding costs nothing but
// itself: neither the other findings of its rule nor those of another rule.
func TestMalformedAmongOthers(t *testing.T) {
	s := expect.Value(policyOf(t, map[string]string{
		"bad.rego":  ruleText("bad", high, fires+finds(`"affects": [""]`)+finds(`"affects": ["x"]`)),
		"good.rego": ruleText("good", high, fires),
	}))(t)
	v := expect.Value(s.Evaluate(t.Context(), &facts.Facts{}, Options{}))(t)
	expect.NoDiff(t, []string{"bad", "good"}, expect.Map(v.Findings, func(f Finding) string { return f.Rule }), "findings")
	const no = "which is neither a PCI address in lower case nor GPU and a number"
	want := []Skipped{faulty("bad",
		`the rule returned a malformed finding: affects holds "", `+no,
		`the rule returned a malformed finding: affects holds "x", `+no,
	)}
	expect.NoDiff(t, want, v.Skipped, "skipped")
}

// TestMissing checks what an entry of missing is taken for, in a built-in rule and in one of the user's: a text alone
// is words, of which no part is a path, and only the user may give one. What is malformed makes the rule skipped, never
// passed.
func TestMissing(t *testing.T) {
	unknown := []facts.Unknown{{Section: "pci", Fact: "devices", Reason: "no root"}, {Section: "gpus", Reason: "no NVML"}}
	malformed := func(reason string) Skipped {
		return faulty("one", "the rule returned a malformed entry of missing: "+reason)
	}
	skipped := func(missing ...Missing) Skipped { return Skipped{Rule: "one", Missing: missing} }
	for name, tt := range map[string]struct {
		body          string
		builtin, user Skipped // The same when user is empty.
	}{
		"a fact":           {body: `missing contains {"fact": "pci.devices[].acs"}`, builtin: skipped(Missing{Fact: "pci.devices[].acs", Reason: "no root"})},
		"with words":       {body: `missing contains {"fact": "gpus", "words": "a (b): c"}`, builtin: skipped(Missing{Fact: "gpus", Reason: "no NVML", Words: "a (b): c"})},
		"without a reason": {body: `missing contains {"fact": "env", "words": "w"}`, builtin: skipped(Missing{Fact: "env", Words: "w"})},
		"two":              {body: "missing contains {\"fact\": \"gpus\"}\nmissing contains {\"fact\": \"env\"}", builtin: skipped(Missing{Fact: "env"}, Missing{Fact: "gpus", Reason: "no NVML"})},
		"a text":           {body: `missing contains "gpus: not (known)"`, builtin: malformed("it is not an object"), user: skipped(Missing{Words: "gpus: not (known)"})},
		"an empty text":    {body: `missing contains ""`, builtin: malformed("it is not an object"), user: malformed("it is not a string")},
		"a number":         {body: `missing contains 1`, builtin: malformed("it is not an object")},
		"no fact":          {body: `missing contains {"words": "w"}`, builtin: malformed("fact is missing")},
		"an unknown key":   {body: `missing contains {"fact": "env", "word": "w"}`, builtin: malformed("it has invalid keys: word")},
		"words no text":    {body: `missing contains {"fact": "env", "words": ["w"]}`, builtin: malformed("words is not a string")},
		"not applicable":   {body: `not_applicable contains {"words": "w"}`, builtin: faulty("one", "the rule returned a malformed entry of not_applicable: it is not a string")},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{"one.rego": []byte(ruleText("one", high, "findings contains {} if false\n"+tt.body+"\n"))}
			for i, want := range []Skipped{tt.builtin, tt.user} {
				if want.Rule == "" {
					want = tt.builtin
				}
				sets := [2]map[string][]byte{}
				sets[i] = files
				s := expect.Value(load(sets[0], sets[1]))(t)
				v := expect.Value(s.Evaluate(t.Context(), &facts.Facts{Unknown: unknown}, Options{}))(t)
				expect.NoDiff(t, &Result{NotApplicable: map[string]string{}, Skipped: []Skipped{want}}, v, "user %v", i == 1)
			}
		})
	}
}

// TestMissingString checks how what a rule lacked is shown.
func TestMissingString(t *testing.T) {
	for m, want := range map[Missing][2]string{ // All of it, and in short.
		{Fact: "a.b"}:                                {"a.b is not known", "a.b is not known"},
		{Words: "w (x): y"}:                          {"w (x): y", "w (x): y"},
		{Fact: "a.b", Words: "w (x)"}:                {"a.b: w (x)", "w (x)"},
		{Fact: "a.b", Reason: "r"}:                   {"a.b: r", "r"},
		{Fact: "a.b", Reason: "r", Words: "w (x)"}:   {"a.b: w (x) (r)", "r"},
		{Fact: "a.b", Reason: "same", Words: "same"}: {"a.b: same", "same"},
	} {
		expect.Equal(t, want, [2]string{m.String(), m.Short()}, "%#v is shown as", m)
	}
}

func TestEvaluateCancelled(t *testing.T) {
	s := expect.Value(policyOf(t, map[string]string{"one.rego": ruleText("one", high, fires)}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Fails(s.Evaluate(ctx, &facts.Facts{}, Options{}))(t, context.Canceled, "it")
}

func TestFold(t *testing.T) {
	const one, two, three = "0000:01:00.0", "0000:02:00.0", "0000:03:00.0"
	all := []Rule{{ID: "acs", Explains: []string{"broken"}}, {ID: "bios", Explains: []string{"broken", "hang"}}, {ID: "hang", TextsOnly: true, Explains: []string{"late"}}, {ID: "late"}, {ID: "broken", Explains: []string{"slow"}}, {ID: "slow"}}
	f := func(rule string, severity Severity, confidence Confidence, affects ...string) Finding {
		return Finding{Rule: rule, Subject: rule, Severity: severity, Confidence: confidence, Affects: affects}
	}
	for name, tt := range map[string]struct {
		findings []Finding
		want     []string // rule/severity/confidence(consequences)
	}{
		"none":                                   {},
		"alone":                                  {[]Finding{f("broken", High, Likely)}, []string{"broken/high/likely()"}},
		"under its cause":                        {[]Finding{f("acs", High, Likely, one), f("broken", Critical, Confirmed, one, two)}, []string{"acs/critical/confirmed(broken)"}},
		"of another GPU":                         {[]Finding{f("acs", High, Likely, one), f("broken", Critical, Confirmed, two)}, []string{"broken/critical/confirmed()", "acs/high/likely()"}},
		"of the whole host":                      {[]Finding{f("acs", High, Likely), f("broken", Critical, Likely, two)}, []string{"acs/critical/likely(broken)"}},
		"through another rule":                   {[]Finding{f("acs", High, Likely, one), f("slow", Medium, Confirmed, one)}, []string{"acs/high/confirmed(slow)"}},
		"not through one that judges only texts": {[]Finding{f("bios", High, Likely, one), f("late", Medium, Confirmed, one)}, []string{"bios/high/likely()", "late/medium/confirmed()"}},
		"at two removes":                         {[]Finding{f("acs", High, Likely, one), f("broken", High, Likely, one, two), f("slow", Medium, Likely, two, three)}, []string{"acs/high/likely(broken slow)"}},
		"the surer cause":                        {[]Finding{f("bios", Critical, Possible, one), f("acs", High, Likely, one), f("broken", Low, Likely, one)}, []string{"acs/high/likely(broken)", "bios/critical/possible()"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range fold(tt.findings, all) {
				under := expect.Map(f.Explains, func(e Finding) string { return e.Rule })
				got = append(got, f.Rule+"/"+string(f.Severity)+"/"+string(f.Confidence)+"("+strings.Join(under, " ")+")")
			}
			expect.NoDiff(t, tt.want, got, "folded")
		})
	}
}

// TestFoldSameFault checks that one fault is reported once.
func TestFoldSameFault(t *testing.T) {
	const one, two = "0000:01:00.0", "0000:02:00.0"
	f := func(rule, cause, subject string, severity Severity, affects ...string) Finding {
		return Finding{Rule: rule, Cause: cause, Subject: subject, Severity: severity, Confidence: Likely, Affects: affects}
	}
	said := func(f Finding) Finding { f.Order = new(3); return f }
	with := func(f Finding, fault string) Finding { f.Params = map[string]any{"fault": fault}; return f }
	seen := func(f Finding, value any) Finding {
		f.Evidence = []Evidence{{Fact: "x", Value: value, Source: "a.txt:1"}}
		return f
	}
	fault := func(subject string, severity Severity, affects ...string) Finding {
		return f("gpu-fault", "gpu-fault", subject, severity, affects...)
	}
	events := f("gpu-events", "gpu-fault", one, Info, one)
	broken, table := f("broken", "broken", "host", Critical), f("table", "broken", "a table", Critical)
	for name, tt := range map[string]struct {
		findings []Finding
		want     []string // rule subject severity(consequences)
	}{
		"a program's word and the GPU":          {[]Finding{said(fault("host", Critical)), fault(one, High, one)}, []string{"gpu-fault 0000:01:00.0 critical(host)"}},
		"of one of two GPUs":                    {[]Finding{said(fault("host", Critical)), fault(one, High, one), fault(two, High, two)}, []string{"gpu-fault host critical()", "gpu-fault 0000:01:00.0 high()", "gpu-fault 0000:02:00.0 high()"}},
		"two rules and one GPU":                 {[]Finding{fault(one, High, one), events}, []string{"gpu-fault 0000:01:00.0 high(0000:01:00.0)"}},
		"two rules and two GPUs":                {[]Finding{fault(two, High, two), events}, []string{"gpu-fault 0000:02:00.0 high()", "gpu-events 0000:01:00.0 info()"}},
		"all three":                             {[]Finding{said(fault("host", Critical)), fault(one, High, one), events}, []string{"gpu-fault 0000:01:00.0 critical(host 0000:01:00.0)"}},
		"one line, two rules":                   {[]Finding{seen(table, 2), seen(broken, 2)}, []string{"broken host critical(a table)"}},
		"two lines, two rules":                  {[]Finding{seen(table, 2), seen(broken, 3)}, []string{"broken host critical()", "table a table critical()"}},
		"one line, two causes":                  {[]Finding{seen(fault("host", High), 2), seen(broken, 2)}, []string{"broken host critical()", "gpu-fault host high()"}},
		"one line, two rules, no cause":         {[]Finding{seen(f("limits", "other", "job", High), 2), seen(f("failed", "other", "log", High), 2)}, []string{"failed log high()", "limits job high()"}},
		"one rule, one fault in two ways":       {[]Finding{with(f("bug", "bug", "nccl", High), "a"), with(f("bug", "bug", "nccl", Critical), "a")}, []string{"bug nccl critical(nccl)"}},
		"one rule, two faults of one version":   {[]Finding{seen(with(f("bug", "bug", "nccl", High), "a"), 1), seen(with(f("bug", "bug", "nccl", Critical), "b"), 1)}, []string{"bug nccl critical()", "bug nccl high()"}},
		"one rule, a GPU and the whole, unsaid": {[]Finding{fault("host", Critical), fault(one, High, one)}, []string{"gpu-fault host critical()", "gpu-fault 0000:01:00.0 high()"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range fold(tt.findings, nil) {
				under := expect.Map(f.Explains, func(e Finding) string { return e.Subject })
				got = append(got, fmt.Sprintf("%s %s %s(%s)", f.Rule, f.Subject, f.Severity, strings.Join(under, " ")))
			}
			expect.NoDiff(t, tt.want, got, "folded")
		})
	}
}

func TestCompareSubjects(t *testing.T) {
	sorted := []string{"0000:3b:00.0", "0000:3b:00.0 -> 0000:5e:00.0", "0000:c1:00.0", "10000:01:00.0", "/dev/nvidia2", "/dev/nvidia10", "NCCL_ALGO", "host", "node2", "node10"}
	for i, a := range sorted {
		for j, b := range sorted {
			expect.Equal(t, cmp.Compare(i, j), compareSubjects(a, b), "compareSubjects(%q, %q)", a, b)
		}
	}
}

func TestReasons(t *testing.T) {
	unknown := []facts.Unknown{
		{Section: "pci", Fact: "devices.acs", Reason: "needs root"},
		{Section: "pci", Fact: "devices", Reason: "no PCI"},
		{Section: "gpus", Reason: "no library"},
		{Section: "numa", Fact: "nodes.distances", Reason: "hidden"},
	}
	for fact, want := range map[string]string{ // The reason of each fact.
		"pci.devices.acs":                "needs root",
		"pci.devices[].acs.control":      "needs root",
		"pci.devices[0000:3b:00.0].link": "no PCI",
		"pci":                            "",
		"gpus.devices[].nvlinks":         "no library",
		"gpus":                           "no library",
		"numa.nodes":                     "hidden",
		"links":                          "",
		"":                               "",
	} {
		got := withReasons([]Missing{{Fact: fact, Words: "needs root"}}, unknown)
		expect.That(t, got[0].Reason == want && got[0].Words == "needs root", "withReasons(%q) = %+v, want the reason %q", fact, got[0], want)
	}
}

// TestInputValue checks that the input is what the facts' JSON says, without what is null: what is not known is not there.
func TestInputValue(t *testing.T) {
	f := &facts.Facts{
		Schema: facts.FactsSchema,
		Host:   &facts.HostFacts{Kernel: "6.8.0", CommandLine: []string{"iommu=pt"}, Root: new(false)},
		PCI:    &facts.PCIFacts{Devices: []facts.PCIDevice{{Address: "0000:3b:00.0", Link: &facts.PCIeLink{SpeedGTs: 2.5, Width: 16}}}},
		GPUs:   &facts.GPUFacts{Devices: []facts.GPU{{Address: "0000:3b:00.0", BAR1Bytes: new(int64(1) << 60)}}},
	}
	got := expect.Value(valueOf(f))(t).String()
	for _, part := range []string{`"kernel": "6.8.0"`, `"command_line": ["iommu=pt"]`, `"root": false`, `"speed_gts": 2.5`, `"bar1_bytes": 1152921504606846976`} {
		expect.That(t, strings.Contains(got, part), "the input lacks %s: %s", part, got)
	}
	expect.That(t, !strings.Contains(got, "null"), "the input has a null: %s", got)
}

func TestLoadWith(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	good := ruleText("own", high, fires)
	lib := "package gpudoctor.lib.facts\n"
	needs := func(path string) string {
		return strings.Replace(good, "severity: high", "severity: high\n#   needs: ["+path+"]", 1)
	}
	table := map[string]struct {
		file, text string
		want       string // The error, behind the folder's name; none when empty.
	}{
		"good":             {"own.rego", good, ""},
		"in a folder":      {"deep/down/own.rego", good, ""},
		"hidden":           {".git/own.rego", "nonsense", ""},
		"not Rego":         {"own.rego", "package x\nnonsense", "own.rego:2: var cannot be used for rule name"},
		"empty":            {"own.rego", "", "own.rego: the file is empty"},
		"neither":          {"own.rego", "package system.own\n", "own.rego:1: package system.own is neither a rule nor a library"},
		"built-in library": {"facts.rego", lib, "facts.rego:1: the library package gpudoctor.lib.facts is taken by lib/facts.rego"},
		"built-in rule":    {"acs_redirect.rego", ruleText("acs-redirect", high, fires), "acs_redirect.rego:8: the rule id acs-redirect is taken by pcie/acs_redirect.rego"},
		"no title":         {"own.rego", strings.Replace(good, "# title: T\n", "", 1), "own.rego:1: title is missing"},
		"no list":          {"own.rego", strings.Replace(good, "severity: high", "severity: high\n#   needs: env", 1), "own.rego:1: custom: needs is not a list"},
		"explains itself":  {"own.rego", strings.Replace(good, "severity: high", "severity: high\n#   explains: [own]", 1), "own.rego: rule own explains itself through custom.explains"},
		"complete rule":    {"own.rego", good + "missing := 1\n", "own.rego:11: missing is not a set"},
		"unknown severity": {"own.rego", strings.Replace(good, "severity: high", "severity: dire", 1), `own.rego:1: custom.severity: unknown severity "dire": one of critical, high, medium, low, info`},
		"needs":            {"own.rego", needs(`"gpus.devices[].ecc"`), ""},
		"needs no fact":    {"own.rego", needs("gpus.moon"), `own.rego:1: custom.needs: "gpus.moon" is not a path of the facts`},
		"needs a constant": {"own.rego", needs(`"gpus.devices[].ecc.enabled"`), `own.rego:1: custom.needs: "gpus.devices[].ecc.enabled" is never unknown`},
		"undefined path":   {"own.rego", good + "missing contains \"x\" if input.pci.devcies\n", "own.rego:11: undefined ref: input.pci.devcies"},
		"undefined helper": {"own.rego", good + "missing contains \"x\" if data.gpudoctor.lib.facts.nothing(1)\n", "own.rego:11: undefined function data.gpudoctor.lib.facts.nothing"},
		"reaches out":      {"own.rego", good + "missing contains \"x\" if http.send({\"method\": \"get\", \"url\": \"http://x\"})\n", "own.rego:11: undefined function http.send"},
		"unknown as false": {"own.rego", good + "x if not input.pci\n", `own.rego:11: "not input..." also holds when the fact is not known`},
		"unused variable":  {"own.rego", good + "missing contains \"x\" if y := 1\n", "own.rego:11: assigned var y unused"},
		"file differs":     {"other.rego", good, "other.rego:8: the file's name differs from the package's last part own"},
	}
	for _, name := range expect.SomeRows(3, slices.Sorted(maps.Keys(table))) {
		t.Run(name, func(t *testing.T) {
			tt := table[name]
			dir := t.TempDir()
			file := filepath.Join(dir, filepath.FromSlash(tt.file))
			expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			expect.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
			s, err := LoadWith(dir)
			if tt.want == "" {
				expect.NoError(t, err)
				rule, ok := s.Rule("own")
				expect.That(t, ok == (tt.file != ".git/own.rego") && (!ok || rule.File == file), "Rule(own) = %+v, %v", rule, ok)
				return
			}
			expect.Must(t, err != nil, "no error, want %q", tt.want)
			expect.Equal(t, tt.want, strings.TrimPrefix(err.Error(), dir+string(filepath.Separator)), "error")
			p, ok := errors.AsType[*Problem](err)
			expect.That(t, ok, "error is a %T, want a *Problem", err)
			expect.That(t, name != "needs a constant" || p.Hint == `name what it is part of: "gpus.devices[].ecc"`, "hint = %q", p.Hint)
		})
	}
	t.Run("no folder", func(t *testing.T) {
		expect.Fails(LoadWith(filepath.Join(t.TempDir(), "nothing")))(t, os.ErrNotExist, "it")
	})
}

func TestNearest(t *testing.T) {
	known := []string{"acs-redirect", "iommu-pt", "p2p-broken-platform", "shm-too-small", "high", "low"}
	for word, want := range map[string]string{
		"acs-rediect": "acs-redirect", "ACS-redirect": "acs-redirect", "iommu": "iommu-pt", "p2p-borken-platform": "p2p-broken-platform",
		"shm": "shm-too-small", "nothing-like-it": "", "": "", "x": "", "hihg": "high", "foo": "", "lo": "low",
	} {
		expect.Equal(t, want, Nearest(word, known), "Nearest(%q)", word)
	}
}

// TestUnexplained checks which part of a probe's report is left for the last
// resort: what failed and no finding of at least high accounts for.
func TestUnexplained(t *testing.T) {
	t.Parallel()
	transfer := func(outcome probe.Outcome) probe.Transfer {
		return probe.Transfer{Test: probe.TestCopy, Source: "a", Destination: "b", Outcome: outcome}
	}
	named := Account{Test: probe.TestCopy, Source: "a", Destination: "b"}
	for _, c := range []struct {
		name     string
		report   *probe.Report
		findings []Finding
		left     string // What is left of transfers, devices and the whole; empty where nothing is.
	}{
		{"no probe", nil, nil, ""},
		{"all is well", &probe.Report{Outcome: probe.OK, Transfers: []probe.Transfer{transfer(probe.OK), transfer(probe.Unsupported), transfer(probe.Unknown)}}, nil, ""},
		{"nobody speaks of it", &probe.Report{Outcome: probe.OK, Transfers: []probe.Transfer{transfer(probe.Hang)}}, nil, "1 0 ok"},
		{"a finding does", &probe.Report{Outcome: probe.OK, Transfers: []probe.Transfer{transfer(probe.Hang)}}, []Finding{{Severity: High, AccountsFor: []Account{named}}}, ""},
		{"one does in passing", &probe.Report{Outcome: probe.OK, Transfers: []probe.Transfer{transfer(probe.Hang)}}, []Finding{{Severity: Medium, AccountsFor: []Account{named}}}, "1 0 ok"},
		{"what is slow may be slight", &probe.Report{Outcome: probe.OK, Transfers: []probe.Transfer{transfer(probe.Slow)}}, []Finding{{Severity: Low, AccountsFor: []Account{named}}}, ""},
		{"another way of it", &probe.Report{Outcome: probe.OK, Transfers: []probe.Transfer{transfer(probe.Error)}}, []Finding{{Severity: High, AccountsFor: []Account{{Test: probe.TestCopy, Source: "a", Destination: "b", Way: "cuMem"}}}}, "1 0 ok"},
		{"the way back", &probe.Report{Outcome: probe.OK, Transfers: []probe.Transfer{transfer(probe.Error)}}, []Finding{{Severity: High, AccountsFor: []Account{{Test: probe.TestCopy, Source: "b", Destination: "a"}}}}, "1 0 ok"},
		{"evidence names the device", &probe.Report{Outcome: probe.OK, Devices: []probe.Device{{Address: "a", Outcome: probe.Error}}}, []Finding{{Severity: High, Evidence: []Evidence{{Fact: "transfers.devices[a].outcome"}}}}, ""},
		{"evidence names another", &probe.Report{Outcome: probe.OK, Devices: []probe.Device{{Address: "a", Outcome: probe.Error}}}, []Finding{{Severity: High, Evidence: []Evidence{{Fact: "transfers.devices[b].outcome"}}}}, "0 1 ok"},
		{"evidence names the code", &probe.Report{Outcome: probe.Error, ErrorCode: 803}, []Finding{{Severity: Critical, Evidence: []Evidence{{Fact: "transfers.error_code"}}}}, ""},
		{"evidence is of pairs", &probe.Report{Outcome: probe.Error, ErrorCode: 803}, []Finding{{Severity: Critical, Evidence: []Evidence{{Fact: "transfers.peers[a -> b].access"}, {Fact: "transfers.transfers[a -> b]"}}}}, "0 0 error"},
		{"the whole is known, a transfer is not", &probe.Report{Outcome: probe.Hang, Transfers: []probe.Transfer{transfer(probe.Corrupt)}}, []Finding{{Severity: Critical, Evidence: []Evidence{{Fact: "transfers.stage"}}}}, "1 0 ok"},
	} {
		left := ""
		if rest := Unexplained(c.report, c.findings); rest != nil {
			left = fmt.Sprintf("%d %d %s", len(rest.Transfers), len(rest.Devices), rest.Outcome)
		}
		expect.Equal(t, c.left, left, "%s: left", c.name)
	}
}
