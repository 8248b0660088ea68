package parse

import (
	"slices"
	"strings"
	"unicode"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// maxClosing is how many lines at the end of a text are looked at: as many as the ranks of a node or two write there.
const maxClosing = 40

// close notes which processes show at the end of a text that they ended well, in words of their own: each says that it is
// done, or several print results in one form, and these are the last lines, behind all trouble.
func (s *Sink) close() {
	if !s.telling {
		return
	}
	lines := strings.Split(strings.TrimRight(withNewlines(unmarked.Replace(s.whole)), " \t\r\n"), "\n")
	alike := map[string]int{}
	var tail []Line
	ended := 0      // Where the search ends; a prompt is also looked for above.
	warned := false // Libraries tell of trouble behind these lines, as when the other end closes its connections first.
	for i, text := range slices.Backward(lines) {
		// Without the marks of Markdown.
		text = strings.Trim(text, "*` \t\r")
		if prompted.MatchString(text) || fileRow.MatchString(text) { // Another program wrote what follows.
			return
		}
		if ended > 0 && ended-i > maxClosing {
			break
		}
		trouble := troubled.MatchString(harmless.ReplaceAllString(text, ""))
		if inner, prefixed := StripPrefix(text); ofLibraries.MatchString(text) || prefixed && ofLibraries.MatchString(inner) {
			warned = warned || trouble && ended == 0
			continue
		}
		switch {
		case ended == 0 && failing.MatchString(text): // It gives verdicts, of which the last is of one part.
			return
		case ended > 0:
		case len(tail) == maxClosing || len(text) > maxText || trouble:
			ended = i
		case text != "":
			tail = append(tail, Line{Text: text, Number: i + 1})
			alike[numbers.ReplaceAllString(text, "#")]++
		}
	}
	if slices.ContainsFunc(tail, func(l Line) bool { return sentence.MatchString(l.Text) }) { // Of a person, who may tell of more.
		return
	}
	for _, l := range tail {
		form := numbers.ReplaceAllString(l.Text, "#")
		results := !warned && alike[form] > 1 && form != l.Text && !request.MatchString(l.Text) && strings.ContainsFunc(form, unicode.IsLetter)
		if !allDone.MatchString(l.Text) && (!results && (warned || !doneForm.MatchString(l.Text)) || underWay.MatchString(l.Text)) {
			return
		}
		if p := s.process(s.identify(l), l); p != nil {
			p.closed, s.processes.ended = max(p.closed, l.Number), true
		}
	}
}

var (
	// troubled are words of lines that tell of trouble, where they do not say that there was none (harmless), and frames of
	// a stack.
	troubled = lazy.New(`(?i)err(?:or|no)|fail|abort|exception|traceback|fatal|kill|time[d ]*out|refused|unable|can(?:not|'t)|could|\bnot?\b|terminat|dumped|\bfault|closing|lost|died|dead|h[au]ng|stuck|wait|signal|warn|exit\D{0,20}[1-9]|\?$|^file "|^#?\d+:? +0x`)
	// prompted is a shell prompt or, unlike PromptOf, any other line that begins like one: either ends the search.
	prompted = lazy.New(`^(?:\S+@\S+)?[^\s\d]*[$#>] \w`)
	// failing is a verdict that another one follows.
	failing  = lazy.New(`\bFAIL(?:ED|URES?)?\b`)
	harmless = lazy.New(`(?i)\b(?:no|0|zero) (?:errors?|failures?|failed|timeouts?|retries)\b|\b(?:errors?|failures?|failed|timeouts?)\b[:= ]{1,2}0(?:\.0\S*)?(?:\s|[,;)"]|$)`)
	// ofLibraries are lines of libraries, which tell nothing of the program's end.
	ofLibraries = lazy.New(`NCCL INFO|^\S+:\d+$|^=== |^\[\w+\]:\[[WI]\d|^\[[WI]\d{3,4}|^[WI](?:\d{4}|\d{8}) |^Exception raised from \w+ at |^frame #\d+: `)
	// sentence is prose.
	sentence = lazy.New(`(?:\b[a-z']{2,} ){4}.*[.!:]$`)
	// request is a line of a server's access log, which goes on whatever else ended.
	request = lazy.New(`\b(?:GET|POST|PUT|HEAD|DELETE) /`)
	numbers = lazy.New(`\d+(?:\.\d+)?(?:e[+-]?\d+)?`)
	// allDone is how they say it of all their work, whatever else the line tells.
	allDone = lazy.New(`(?i)\b(?:training|job|run|benchmark|evaluation|workload) (?:is |has )?(?:complete|completed|finished|done)\b(?:.*\b(?:after|in|at|step|total)\b|\W*$)|\b(?:completed|succeeded|done|finished) in attempt \d`)
	// doneForm is how programs say that they are done. underWay are words of lines that say so of a part of the work, that
	// tell of its beginning, or that report steps.
	doneForm = lazy.New(`(?i)(?:^|[\s:;,=("'])(?:done|finished|completed?|success(?:ful(?:ly)?)?|passed|ok|bye|(?:clean|graceful|orderly) (?:shutdown|stop)|(?:code=exited, )?status=0(?:/SUCCESS)?|exit(?:ed|ing)?(?: with)?(?: code| status)?[:= ]?0|(?:failures|errors|failed)[:= ]{1,2}0|0 (?:failures|errors|failed))(?: in \S+ ?\w*)?(?:, [^?]{1,60})?[.!)"']*$|` +
		`\b\d+ (?:steps|iterations|batches|epochs|requests|collectives|tests|samples) (?:done|finished|completed|passed|ok)\b`)
	underWay = lazy.New(`(?i)\b(?:until|before|while|if|start\w*|begin\w*|enter\w*|calling|launch\w*|init\w*|load\w*|connect\w*|creat\w*|spawn\w*|set ?up|warm\w*|build\w*|compil\w*|download\w*|prepar\w*|rendezvous|handshake|probe|using|world.size|pid|step|iter\w*|epoch|loss)\b`)
)
