package runs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// What people write of what they tried is read clause by clause: "With NCCL_P2P_DISABLE=1 it works, without it vLLM
// hangs" is two runs. A clause names settings as a heading does, and an outcome; the one may follow the other.

const (
	// unchanged is the outcome of a clause that says that a setting makes no difference: that of the failure which the
	// text is about.
	unchanged = "unchanged"
	// cured is that of one that says that a failure no longer happens.
	cured = "cured"
	// themselves stands for the settings of the clause before.
	themselves = "it"
	// longestTold is the longest paragraph that is read.
	longestTold = 1500
)

var (
	sentenceEnd = lazy.New(`(?i)[.!;](?:\s+|$)|:\s+(?:with(?:out)?|after|when|setting|using)\b`)
	turn        = lazy.New(`(?i),? \b(?:but|while|whereas|however|although|though|yet)\b|,\s+(?:and )?(?:with(?:out)?|on|using|after|setting|when)\b|\s[–—-]+\s`)
	// hedged is a sentence that advises, asks, supposes, tells of others, or says how something is set up.
	hedged = lazy.New(`(?i)\b(?:containers?|pods?|servers?|services?|nodes?|machines?|hosts?|clusters?|images?|vms?|kernels?|we|they|each|all|everything) (?:\w+ )?(?:runs?|starts?|boots?) (?:with|by|on|in|at|under)\b|\?\s*$|\b(?:may|might|could|should|would|please|e\.g\.|recommend\w*|suggest\w*|consider|whether|perhaps|maybe|supposed|expect\w*)\b|\b(?:if|when|in case) (?:you|your|there|one|p2p|peer)\b|\bif (?:it|the|this|that|any|they|nccl)\b|(?:^|, )try (?:to|with|setting|using|[A-Z-])|` +
		`\b(?:everyone|everybody|people|they|somebody|someone|others|reddit|forums?|internet|docs?|documentation|wiki|guides?|threads?) (?:\w+ )?(?:say|claim|report|write|mention)s?\b`)
	// ofPrograms and raised are lines that no person wrote, setsForm is one of a script.
	ofPrograms = lazy.New(`[|{}]| NCCL (?:INFO|WARN) |\[rank ?\d+\]`)
	raised     = lazy.New(`\w(?:Error|Exception)\b: `)
	setsForm   = lazy.New(`^(?:export|ENV|env|-e|-x) `)
	// marks of Markdown, and an apostrophe of print.
	marks = strings.NewReplacer("**", "", "`", "", "’", "'")
	// setTo says a value in words: "NCCL_P2P_DISABLE set to 1".
	setTo = lazy.New(`\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?: is| was)?(?: set)? (?:to|as) ["'*]*([\w^][\w^,.:-]*)`)
	// unmade are words by which a sentence says that settings are not made, and again those that speak of the ones before.
	unmade = lazy.New(`(?i)\b(?:without|unless|remov(?:e|ed|ing)|dropp(?:ed|ing))\s+(?:(?:the|using|setting|passing) )?\W*(?:--?\w|gpus? \d|[nr]ccl )`)
	again  = lazy.New(`(?i)\b(?:without|unless|remov(?:e|ing)|unset(?:ting)?|dropping) (?:it|this|that|them|the (?:flag|variable|setting|option|env\w*))\b|\botherwise\b`)
	// tried are words of a sentence that tells of a setting which the next sentence says the outcome of, and follows begins
	// that sentence.
	tried   = lazy.New(`(?i)\b(?:tried|try|set|setting|add(?:ed|ing)?|us(?:ed|ing)|with|disabl(?:ed|ing)|export(?:ed|ing)?|pass(?:ed|ing)?|ran|running|upgrad(?:ed|ing)|downgrad(?:ed|ing)|switch(?:ed|ing)|turn(?:ed|ing))\b`)
	follows = lazy.New(`(?i)^\W*(?:it|this|that|then|now|still|same|no|nothing|everything|all|works|worked|hangs|fails|did|does|and|problem|issue|the (?:same|error|hang|problem|issue))\b`)
)

// tell makes runs of what a paragraph says was tried, and reports whether it says anything.
func (r *recorder) tell(l parse.Line) bool {
	r.forget(l) // The same with a prefix.
	text := setTo.ReplaceAllString(strings.TrimSpace(marks.Replace(l.Text)), "$1=$2")
	if len(text) > longestTold || !strings.Contains(text, " ") || ofPrograms.MatchString(text) || raised.MatchString(l.Whole()) || logLine.MatchString(text) || codeForm.MatchString(text) || strings.HasSuffix(text, `\`) {
		return false
	}
	if _, command := prefixed(text); command || setsForm.MatchString(text) || len(r.told) >= maxRuns || message.Bygone(text) {
		return false
	}
	var before mark // What the sentence before says was tried.
	for _, sentence := range pieces(text, sentenceEnd) {
		if hedged.MatchString(sentence) {
			before = mark{}
			continue
		}
		if !follows.MatchString(sentence) || !tried.MatchString(before.text) {
			before = mark{}
		}
		for _, part := range pieces(sentence, turn) {
			before = r.clauses(part, before, l)
		}
	}
	named := slices.ContainsFunc(r.told, func(t *run) bool { return r.toldBy(t, l) && t.names() })
	if named {
		r.sink.Tells()
	}
	return named
}

// toldBy reports whether a line of the text under way tells of a run.
func (r *recorder) toldBy(t *run, l parse.Line) bool {
	return t.Line == l.Number && t.Source == r.sink.Source()
}

// forget drops what a line tells.
func (r *recorder) forget(l parse.Line) {
	r.told = slices.DeleteFunc(r.told, func(t *run) bool { return r.toldBy(t, l) })
}

// pieces are the parts of a text, each with the match of a form that ends the one before.
func pieces(text string, form *lazy.Regexp) (all []string) {
	from := 0
	for _, at := range form.Get().FindAllStringIndex(text, maxRuns) {
		if at[0] > from {
			all = append(all, text[from:at[0]])
		}
		from = at[0]
	}
	return append(all, text[from:])
}

// clauses makes runs of a part of a sentence: each outcome is of the settings before it, or of those behind it where the
// part begins with the outcome. It returns the settings of which no outcome was said yet, or the last ones.
func (r *recorder) clauses(part string, before mark, l parse.Line) mark {
	var phrases []mark // Before, between and behind the outcomes.
	var ends []string
	from := 0
	for _, o := range data.Experiments().OutcomesIn(part) {
		if phrase := named(part[from:o.From]); len(ends) > 0 && !phrase.any() { // "still hangs", "the hang goes away".
			ends[len(ends)-1] = stronger(ends[len(ends)-1], o.Is)
		} else {
			phrases, ends = append(phrases, phrase), append(ends, o.Is)
		}
		from = o.To
	}
	phrases = append(phrases, named(part[from:]))
	if len(ends) == 0 {
		if phrases[0].any() {
			before, before.text = phrases[0], part
		}
		return before
	}
	behind := 0
	if !phrases[0].any() && phrases[1].any() {
		behind = 1
	}
	for i, end := range ends {
		m := phrases[i+behind]
		switch {
		case slices.Contains(m.removed, themselves):
			m.denied = before.settings
		case m.any():
			before = m
		default:
			m, before = before, mark{}
		}
		if last := phrases[len(ends)]; i == len(ends)-1 && behind == 0 && len(last.denied) > 0 { // "NCCL 2.30 hangs unless ..."
			m = last
		}
		r.telling(m, cmp.Or(map[string]string{cured: good}[end], end), l)
	}
	before.text = ""
	return before
}

// outcomeOf is the outcome that a text says of one run; empty if it says none.
func outcomeOf(text string) (outcome string) {
	for _, o := range data.Experiments().OutcomesIn(text) {
		outcome = stronger(cmp.Or(outcome, o.Is), o.Is)
	}
	return cmp.Or(map[string]string{cured: good}[outcome], outcome)
}

// stronger is of two words of an outcome, one behind the other, the one that decides.
func stronger(one, other string) string {
	for _, outcome := range []string{unchanged, cured, hung, failed} {
		if one == outcome || other == outcome {
			return outcome
		}
	}
	return good
}

// named are the settings that words name, or say are not made.
func named(words string) (m mark) {
	if again.MatchString(words) {
		return mark{removed: []string{themselves}}
	}
	m.titled(words)
	if len(m.settings) > 0 && unmade.MatchString(words) {
		for _, v := range m.settings {
			m.removed = append(m.removed, v[0])
		}
		m.denied, m.settings = append(m.denied, m.settings...), nil
	}
	return m
}

// any reports whether a mark is about a setting.
func (m mark) any() bool { return len(m.settings)+len(m.removed) > 0 }

// telling makes a run of what a clause says, and of one that says what is not set another with it, which ends otherwise.
// One that names no setting says how the failure looks that the text is about.
func (r *recorder) telling(m mark, outcome string, l parse.Line) {
	plain := !m.any()
	if plain && (outcome == good || outcome == unchanged) {
		return
	}
	if outcome == good || plain {
		r.tells(m.settings, outcome, plain, l)
	} else { // Of several settings none helps, together or by itself.
		for i := range m.settings {
			r.tells(m.settings[i:i+1], outcome, false, l)
		}
	}
	if len(m.settings) == 0 && !plain { // Without what the text names.
		r.tells(nil, outcome, false, l)
	}
	if len(m.denied) > 0 && outcome != unchanged {
		r.tells(append(m.settings, m.denied...), map[string]string{good: failed, failed: good, hung: good}[outcome], false, l)
	}
}

func (r *recorder) tells(settings [][2]string, outcome string, plain bool, l parse.Line) {
	told := &run{
		Run:  facts.Run{By: "text", Source: strings.Clone(r.sink.Source()), Line: l.Number, Variables: map[string]string{}},
		text: strings.Clone(l.Text[:min(len(l.Text), maxText)]), logged: map[string]string{}, plain: plain,
	}
	for _, v := range settings {
		told.set(v[0], v[1])
	}
	told.is(outcome, "the text says so", l.Number, false)
	told.Wrong = outcome == failed && data.Experiments().Wrong.In(strings.ToLower(l.Text))
	r.told = append(r.told, told)
}

// tellings are the runs that texts tell of, with the failure that each text is about. Where nothing fails, or nothing was
// tried, there are none.
func (r *recorder) tellings(f *facts.Facts, others []*run) (all []*run) {
	about := map[string][]*run{} // What each text tells, and the rows of its tables.
	for _, t := range slices.Concat(r.told, others) {
		if t.By == "text" || t.By == "table" {
			about[t.Source] = append(about[t.Source], t)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(about)) {
		told := about[source]
		base := failureIn(told, f.Logs, source)
		if base == nil || !slices.ContainsFunc(told, func(t *run) bool { return !t.plain && t.names() }) {
			continue
		}
		base.base = true
		tables, bare := map[string]*run{}, map[string]bool{} // Copies of the failure, for tables in which each row has a setting.
		for _, t := range told {
			switch {
			case t.By == "table":
				if tables[t.identity] == nil {
					table := *base
					table.By, table.identity = t.By, t.identity
					tables[t.identity] = &table
				}
				tables[t.identity].versioned(t, nil)
				bare[t.identity] = bare[t.identity] || !t.names()
				continue
			case t.plain && t != base:
				continue
			case t.Outcome == unchanged:
				t.Outcome = base.Outcome
			}
			base.versioned(t, others)
			all = append(all, t)
		}
		if !slices.Contains(all, base) {
			all = append(all, base)
		}
		for _, identity := range slices.Sorted(maps.Keys(tables)) {
			if !bare[identity] {
				all = append(all, tables[identity])
			}
		}
	}
	return all
}

// failureIn is the failure that a text is about: a run without the settings that it names, the failure of its log, or what it
// says to fail and does not say with what.
func failureIn(told []*run, logs *facts.LogFacts, source string) *run {
	i := slices.IndexFunc(told, func(t *run) bool { return t.By == "text" && !t.plain && !t.names() && t.Outcome != unchanged })
	if i >= 0 {
		return told[i]
	}
	if logs != nil {
		if failure := failureOf(logs.Messages, source); failure != nil {
			return failure
		}
	}
	i = slices.IndexFunc(told, func(t *run) bool { // Perhaps on so many GPUs.
		return t.By == "text" && (t.Outcome == failed || t.Outcome == hung) && len(t.settings()) == 0 && t.Version == ""
	})
	if i < 0 {
		return nil
	}
	return told[i]
}

// versioned takes the version of the library for the failure that a text is about, where it tells of another: that of its
// log, if that shows it.
func (r *run) versioned(other *run, logs []*run) {
	if other.Version == "" || r.Version != "" {
		return
	}
	r.Library, r.Version = other.Library, "another"
	if i := slices.IndexFunc(logs, func(o *run) bool { return o.Library == r.Library && o.Version != "" && o.Version != "several" }); i >= 0 {
		r.Version = logs[i].Version
	}
}

// names reports whether something is said of what a run uses.
func (r *run) names() bool { return len(r.settings())+r.GPUs+r.Nodes > 0 || r.Version != "" }

// failureOf is the run of which a text, or else another, has a message that something failed; nil if there is none.
func failureOf(messages []facts.Message, source string) *run {
	fails := func(m facts.Message) bool { return complains(m.Role) && m.Program != "people" }
	i := slices.IndexFunc(messages, func(m facts.Message) bool { return fails(m) && m.Source == source })
	if i < 0 {
		i = slices.IndexFunc(messages, fails)
	}
	if i < 0 {
		return nil
	}
	m := messages[i]
	b := &run{Run: facts.Run{By: "text", Source: source, Line: m.Line, Variables: map[string]string{}}, text: m.Text, logged: map[string]string{}}
	b.is(map[bool]string{true: hung, false: failed}[stalls(m.ID)], "its log says so", m.Line, false)
	b.Source = m.Source
	return b
}
