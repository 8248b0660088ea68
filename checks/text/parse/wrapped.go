package parse

import (
	"bytes"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// A terminal, an editor or a mail program may have broken long lines into pieces: in the middle of a word, each as wide
// as the screen, or at blanks. Where that may be so, the pieces are offered as one line as well.

const (
	// leastWidth is how wide the widest piece is at least, and mostPieces how many pieces a line has at most.
	leastWidth = 40
	mostPieces = 8
)

// screens are the widths at which lines are usually broken: of terminals, and of what
// editors and mail programs are set to.
var screens = []int{72, 76, 78, 80, 100, 120, 132, 160, 200}

// leastScreen is the narrowest of a terminal.
const leastScreen = 80

// join is a line put together of pieces.
type join struct {
	text   string
	takers []uint16
	// pieces is how many lines it is made of.
	pieces int
	// inWord is true if it was broken at a width, be it in the middle of a word.
	inWord bool
	// sure is true if, besides, the first piece begins as lines of logs do and the others do not.
	sure bool
}

// unwrap finds the lines of a text that may be pieces of longer ones.
func (a *anchorSet) unwrap(c *chunk) {
	for from := 0; from < len(c.lines); {
		to := from
		for to < len(c.lines) && c.lines[to].from < c.lines[to].to {
			to++
		}
		a.unwrapParagraph(c, c.lines[from:to])
		from = to + 1
	}
}

// unwrapParagraph finds the joins of lines between which no empty one stands.
func (a *anchorSet) unwrapParagraph(c *chunk, lines []lineAt) {
	widths, widest := make([]int, len(lines)), 0
	for i, l := range lines {
		widths[i] = utf8.RuneCount(c.data[l.from:l.to])
		widest = max(widest, widths[i])
	}
	if len(lines) < 2 || widest < leastWidth {
		return
	}
	text := func(i int) []byte { return c.data[lines[i].from:lines[i].to] }
	first, several := slices.Index(widths, widest), false
	for i := first + 1; i < len(lines); i++ { // Lines that begin alike are as long by chance.
		several = several || widths[i] == widest && !alikePut(text(first), text(i))
	}
	at, usual := slices.BinarySearch(screens, widest)
	broken := map[string]func(i int) bool{
		"": func(i int) bool {
			return widths[i] == widest && widest >= leastScreen && (usual || several) || splitsAddress(text(i), text(i+1))
		},
		" ": func(i int) bool {
			return at < len(screens) && widths[i]+1+firstWord(text(i+1)) >= screens[at] && !splitsAddress(text(i), text(i+1))
		},
	}
	betweens := []string{"", " "}
	if !usual {
		slices.Reverse(betweens) // Pieces may be of one width by chance.
	}
	first = 0
	for i := range lines {
		if i > 0 && !lines[i-1].broken {
			first = i
		}
		lines[i].broken = usual && i+1 < len(lines) && !lines[i].overwritten && !lines[i+1].overwritten && broken[""](i) && !isCommand(text(first)) && !beginsAnew(text(i+1)) && !alikePut(text(first), text(i+1))
		for _, between := range betweens {
			end := i
			for end+1 < len(lines) && end-i+1 < mostPieces && !lines[end].overwritten && !lines[end+1].overwritten && broken[between](end) && !beginsAnew(text(end+1)) && !alikePut(text(i), text(end+1)) {
				end++
			}
			if end == i || isCommand(text(i)) {
				continue
			}
			var pieces [][]byte
			for j := i; j <= end; j++ {
				piece := text(j)
				if between == " " {
					piece = []byte(withoutSuffix(string(piece)))
				}
				pieces = append(pieces, piece)
			}
			j := join{text: string(bytes.Join(pieces, []byte(between))), pieces: len(pieces), inWord: between == ""}
			j.sure = j.inWord && beginsAnew(text(i))
			j.takers = a.takersOf([]byte(j.text), false, nil)
			if len(j.takers) > 0 {
				c.joins = append(c.joins, j)
				lines[i].joins++
			}
		}
	}
}

// splitsAddress reports whether two lines are parts of one in which an IPv4 address was broken, whatever their width.
// Where one part is an address by itself, nothing shows that it is not whole.
func splitsAddress(a, b []byte) bool {
	const most = len("255.255.255.255") + 1
	if numeral := func(c byte) bool { return c == '.' || c >= '0' && c <= '9' }; !numeral(a[len(a)-1]) || !numeral(b[0]) {
		return false
	}
	head, tail := addressHead.Get().FindSubmatch(a[max(0, len(a)-most):]), addressTail.Get().FindSubmatch(b[:min(len(b), most)])
	return head != nil && tail != nil && isAddress(slices.Concat(head[1], tail[1])) && !isAddress(head[1]) && !isAddress(tail[1])
}

func isAddress(text []byte) bool {
	_, err := netip.ParseAddr(string(text))
	return err == nil
}

// addressHead is what may be the beginning of an address at the end of a line, and addressTail the rest of one.
var (
	addressHead = lazy.New(`(?:[^\w.]|^)([\d.]+)$`)
	addressTail = lazy.New(`^([\d.]*\d)`)
)

// firstWord is the length of the first word of a text; of one that begins with spaces it
// is 0, as no line is broken before them.
func firstWord(text []byte) int {
	if i := bytes.IndexAny(text, " \t"); i >= 0 {
		text = text[:i]
	}
	return utf8.RuneCount(text)
}

// freshStart is the beginning of a line that continues no other: the time of the kernel's log, a process of Open MPI, an error
// of Python, a level, a place in a source file, a line of a table, and the ends of code in Markdown and HTML.
var freshStart = lazy.New("^(?:[|+]|#{1,6} |\\^C|```|</(?:pre|code|details|p|td)>|\\[ *\\d+\\.\\d+\\] |\\[[\\w.-]{1,64}:\\d{1,8}\\] |\\w[\\w.]*(?:Error|Exception|Warning): |Traceback |[\\w./+-]+\\.\\w{1,3}:\\d+: |(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\\b)")

// betweenOutputs are lines that people put between outputs: a heading ("2. with NCCL_ALGO=Ring", "Without:",
// "NCCL_ALGO=Ring:"), and a command without a prompt ("NCCL_ALGO=Ring mpirun -n 2", "python train.py").
var betweenOutputs = lazy.New(`^(?:\d{1,2}[.)] (?:.*\b[A-Z][A-Z0-9]*_[A-Z0-9_]+=|(?i:with|without|before|after|default|baseline|no)\b)|(?:With|Without|Before|After|Default|Baseline)\b[^.]*:$|[A-Z][A-Z0-9_]*=\S*:$` +
	`|(?:[A-Z][A-Z0-9_]*=\S+ )*(?:(?:mpirun|mpiexec|srun|torchrun|docker run) -|python3? \S+\.py\b)|(?:[A-Z][A-Z0-9_]*=\S+ )+\.{0,2}/)`)

// isCommand reports whether a line is a command as somebody typed it, or a heading: no
// message goes on in the line after it.
func isCommand(line []byte) bool {
	head := string(line[:min(len(line), prefixBytes)])
	_, prompt := PromptOf(head)
	return prompt || strings.HasPrefix(head, "+ ") || strings.HasPrefix(head, "# ") || strings.HasPrefix(head, "## ")
}

// beginsAnew reports whether a line begins as those of logs do: with a prefix, a time or the process that wrote it.
func beginsAnew(line []byte) bool {
	head := string(line[:min(len(line), prefixBytes)])
	if prefixesLen(head) > 0 || freshStart.MatchString(head) || betweenOutputs.MatchString(head) || prefixForms[0].form.MatchString(head) || isCommand(line) {
		return true
	}
	word, _, _ := strings.Cut(head, " ")
	host, _, _, ok := ncclSpeakerOf(word + " ")
	return ok && strings.HasPrefix(word, host)
}

// alikeBytes is how much two lines begin with alike if the second is no rest of the first: "E0211 20:37:" (absl, glog).
const alikeBytes = 12

// alikePut reports whether the same was put before two lines. What may be a name is part of
// what they say, unless it is one name.
func alikePut(a, b []byte) bool {
	if len(a) > alikeBytes && bytes.HasPrefix(b, a[:alikeBytes]) && bytes.ContainsAny(a[:alikeBytes], "0123456789") {
		return true
	}
	_, first, trimmed := stripPrefix(string(a[:min(len(a), prefixBytes)]))
	_, second, too := stripPrefix(string(b[:min(len(b), prefixBytes)]))
	if !trimmed || !too || first != second {
		return false
	}
	_, name := names.trim(string(a[:min(len(a), prefixBytes)]))
	return first.form != names || bytes.HasPrefix(b, []byte(name))
}

// joined offers the lines that one may be the first piece of: first those that are a message, then those that are
// surely lines. It returns how many pieces were understood as one line, and whether readers of lines have seen it.
func (r *Reading) joined(l Line) (pieces int, read bool) {
	for _, j := range l.joins {
		whole := l.withText(j)
		row, fields, ok := r.statementIn(whole.Text, j.takers)
		ended := strings.ContainsAny(l.Text[max(0, len(l.Text)-1):], ".!?") // A sentence, not a width, ended the line.
		if ok && j.inWord && (!ended || !r.saysAlone(l.Text, l.takers, row.ID, fields)) {
			r.line(whole)
			return j.pieces, true
		}
		rest := strings.TrimSpace(j.text[min(len(l.Whole()), len(j.text)):])
		if !ok || r.saysAlone(l.Text, l.takers, row.ID, fields) || r.saysAlone(rest, j.takers, row.ID, fields) {
			continue
		}
		r.Sink.Message(row.ID, fields, whole)
		r.recognised("messages", l.Number, j.pieces)
		return j.pieces, false
	}
	for _, j := range l.joins {
		if j.sure {
			r.line(l.withText(j))
			return j.pieces, true
		}
	}
	return 0, false
}

// withText is a line with what a join says. What stands in its place is the first piece.
func (l Line) withText(j join) Line {
	first := l.Whole()
	l.joins, l.takers = nil, j.takers
	l.of(j.text)
	l.whole = first
	return l
}

// saysAlone reports whether a piece by itself is the same message.
func (r *Reading) saysAlone(piece string, takers []uint16, id string, fields map[string]string) bool {
	row, found, ok := r.statementIn(piece, r.anchors.Holding(piece, slices.Clone(takers)))
	return ok && row.ID == id && maps.Equal(found, fields)
}
