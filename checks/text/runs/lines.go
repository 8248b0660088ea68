package runs

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

const (
	// maxHeading bounds a heading, and what a person says about a run.
	maxHeading = 100
	// longest is the longest line that matters: a command with its variables.
	longest = 4096
)

// skips passes over the lines of NCCL's log and long ones: NCCL says in them only that a communicator was made.
func skips(line []byte) bool {
	return parse.OfNCCL(line) && !bytes.Contains(line, []byte(" - Init COMPLETE")) || len(line) > longest
}

var (
	// nccl-tests (src/common.cu): the first line, and the closing ones.
	beginsForm  = lazy.New(`^\W*nThread \d+ nGpus \d+`)
	libraryForm = lazy.New(`^\W*nccl-tests version \S+ .*nccl-library=([1-9])(\d\d)(\d\d)\b`)
	checkedForm = lazy.New(`^\W*Out of bounds values : (\d+)`)
	closedForm  = lazy.New(`^\W*Avg bus bandwidth\s*: [0-9.]`)
	// exitForm is how shells, launchers and schedulers say how a process ended.
	exitForm = lazy.New(`(?i)(?:\bexit(?:ed)?[ _]?(?:with )?(?:code|status)\s*[:=]?\s*|\brc=)(-?\d{1,3})\b`)
	// passedForm is what tests say: the CUDA samples, pytest, CTest.
	passedForm = lazy.New(`\bPASSED\b|\bTest passed\b|^\W*\d+ passed\b|\bGenerated text: ['"]+ ?\w+ \w|` + answer + `"[^"]*\pL{2}[^"]* [^"]*\pL{2}`)
	// clientForm is a command that asks the server that runs.
	clientForm = lazy.New(`^(?:time )?(?:curl|wget|http)\b`)
	failedForm = lazy.New(`\bTest failed\b|core dumped`)
	// stepForm is a line of a training's log: a loss, and the number of a step.
	stepForm = lazy.New(`(?i)\b(?:step|iter|iteration|epoch|batch)\b\s*[:=#\[(/]?\s*(\d{1,9})\b`)
	lossForm = lazy.New(`(?i)\bloss\b`)
	// unsetForm takes variables away, and exportForm sets them for what follows.
	unsetForm = lazy.New(`^(?:\++ )?(?:unset|export -n)((?: +[A-Za-z_]\w*)+)\s*$`)
	// optionForm begins a further line of a command, or one that "set -x" shows.
	optionForm = lazy.New(`^(?:-{1,2}[A-Za-z]|\+{1,3} \S)`)
	// changedForm is what people write of a change of the machine, and asksForm a heading that does not say what was done but what
	// might be.
	changedForm = lazy.New(`(?i)\breboot(?:ed|ing)?\b|\bpower[- ]cycled?\b|\b(?:upgraded|downgraded|re-?installed|swapped)\b`)
	asksForm    = lazy.New(`(?i)\?$|\b(?:please|could|can|would|should|shall|does|did you|what|whether|if|maybe|perhaps|suggest|recommend)\b|\btry\b(?: [^\d\s]|$)`)
	// logLine begins a line that a program wrote.
	logLine = lazy.New(`^(?:\d\d:\d\d|\[|\d{4}-|[A-Z]\d{4} |\S+:\d+:\d+ )`)
)

// answer begins a server's answer of a model, as its API gives it (message row model-output-degenerate).
const answer = `"(?:content|text|response)": ?`

// line notes what a line is for runs.
func (r *recorder) line(l parse.Line) {
	note := func(m mark) {
		m.line, m.text = l.Number, l.Text
		m.quoted, m.indented = l.Quoted()
		r.note(m)
	}
	r.headed(l)
	if strings.Contains(l.Text, " - Init COMPLETE") {
		note(mark{kind: made})
		return
	}
	if p, ok := parse.PromptOf(l.Text); ok {
		if !beginsForm.MatchString(l.Text) && !clientForm.MatchString(p.Command) {
			note(mark{kind: prompt, value: p.Command, host: p.Host})
		}
		return
	}
	if m, ok := resultOf(l.Text); ok {
		note(m)
		return
	}
	if m := libraryForm.FindStringSubmatch(l.Text); m != nil {
		note(mark{kind: version, name: "nccl", value: fmt.Sprintf("%s.%d.%d", m[1], parse.Number(m[2]), parse.Number(m[3]))})
		return
	}
	if m := unsetForm.FindStringSubmatch(l.Text); m != nil {
		note(mark{kind: unset, removed: strings.Fields(m[1])})
		return
	}
	if m, ok := prefixed(l.Text); ok {
		note(m)
		return
	}
	if len(l.Text) > maxHeading || strings.Contains(l.Text, "|") { // A row of a table.
		return
	}
	h, heads := headingOf(l.Text)
	logs := strings.TrimSpace(l.Text) == "" || strings.Contains(l.Text, " NCCL ") || logLine.MatchString(l.Text)
	if logs && !heads {
		return
	}
	said := saidOf(l.Text)
	if heads && said == "" && !quotesCommand(l.Text) { // Else it tells of a run (see tell).
		note(h)
	} else if logs {
		return
	}
	if changedForm.MatchString(l.Text) {
		note(mark{kind: change})
	}
	if said != "" {
		note(mark{kind: word, value: said})
	}
}

// quotesCommand reports whether a line is of a command behind the mark of a quote or of an item: "> $ NCCL_ALGO=Ring
// ./t.sh", "> + mpirun -n 2 ./t.sh" and "> -e NCCL_ALGO=Ring \\" are no headings.
func quotesCommand(text string) bool {
	if strings.HasSuffix(text, `\`) {
		return true
	}
	inner, ok := parse.StripPrefix(text)
	for ; ok; inner, ok = parse.StripPrefix(inner) {
		_, prompt := parse.PromptOf(inner)
		_, command := prefixed(inner)
		if prompt || command || optionForm.MatchString(inner) {
			return true
		}
	}
	return false
}

// resultOf reads what a program says about its end.
func resultOf(text string) (mark, bool) {
	switch {
	case beginsForm.MatchString(text):
		return mark{kind: banner}, true
	case checkedForm.MatchString(text):
		n, err := strconv.Atoi(checkedForm.First(text))
		return mark{kind: checked, number: n}, err == nil
	case closedForm.MatchString(text):
		return mark{kind: finished}, true
	case strings.HasPrefix(strings.TrimSpace(text), "^C"):
		return mark{kind: stopped}, true
	case exitForm.MatchString(text):
		n, err := strconv.Atoi(exitForm.First(text))
		return mark{kind: exit, number: n}, err == nil
	case passedForm.MatchString(text):
		return mark{kind: passed}, true
	case failedForm.MatchString(text):
		return mark{kind: exit, number: 1}, true
	case lossForm.MatchString(text):
		n, err := strconv.Atoi(stepForm.First(text))
		return mark{kind: step, number: n, count: 1}, err == nil
	}
	return mark{}, false
}

// prefixed reads a command without a prompt that sets variables for itself: "VAR=1 python
// train.py". Those that launch jobs are reported as launches, whatever they set.
func prefixed(text string) (mark, bool) {
	if !strings.Contains(text, "=") || len(launch.Settings(text)) == 0 {
		return mark{}, false
	}
	variables, words := launch.Starts(launch.BareCommand(text))
	if len(variables) == 0 || len(words) == 0 || words[0] == "export" {
		return mark{}, false
	}
	return mark{kind: command, settings: variables, value: strings.Join(words, " ")}, true
}

// saidOf is the outcome that a person says a run had; empty if nobody does. What is
// denied, or said of another case, is no outcome.
func saidOf(text string) string {
	after := text
	for _, sign := range []string{" => ", " -> ", " → ", ": ", " - ", " — "} { // "P2P off: works"
		if _, said, ok := strings.Cut(text, sign); ok {
			after = said
			break
		}
	}
	outcome := outcomeOf(after)
	if outcome == unchanged || hedged.MatchString(after) || len(after) > maxHeading/2 {
		return ""
	}
	return outcome
}

var (
	// headingMark is what stands before or behind a heading.
	headingMark = lazy.New(`^\s*(?:[#=*-]+\s*|\(?\d{1,2}[.)]\s+|\(?[a-hA-H][.)]\s+)`)
	// codeForm is a line of a traceback or of a program: "return collate(batch, default)".
	codeForm   = lazy.New(`^File "|\w\(`)
	headingEnd = lazy.New(`\s*(?::|[=#*-]{2,})\s*$`)
	// headingWord begins a heading that has no mark.
	headingWord = lazy.New(`(?i)^(?:now |then |run |test |case |again )?(?:with|without|using|set|setting|unset|after|before|default|baseline)\b`)
	// plainly names the run to which others are compared.
	plainly = lazy.New(`(?i)\b(?:without|baseline|defaults?|before|unset|plain|as is|nothing set|no (?:variables|env))\b`)
	// assigns is a variable, with a value or without.
	assigns = lazy.New(`\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=("[^"]*"|'[^']*'|[^\s,;:)"'` + "`" + `]*(?:,[^\s,;:)"'` + "`" + `]+)*)|\b)`)
	// denies stands before a variable that is not set.
	denies  = lazy.New(`(?i)\b(?:without|unless|minus|unset(?:ting)?|no|not?|remov(?:e|ed|ing)|dropp(?:ed|ing))\s+(?:(?:i|we|you|the|using|setting|passing|put|export|set|add|use|pass) ){0,3}\W*$`)
	isUnset = lazy.New(`(?i)^[\W_]*(?:is |was )?(?:not set|unset)\b`)
	// listed and counted are GPUs: "GPUs 0,1", "GPU 0 and 1", "pair 0-1"; "2 GPUs", "4gpu".
	listed   = lazy.New(`(?i)\b(?:gpus?|devices?|pair)[ #:=]*((?:\d{1,2})(?:\s*(?:,|and|&|\+|<->|->|-|/)\s*(?:gpu ?)?\d{1,2})+)`)
	counted  = lazy.New(`(?i)(?:^|[^\w/])(\d{1,4})[ -]?gpus?\b`)
	digits   = lazy.New(`\d+`)
	released = lazy.New(`(?i)\b(?:lib)?(nccl|rccl)(?:-cu\d+)?(?:[ -]|==?)?(?:(?:version|runtime|library)(?: tested)?:? )?(?:from )?(?:\d[\d.]+ (?:->|→|to) )?(?:back )?(?:to )?v?(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)\b`)
)

// headingOf reads a line by which people say what the run below it is: "With
// NCCL_P2P_DISABLE=1:", "## without", "2 GPUs:".
func headingOf(text string) (mark, bool) {
	title := headingMark.ReplaceAllString(text, "")
	marked := title != text && strings.TrimSpace(text) != ""
	title = strings.TrimSpace(title)
	switch {
	case codeForm.MatchString(title):
		return mark{}, false
	case strings.HasSuffix(title, "?"):
	case headingEnd.MatchString(title):
	case marked && !strings.HasPrefix(strings.TrimSpace(text), "-"):
	case headingWord.MatchString(title) && len(strings.Fields(title)) <= 6 && !strings.HasSuffix(title, "."):
	default:
		return mark{}, false
	}
	m := mark{kind: heading, asked: asksForm.MatchString(title)}
	told := m.titled(headingEnd.ReplaceAllString(title, ""))
	return m, told && (!m.asked || len(m.settings)+len(m.removed) > 0 && m.ofVariables())
}

// titled takes the settings out of a heading or a file's name, and reports whether it says anything of a run.
func (m *mark) titled(title string) bool {
	set := func(name, value string) {
		if !slices.ContainsFunc(m.settings, func(v [2]string) bool { return v[0] == name }) {
			m.settings = append(m.settings, [2]string{name, value})
		}
	}
	told := false
	for _, at := range assigns.Get().FindAllStringSubmatchIndex(title, 32) {
		name, value := title[at[2]:at[3]], ""
		if at[4] >= 0 {
			value = strings.Trim(title[at[4]:at[5]], `"'.`)
		}
		switch {
		case !steers(name):
			continue
		case denies.MatchString(title[:at[0]]), value == "" && isUnset.MatchString(title[at[1]:]):
			m.removed = append(m.removed, name)
			if strings.HasSuffix(name, "_DISABLE") {
				value = cmp.Or(value, "1")
			}
			m.denied = append(m.denied, [2]string{name, cmp.Or(value, somehow)})
		case at[4] >= 0:
			set(name, value)
		case strings.HasSuffix(name, "_DISABLE"): // "with NCCL_P2P_DISABLE"
			set(name, "1")
		default:
			continue
		}
		told = true
	}
	words := strings.ToLower(strings.Join(strings.FieldsFunc(assigns.ReplaceAllString(title, ""), func(c rune) bool {
		return strings.ContainsRune(" \t_-./=:,()[]`*", c)
	}), " "))
	rest := words // Of "GPUDirect RDMA off" no "RDMA off" remains.
	for _, w := range data.Experiments().Words {
		if !w.In(rest) || slices.Contains(m.removed, w.Name) || slices.ContainsFunc(m.settings, func(v [2]string) bool { return v[0] == w.Name }) {
			continue
		}
		told, rest = true, w.Without(rest)
		if w.Value == "" {
			m.removed = append(m.removed, w.Name)
		} else {
			set(w.Name, w.Value)
		}
	}
	for _, o := range data.Experiments().Options {
		if strings.Contains(title, o.Flag) {
			set(o.Name, o.Value)
			told = true
		}
	}
	if found := listed.FindStringSubmatch(title); found != nil {
		set(devicesName, strings.Join(digits.FindAllString(found[1], -1), ","))
		told = true
	} else if found := counted.FindStringSubmatch(title); found != nil {
		set(countName, found[1])
		told = true
	}
	if found := released.FindStringSubmatch(title); found != nil {
		set(strings.ToLower(found[1]), found[2])
		told = true
	}
	return told || plainly.MatchString(words)
}

// Names of what is set and is not a variable.
const (
	devicesName = "GPUs"
	countName   = "count"
)

// somehow is the value of a variable that is set to what is not said.
const somehow = "set"
