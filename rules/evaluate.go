package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/gpudoctor/gpudoctor/checks"
)

// Options says which rules are judged.
type Options struct {
	// Profile is what the facts are judged for; Training when empty.
	Profile Profile
	// Only and Skip are rule ids: those alone, and all but those.
	Only, Skip []string
}

// UnknownRuleError says that no rule has that id.
type UnknownRuleError struct {
	ID string
	// Nearest is the id that is most like it.
	Nearest string
}

// Error names the id and the nearest one.
func (e *UnknownRuleError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("unknown rule %q", e.ID)
	}
	return fmt.Sprintf("unknown rule %q; did you mean %s?", e.ID, e.Nearest)
}

// Evaluate judges the facts. A rule that fails while it runs, or that returns a
// malformed finding, is skipped with the reason and stops no other. What else it
// found is told all the same, so that such a rule may have findings and be
// skipped too.
func (s *Set) Evaluate(ctx context.Context, facts *checks.Facts, opts Options) (*Verdict, error) {
	chosen, left, err := s.choose(opts)
	if err != nil {
		return nil, err
	}
	if err := s.Compile(); err != nil {
		return nil, err
	}
	judged := *facts
	judged.Profile = string(cmp.Or(opts.Profile, Training))
	input, err := inputValue(&judged)
	if err != nil {
		return nil, err
	}
	said, err := s.ask(ctx, input, chosen)
	if err != nil {
		return nil, err
	}
	v := &Verdict{NotApplicable: left}
	var findings []Finding
	for _, rule := range chosen {
		answer := said[rule.ID]
		found, faults := readFindings(rule, answer.findings)
		findings = append(findings, found...)
		switch {
		case len(faults) > 0:
			v.Skipped = append(v.Skipped, Skipped{Rule: rule.ID, Missing: faults})
		case len(found) > 0:
		case answer.failure != "":
			v.Skipped = append(v.Skipped, Skipped{Rule: rule.ID, Missing: []string{answer.failure}})
		case len(answer.missing) > 0 && len(facts.Texts) == 0 && ofTexts(answer.missing):
			v.NotApplicable[rule.ID] = "it judges what texts tell, and none was given"
		case len(answer.missing) > 0:
			v.Skipped = append(v.Skipped, Skipped{Rule: rule.ID, Missing: withReasons(answer.missing, facts.Unknown)})
		case len(answer.notApplicable) > 0:
			v.NotApplicable[rule.ID] = strings.Join(answer.notApplicable, "; ")
		default:
			v.Passed = append(v.Passed, rule.ID)
		}
	}
	v.Findings = fold(findings, s.rules)
	return v, nil
}

// textSections are the sections of the facts that only texts fill.
var textSections = []string{"benchmarks", "launches", "logs", "nics", "software", "storage"}

// ofTexts reports whether a rule lacks nothing but what texts would tell.
func ofTexts(missing []string) bool {
	for _, m := range missing {
		path, _, _ := strings.Cut(m, ":")
		section, _, _ := strings.Cut(plainPath(path), ".")
		if !slices.Contains(textSections, section) {
			return false
		}
	}
	return true
}

// choose returns the rules to judge, and those that another profile leaves out
// although they were asked for by name.
func (s *Set) choose(opts Options) (chosen []Rule, left map[string]string, err error) {
	for _, id := range slices.Concat(opts.Only, opts.Skip) {
		if _, ok := s.Rule(id); !ok {
			return nil, nil, &UnknownRuleError{ID: id, Nearest: s.nearest(id)}
		}
	}
	profile := opts.Profile
	if profile == "" {
		profile = Training
	}
	left = map[string]string{}
	for _, rule := range s.rules {
		inProfile := len(rule.Profiles) == 0 || slices.Contains(rule.Profiles, profile)
		switch {
		case slices.Contains(opts.Skip, rule.ID):
		case len(opts.Only) > 0 && !slices.Contains(opts.Only, rule.ID):
		case inProfile:
			chosen = append(chosen, rule)
		case len(opts.Only) > 0:
			left[rule.ID] = fmt.Sprintf("the profile %s does not judge it", profile)
		}
	}
	return chosen, left, nil
}

// nearest returns the rule whose id is most like the given one, if any is.
func (s *Set) nearest(id string) string {
	ids := make([]string, len(s.rules))
	for i, rule := range s.rules {
		ids[i] = rule.ID
	}
	return Nearest(id, ids)
}

// Nearest returns the known word that is most like the given one: the one with
// the fewest changes, of a third of its letters and one more at most, or else
// the first that begins with it. It is empty where none is alike.
func Nearest(word string, known []string) string {
	best, least := "", 2+(len(word)-1)/3
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), k); d < least {
			best, least = k, d
		}
	}
	if best == "" && len(word) > 2 {
		for _, k := range known {
			if strings.HasPrefix(k, word) {
				return k
			}
		}
	}
	return best
}

// answer is what one rule says.
type answer struct {
	findings               []ast.Value
	missing, notApplicable []string
	failure                string // Why the rule could not be run.
}

// ask asks all rules, those that were compiled together in one query, and the
// queries side by side.
func (s *Set) ask(ctx context.Context, input ast.Value, rules []Rule) (map[string]answer, error) {
	said := make(map[string]answer, len(rules))
	var mu sync.Mutex // Guards said.
	var wg sync.WaitGroup
	for _, group := range s.byPart(rules) {
		wg.Go(func() {
			answers := s.askTogether(ctx, input, group)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(said, answers)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("evaluate rules: %w", context.Cause(ctx))
	}
	return said, nil
}

// askTogether puts one query for all of the rules. If it fails, it asks each
// rule alone, so that only those at fault give no answer.
func (s *Set) askTogether(ctx context.Context, input ast.Value, rules []Rule) map[string]answer {
	said, err := s.query(ctx, input, rules)
	if err == nil {
		return said
	}
	said = make(map[string]answer, len(rules))
	for _, rule := range rules {
		if ctx.Err() != nil {
			return nil
		}
		one, err := s.query(ctx, input, []Rule{rule})
		if err != nil {
			one = map[string]answer{rule.ID: {failure: failed + firstLine(err.Error())}}
		}
		maps.Copy(said, one)
	}
	return said
}

// query asks for what the packages of these rules, of one part, offer.
func (s *Set) query(ctx context.Context, input ast.Value, rules []Rule) (map[string]answer, error) {
	prepared, err := rego.New(
		rego.Compiler(s.part[rules[0].File].compiler), rego.ParsedQuery(s.queryBody(rules)), rego.StrictBuiltinErrors(true),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare the rules: %w", err)
	}
	results, err := prepared.Eval(ctx, rego.EvalParsedInput(input))
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, errors.New("the rules gave no answer")
	}
	verdicts, ok := results[0].Bindings["verdicts"].(ast.Object)
	if !ok {
		return nil, errors.New("the rules gave no object")
	}
	said := make(map[string]answer, len(rules))
	verdicts.Foreach(func(id, sets *ast.Term) {
		var a answer
		sets.Value.(ast.Object).Foreach(func(name, set *ast.Term) {
			items := set.Value.(ast.Set).Slice()
			switch string(name.Value.(ast.String)) {
			case "findings":
				for _, t := range items {
					a.findings = append(a.findings, t.Value)
				}
			case "missing":
				a.missing = texts(items)
			case "not_applicable":
				a.notApplicable = texts(items)
			}
		})
		said[string(id.Value.(ast.String))] = a
	})
	return said, nil
}

// queryBody builds "verdicts = {<id>: {"findings": data..., ...}, ...}" with
// the sets that each package offers, all of which are defined.
func (s *Set) queryBody(rules []Rule) ast.Body {
	verdicts := make([][2]*ast.Term, 0, len(rules))
	for _, rule := range rules {
		pkg := s.modules[rule.File].Package.Path
		offers := make([][2]*ast.Term, 0, len(answers))
		for _, name := range answers {
			if offered(s.modules[rule.File], name) {
				ref := pkg.Append(ast.StringTerm(name))
				offers = append(offers, [2]*ast.Term{ast.StringTerm(name), ast.NewTerm(ref)})
			}
		}
		verdicts = append(verdicts, [2]*ast.Term{ast.StringTerm(rule.ID), ast.ObjectTerm(offers...)})
	}
	return ast.NewBody(ast.Equality.Expr(ast.VarTerm("verdicts"), ast.ObjectTerm(verdicts...)))
}

// offered reports whether a module defines a set of that name.
func offered(m *ast.Module, name string) bool {
	return slices.ContainsFunc(m.Rules, func(r *ast.Rule) bool { return r.Head.Name.String() == name })
}

// texts returns the texts of a set in order.
func texts(terms []*ast.Term) []string {
	list := make([]string, 0, len(terms))
	for _, t := range terms {
		s, ok := t.Value.(ast.String)
		if !ok {
			s = ast.String(t.String())
		}
		list = append(list, string(s))
	}
	slices.Sort(list)
	return list
}

// withReasons appends to each missing fact why it is not known, where the
// facts say so: "pci.devices.acs" becomes "pci.devices.acs: config space
// beyond 64 bytes needs root".
func withReasons(missing []string, unknown []checks.Unknown) []string {
	list := make([]string, 0, len(missing))
	for _, m := range missing {
		path, words, _ := strings.Cut(m, ": ")
		reason := reasonFor(path, unknown)
		switch {
		case reason == "" || strings.Contains(words, reason):
			list = append(list, m)
		case words == "":
			list = append(list, path+": "+reason)
		default:
			list = append(list, fmt.Sprintf("%s: %s (%s)", path, words, reason))
		}
	}
	return list
}

// reasonFor returns the reason that the facts give for a missing fact: the one
// for this very fact, else for the closest around it, else for a part of it.
// An unknown whole section speaks for each fact in it.
func reasonFor(path string, unknown []checks.Unknown) string {
	section, fact, _ := strings.Cut(plainPath(path), ".")
	best, reason := 0, ""
	for _, u := range unknown {
		if u.Section != section {
			continue
		}
		have := plainPath(u.Fact)
		score := 0
		switch {
		case have == fact:
			score = 1000
		case have == "" || strings.HasPrefix(fact, have+"."):
			score = 500 + len(have) // 500: what is around ranks before a part.
		case fact != "" && strings.HasPrefix(have, fact+"."):
			score = 1
		}
		if score > best {
			best, reason = score, u.Reason
		}
	}
	return reason
}

// plainPath leaves out what stands in brackets: "pci.devices[].acs" becomes
// "pci.devices.acs".
func plainPath(path string) string {
	var b strings.Builder
	depth := 0
	for _, r := range path {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}
