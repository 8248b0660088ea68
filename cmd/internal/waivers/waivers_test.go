package waivers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

func parseText(text string) ([]Waiver, error) {
	root, err := settings.Root("f", []byte(text))
	var list *yaml.Node
	for i := 0; root != nil && i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == settings.WaiversKey {
			list = root.Content[i+1]
		}
	}
	if err != nil {
		return nil, err
	}
	return Parse("f", list)
}

func TestParse(t *testing.T) {
	got, err := parseText("strict: true\nwaivers:\n  # why\n  - rule: a\n    reason: r\n    expires: 2027-05-31\n  - {rule: a, subject: \"*:00.0\", reason: ' r ', expires: \"2027-06-01\", owner: o}\n")
	expect.NoError(t, err)
	expect.NoDiff(t, []Waiver{
		{Rule: "a", Reason: "r", Expires: "2027-05-31", File: "f", Line: 4},
		{Rule: "a", Subject: "*:00.0", Reason: "r", Expires: "2027-06-01", Owner: "o", File: "f", Line: 7},
	}, got, "waivers")
	for _, empty := range []string{"", "waivers:\n", "waivers: []\n", "strict: true\n"} {
		got, err := parseText(empty)
		expect.That(t, len(got) == 0 && err == nil, "%q: got %v and %v", empty, got, err)
	}
}

// TestFaults checks that each fault is reported with its line and a hint.
func TestFaults(t *testing.T) {
	const sound = "waivers:\n- {rule: a, reason: r, expires: 2027-05-31}\n"
	for name, tt := range map[string]struct{ text, want, hint string }{
		"no list":         {"waivers: all\n", "f:1: waivers is not a list", "an entry has rule, reason and expires"},
		"no entry":        {"waivers:\n- acs-redirect\n", "f:2: the waiver is not a set of keys and texts", "an entry has"},
		"no date":         {"waivers:\n- rule: a\n  reason: r\n", "f:2: the waiver has no expires", "an entry has"},
		"an empty reason": {"waivers:\n- {rule: a, reason: ' ', expires: 2027-05-31}\n", "f:2: the waiver has no reason", "an entry has"},
		"a null":          {"waivers:\n- {rule: , reason: r, expires: 2027-05-31}\n", "f:2: the waiver has no rule", "an entry has"},
		"a list of rules": {"waivers:\n- rule: [a, b]\n", "f:2: the waiver is not a set of keys and texts", "an entry has"},
		"unknown key":     {"waivers:\n- rule: a\n  expire: 2027-05-31\n", `f:2: unknown key "expire"`, "did you mean expires?"},
		"a strange key":   {"waivers:\n- {rule: a, severity: low}\n", `f:2: unknown key "severity"`, "an entry has"},
		"a key twice":     {"waivers:\n- rule: a\n  rule: b\n", "f:2: the waiver is not a set of keys and texts", "an entry has"},
		"no such day":     {"waivers:\n- rule: a\n  reason: r\n  expires: 2027-02-30\n", `f:2: expires: "2027-02-30" is not a date`, "a date is year, month and day"},
		"twice":           {sound + sound[len("waivers:\n"):], "f:3: a is waived twice; the first is f:2", "remove one of them"},
		"exploding texts": {"a: &a [x, x]\nb: &b [*a, *a]\nwaivers: *b\n", "f:3: waivers is not a list", "an entry has"},
	} {
		_, err := parseText(tt.text)
		fault, ok := errors.AsType[complaint.Error](err)
		expect.Must(t, ok && strings.HasPrefix(err.Error(), tt.want), "%s: got %v, want %q", name, err, tt.want)
		hints := strings.Join(fault.Hints, "\n")
		expect.That(t, strings.HasPrefix(hints, tt.hint), "%s: got the hints %q, want %q", name, hints, tt.hint)
	}
	err := CheckRules([]Waiver{{Rule: "acs-redirect"}, {Rule: "acs-rediect", File: "f", Line: 7}}, []string{"acs-redirect", "shm-too-small"})
	fault, ok := errors.AsType[complaint.Error](err)
	expect.That(t, ok && err.Error() == `f:7: the waiver names the unknown rule "acs-rediect"` && fault.Hints[0] == "did you mean acs-redirect?", "an unknown rule: %v", err)
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		text, want string
		n          int
	}{
		"sound":       {"waivers:\n- {rule: a, reason: r, expires: 2027-05-31}\n", "", 1},
		"empty":       {"# none\n", "", 0},
		"another key": {"strict: true\n", `:1: unexpected key "strict"`, 0},
		"after it":    {"waivers: []\nstrict: true\n", `:2: unexpected key "strict"`, 0},
		"too large":   {strings.Repeat("#", 65<<10), ": larger than 64 KiB", 0},
	} {
		file := filepath.Join(dir, name)
		expect.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
		all, err := Load(file)
		expect.That(t, len(all) == tt.n && (err == nil) == (tt.want == "") && (err == nil || err.Error() == file+tt.want), "%s: got %d and %v, want %q", name, len(all), err, tt.want)
	}
	for _, wrong := range []string{filepath.Join(dir, "none"), dir} {
		expect.Fails(Load(wrong))(t, nil, "%s is taken", wrong)
	}
}

// TestMatches checks that a pattern is for the whole of a text, and that nothing but the star has a meaning in it.
func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true},
		{"*", "a\nb", true},
		{"a*", "ba", false},
		{"*a", "ab", false},
		{"a*b*c", "a.b.b.c", true},
		{"a**", "a", true},
		{"a.c", "abc", false},
		{"(a|b)", "a", false},
		{`\*`, `\x`, true},
		{"\xff*", "\xffa", false},
		{"\xff", "\xff", true},
	} {
		expect.Equal(t, tt.want, Matches(tt.pattern, tt.text), "Matches(%q, %q)", tt.pattern, tt.text)
	}
}

func finding(rule, subject string, severity rules.Severity, explains ...rules.Finding) rules.Finding {
	return rules.Finding{Rule: rule, Subject: subject, Severity: severity, Confidence: rules.Likely, Explains: explains}
}

// names are findings as "rule subject", with their consequences in parentheses.
func names(findings []rules.Finding) string {
	all := make([]string, 0, len(findings))
	for _, f := range findings {
		name := f.Rule + " " + f.Subject
		if len(f.Explains) > 0 {
			name += " (" + names(f.Explains) + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// TestApply checks what counts: a waiver is for a finding alone, never for its consequences.
func TestApply(t *testing.T) {
	verdict := rules.Result{
		Findings: []rules.Finding{
			finding("cause", "x", rules.High, finding("effect", "x", rules.Critical, finding("job", "x", rules.High)), finding("other", "y", rules.Low)),
			finding("alone", "z", rules.Medium),
		},
		Passed: []string{"passed"}, Skipped: []rules.Skipped{{Rule: "skipped"}}, NotApplicable: map[string]string{"none": "no GPU"},
	}
	for name, tt := range map[string]struct {
		waivers                string // "rule[=subject][@expired]" each.
		counts, waived, unused string
	}{
		"none":                       {"", "cause x (effect x (job x), other y), alone z", "", ""},
		"the cause":                  {"cause", "effect x (job x), alone z, other y", "cause x", ""},
		"a consequence":              {"effect", "cause x (job x, other y), alone z", "effect x", ""},
		"all of them":                {"cause effect job other alone", "", "effect x, cause x, job x, alone z, other y", ""},
		"by subject":                 {"alone=z cause=y", "cause x (effect x (job x), other y)", "alone z", "cause y"},
		"by pattern":                 {"alone=* cause=?", "cause x (effect x (job x), other y)", "alone z", "cause ?"},
		"of a rule that passed":      {"passed", "cause x (effect x (job x), other y), alone z", "", "passed "},
		"of a rule without anything": {"none", "cause x (effect x (job x), other y), alone z", "", "none "},
		"of a rule that was skipped": {"skipped", "cause x (effect x (job x), other y), alone z", "", ""},
		"of a rule not chosen":       {"unchosen", "cause x (effect x (job x), other y), alone z", "", ""},
		"expired":                    {"alone@", "cause x (effect x (job x), other y), alone z, waiver-expired f:1", "", ""},
		"expired and renewed":        {"alone@ alone=z", "cause x (effect x (job x), other y), waiver-expired f:1", "alone z", ""},
		"expired, of nothing":        {"passed@", "cause x (effect x (job x), other y), alone z, waiver-expired f:1", "", ""},
	} {
		var all []Waiver
		for i, text := range strings.Fields(tt.waivers) {
			w := Waiver{Expires: "2027-01-31", File: "f", Line: i + 1}
			if strings.HasSuffix(text, "@") {
				w.Expires = "2027-01-30"
			}
			w.Rule, w.Subject, _ = strings.Cut(strings.TrimSuffix(text, "@"), "=")
			all = append(all, w)
		}
		before := names(verdict.Findings)
		r := Apply(verdict, all, "2027-01-31")
		var waived []rules.Finding
		for _, w := range r.Waived {
			waived = append(waived, w.Finding)
			expect.That(t, strings.Contains(w.Terms(), "still counts") == (len(w.Counting) > 0), "%s: %s", name, w.Terms())
			expect.That(t, w.Waiver.covers(w.Finding) && !w.Waiver.expired("2027-01-31"), "%s: %v is waived by %v", name, w.Finding, w.Waiver)
		}
		unused := expect.Map(r.Unused, func(w Waiver) string { return w.Rule + " " + w.Subject })
		expect.Equal(t, tt.counts, names(r.Findings), "%s", name)
		expect.Equal(t, tt.waived, names(waived), "%s", name)
		expect.That(t, name != "the cause" || len(r.Waived[0].Counting) == 2, "%v", r.Waived)
		expect.Equal(t, tt.unused, strings.Join(unused, ", "), "%s", name)
		expect.That(t, names(verdict.Findings) == before, "%s: the verdict was changed", name)
	}
}

// TestTerms checks what is said of a waiver.
func TestTerms(t *testing.T) {
	w := Waiver{Rule: "a", Subject: "x", Reason: "Fixed in May.", Expires: "2027-05-31", Owner: "me", File: "f", Line: 3}
	expect.Equal(t, "a (x); waived until 2027-05-31 by me (f:3): Fixed in May.", w.About()+"; "+w.Terms(), "it")
	w.Owner, w.Subject = "", ""
	expect.Equal(t, "a; waived until 2027-05-31 (f:3): Fixed in May.", w.About()+"; "+w.Terms(), "it")
}
