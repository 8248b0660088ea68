package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Trouble is past where the same input shows work, or another failure, some days after it was seen last, as in a ticket that was
// closed or opened again, in a kernel log that goes back to before a repair, or in the last state of a pod that runs; and where
// the writer says so. Days are what dates give without their time zones. Only texts of at most MaxWhole bytes are looked at.

const (
	// quietDays is how many days later the work must be: one day may be the time zone. Of times it is a day.
	quietDays = 2
	// fewSteps is how many steps of one process are work; one may be an option of that name.
	fewSteps = 2
	halfYear = 183
)

// date reads the dates of the text that was read, if it tells of trouble or of work.
func (s *Sink) date() {
	if whole := unmarked.Replace(s.whole); s.telling || works.MatchString(whole) || strings.Contains(whole, completed) {
		facts.Put(&s.dates, s.name, datesOf(escapes.ReplaceAllString(whole, "")))
	}
}

// dates are the lines of a text from which on another date counts, those that show work, the start of a machine or a job
// that completed, and those of which the writer says that they are of the past.
type dates struct {
	from                 []date
	works, boots, bygone []int
	completed            []int
	// over is true of what somebody writes who closes a case.
	over bool
}

// date is a date that a line tells; year is 0 where it leaves that out. Minute is that of the day, 0 if the line
// tells no time.
type date struct {
	line, year, month, day, minute int
}

// months are as dates abbreviate them.
var months = strings.Fields("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec")

const month = `(?P<m>Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)`

// completed is how Slurm says that a job of whatever kind ended well, which shows that its machine works.
const completed = "COMPLETED"

// works are words of lines that show more: of nccl-tests and simpleP2P, and of people who close a case.
var works = lazy.New(`(?m)Out of bounds values : 0 OK|#wrong:? +0\b|\bTest passed\b|\b[Tt]raining (?:finished|completed|done)\b|^Subject: .*\b(?i:solved|resolved|fixed)\b|\b(?:may|can|please) close (?:this|it|the)\b`)

// clock is the time behind a date.
var clock = lazy.New(`^(?:,? (?:at )?|[T_]?)(\d\d):(\d\d)\b`)

// dateForms are, with words of which one is in each text that has the form, "2025-01-16", "20.10.2025", "25-Jan-2025", "27 Mar 2025", "Mar 27 17:10:11 2025" and "Aug 14", and the heads of lines of glog
// ("W0708 05:00:01") and vLLM ("INFO 04-03 08:00:12"). Their groups are named y, m, d and t.
var dateForms = []struct {
	holds []string
	form  *lazy.Regexp
}{
	{[]string{"20"}, lazy.New(`\b(?P<y>20\d\d)[-/](?P<m>0[1-9]|1[0-2])[-/](?P<d>0[1-9]|[12]\d|3[01])(?:\b|T)`)},
	{[]string{".20"}, lazy.New(`\b(?P<d>0?[1-9]|[12]\d|3[01])\.(?P<m>0?[1-9]|1[0-2])\.(?P<y>20\d\d)\b`)},
	{months, lazy.New(`\b(?P<d>0?[1-9]|[12]\d|3[01])(?:\.? |-)` + month + `\b(?:(?:,? |-)(?P<y>20\d\d)\b)?`)},
	{months, lazy.New(`\b` + month + ` {1,2}(?P<d>0?[1-9]|[12]\d|3[01])\b(?:,? (?:(?P<t>\d\d:\d\d):\d\d (?:[A-Z]{3,4} )?)?(?P<y>20\d\d)\b)?`)},
	{strings.Fields("E0 E1 W0 W1 I0 I1 F0 F1 [E [W [I"), lazy.New(`\b[EWIF](?P<m>0?[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01]) (?P<t>\d\d:\d\d):\d\d`)},
	{[]string{"INFO ", "WARNING ", "ERROR "}, lazy.New(`\b(?:INFO|WARNING|ERROR) (?P<m>0[1-9]|1[0-2])-(?P<d>0[1-9]|[12]\d|3[01]) (?P<t>\d\d:\d\d):\d\d`)},
}

// otherDate are words of lines whose date is of something else: when a program was built, or what somebody looked for.
var otherDate = lazy.New(`(?i)version \d|\bbuil[dt]|release|kernel module|\bSMP\b|firmware|\bbios\b|--since|--until|expire|copyright|licen[cs]e|\b(?:closed|resolved|updated|modified|due)\b`)

// fileRow is a row of ls -l, whose date is that of a file.
var fileRow = lazy.New(`^\s*[-bcdlps][-rwxsStT]{9}[.+@]? `)

// bygone is how people say that what they quote in this line, or in the block below it, is of the past, and present how a
// line speaks of today, or of what worked before; gone is how they say that what the line quotes does not come any longer.
var (
	bygone  = lazy.New(`\b(?:[Bb]ack then|[Aa]t that time|[Ii]n the past|[Ii]n those days|[Pp]reviously|[Ff]ormerly|Before(?: this(?: change| PR| patch)?| that)?,|(?:I|[Ww]e|[Ii]t|[Tt]h(?:is|at|ey)|which) used to|[Oo]ld logs?)\b`)
	present = lazy.New(`(?i)\b(?:works?|worked|fine|ok|now|today|currently|since|still|again)\b`)
	gone    = lazy.New(`\b(?:[Nn]o longer (?:\w+ )?(?:see|seen|get|hang|fail|crash|happen|occur|appear|reproduc|print|report|show|raise|throw|abort|die|break|an? |there|present|broken|affected|the case|come)\w*|[Nn]o (?:reports?|signs?) of|[Nn]ot (?:come|seen?|happen|occur)\w*(?: \w+)? (?:up )?(?:again|any[ -]?more|since))\b`)
)

// meant is how a line, be it of a program, says that the trouble that it tells is made: by a test, or on purpose; or
// that it is no trouble.
var meant = lazy.New(`\b(?:on purpose|by the test|(?:the|are|is) (?:known|usual|expected|normal) (?:retr(?:y|ies)|noise))\b`)

// unittest is the line above the verdict of Python's unittest (Lib/unittest/runner.py), testsPassed that verdict, and
// longestTests how many lines of such a run are looked at.
var (
	unittest    = lazy.New(`^(?:[\w.-]+: )?Ran \d+ tests? in [\d.]+s$`)
	testsPassed = lazy.New(`^(?:[\w.-]+: )?OK(?: \([\w =,]+\))?$`)
)

const longestTests = 1 << 12

// quotesSource begins a block of Markdown with a program in it, in a language in which nothing is logged.
var quotesSource = lazy.New("^```(?:c|cc|cpp|c\\+\\+|cu|cuda|go|golang|rust|rs|java|cmake|diff|patch)$")

// patch is how git begins to show a change of a file, and patched how each line of it begins: what it quotes happened nowhere.
var (
	patch   = lazy.New(`^(?:> )*diff --git `)
	patched = lazy.New(`^(?:> )*(?:[-+ @\\\t]|$|(?:diff|index|new|deleted|old|similarity|rename|copy|Binary) )`)
)

// over is how people say that a machine works again, or why they write: to close a case, or to propose a change that fixes
// what they tell (the templates of Kubernetes' and ROCm's pull requests, titles by conventionalcommits.org). Who says only that something was solved may tell by what.
var over = lazy.New(`^Subject: .*(?:\[(?i:closed)\]|\bback in (?:production|service|partition|rotation|the pool)\b)|\b[Cc]losing note\b|^\W*(?:[Ee]dit|[Uu]pdate)\b.*\b(?:is|are) back (?:for|in|online|up)\b|(?:^|\r|[.!?] )Nothing (?:here )?is (?:broken|wrong)(?: here)?[,.;!]|\b[Ss]tatus:? +closed, no fault found\b|(?:^\W*|[.:] |\b(?:[Ii]t|[Tt]his|[Tt]hat|[Ee]verything) )[Ww]orks as (?:designed|intended)\b|\bACCEPTED without\b|\b[Tt]o close (?:the|this|that) (?:ticket|case|incident)\b|\bstatus: merged\b|^\W*Pull request\b.{0,40}\b(?:merged|closed)\b|\bMerged by \S+|^\W*(?:What this PR does|Which issue(?:\(s\)|s)? (?:this PR|does this PR) fix|What were the changes\?|Approval Checklist|Submission Checklist)|^(?:#+ )?(?:feat|fix|perf|refactor|chore|docs|tests?|ci|build)\([\w/.-]+\)!?: |^#+ (?:feat|fix|perf|refactor|chore|docs)!?: |^\W*\[x\] (?:I have )?(?:read (?:and \w+ )?the contributing guide|signed the CLA\b)|^(?:Fix(?:es)?|Closes|Resolves) #\d+\b|^\W*[Tt]est [Pp]lan\W*$|^#+ (?:What|Why|How) ?\??$|^\W*\[(?:Feature|FEA|RFC|Enhancement)\b|\bThe feature, motivation and pitch\b|^\W*Is your feature request related to a problem\b|^#+ What do(?:es)? this PR do\b|\bThis PR(?:\W*$| (?:adds|fixes|changes|makes|removes|replaces|drops|lets|re-?enables)\b)|^(?:#+ )?\W*[Ff]eature [Rr]equest\b|^#+ (?:[Cc]hangelog|CHANGELOG|[Rr]elease [Nn]otes|What's [Nn]ew)\b|\bHighlights of this release\b|^(?:\w+, )?[Nn]o problem here\b|\b[Tt]o close the loop\b|\b(?:[Ee]verything|[Aa]ll) works now(?:[.!*)]|$)|^No bug\.|^# (?:Fix|Add|Re-?enable|Allow|Avoid|Bump) [a-z]`)

// raised is how a line of a program shows an error, whatever its words are.
var raised = lazy.New(`\b[A-Z]\w*(?:Error|Exception): `)

// booted are words of the lines with which Linux begins, and with which journalctl announces that.
var booted = lazy.New(`\bLinux version \d|Command line: BOOT_IMAGE|^-- Boot [0-9a-f]+|^-- Reboot --`)

// dateIn is the date that a line tells.
func dateIn(line string) (d date, ok bool) {
	line = line[:min(len(line), prefixBytes)]
	at := len(line)
	for i := range dateForms {
		f := &dateForms[i]
		if !slices.ContainsFunc(f.holds, func(word string) bool { return strings.Contains(line, word) }) {
			continue
		}
		m := f.form.Get().FindStringSubmatchIndex(line)
		if m == nil || m[0] >= at {
			continue
		}
		at, ok, d = m[0], true, date{}
		if c := clock.FindStringSubmatch(line[m[1]:]); c != nil {
			d.minute = 60*Number(c[1]) + Number(c[2])
		}
		for i, name := range f.form.Get().SubexpNames() {
			if m[2*i] < 0 || name == "" {
				continue
			}
			switch value := line[m[2*i]:m[2*i+1]]; name {
			case "y":
				d.year = Number(value)
			case "d":
				d.day = Number(value)
			case "t":
				d.minute = 60*Number(value[:2]) + Number(value[3:])
			default:
				d.month = cmp.Or(Number(value), slices.Index(months, value[:min(3, len(value))])+1)
			}
		}
	}
	if ok && (fileRow.MatchString(line) || strings.Trim(line[:at], " \t-*>[(#|") != "" && otherDate.MatchString(line)) {
		return date{}, false
	}
	return d, ok
}

// stateField is how kubectl begins to describe a state of a container, and finishedField where it says when that ended.
var (
	stateField    = lazy.New(`\b(?:Last )?State:\s`)
	finishedField = lazy.New(`\bFinished:\s`)
)

// unmarked leaves out of a text what does not belong to its lines: the zero bytes of a log that was truncated while it was
// written, and blanks that do not break; escapes are those of a terminal.
var (
	unmarked = strings.NewReplacer("\x00", "", "\u00a0", " ")
	escapes  = lazy.New("\x1b\\[[0-9;]*m")
)

// withNewlines is a text whose lines end in newlines, also where carriage returns alone end them.
func withNewlines(whole string) string {
	if strings.Contains(whole, "\n") {
		return whole
	}
	return strings.ReplaceAll(whole, "\r", "\n")
}

// datesOf are the dates of a text. In what kubectl describe prints, the end of a container stands below what ended it.
func datesOf(whole string) dates {
	var all dates
	number, state, block, tests := 0, 0, 0, 0 // Where a state, a block and the count of tests at the end of a run began.
	// In a block of Markdown, whose line before says that it is of the past, or which holds a program; in a change of a file.
	fenced, told, program, change := false, false, false, false
	for line := range strings.Lines(withNewlines(whole)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		line = line[strings.LastIndexByte(line, '\r')+1:] // What stays on the screen.
		if works.MatchString(line) {
			all.works = append(all.works, number)
		}
		if strings.Contains(line, completed) {
			all.completed = append(all.completed, number)
		}
		bare := line[prefixesLen(line):]
		inner := strings.TrimLeft(bare, "> ") // Without those that are not sure.
		all.over = all.over || over.MatchString(inner)
		for range maxPrefixes {
			within, ok := StripPrefix(inner)
			if !ok || strings.HasPrefix(inner, fence) {
				break
			}
			inner, all.over = within, all.over || over.MatchString(within)
		}
		begun, goesOn := patch.MatchString(bare) || patch.MatchString(inner), patched.MatchString(bare) || patched.MatchString(inner)
		change = begun || change && (goesOn || patched.MatchString(line))
		line = bare
		field := strings.TrimSpace(inner)
		if _, prompt := PromptOf(line); prompt || strings.HasPrefix(field, fence) {
			block = number
		}
		if unittest.MatchString(field) {
			tests = number
		}
		if testsPassed.MatchString(field) && tests > 0 && number-tests <= 2 { // What the tests made happen.
			for n := max(block, number-longestTests) + 1; n < number; n++ {
				all.bygone = append(all.bygone, n)
			}
		}
		switch {
		case change, meant.MatchString(line):
			all.bygone = append(all.bygone, number)
		case strings.HasPrefix(field, fence):
			fenced = !fenced
			program = fenced && quotesSource.MatchString(field)
		case fenced && (told || program), !fenced && gone.MatchString(line) && !raised.MatchString(line):
			all.bygone = append(all.bygone, number)
		case !fenced && field != "":
			if told = bygone.MatchString(line) && !present.MatchString(line); told {
				all.bygone = append(all.bygone, number)
			}
		}
		if booted.MatchString(line) {
			all.boots = append(all.boots, number)
		}
		if stateField.MatchString(line) {
			state = number
		}
		d, ok := dateIn(line)
		if !ok {
			continue
		}
		if d.line = number; state > 0 && finishedField.MatchString(line) {
			d.line, all.from = state, slices.DeleteFunc(all.from, func(o date) bool { return o.line >= state })
		}
		all.from = append(all.from, d)
	}
	return all
}

// at is the date of a line: the last one at or above it.
func (d dates) at(line int) (date, bool) {
	i, _ := slices.BinarySearchFunc(d.from, line+1, func(d date, line int) int { return cmp.Compare(d.line, line) })
	if i == 0 {
		return date{}, false
	}
	return d.from[i-1], true
}

// days is how many days lie between two dates. One without a year is of the other's, unless that is half a year away.
func (d date) days(later date) int {
	const leap = 2024 // For two without a year.
	day := func(of date, year int) time.Time {
		return time.Date(cmp.Or(of.year, year, leap), time.Month(of.month), of.day, 0, of.minute, 0, 0, time.UTC)
	}
	if d.minute == 0 || later.minute == 0 {
		d.minute, later.minute = 0, 0
	}
	n := int(day(later, d.year).Sub(day(d, later.year)).Hours() / 24)
	if (d.year == 0 || later.year == 0) && n > halfYear {
		return 0
	}
	return n
}

// String is the date as ISO 8601 writes it.
func (d date) String() string {
	if d.year == 0 {
		return fmt.Sprintf("%02d-%02d", d.month, d.day)
	}
	return fmt.Sprintf("%d-%02d-%02d", d.year, d.month, d.day)
}

// quotedPast is how a line tells what was before the job that writes it.
var quotedPast = lazy.New(`(?i)\b(?:previous|prior|earlier|last) (?:attempt|run|job|try)\b.*(?:["'` + "`" + `]|: )`)

// past notes in the texts the lines of trouble that is over.
func (s *Sink) past() {
	worked, ran, failed := s.latest(s.works(false)), s.latest(s.works(true)), s.latest(s.failures())
	quiet := func(l line, until dated) string {
		d, ok := s.dates[l.source].at(l.line)
		if days := d.days(until.date); ok && until.source != "" && (days >= quietDays || days > 0 && d.minute > 0 && until.minute > 0) {
			return fmt.Sprintf("%s:%d of %s", until.source, until.line.line, until.date)
		}
		return ""
	}
	note := func(source string, first int, last line) {
		shown := cmp.Or(quiet(last, worked), quiet(last, failed))
		if d := s.dates[source]; d.over || slices.Contains(d.bygone, first) {
			shown = source
		}
		s.pastLine(source, first, shown)
	}
	tested := map[string]bool{} // Texts of tests that passed, which were fed with what they quote.
	if s.Facts.Logs != nil {
		said := map[string]dated{} // The latest of each row: in other words it is the same trouble.
		for i, m := range s.Facts.Logs.Messages {
			said[m.ID] = later(said[m.ID], s.latest([]line{s.messages.heard[i].last}))
			if _, known := tested[m.Source]; m.ID == "tests-passed" && !known || m.ID == "tests-failed" { // Beside one that failed, others passed.
				tested[m.Source] = m.ID == "tests-passed"
			}
		}
		for i, m := range s.Facts.Logs.Messages {
			if m.Count == 1 && quotedPast.MatchString(m.Text) && s.after(line{source: m.Source, line: m.Line}) > 1 {
				s.pastLine(m.Source, m.Line, m.Source)
				continue
			}
			last := s.messages.heard[i].last
			if again := said[m.ID]; again.source != "" {
				last = again.line
			}
			note(m.Source, m.Line, last)
		}
	}
	for _, d := range s.deaths {
		note(d.Source, d.Line, line{source: d.Source, line: d.Line})
	}
	for _, b := range s.Facts.Benchmarks {
		if at := b.Lines["wrong"]; at > 0 {
			note(b.Source, at, line{source: b.Source, line: at})
		}
		note(b.Source, b.Line, line{source: b.Source, line: b.Line})
	}
	if s.Facts.KernelLog == nil {
		return
	}
	for _, e := range s.Facts.KernelLog.Events {
		if d := s.dates[e.Source]; d.over || tested[e.Source] || slices.Contains(d.bygone, e.Line) {
			s.pastLine(e.Source, e.Line, e.Source)
			continue
		}
		if s.lastEvent.source != e.Source {
			continue
		}
		shown := quiet(s.lastEvent, ran)
		// What lasts is seen again after the machine started again.
		if slices.ContainsFunc(s.dates[e.Source].boots, func(boot int) bool { return boot > s.lastEvent.line }) {
			shown = cmp.Or(shown, quiet(s.lastEvent, failed))
		}
		s.pastLine(e.Source, e.Line, shown)
	}
}

// Over reports whether a text says that its trouble is over, or is written for something else than trouble.
func (s *Sink) Over(source string) bool { return s.dates[source].over }

// works are the lines that show work, be it only of the machine.
func (s *Sink) works(ofMachine bool) []line {
	var all []line
	for _, t := range s.Facts.Texts {
		shown := s.dates[t.Name].works
		if ofMachine {
			shown = slices.Concat(shown, s.dates[t.Name].completed)
		}
		for _, number := range shown {
			all = append(all, line{source: t.Name, line: number})
		}
	}
	for _, p := range s.processes.list {
		if len(p.steps) >= fewSteps {
			all = append(all, line{source: p.Source, line: p.steps[len(p.steps)-1]})
		}
	}
	return all
}

// failures are the lines in which a program says that something is wrong.
func (s *Sink) failures() []line {
	var all []line
	if s.Facts.Logs != nil {
		for i, m := range s.Facts.Logs.Messages {
			if m.Complains() {
				all = append(all, s.messages.heard[i].last)
			}
		}
	}
	for _, d := range s.deaths {
		all = append(all, line{source: d.Source, line: d.Line})
	}
	return all
}

// dated is a line and its date.
type dated struct {
	line
	date
}

// latest is the line of the latest date; its source is empty if none has a date.
func (s *Sink) latest(lines []line) (latest dated) {
	for _, l := range lines {
		if d, ok := s.dates[l.source].at(l.line); ok {
			latest = later(latest, dated{l, d})
		}
	}
	return latest
}

// later is the later of two lines, the first if they are of one day. One without a source has no date.
func later(a, b dated) dated {
	if b.source != "" && (a.source == "" || a.days(b.date) > 0) {
		return b
	}
	return a
}

// pastLine notes that the trouble of a line is over, if a text shows that.
func (s *Sink) pastLine(source string, line int, shown string) {
	if shown == "" {
		return
	}
	t := s.textOf(source)
	t.Past = append(t.Past, facts.PastLine{Line: line, Shown: shown})
}
