package rules

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// values of a finding, from JSON.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	object := expect.Value(ast.ValueFromReader(strings.NewReader(text)))(t)
	return native(object).(map[string]any) //nolint:forcetypeassert // The texts are objects.
}

func TestFill(t *testing.T) {
	known := values(t, `{"a": "x", "n": 2, "one": 1, "f": 0.25, "list": ["c", "a", "b"], "long": ["5", "4", "3", "2", "1"], "empty": "",
		"size": 67108864, "half": 1610612736, "all": -1, "object": {}}`)
	for text, want := range map[string]string{
		"{a} and {n}":                           "x and 2",
		"{list}, {list:comma}, {list:GPU}":      "a, b and c, c, a, b, 3 GPUs",
		"{long:few}; {list:few}":                "1, 2, 3 and 2 more; a, b and c",
		"{n:GPU}, {one:GPU}, {n:is/are}":        "2 GPUs, 1 GPU, are",
		"{size:bytes} {half:bytes} {all:bytes}": "64 MiB 1.5 GiB unlimited",
		"{f:.1f} {n:.2f} {f}":                   "0.2 2.00 0.25",
		"x[ of {a}][ of {none}][ of {empty}]":   "x of x",
		"[{a}[ in {none}]: ]{none|nobody}":      "x: nobody",
		"[[{{a}]":                               "",
		"[[{{a}":                                "[{a}",
		"{none}":                                "",
		"{a":                                    "",
		"[x":                                    "",
		"{a:bytes}":                             "",
		"{object}":                              "",
		"{n:.d}":                                "",
	} {
		got, err := fill(text, func(name string) any { return known[name] })
		expect.That(t, (want != "" || err != nil) && (want == "" || got == want && err == nil), "%q: %q, %v; want %q", text, got, err, want)
	}
}

// TestGradesAreNamed checks that each grade of a rule is one that the rule can name.
func TestGradesAreNamed(t *testing.T) {
	set := expect.Value(Load())(t)
	files := expect.Value(regoFiles(os.DirFS(".")))(t)
	var libraries strings.Builder
	for name, text := range files {
		if strings.HasPrefix(name, "lib/") && !strings.HasSuffix(name, "_test.rego") {
			libraries.Write(text)
		}
	}
	graded := 0
	for _, rule := range set.Rules() {
		_, code, _ := strings.Cut(string(files[rule.File]), "\npackage ")
		code += libraries.String()
		for _, name := range slices.Sorted(maps.Keys(rule.Grades)) {
			graded++
			byKey := regexp.MustCompile(`(?m)^\w+\.` + regexp.QuoteMeta(name) + `\b`) // The key of an object, which a finding takes.
			expect.That(t, strings.Contains(code, `"`+name+`"`) || byKey.MatchString(code), "%s: no finding has the grade %s", rule.File, name)
		}
	}
	expect.That(t, graded != 0, "no rule has a grade")
}

// TestGradeFaults checks that what is wrong with grades is said with their name.
func TestGradeFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"x": 1}`:                               "custom: grades[x] is not an object",
		`{"x": {"text": "t", "sverity": "low"}}`: "custom: grades[x] has invalid keys: sverity",
		`{"x": {"severity": "loud"}}`:            "custom: grades[x].severity is loud",
		`{"x": {"confidence": "sure"}}`:          "custom: grades[x].confidence is sure",
		`{"x": {"remedies": ["pray"]}}`:          "custom: grades[x].remedies: pray is not in custom.remedies",
		`{"x": "a {B}"}`:                         `custom: grades[x].text: "{B}" is no slot`,
		`{"x": "a ]"}`:                           `custom: grades[x].text: "]" closes nothing`,
		`{"x": "a [b"}`:                          "custom: grades[x].text: a part in brackets does not end",
		`[1]`:                                    "custom: grades is not an object",
		`{"x": {"severity": "low", "text": "{a}[]"}}`: "",
	} {
		_, err := load(nil, map[string][]byte{"own.rego": []byte(ruleText("own", high+"#   grades: "+text+"\n", fires))})
		got := ""
		if problem, is := errors.AsType[*Problem](err); is {
			got = problem.Reason
		}
		expect.Equal(t, want, got, "%s", text)
	}
}

// TestGraded checks what a finding takes from its grade, and what it says itself.
func TestGraded(t *testing.T) {
	rule := Rule{Severity: High, Confidence: Likely, Remedies: []string{"a", "b"}, Grades: map[string]Grade{
		"x": {Severity: Low, Text: "{subject} has {n:GPU}"},
		"y": {Confidence: Possible, Remedies: []string{"b"}, Text: "why"},
	}}
	for text, want := range map[string]Finding{
		`{"id": "x", "about": {"n": 2}}`:                         {Severity: Low, Confidence: Likely, Remedies: []string{"a", "b"}, Message: "s has 2 GPUs"},
		`{"id": "x", "grade": "y"}`:                              {Severity: High, Confidence: Possible, Remedies: []string{"b"}, Message: "why"},
		`{"id": "y", "message": "m", "remedies": []}`:            {Severity: High, Confidence: Possible, Remedies: []string{}, Message: "m"},
		`{"id": "z", "message": "m"}`:                            {Severity: High, Confidence: Likely, Remedies: []string{"a", "b"}, Message: "m"},
		`{"id": "x", "about": {"n": 1}, "severity": "critical"}`: {Severity: Critical, Confidence: Likely, Remedies: []string{"a", "b"}, Message: "s has 1 GPU"},
		`{"id": "x"}`: {},
		`{"id": "x", "grade": "none", "message": "m"}`: {},
		`{"id": "z"}`: {},
	} {
		f, err := readFinding(rule, values(t, `{"subject": "s", "evidence": [{"fact": "f", "value": 1, "source": "x"}], `+text[1:]))
		switch {
		case want.Message == "":
			expect.That(t, err != nil, "%s: no fault: %+v", text, f)
		case err != nil || f.Severity != want.Severity || f.Confidence != want.Confidence || !slices.Equal(f.Remedies, want.Remedies) || f.Message != want.Message:
			t.Errorf("%s: %+v, %v; want %+v", text, f, err, want)
		}
	}
}
