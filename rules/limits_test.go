package rules

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// attacks are bodies of rules that would take time or memory without end in many steps, each in its
// own way. "laughs" is a list of 2^40 elements that takes 40 lines.
var attacks = map[string]string{
	"endless comprehension": `x := count([1 | some i in numbers.range(1, 100000); some j in numbers.range(1, 100000); i * j == -1])
	x == 1`,
	"endless every": `every i in numbers.range(1, 3000) { every j in numbers.range(1, 100000) { i + j > 0 } }`,
	"memory": `x := [[i, j, k] | some i in numbers.range(1, 1000); some j in numbers.range(1, 1000); some k in numbers.range(1, 1000)]
	count(x) == 1`,
	"long range":         `count(numbers.range(1, 1000000000000)) == 1`,
	"range by steps":     `count(numbers.range_step(1, 1000000000000, 2)) == 1`,
	"addresses":          `count(net.cidr_expand("10.0.0.0/2")) == 1`,
	"lists joined":       `count(l27) == 1`,
	"texts joined":       `count(t40) == 1`,
	"laughs walked":      `count([1 | walk(laughs, [_, v]); v == 2]) == 1`,
	"laughs told":        `params := {"l": laughs}`,
	"replaced":           `count(replace(t16, "a", t16)) == 1`,
	"replaced by regex":  `count(regex.replace(t16, "a", t16)) == 1`,
	"found all":          `count([1 | some i in numbers.range(1, 100000); regex.find_n("a", sprintf("%s%d", [t16, i]), -1)]) == 1`,
	"long pattern":       `regex.match(t16, t16)`,
	"pattern of repeats": `regex.match("((((((a{1,99}){1,99}){1,99}){1,99}){1,99}){1,99})", t16)`,
	"huge text":          `to_number("1e999999999") + 1 == 1`,
	"squares":            `s40 == 1`,
}

// ballast are the values that attacks use.
var ballast = "l0 := [1, 2]\nt0 := \"a\"\nlaughs0 := [1, 1]\ns0 := 99\n" + doubled("l%d := array.concat(l%d, l%d)\n") +
	doubled("t%d := concat(\"\", [t%d, t%d])\n") + doubled("laughs%d := [laughs%d | some _ in numbers.range(1, 2)]\n") +
	doubled("s%d := s%d * s%d\n") + "laughs := laughs40\n"

func doubled(line string) string {
	var b strings.Builder
	for i := range 40 {
		b.WriteString(strings.NewReplacer("%d := ", strconv.Itoa(i+1)+" := ", "%d", strconv.Itoa(i)).Replace(line))
	}
	return b.String()
}

// TestAttacks checks that a rule which would take time or memory without end is
// stopped and listed, and that all others are reported.
func TestAttacks(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	for i, name := range slices.Sorted(maps.Keys(attacks)) {
		if expect.FewRows() && i%8 > 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := expect.Value(policyOf(t, map[string]string{
				"honest.rego": ruleText("honest", high, fires), "other.rego": ruleText("other", high, fires),
				"attack.rego": ruleText("attack", high, attacker(attacks[name])),
			}))(t)
			s.limits.rule, s.limits.rules, s.limits.grace = 50*time.Millisecond, 200*time.Millisecond, 50*time.Millisecond
			v := expect.Value(s.Evaluate(t.Context(), &facts.Facts{Schema: facts.FactsSchema}, Options{}))(t)
			expect.NoDiff(t, []string{"honest", "other"}, expect.Map(v.Findings, func(f Finding) string { return f.Rule }), "found")
			expect.That(t, len(v.Skipped) == 1 && v.Skipped[0].Rule == "attack" && v.Skipped[0].Fault, "skipped %+v, passed %v", v.Skipped, v.Passed)
			t.Log(v.Skipped)
		})
	}
}

// attacker is a rule that finds something where the body of an attack ends.
func attacker(body string) string {
	if params, ok := strings.CutPrefix(body, "params := "); ok {
		return ballast + finds(`"params": `+params)
	}
	return ballast + strings.Replace(fires, "}]}\n", "}]} if {\n\t"+body+"\n}\n", 1)
}

// TestPolicyBombs checks that a policy which takes time or memory without end to compile gives one line.
func TestPolicyBombs(t *testing.T) {
	expect.NotShort(t, "it compiles, side by side with nothing")
	expect.NotByDay(t, "it compiles for seconds")
	const uses = "findings contains {} if x\n"
	// The types are nested 13 deep, which takes 4^13 steps: seconds, and not for as long as
	// the other tests run, since nothing stops a compiler that was given up on.
	for name, body := range map[string]string{
		"types":    "t0 := [1, \"a\"]\nu0 := [1, \"a\"]\n" + doubled("t%d := [t%d, t%d]\n") + doubled("u%d := [u%d, u%d]\n") + "x if t13 in [u13]\n" + uses,
		"brackets": "x := " + strings.Repeat("[", 200000) + strings.Repeat("]", 200000) + "\n" + uses,
		"braces":   "x := " + strings.Repeat("{1: ", 100000) + uses,
		"else":     "x := 1 if input.schema == \"\"\n" + strings.Repeat("else := 2 if input.schema == \"a\"\n", 6000) + uses,
		"number":   "x := 1e999999999\n" + uses,
		"yaml":     "# METADATA\n# title: *a\n# custom: {a: &a [*a]}\nx if true\n" + uses,
	} {
		t.Run(name, func(t *testing.T) {
			most := usual
			most.compile = 300 * time.Millisecond
			_, err := loadWithin(most, "policy", nil, map[string][]byte{"own.rego": []byte(ruleText("own", high, body))})
			faultsAreLines(t, err)
			expect.That(t, err != nil, "it was taken")
		})
	}
}

// faultsAreLines checks that each fault of a policy is one line that names its file.
func faultsAreLines(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, one := range all {
		var p *Problem
		expect.That(t, errors.As(one, &p) && p.File != "" && p.Reason != "" && !strings.Contains(one.Error(), "\n") && len(one.Error()) <= 2000, "not one line that names a file: %.200q", one.Error())
	}
}

// FuzzPolicy checks that no text of a rule makes the doctor fail, or keeps it busy beyond the limits.
func FuzzPolicy(f *testing.F) {
	expect.NotShort(f, "nothing in it runs side by side")
	f.Add(ruleText("own", high, fires))
	f.Add(ruleText("own", high, "findings contains {} if false\n"))
	f.Add("# METADATA\n# title: &a [*a]\npackage gpudoctor.rules.own\n")
	f.Add("package gpudoctor.lib.own\nf(x) := y if y := x[_]\n")
	f.Add("package gpudoctor.rules.own\ndefault x := 1\nx[a][b] contains c if some a, b, c in input\n")
	for _, name := range []string{"memory", "long range", "squares"} {
		body := attacks[name]
		f.Add(ruleText("own", high, strings.Replace(fires, "}]}\n", "}]} if {\n\t"+body+"\n}\n", 1)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		most := limits{rule: 100 * time.Millisecond, rules: time.Second, compile: 3 * time.Second, grace: 100 * time.Millisecond, heap: usual.heap}
		s, err := loadWithin(most, "policy", nil, map[string][]byte{"own.rego": []byte(text)})
		faultsAreLines(t, err)
		if err != nil {
			return
		}
		s.limits = most
		_, err = s.Evaluate(t.Context(), &facts.Facts{Schema: facts.FactsSchema}, Options{})
		expect.That(t, err == nil, "%v", err)
	})
}
