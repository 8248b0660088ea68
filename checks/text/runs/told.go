package runs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
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
	// opposite is that of one that denies what was said before: "they don't".
	opposite = "opposite"
	// longestTold is the longest paragraph that is read.
	longestTold = 1500
	// leastProse is as many words as a line of a program has rarely.
	leastProse = 12
	// leastSaid is as many words as an assignment with what came of it has at least.
	leastSaid = 5
	// leastPresumed is as many words as a sentence has at least that tells of an outcome in words that are not known here.
	leastPresumed = 7
)

var (
	sentenceEnd = lazy.New(`(?i)[.!](?:\s+|$)|:\s+(?:with(?:out)?|after|when|setting|using)\b`)
	turn        = lazy.New(`(?i);\s|,? \b(?:before|previously|earlier) (?:it|that|this|the same)\b|,? \b(?:or else|otherwise|by default|before that|but|while|whereas|however|although|though|yet)\b|,\s+(?:and )?(?:with(?:out)?|on|using|after|setting|when)\b|\s[–—-]+\s`)
	// hedged is a sentence that advises, asks, supposes, tells of others, or says how something is set up.
	hedged = lazy.New(`(?i)\b(?:containers?|pods?|servers?|services?|nodes?|machines?|hosts?|clusters?|images?|vms?|kernels?|we|they|each|all|everything) (?:\w+ )?(?:runs?|starts?|boots?) (?:with|by|on|in|at|under)\b|\?\s*$|\b(?:may|might|could(?: be| also| have| try|$)|(?:you|one|we) could|should|would (?:be|like|have|it|that|this|love|appreciate|suggest|recommend|expect|surprise|avoid|try|use)|can (?:lead|result|cause)|please|todo|tomorrow|will try|going to try|e\.g\.|recommend\w*|suggest\w*|consider|whether|supposed|expect\w*)\b|\b(?:if|when|in case) (?:you|your|there|one)\b|\b(?:if|when|where) (?:p2p|peer access) (?:is |are )?(?:not |un)?(?:available|possible|supported|used|needed)\b|\bas (?:always|usual|ever)\b|\bfrom (?:the |our )?(?:\w+ )?docs?\b|^\W*for (?:the |a |full |best )?.*\b(?:use|set|add|pass)\b|\bif (?:it|the|this|that|any|they|nccl|[a-z]+_\w+(?:=\S+)? (?:(?:help|work|fix|solv|mak|matter|chang)\w*|does))\b|^\W*(?:maybe|perhaps)\b|(?:^|, )try (?:to|with|setting|using|[A-Z-])|` +
		`\b(?:everyone|everybody|people|they|somebody|someone|others|reddit|forums?|internet|(?:my|our|a) (?:co-?worker|colleague|friend|boss|vendor|admin)s?|docs?|documentation|wiki|guides?|threads?) (?:\w+ )?(?:say|claim|report|write|mention|swear|tell|told|think|believe)s?\b`)
	// ofPrograms and raised are lines that no person wrote, setsForm is one of a script.
	ofPrograms = lazy.New(`[|{}]| NCCL (?:INFO|WARN) |\[rank ?\d+\]|\b(?:WARNING|ERROR|FATAL): `)
	raised     = lazy.New(`\w(?:Error|Exception)\b: `)
	setsForm   = lazy.New(`^(?:export|ENV|env|-e|-x) `)
	// commandForm is a command with options.
	commandForm = lazy.New(`^(?:\S+ )+--?\w`)
	// announces is a line that says how the command below it ended.
	announces = lazy.New(`(?i)^\W*(?:this |it |that |these )?(?:does(?: not|n't) work|works|working|worked|hangs|hung|hanging|fails|failed|failing|crashes|crashed|broken)(?:,? \w+)?:$`)
	// quotes is a person's line that quotes one of those.
	quotes = lazy.New(`^\W*(?:\w+[ ,]+){4,}.*\w(?:Error|Exception)\b: `)
	// marks of Markdown, and an apostrophe of print.
	marks = strings.NewReplacer("**", "", "`", "", "’", "'", "w/o ", "without ", " w/ ", " with ")
	// aside is the version of what is used all along.
	aside = lazy.New(`(?i) \([nr]ccl v?\d[^()]*\)`)
	// setTo says a value in words: "NCCL_P2P_DISABLE set to 1".
	setTo = lazy.New(`\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:(?:(?: is| was)?(?: (?:set|specified|configured|lowered|raised))? (?:to|as)| ?= ?) ?["'*]*([\w^][\w^,.:-]*)| is (\d+)\b)`)
	// box is that of a list of what was done.
	box = lazy.New(`^\[[ xX]\] `)
	// tries are runs that are counted, which say no outcome.
	tries = lazy.New(`(?i)\b(\d+|of the|these|those|more|both|all|several) runs\b`)
	// unmade are words by which a sentence says that settings are not made, and again those that speak of the ones before.
	unmade = lazy.New(`(?i)\bunless\b|\b(?:without|minus|remov(?:e|ed|ing)|dropp(?:ed|ing))\s+(?:(?:i|we|you|the|using|setting|passing|put|export|set|add|use|pass) ){0,3}\W*(?:--?\w|gpus? \d|[nr]ccl )`)
	again  = lazy.New(`(?i)\b(?:without|unless|minus|clear(?:ed|ing)?|leav(?:e|ing)|left|not setting|remov(?:e|ed|es|ing)|revert(?:ed|ing)?|unset(?:ting)?|drop(?:ped|ping)?|strip(?:ped|ping)?|t(?:ake|ook|aking)|delet(?:e|ed|ing)|comment(?:ed|ing)?(?: out)?|let)(?: removing)? (?:it|this|that|them|both|the (?:same|two|first line|flag|variable|setting|option|line|env(?:ironment|s|_?var\w*)?\b))\b|\botherwise\b|\bor else\b|\bbefore that\b|\bbefore,? (?:it|they)\b|\bwith (?:the )?default(?: value| setting)?s?\b|\bby default\b|^\W*(?:before|earlier|previously)(?:,| (?:it|they|the same)\b)|\b(?:it|this|that|variable|setting|option|flag)(?: is| was|'s)? (?:not set|unset|off|gone|away)\b|^\W*(?:(?:when )?not set|unset|off again)\b`)
	// withIt speaks of the settings before as made.
	withIt = lazy.New(`(?i)\bwith (?:it|this|that|them|both)\b|\bonce set\b|\bin (?:which|that) case\b`)
	// conditional says that something happens when a variable is set, and concedes that the variable is not why.
	conditional = lazy.New(`\b(?:[Ii]f|[Ww]hen(?:ever)?|[Oo]nce|as soon as|only with)\s+(?:[\w.']+\s+){0,5}\W*[A-Z][A-Z0-9]*_[A-Z0-9_]+`)
	concedes    = lazy.New(`(?i)\b(?:even|still|also|regardless|no matter)\b`)
	// scale is in the name of a variable that says which rank a process is, or how large the job is.
	scale = lazy.New(`WORLD_SIZE|COUNT|NUM_|RANK|TASKS|NODES|PROC|GPUS|PARALLEL`)
	// after begins a sentence whose outcome is presumed to be good where no other is said: who tells of trouble tells what helped.
	after = lazy.New(`(?i)^\W*(?:now |but |and |so |then )?(?:after|once|since|with|when|by|as soon as|using|setting|adding|restrict\w+|disabl\w+|turn\w+|switch\w+|export\w+|forc\w+|kick\w+|limit\w+)\b|(?:->|→|⇒|=>)|\bnow\b`)
	// tried are words of a sentence that tells of a setting which the next sentence says the outcome of, and follows begins
	// that sentence.
	tried   = lazy.New(`(?i)\b(?:tried|try|ha[ds]|have|put|threw|precise|pin(?:ned)?|t(?:ake|ook|aking)|remov\w+|strip\w*|unset\w*|drop\w*|old|excluded?|only|went|set|setting|add(?:ed|ing)?|us(?:ed|ing)|with|disabl(?:ed|ing)|export(?:ed|ing)?|pass(?:ed|ing)?|ran|running|upgrad(?:ed|ing)|downgrad(?:ed|ing)|switch(?:ed|ing)|turn(?:ed|ing))\b`)
	follows = lazy.New(`(?i)^\W*(?:it|and|hang|crash|boom|pinned|gone|all|took?|take|strip|remov|unset|drop|not set|otherwise|or else|this|that|then|now|still|same|no|nothing|everything|all|works|worked|hangs|fails|did|does|and|problem|issue|the (?:same|error|hang|problem|issue))\b`)
)

// tell makes runs of what a paragraph says was tried, and reports whether it says anything.
func (r *recorder) tell(l parse.Line) bool {
	r.forget(l) // The same with a prefix.
	text := tries.ReplaceAllString(setTo.ReplaceAllString(strings.TrimSpace(aside.ReplaceAllString(marks.Replace(l.Text), "")), "$1=$2$3"), "$1 tries")
	words := len(strings.Fields(text))
	switch {
	case len(text) > longestTold, words < 2, ofPrograms.MatchString(text), logLine.MatchString(text), strings.HasSuffix(text, `\`):
		return false
	case codeForm.MatchString(text) && words < leastProse:
		return false
	case raised.MatchString(l.Whole()) && (!r.sink.Personal() || !quotes.MatchString(text)):
		return false
	}
	if _, command := prefixed(text); command || setsForm.MatchString(text) && words < leastSaid || len(r.told) >= maxRuns || message.Bygone(text) {
		return false
	}
	before := r.now.before // What the sentence before says was tried.
	for _, sentence := range pieces(text, sentenceEnd) {
		if raised.MatchString(sentence) { // It quotes a program.
			r.tells(nil, failed, true, l)
		}
		if hedged.MatchString(sentence) || raised.MatchString(sentence) {
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
	r.now.before = before
	named := slices.ContainsFunc(r.told, func(t *run) bool { return r.toldBy(t, l) && t.names() })
	if named {
		r.sink.Tells()
	}
	return named
}

// prose reads a line of a text: what it tells of runs, and for the next lines what was tried or how it ended. A command may
// stand in a block of code above the sentence that tells its outcome, or below a line that announces it.
func (r *recorder) prose(l parse.Line) bool {
	if r.now.source != r.sink.Source() {
		r.now = telling{source: r.sink.Source()}
	}
	if l.Number == r.now.line { // The same without a prefix.
		r.now = *r.now.above
		r.forget(l)
	}
	above := r.now
	above.above = nil
	r.now.line, r.now.above = l.Number, &above
	text := box.ReplaceAllString(strings.TrimSpace(l.Text), "")
	if text == "" {
		return false
	}
	announced := r.now.announced
	r.now.announced = ""
	_, command := prefixed(text)
	switch {
	case announces.MatchString(text):
		r.now.announced = outcomeOf(text)
		return false
	case announced != "" && len(named(text).removed) == 0:
		r.telling(named(text), announced, l)
	case !command && (!commandForm.MatchString(text) || outcomeOf(text) != ""):
		l.Text = text
		return r.tell(l)
	}
	if m := named(text); len(m.settings) > 0 {
		r.now.before, r.now.last = m, m.settings
		r.now.before.text = "ran"
	}
	return false
}

// telling is how far a text came in what it tells.
type telling struct {
	source string
	// line is the last one, and above what was so above it.
	line  int
	above *telling
	// before are the settings of which no sentence said an outcome yet, and last those that were named last.
	before mark
	last   [][2]string
	// ended is the last outcome, and announced that of the command on the next line.
	ended, announced string
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
		if phrase := r.named(part[from:o.From]); len(ends) > 0 && !phrase.any() { // "still hangs", "the hang goes away".
			ends[len(ends)-1] = stronger(ends[len(ends)-1], o.Is)
		} else {
			phrases, ends = append(phrases, phrase), append(ends, o.Is)
		}
		from = o.To
	}
	phrases = append(phrases, r.named(part[from:]))
	rate := rated.FindStringSubmatch(part)
	if len(ends) == 0 && rate != nil {
		phrases, ends = append(phrases, mark{}), append(ends, good)
	}
	if len(ends) == 0 {
		if phrases[0].any() {
			before, before.text = phrases[0], part
			if len(before.settings) > 0 && r.sink.Personal() && after.MatchString(part) && len(strings.Fields(part)) >= leastPresumed {
				r.tells(before.settings, good, false, l)
				r.told[len(r.told)-1].presumed = true
			}
		}
		return before
	}
	behind := 0
	if !phrases[0].any() && phrases[1].any() {
		behind = 1
	}
	told := len(r.told)
	for i, end := range ends {
		m := phrases[i+behind]
		if m.any() {
			before = m
		} else {
			m, before = before, mark{}
		}
		if last := phrases[len(ends)]; i == len(ends)-1 && behind == 0 && len(last.denied) > 0 { // "NCCL 2.30 hangs unless ..."
			m = last
		}
		if end == opposite {
			end = map[string]string{good: failed, cured: failed, failed: good, hung: good}[r.now.ended]
		}
		r.now.ended = cmp.Or(end, r.now.ended)
		r.telling(m, cmp.Or(map[string]string{cured: good}[end], end), l)
		if (end == failed || end == hung) && len(m.settings) == 1 && conditional.MatchString(part) && !concedes.MatchString(part) && tellsOfWithout(m.settings[0]) {
			r.told[len(r.told)-1].when = true
		}
		if m.any() && (end == cured || end == unchanged) { // So there was a failure.
			r.tells(nil, failed, true, l)
		}
	}
	if rate != nil && len(ends) == 1 {
		for _, t := range r.told[told:] {
			t.GBps = rateOf(rate)
		}
	}
	before.text = ""
	return before
}

// tellsOfWithout reports whether who says that something fails with a setting says that it works without: that is not so of one
// that says which rank a process is or how large the job is, and of one that is as it is by default.
func tellsOfWithout(v [2]string) bool {
	return (v[1] == somehow || !scale.MatchString(v[0])) && (v[1] != "0" || !strings.HasSuffix(v[0], "_DISABLE"))
}

// rated is a bandwidth in words.
var rated = lazy.New(`(?i)\b(\d+(?:\.\d+)?) ?([gm])(b(?:it)?)(?:/s|ps)\b`)

// rateOf is a bandwidth in GB/s.
func rateOf(m []string) *float64 {
	n, err := facts.ParseFloat(m[1])
	if err != nil {
		return nil
	}
	if strings.EqualFold(m[2], "m") {
		n /= 1000
	}
	if m[3] != "B" {
		n /= 8
	}
	return &n
}

// outcomeOf is the outcome that a text says of one run; empty if it says none.
func outcomeOf(text string) (outcome string) {
	for _, o := range data.Experiments().OutcomesIn(text) {
		if o.Is == opposite {
			return ""
		}
		outcome = stronger(cmp.Or(outcome, o.Is), o.Is)
	}
	return cmp.Or(map[string]string{cured: good}[outcome], outcome)
}

// stronger is of two words of an outcome, one behind the other, the one that decides.
func stronger(one, other string) string {
	for _, outcome := range []string{opposite, unchanged, cured, hung, failed} {
		if one == outcome || other == outcome {
			return outcome
		}
	}
	return good
}

// named are the settings that words name, or say are not made: the last ones, where they speak of those.
func (r *recorder) named(words string) mark {
	if again.MatchString(words) {
		return mark{removed: []string{"it"}, denied: r.now.last}
	}
	if withIt.MatchString(words) && len(r.now.last) > 0 {
		return mark{settings: r.now.last}
	}
	m := named(words)
	if len(m.settings) > 0 || len(m.denied) > 0 {
		r.now.last = slices.Concat(m.settings, m.denied)
	}
	return m
}

// named are the settings that words name, or say are not made.
func named(words string) (m mark) {
	m.titled(words)
	if bare := assigns.FindStringSubmatch(words); !m.any() && bare != nil && steers(bare[1]) {
		m.settings = [][2]string{{bare[1], somehow}}
	}
	if len(m.settings) > 0 && unmade.MatchString(words) {
		for _, v := range m.settings {
			m.removed = append(m.removed, v[0])
		}
		m.denied, m.settings = append(m.denied, m.settings...), nil
	}
	return m
}

// steers reports whether a variable is one of those that people set to see what it changes, and no status.
func steers(name string) bool {
	of := func(tool string) bool { return strings.HasPrefix(name, tool) }
	return (env.SteersCommunication(name) || slices.ContainsFunc(data.Experiments().Tools, of)) && !status.MatchString(name)
}

// status is a name that a program has for how something ended.
var status = lazy.New(`_(?:ERROR|STATUS|CHECK|FAIL|FAILED|SUCCESS|INVALID)(?:_|$)`)

// any reports whether a mark is about a setting.
func (m mark) any() bool { return len(m.settings)+len(m.removed) > 0 }

// telling makes a run of what a clause says, and of one that says what is not set another with it, which ends otherwise.
// One that names no setting says how the failure looks that the text is about.
func (r *recorder) telling(m mark, outcome string, l parse.Line) {
	plain := !m.any()
	if outcome == "" {
		return
	}
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
		if slices.ContainsFunc(told, func(t *run) bool { return !t.presumed && t.names() }) {
			told = slices.DeleteFunc(told, func(t *run) bool { return t.presumed })
		}
		if i := slices.IndexFunc(told, func(t *run) bool { return t.when }); i >= 0 && !slices.ContainsFunc(told, func(t *run) bool { return t.Outcome == good || t.Outcome == unchanged }) {
			works := *told[i]
			works.Outcome, works.Variables, works.base = good, map[string]string{}, true
			all = append(all, told[i], &works)
			continue
		}
		base := failureIn(told, f.Logs, source)
		if base == nil || !slices.ContainsFunc(told, func(t *run) bool { return !t.plain && t.names() }) {
			continue
		}
		base.base = true
		tables := map[string]*run{} // Copies of the failure, for tables in which each row has a setting.
		for _, t := range told {
			switch {
			case t.By == "table":
				if tables[t.identity] == nil {
					table := *base
					table.By, table.identity, table.Variables = t.By, t.identity, maps.Clone(t.Variables)
					tables[t.identity] = &table
				}
				maps.DeleteFunc(tables[t.identity].Variables, func(name, value string) bool { return t.Variables[name] != value }) // What all rows have.
				tables[t.identity].versioned(t, nil)
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
			table := tables[identity]
			if !slices.ContainsFunc(told, func(t *run) bool { return t.By == "table" && t.identity == identity && t.only(table.Variables) }) {
				all = append(all, table)
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

// only reports whether nothing is said of what a run uses but some variables.
func (r *run) only(variables map[string]string) bool {
	return len(r.settings()) == len(variables) && r.GPUs+r.Nodes == 0 && r.Version == ""
}

// names reports whether something is said of what a run uses.
func (r *run) names() bool { return !r.only(nil) }

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
