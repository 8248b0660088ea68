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
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Options says which rules are judged.
type Options struct {
	// Profile is what the facts are judged for; Training when empty.
	Profile Profile
	// Only and Skip are rule ids: judge only those, and all but those.
	Only, Skip []string
	// Time is the processor time left for all rules, at most deadline.Rules, which is also the default if it is 0.
	Time time.Duration
	// Limit is the processor time that one rule may take; deadline.Rule if 0.
	Limit time.Duration
	// Memory is how many bytes rules may add to the memory that the program has in use; 128 MiB if 0.
	Memory uint64
}

// UnknownRuleError says that no rule has that id.
type UnknownRuleError struct {
	ID string
	// Nearest is the most similar id.
	Nearest string
}

// Error names the id and the nearest one.
func (e *UnknownRuleError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("unknown rule %q", e.ID)
	}
	return fmt.Sprintf("unknown rule %q; did you mean %s?", e.ID, e.Nearest)
}

// Evaluate judges the facts. A rule that fails while it runs, or that returns a malformed finding, is skipped with the
// reason and stops no other. What else it found is still reported, so such a rule may have findings and also be
// skipped.
func (s *Set) Evaluate(ctx context.Context, f *facts.Facts, opts Options) (*Result, error) {
	chosen, always, left, err := s.choose(opts)
	if err != nil {
		return nil, err
	}
	judged, past := *f, pastLines(f.Texts)
	judged.Logs = withOwnLog(withoutPast(f.Logs, past), f.Collectives)
	judged.Logs = withJob(&judged)
	judged.Profile = string(cmp.Or(opts.Profile, Training))
	input, err := valueOf(&judged)
	if err != nil {
		return nil, err
	}
	if !toldByTexts(&judged) { // The log of the probe's own library counts here.
		chosen = slices.DeleteFunc(chosen, func(r Rule) bool {
			if r.TextsOnly {
				left[r.ID] = noTexts
			}
			return r.TextsOnly
		})
	}
	asked := slices.Concat(chosen, always)
	var last []Rule // They judge what nothing else explains.
	if Unexplained(f.Transfers, nil) != nil {
		last = slices.DeleteFunc(slices.Clone(asked), func(r Rule) bool { return !r.Unexplained })
		asked = slices.DeleteFunc(asked, func(r Rule) bool { return r.Unexplained })
	}
	h := byRowOf(judged.Logs, judged.KernelLog)
	conditions := s.conditionRules(h)
	compiled, err := s.programs(slices.Concat(asked, last, conditions))
	if err != nil {
		return nil, err
	}
	remaining := s.newBudget(opts)
	answers := map[string]reading{}
	said, err := s.ask(ctx, remaining, compiled, input, slices.Concat(asked, conditions))
	if err != nil {
		return nil, err
	}
	for _, rule := range asked {
		answers[rule.ID] = s.read(rule, said[rule.ID])
	}
	known := merged(said, conditions)
	for id, found := range s.rowFindings(h, conditionsFrom(h, known)) {
		if a, wasAsked := answers[id]; wasAsked {
			a.findings = append(a.findings, found...)
			answers[id] = a
		}
	}
	h.noteFailure(answers, known.failure)
	explaining := foremostKinds(asked, answers)
	if judged.Transfers = Unexplained(f.Transfers, explaining); len(last) > 0 && judged.Transfers != nil {
		rest, err := valueOf(&judged)
		if err != nil {
			return nil, err
		}
		if said, err = s.ask(ctx, remaining, compiled, rest, last); err != nil {
			return nil, err
		}
		for _, rule := range last {
			answers[rule.ID] = s.read(rule, said[rule.ID])
		}
		foremostKinds(last, answers)
	}
	v := &Result{NotApplicable: left}
	v.sort(chosen, answers, f, input)
	var findings []Finding
	for _, rule := range slices.Concat(always, chosen) {
		findings = append(findings, answers[rule.ID].findings...)
	}
	for i := range findings {
		findings[i].OwnLog = slices.ContainsFunc(findings[i].Evidence, func(e Evidence) bool { return ownLogStates(f.Collectives, e.Source, e.Value) })
		s.weigh(&findings[i], v, findings)
		findings[i].lowerPast(past)
	}
	v.Findings = fold(findings, s.rules)
	return v, nil
}

// sort says of the rules which were skipped, do not apply or passed.
func (v *Result) sort(chosen []Rule, answers map[string]reading, f *facts.Facts, input ast.Value) {
	told := toldByTexts(f)
	for _, rule := range chosen {
		a := answers[rule.ID]
		if len(a.findings)+len(a.missing)+len(a.notApplicable) == 0 {
			a.missing = unmet(slices.Concat(rule.Needs, a.asks), f, input) // Before it passes.
		}
		switch {
		case len(a.faults) > 0:
			failed := Skipped{Rule: rule.ID, Fault: true}
			for _, fault := range a.faults {
				failed.Missing = append(failed.Missing, Missing{Words: fault})
			}
			v.Skipped = append(v.Skipped, failed)
		case len(a.findings) > 0:
		case len(a.missing) > 0 && !told && ofTexts(a.missing):
			v.NotApplicable[rule.ID] = noTexts
		case len(a.missing) > 0:
			v.Skipped = append(v.Skipped, Skipped{Rule: rule.ID, Missing: withReasons(a.missing, f.Unknown)})
		case len(a.notApplicable) > 0:
			v.NotApplicable[rule.ID] = strings.Join(a.notApplicable, "; ")
		default:
			v.Passed = append(v.Passed, rule.ID)
		}
	}
}

// noTexts says why a rule does not apply that lacks nothing but what texts tell.
const noTexts = "needs a log; none was given"

// toldByTexts reports whether the facts hold anything that only texts provide.
func toldByTexts(f *facts.Facts) bool {
	return len(f.Texts) > 0 || f.Benchmarks != nil || f.Launches != nil || f.Logs != nil || f.Software != nil
}

// textSections are the sections of the facts that only texts fill.
var textSections = []string{"benchmarks", "comparisons", "launches", "logs", "runs", "software"}

// ofTexts reports whether a rule lacks only facts that texts would provide.
func ofTexts(missing []Missing) bool {
	return !slices.ContainsFunc(missing, func(m Missing) bool { return !slices.Contains(textSections, m.Section()) })
}

// choose returns the rules to judge, those that are always judged with them, whatever was asked for, and those that
// another profile leaves out although they were asked for by name.
func (s *Set) choose(opts Options) (chosen, always []Rule, left map[string]string, err error) {
	for _, id := range slices.Concat(opts.Only, opts.Skip) {
		if _, ok := s.Rule(id); !ok {
			return nil, nil, nil, s.unknownRule(id)
		}
	}
	profile := cmp.Or(opts.Profile, Training)
	left = map[string]string{}
	for _, rule := range s.rules {
		inProfile := slices.Contains(rule.Profiles, profile)
		switch {
		case slices.Contains(opts.Skip, rule.ID):
		case len(opts.Only) > 0 && !slices.Contains(opts.Only, rule.ID):
			// A measured failure is always reported.
			if rule.Unexplained && inProfile {
				always = append(always, rule)
			}
		case inProfile:
			chosen = append(chosen, rule)
		case len(opts.Only) > 0:
			left[rule.ID] = fmt.Sprintf("the profile %s does not include it", profile)
		}
	}
	return chosen, always, left, nil
}

// unknownRule says that no rule has an id, and which is the nearest.
func (s *Set) unknownRule(id string) *UnknownRuleError {
	ids := make([]string, len(s.rules))
	for i, rule := range s.rules {
		ids[i] = rule.ID
	}
	return &UnknownRuleError{ID: id, Nearest: Nearest(id, ids)}
}

// Nearest returns the known word that is most similar to the given one: the one with the fewest edits (at most a third
// of its letters plus one), or else the first that begins with it. It is empty if no word is similar.
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

// answer is the result of one rule, as Rego returned it.
type answer struct {
	sets    map[string][]*ast.Term // By name: see Rule.offers.
	failure string                 // Why the rule could not be run.
}

// group is rules that are asked in one query: of one program, and the user's own apart, so that a fault of theirs is
// not one of the built-in ones.
type group struct {
	program *program
	own     bool
}

// ask evaluates rules, in as few queries as possible and in parallel. If one fails, it evaluates each of its rules alone, so
// that only the faulty ones give no answer.
func (s *Set) ask(ctx context.Context, left budget, compiled map[string]*program, input ast.Value, rules []Rule) (map[string]answer, error) {
	groups := map[group][]Rule{}
	for _, rule := range rules {
		g := group{compiled[rule.File], s.own[rule.File]}
		groups[g] = append(groups[g], rule)
	}
	said := make(map[string]answer, len(rules))
	var alone []Rule
	var mu sync.Mutex // Guards said and alone.
	var wg sync.WaitGroup
	for g, of := range groups {
		wg.Go(func() {
			answers, err := s.boundedQuery(ctx, left.together(), left.heap, g.program, input, of)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				alone = append(alone, of...)
			}
			maps.Copy(said, answers)
		})
	}
	wg.Wait()
	slices.SortFunc(alone, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	for _, rule := range alone {
		if ctx.Err() != nil {
			break
		}
		one, err := s.boundedQuery(ctx, left.share(), left.heap, compiled[rule.File], input, []Rule{rule})
		if err != nil {
			one = map[string]answer{rule.ID: {failure: failureOf(err)}}
		}
		maps.Copy(said, one)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("evaluate rules: %w", context.Cause(ctx))
	}
	return said, nil
}

// boundedQuery is a query that is stopped when it takes too long or too much memory.
func (s *Set) boundedQuery(ctx context.Context, limit time.Duration, heap uint64, p *program, input ast.Value, rules []Rule) (map[string]answer, error) {
	return withinLimits(ctx, limit, s.limits.grace, heap, func(ctx context.Context) (map[string]answer, error) { return s.query(ctx, p, input, rules) })
}

// failureOf returns why a rule gave no answer.
func failureOf(err error) string {
	if limited, ok := errors.AsType[limitError](err); ok {
		return stopped + limited.Error()
	}
	return failed + firstLine(err.Error())
}

// limits are those of a single rule, of all rules, and of compiling a policy.
type limits struct {
	rule, rules, compile time.Duration
	// grace is how long a running step may take to end after the rule was
	// stopped. A step that takes longer is left running until the program ends.
	grace time.Duration
	// heap is how much they may add to the memory in use.
	heap uint64
}

// usual are the default limits. All rules together take some 30 MB on a machine
// with eight GPUs; the program must stay well below 512 MiB.
var usual = limits{rule: deadline.Rule, rules: deadline.Rules, compile: deadline.Compile, grace: time.Second, heap: 128 << 20}

// budget is the processor time that rules have: until end for all of them, and a share of
// it for each; and the memory that they may add to what is in use.
type budget struct {
	end, each time.Duration
	heap      uint64
}

// newBudget returns the budget that the options grant. If the time of one rule is given, that of all is in proportion.
func (s *Set) newBudget(opts Options) budget {
	all, each := s.limits.rules, s.limits.rule
	if opts.Limit > 0 {
		all, each = opts.Limit*(deadline.Rules/deadline.Rule), opts.Limit
	}
	return budget{cpuTime() + min(cmp.Or(opts.Time, all), all), each, cmp.Or(opts.Memory, s.limits.heap)}
}

// together is what all rules may take in one query, share what a single rule may take after that: never more than half
// of the remaining time, so that rules that do not end leave time for those after them.
func (b budget) together() time.Duration { return max((b.end-cpuTime())/2, least) }

func (b budget) share() time.Duration { return max(min(b.each, b.together()), least) }

// least is what each rule may take, however little time remains: most take a few milliseconds.
const least = 20 * time.Millisecond

// query evaluates the sets that the packages of these rules define.
func (s *Set) query(ctx context.Context, p *program, input ast.Value, rules []Rule) (map[string]answer, error) {
	results, err := p.evaluate(ctx, p.queryBody(rules), input)
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, errors.New("the rules returned no result")
	}
	verdicts, ok := results[0]["verdicts"].Value.(ast.Object)
	if !ok {
		return nil, errors.New("the rules did not return an object")
	}
	said := make(map[string]answer, len(rules))
	verdicts.Foreach(func(id, sets *ast.Term) {
		a := answer{sets: map[string][]*ast.Term{}}
		sets.Value.(ast.Object).Foreach(func(name, set *ast.Term) { a.sets[string(name.Value.(ast.String))] = set.Value.(ast.Set).Slice() })
		said[string(id.Value.(ast.String))] = a
	})
	return said, nil
}

// queryBody builds "verdicts = {<id>: {"findings": data..., ...}, ...}" with
// the sets that each package offers, all of which are defined.
func (p *program) queryBody(rules []Rule) ast.Body {
	verdicts := make([][2]*ast.Term, 0, len(rules))
	for _, rule := range rules {
		m := p.modules[rule.File]
		offers := make([][2]*ast.Term, 0, len(rule.offers()))
		for _, name := range rule.offers() {
			if offered(m, name) {
				ref := m.Package.Path.Append(ast.StringTerm(name))
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

// withReasons gives each missing fact the reason why it is not known, if the facts state one.
func withReasons(missing []Missing, unknown []facts.Unknown) []Missing {
	missing = slices.Clone(missing)
	for i := range missing {
		missing[i].Reason = reasonFor(missing[i].Fact, unknown)
	}
	return missing
}

// reasonFor returns the reason that the facts give for a missing fact: the one for this very fact, else for the closest
// around it, else for a part of it. An unknown whole section stands for each fact in it.
func reasonFor(path string, unknown []facts.Unknown) string {
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

// Section is the section of the facts that contains the fact; empty if the rule named no fact.
func (m Missing) Section() string {
	section, _, _ := strings.Cut(plainPath(m.Fact), ".")
	return section
}

// plainPath removes what is in brackets: "pci.devices[].acs" becomes "pci.devices.acs".
func plainPath(path string) string { return brackets.ReplaceAllString(path, "") }

var brackets = lazy.New(`\[[^\]]*\]`)
