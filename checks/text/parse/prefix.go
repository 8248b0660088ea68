package parse

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// What launchers, collectors of logs and people put before a line is taken off it. Some prefixes are sure: nothing else
// has their form, and they are taken off each line. Those of the prefixForms are not ("3: " is the label of a task, an
// interface of ip addr, or a line of a table), and are taken off where a line as it is means nothing.

// maxPrefixes bounds how many of them one line has.
const maxPrefixes = 8

// prefixBytes bounds one of them.
const prefixBytes = 200

// prefixesLen is the length of the sure prefixes of a line.
func prefixesLen(line string) int {
	at := 0
	for range maxPrefixes {
		n := prefixLen(line[at:])
		if n == 0 {
			break
		}
		at += n
	}
	return at
}

// withoutSuffix takes off a line what follows it and does not belong to it: blanks, a line break of HTML, and the marks
// of code in Markdown, around all of it or all of an item of a list.
func withoutSuffix(line string) string {
	if line == "" {
		return line
	}
	switch line[len(line)-1] {
	case ' ', '\t':
		return withoutSuffix(strings.TrimRight(line, " \t"))
	case '>':
		for _, end := range []string{"<br>", "<br/>", "<br />"} {
			if rest, ok := strings.CutSuffix(line, end); ok {
				return withoutSuffix(rest)
			}
		}
	case '`', '*':
		if said, ok := strings.CutSuffix(line, "```"); ok && !strings.Contains(said, "```") && strings.TrimSpace(said) != "" {
			return withoutSuffix(said) // The fence began lines above.
		}
		before := len(line) - len(strings.TrimLeft(line, " -+>"))
		for _, code := range []string{"```", "`", "**"} {
			inside, ok := strings.CutPrefix(line[before:], code)
			if inside, ends := strings.CutSuffix(inside, code); ok && ends && !strings.Contains(inside, code) {
				return withoutSuffix(line[:before] + inside)
			}
		}
	}
	return line
}

// surePrefix are the forms of sure prefixes: "[1,0]<stdout>:" (mpirun --tag-output, behind a time with --timestamp-output),
// "[prterun-node7-4021@1,0]<stderr>: " (Open MPI 5, schizo/ompi of PRRTE),
// "[1,mpirank:0,algo-1]<stderr>:" (SageMaker), "[pod/train-0/pytorch] " (kubectl logs
// --prefix), "[default0]:" (torchrun --tee, of torch/distributed/elastic/multiprocessing/tail_log.py),
// "[rank3]:" (torch/distributed, the hook for exceptions),
// "(Worker pid=12, ip=10.0.0.2) " (Ray, python/ray/_private/worker.py, print_worker_logs) and "(EngineCore_0 pid=382) "
// (vLLM, vllm/utils/system_utils.py, decorate_logs), "2025-08-21T16:02:40.1Z stdout F ", the head of a line of the
// Kubernetes CRI (kubelet, pkg/kubelet/kuberuntime/logs), and "trainer-1  | ", as docker compose writes it: a name
// that ends in a number, blanks that align the names, and a bar.
var surePrefix = lazy.New(`^(?:` +
	`(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?\[(?:[^\]@]+\]<std(?:out|err|diag)>:|[^\]]+\]<std(?:out|err|diag)>: ?)` +
	`|\[pod/[^\]]*\](?: |$)|\[rank\d+\]: ?|\[[a-z_]+\d+\]:` +
	`|\((?:[^)]*pid=|raylet|autoscaler)[^)]*\)(?: |$)` +
	`|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S* std(?:out|err) [FP](?: |$)` +
	`|\d*[A-Za-z_.-][\w.-]*\d +[|](?: |$))`)

// addressPort is what looks like such a prefix and is the address of a process: "[node1]:29500 has timed out".
var addressPort = lazy.New(`^\[[a-z_]+\d+\]:\d{4,5}(?:[ )]|$)`)

// prefixLen is the length of the sure prefix that a text begins with; 0 if it begins with no such prefix.
func prefixLen(text string) int {
	head := text[:min(len(text), prefixBytes)]
	if !maySure(head) || addressPort.MatchString(head) {
		return 0
	}
	return len(surePrefix.FindString(head))
}

// maySure is false of most texts that have no sure prefix, and true of all that have one.
func maySure(head string) bool {
	switch {
	case head == "":
		return false
	case head[0] == '[', head[0] == '(', strings.IndexByte(head, '|') >= 0, strings.IndexByte(head, '<') >= 0:
		return true
	}
	return IsDigit(head[0]) && strings.Contains(head, " std")
}

// prefixForm is a form of prefix that is not sure.
type prefixForm struct {
	form *lazy.Regexp
	// may is false of most lines that do not have the form, and true of all that do.
	may func(line string) bool
	// ends are what follows the line where such a prefix is before it: "`", " |".
	ends map[string]string
}

// level is how grave a line is to the one who logged it, with what stands around it.
const level = `(?:[|] )?\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?(?: {0,8}[:-]| {1,8}[|] [\w.<>:]+:\d+ -)?(?: |$)`

// The forms of prefixes that are not sure.
var prefixForms = []prefixForm{
	// A time in front: ISO and its relatives, those of syslog and of date(1), a clock, seconds since 1970, in brackets
	// or not, and what logs put between it and what they say: a level, the host and the program of syslog. GitHub puts
	// the job and the step before it.
	{may: mayBeTime, form: lazy.New(`^(?:[\w ./()-]{1,80}\t[^\t]{1,80}\t)?[\[(]?(?:` +
		`\d{4}[-/]\d\d[-/]\d\d[T _]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?` +
		`|\d\d[-/]\d\d(?:[-/]\d{2,4})? \d\d:\d\d:\d\d(?:[.,]\d{1,9})?` +
		`|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?(?: 20\d\d)?` +
		`|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?` +
		`|1\d{9}\.\d{1,9}` +
		`)[\])]?(?: [,:-] |[,:]? |:|$)` +
		`(?:` + level + `|[\w.-]{1,64} [A-Za-z][\w./()-]{0,64}(?:\[\d{1,10}\])?:(?: |$)(?:` + level + `)?)?`)},
	// "3: " (srun --label), "12:" (grep -n), "    12\t" (cat -n), "[0] " (Hydra
	// -prepend-rank) and "[node7:1234] " (Open MPI).
	{may: beginsWith(" [0123456789"), form: lazy.New(`^(?: {0,6}\d{1,6}(?::(?: |$)|\t| [|](?: |$))| {1,6}\d{1,6}$|\d{1,6}:|\[\d{1,6}\](?: |$)|\[[\w.-]{1,64}:\d{1,8}\](?: |$))`)},
	// "      8 " (uniq -c) before words or a list, and no row of a table of numbers.
	{may: mayBeCounted, form: lazy.New(`^ +\d+ `)},
	// The marks of Markdown, of e-mail and of HTML: of a quote, an item of a list, code,
	// words in bold, a cell of a table.
	{may: beginsWith(" \t>-*+\u2022`|<0123456789"), form: lazy.New("^(?:\\s*>+ ?|\\s*(?:[-*+\u2022]|\\d{1,2}[.)])(?: |$)|```|`|\\*\\*|\\| |<(?:pre|code|p|td|li)>)"), ends: map[string]string{
		"```": "```", "`": "`", "**": "**", "|": " |", "<pre>": "</pre>", "<code>": "</code>", "<p>": "</p>", "<td>": "</td>", "<li>": "</li>",
	}},
	// "node7: " (pdsh, clush) and "logs/job.log:12:" (grep).
	{may: mayBeNamed, form: lazy.New(`^[\w./@-]{0,100}(?:[\d/]|\.\w)[\w./@-]{0,100}:(?:\d{1,8}[:-])? ?`)},
}

// labels and names are the second and the last of the forms.
var labels, names = &prefixForms[1], &prefixForms[len(prefixForms)-1]

// beginsWith is the may of a form that begins with one of some bytes.
func beginsWith(signs string) func(line string) bool {
	return func(line string) bool { return strings.IndexByte(signs, line[0]) >= 0 }
}

// mayBeCounted is the may of counts, which GNU uniq writes in seven columns.
func mayBeCounted(line string) bool {
	const columns = 7
	if len(line) < columns+2 || line[0] != ' ' || !IsDigit(line[columns-1]) || line[columns] != ' ' {
		return false
	}
	said := strings.TrimLeft(line[columns+1:], " \t")
	return said != "" && (!IsDigit(said[0]) && said[0] != '-' || strings.Contains(said, ", "))
}

// mayBeTime is the may of times.
func mayBeTime(line string) bool {
	switch c := line[0]; {
	case IsDigit(c), c == '[', c == '(':
		return true
	case c >= 'A' && c <= 'Z' && len(line) > 3 && line[3] == ' ': // "Aug 21", "Thu Aug 21"
		return true
	}
	return strings.IndexByte(line[:min(len(line), prefixBytes)], '\t') > 0
}

// mayBeNamed is the may of names: a word with a colon. "node7:4021:4077 [3] NCCL WARN" tells who wrote the line.
func mayBeNamed(line string) bool {
	return wordWithColon.MatchString(line) && !processForm.MatchString(line)
}

var (
	wordWithColon = lazy.New(`^[\w./@-]+:`)
	processForm   = lazy.New(`^[\w./@-]+:\d+:\d+ \[`)
)

// trim takes this form off a line, and returns what it took; that is empty if the line does not have it.
func (t *prefixForm) trim(line string) (inner, taken string) {
	if line == "" || !t.may(line) {
		return line, ""
	}
	taken = t.form.FindString(line[:min(len(line), prefixBytes)])
	inner = line[len(taken):]
	if end := t.ends[strings.TrimSpace(taken)]; end != "" {
		inner = strings.TrimRight(strings.TrimSuffix(inner, end), " ")
	}
	return inner, taken
}

// prefix is one that was found and is not sure: of a form, or, where that is nil, an indentation.
type prefix struct {
	form *prefixForm
	// sign is what was taken off: of an indentation, and of a form that has several signs.
	sign string
}

// prefixOf is the prefix that a form took off.
func prefixOf(t *prefixForm, taken string) prefix {
	if t.ends == nil {
		return prefix{form: t}
	}
	return prefix{form: t, sign: strings.TrimSpace(taken)}
}

// stripPrefix takes the first prefix off a line that has no sure one; ok is false if it has none.
func stripPrefix(line string) (inner string, l prefix, ok bool) {
	for i := range prefixForms {
		if inner, taken := prefixForms[i].trim(line); taken != "" {
			return inner[prefixesLen(inner):], prefixOf(&prefixForms[i], taken), true
		}
	}
	inner = strings.TrimLeft(line, " \t")
	return inner, prefix{sign: line[:len(line)-len(inner)]}, len(inner) < len(line)
}

// withoutPrefixes takes prefixes off a line, those of them that it has. An indentation may be shorter
// than that of another line.
func withoutPrefixes(line string, prefixes []prefix) string {
	for _, l := range prefixes {
		if l.form == nil {
			for n := 0; n < len(l.sign) && line != "" && line[0] == l.sign[n]; n++ {
				line = line[1:]
			}
			continue
		}
		if inner, taken := l.form.trim(line); taken != "" && prefixOf(l.form, taken) == l {
			line = inner[prefixesLen(inner):]
		}
	}
	return line
}

// prefixesOf are the prefixes of a line that are not sure, from its front on.
func prefixesOf(line string) []prefix {
	var prefixes []prefix
	for range maxPrefixes {
		inner, l, ok := stripPrefix(line)
		if !ok {
			break
		}
		line, prefixes = inner, append(prefixes, l)
	}
	return prefixes
}

// commonPrefixes is how many of some prefixes another line has, from its front on.
func commonPrefixes(prefixes []prefix, line string) int {
	for i, want := range prefixes {
		inner, got, ok := stripPrefix(line)
		if !ok || got.form != want.form || !strings.HasPrefix(got.sign, want.sign) {
			return i
		}
		line = inner
		if got.form == nil {
			line = got.sign[len(want.sign):] + inner
		}
	}
	return len(prefixes)
}

// StripPrefix removes the outermost prefix that was put before a line; ok is false if there is no prefix.
func StripPrefix(line string) (inner string, ok bool) {
	inner, _, ok = stripPrefix(line)
	return inner, ok
}
