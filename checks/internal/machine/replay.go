package machine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a snapshot.
const (
	// MaxSnapshot is the size of the largest one.
	MaxSnapshot = 64 << 20
	// maxEntries bounds its entries together with the names that it lists.
	maxEntries = 200_000
	// maxNodes bounds the paths that these make, the folders above them
	// included.
	maxNodes = 2 * maxEntries
	// maxPath is PATH_MAX (include/uapi/linux/limits.h).
	maxPath = 4096
)

// ErrNewer is returned for a document of a version that this program does not
// know yet.
var ErrNewer = errors.New("made by a newer gpudoctor")

// ErrNotSnapshot is returned for a document that is not a snapshot at all.
var ErrNotSnapshot = errors.New("not a snapshot")

// IsSnapshot reports whether a document says that it is a snapshot.
func IsSnapshot(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(withoutBOM(data), " \t\r\n"), []byte(SnapshotFormat))
}

func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// Parse reads a snapshot. Errors name the place as "name:line". The machine
// keeps parts of data.
func Parse(name string, data []byte) (*Memory, error) {
	if len(data) > MaxSnapshot {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, MaxSnapshot>>20)
	}
	if !IsSnapshot(data) {
		return nil, fmt.Errorf("%s:1: %w: the first line is not %s%d", name, ErrNotSnapshot, SnapshotFormat, snapshotVersion)
	}
	p := parser{rest: withoutBOM(data), machine: &Memory{}}
	p.machine.node("/")
	if err := p.parse(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.at, err)
	}
	p.machine.settle()
	return p.machine, nil
}

// settle notes that nothing is at a path of which no more is known than that an
// operation found nothing there: it holds for the others as well.
func (m *Memory) settle() {
	for name, n := range m.nodes {
		if name != "/" && len(n.children) == 0 && absentFrom(n) {
			m.addGone(name)
		}
	}
}

// parser reads the entries of a snapshot one after the other.
type parser struct {
	rest    []byte
	line    int // The number of the line that was taken last.
	at      int // The line that an error is about.
	entries int
	decoded int // Bytes that came out of hex.
	machine *Memory
	// recorded is true for what a program wrote, which has an end.
	recorded bool
	whole    bool // The end was there.
}

// ErrCutShort is returned for a truncated recording.
var ErrCutShort = errors.New("the recording is truncated: its end is missing")

// ErrAfterEnd is returned for a recording with more text after its end, such as
// two recordings in one file. It is unknown which part describes the machine.
var ErrAfterEnd = errors.New("text after the end of the recording")

// take returns the next line, without its end.
func (p *parser) take() (line []byte, ok bool) {
	if len(p.rest) == 0 {
		return nil, false
	}
	line, p.rest, _ = bytes.Cut(p.rest, []byte("\n"))
	p.line++
	return line, true
}

// body returns the lines up to the next entry, and advances to it.
func (p *parser) body() []byte {
	start, length := p.rest, 0
	for len(p.rest) > 0 {
		line, after, _ := bytes.Cut(p.rest, []byte("\n"))
		if isMarker(line) {
			break
		}
		length += len(p.rest) - len(after)
		p.rest = after
		p.line++
	}
	return start[:length:length]
}

func (p *parser) parse() error {
	if err := p.comment(); err != nil {
		return err
	}
	for {
		line, ok := p.take()
		if !ok {
			return p.finish()
		}
		p.at = p.line
		if err := p.count(1); err != nil {
			return err
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		text := strings.TrimSpace(string(line[len("-- ") : len(line)-len(" --")]))
		if err := p.entry(text); err != nil {
			return err
		}
		if len(p.machine.nodes) > maxNodes {
			return fmt.Errorf("more than %d paths", maxNodes)
		}
	}
}

// finish rejects a recording without an end. One written by hand needs no end, but an
// entry: a file that was cut off in its head shows a machine that has nothing.
func (p *parser) finish() error {
	if p.whole || p.entries > 0 && !p.recorded {
		return nil
	}
	p.at = p.line
	return ErrCutShort
}

// end reads what follows the end of a recording: nothing but blank lines may.
func (p *parser) end() error {
	p.whole = true
	for {
		line, ok := p.take()
		switch {
		case !ok:
			return nil
		case len(bytes.TrimSpace(line)) > 0:
			p.at = p.line
			return fmt.Errorf("%w: %.40q", ErrAfterEnd, line)
		}
	}
}

// comment reads what precedes the first entry.
func (p *parser) comment() error {
	p.at = 1
	comment := p.body()
	head, rest, _ := strings.Cut(strings.TrimSpace(string(comment)), "\n")
	number, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(head, SnapshotFormat)), " ")
	version, err := strconv.Atoi(number)
	switch {
	case err != nil || version < 1:
		return fmt.Errorf("unknown version of the format: %.40q", head)
	case version > snapshotVersion:
		return fmt.Errorf("%w: its format is %s%d; this version reads up to %d", ErrNewer, SnapshotFormat, version, snapshotVersion)
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if line == unlistedLine {
			p.machine.partial = true
		}
		p.recorded = p.recorded || line == unlistedLine || strings.HasPrefix(line, recordedBy)
	}
	return nil
}

func (p *parser) count(n int) error {
	if p.entries += n; p.entries > maxEntries {
		return fmt.Errorf("more than %d entries", maxEntries)
	}
	return nil
}

// entry reads one entry: text stands in its marker.
func (p *parser) entry(text string) error {
	if text == endWord {
		return p.end()
	}
	if word, ok := strings.CutPrefix(text, "!"); ok {
		return p.pathList(word)
	}
	if question, ok := strings.CutPrefix(text, "answers/"); ok {
		return p.answer(question)
	}
	name, rest, err := token(text)
	if err != nil {
		return err
	}
	folder := len(name) > 0 && name[len(name)-1] == '/'
	where, err := entryPath(strings.TrimSuffix(name, "/"), folder)
	if err != nil {
		return err
	}
	n := p.machine.node(where)
	switch {
	case folder:
		return p.folder(n, where, rest)
	case rest == "->" || strings.HasPrefix(rest, "-> "):
		return p.link(n, strings.TrimSpace(rest[len("->"):]))
	case strings.HasPrefix(rest, "stat "):
		return p.stat(n, strings.TrimSpace(rest[len("stat "):]))
	}
	return p.file(n, where, rest)
}

// token takes the first word of a marker, which may be quoted.
func token(text string) (word, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		word, rest, _ = strings.Cut(text, " ")
		return word, strings.TrimSpace(rest), nil
	}
	q, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", fmt.Errorf("unterminated quoted name: %.80q", text)
	}
	word, err = strconv.Unquote(q)
	return word, strings.TrimSpace(text[len(q):]), err
}

// entryPath turns the name of an entry into an absolute path. Only one in
// canonical form is accepted, so a name cannot lead elsewhere.
func entryPath(name string, folder bool) (string, error) {
	if name == "." || name == "" && folder {
		return "/", nil
	}
	absolute := "/" + strings.TrimPrefix(name, "/")
	switch {
	case name == "":
		return "", errors.New("the entry has no path")
	case len(name) > maxPath:
		return "", fmt.Errorf("the path is longer than %d bytes: %.80q", maxPath, name)
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "", fmt.Errorf("the path contains ..: %.80q", name)
	case absolute != path.Clean(absolute) || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("the path is not in its canonical form: %.80q", name)
	}
	return absolute, nil
}

// fill sets an outcome that was not known yet.
func fill[T any](o *outcome[T], value T, err error) error {
	if o.known {
		return errors.New("duplicate entry for this path")
	}
	*o = got(value, err)
	return nil
}

// fail sets an outcome to a failure: words are its class and how its text is
// encoded.
func fail[T any](p *parser, o *outcome[T], words string) error {
	failure, err := p.failure(words)
	if err != nil {
		return err
	}
	var none T
	return fill(o, none, failure)
}

// failure reads the error that an entry holds.
func (p *parser) failure(words string) (failure, err error) {
	class, attributes, _ := strings.Cut(strings.TrimPrefix(words, "!"), " ")
	data, _, err := p.content(attributes, true)
	if err != nil {
		return nil, err
	}
	if failure = declassify(class, string(data)); failure == nil {
		return nil, fmt.Errorf("unknown class of failure: %.40q", class)
	}
	return failure, nil
}

// content reads the lines of an entry and decodes them as its attributes say.
func (p *parser) content(attributes string, sentence bool) (data []byte, more bool, err error) {
	start := p.line
	data = p.body()
	for word := range strings.FieldsSeq(attributes) {
		switch word {
		case "hex":
			if data, err = p.unhex(data, start); err != nil {
				return nil, false, err
			}
		case "no-newline":
			data = bytes.TrimSuffix(data, []byte("\n"))
		case "part":
			more = true
		default:
			return nil, false, fmt.Errorf("unknown attribute: %.40q", word)
		}
	}
	if sentence && attributes == "" { // Written by hand, it ends in a newline that is no part of it.
		data = bytes.TrimSuffix(data, []byte("\n"))
	}
	if len(p.rest) == 0 && len(data) > 0 && attributes == "" && !sentence && data[len(data)-1] != '\n' {
		data = append(bytes.Clone(data), '\n') // The last line of an archive has an end, though it be left out.
	}
	return data, more, nil
}

// unhex decodes lines of hex; above is the number of the line above them.
func (p *parser) unhex(text []byte, above int) ([]byte, error) {
	var data []byte
	for line := range bytes.Lines(text) {
		above++
		for word := range bytes.FieldsSeq(line) {
			digits, times, folded := bytes.Cut(word, []byte("*"))
			part, err := hex.AppendDecode(nil, digits)
			if err == nil && folded {
				var n int
				if n, err = strconv.Atoi(string(times)); err == nil && (n < 0 || len(part) != 1 || n > MaxSnapshot) {
					err = strconv.ErrRange
				}
				if err == nil {
					p.decoded += n
				}
				if p.decoded <= MaxSnapshot && err == nil {
					part = bytes.Repeat(part, n)
				}
			}
			if err != nil {
				p.at = above
				return nil, fmt.Errorf("not hex: %.80q", word)
			}
			if p.decoded > MaxSnapshot {
				p.at = above
				return nil, fmt.Errorf("decompresses to more than %d MiB", MaxSnapshot>>20)
			}
			data = append(data, part...)
		}
	}
	return data, nil
}

func (p *parser) file(n *node, where, attributes string) error {
	if strings.HasPrefix(attributes, "!") {
		return p.fileFailure(n, where, attributes)
	}
	data, more, err := p.content(attributes, false)
	if err != nil {
		return err
	}
	n.more = more
	return fill(&n.read, data, nil)
}

// fileFailure reads why a file could not be read. That it is not there holds
// for every operation, unless others are known to have found something: a
// dangling link.
func (p *parser) fileFailure(n *node, where, words string) error {
	failure, err := p.failure(words)
	if err != nil {
		return err
	}
	if isUsual(failure, "not-exist") && !n.anyKnown() {
		return p.gone(where)
	}
	return fill(&n.read, nil, failure)
}

// anyKnown reports whether the outcome of any operation is known.
func (n *node) anyKnown() bool {
	return n.read.known || n.list.known || n.link.known || n.stat.known
}

func (p *parser) gone(where string) error {
	if n := p.machine.nodes[where]; n != nil && (n.gone || n.anyKnown()) {
		return errors.New("another entry describes this path, which does not exist")
	}
	p.machine.addGone(where)
	return nil
}

func (p *parser) link(n *node, target string) error {
	if strings.HasPrefix(target, "!") {
		return fail(p, &n.link, target)
	}
	word, rest, err := token(target)
	switch {
	case err != nil:
		return err
	case rest != "" || word == "" || len(word) > maxPath || strings.ContainsRune(word, 0):
		return fmt.Errorf("invalid target of a link: %.80q", target)
	}
	if err := p.nothing(); err != nil {
		return err
	}
	return fill(&n.link, word, nil)
}

// nothing rejects lines under an entry that consists only of its marker.
func (p *parser) nothing() error {
	if body := bytes.TrimSpace(p.body()); len(body) > 0 {
		return fmt.Errorf("unexpected text in the entry: %.40q", body)
	}
	return nil
}

func (p *parser) stat(n *node, words string) error {
	if strings.HasPrefix(words, "!") {
		return fail(p, &n.stat, words)
	}
	mode, size, _ := strings.Cut(words, " ")
	info := FileInfo{}
	var ok bool
	if info.Mode, ok = parseMode(mode); !ok {
		return fmt.Errorf("invalid file mode: %.40q", mode)
	}
	var err error
	if info.Size, err = strconv.ParseInt(size, 10, 64); err != nil || info.Size < 0 {
		return fmt.Errorf("invalid size: %.40q", size)
	}
	if err := p.nothing(); err != nil {
		return err
	}
	return fill(&n.stat, info, nil)
}

// parseMode reads what fs.FileMode.String writes: a letter for each bit of
// the type, or a dash, and nine for the permissions.
func parseMode(s string) (mode fs.FileMode, ok bool) {
	const letters, permissions = "dalTLDpSugct?", "rwxrwxrwx"
	if len(s) <= len(permissions) {
		return 0, false
	}
	kind, rest := s[:len(s)-len(permissions)], s[len(s)-len(permissions):]
	for i := range permissions {
		if rest[i] == permissions[i] {
			mode |= 1 << (len(permissions) - 1 - i)
		}
	}
	for i := range kind {
		if bit := strings.IndexByte(letters, kind[i]); bit >= 0 {
			mode |= 1 << (31 - bit) // The first letter is the highest bit, fs.ModeDir.
		}
	}
	return mode, mode.String() == s
}

func (p *parser) folder(n *node, where, attributes string) error {
	if strings.HasPrefix(attributes, "!") {
		return fail(p, &n.list, attributes)
	}
	if attributes != "" {
		return fmt.Errorf("unknown attribute: %.40q", attributes)
	}
	names := []string{}
	for name, err := range p.names() {
		switch {
		case err != nil:
			return err
		case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(where)+len(name) > maxPath:
			return fmt.Errorf("invalid file name: %.80q", name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return fill(&n.list, slices.Compact(names), nil)
}

// names yields the names on the lines of an entry, and stops at an error.
func (p *parser) names() func(yield func(string, error) bool) {
	start := p.line
	body := p.body()
	marker := p.at
	return func(yield func(string, error) bool) {
		p.at = start
		for line := range bytes.Lines(body) {
			p.at++
			text := strings.TrimSpace(string(line))
			if text == "" {
				continue
			}
			name := text
			var err error
			if text[0] == '"' {
				var rest string
				if name, rest, err = token(text); err == nil && rest != "" {
					err = fmt.Errorf("text after a quoted name: %.80q", text)
				}
			}
			if err == nil {
				err = p.count(1)
			}
			if !yield(name, err) || err != nil {
				return
			}
		}
		p.at = marker
	}
}

// pathList reads a list of paths that a failure applies to.
func (p *parser) pathList(word string) error {
	for name, err := range p.names() {
		if err != nil {
			return err
		}
		where, err := entryPath(name, name == "/")
		if err != nil {
			return err
		}
		failure := declassify(word, "")
		switch {
		case failure == nil:
			return fmt.Errorf("unknown class of failure: %.40q", word)
		case word == "not-exist":
			err = p.gone(where)
		case word == "not-link":
			err = fill(&p.machine.node(where).link, "", failure)
		default:
			err = fill(&p.machine.node(where).read, nil, failure)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

// answer reads the answer to a question.
func (p *parser) answer(text string) error {
	question, rest, ext, err := questionOf(text)
	if err != nil {
		return err
	}
	if _, twice := p.machine.answers[question]; twice {
		return fmt.Errorf("duplicate answer to %.80q", question)
	}
	if strings.HasPrefix(rest, "!") && ext == "" {
		failure, err := p.failure(rest)
		if err != nil {
			return err
		}
		p.machine.setAnswer(question, answer{err: failure})
		return nil
	}
	start := p.line
	body := p.body()
	switch {
	case rest != "":
		return fmt.Errorf("unknown attribute: %.40q", rest)
	case ext == ".json":
		raw, err := compactJSON(body)
		if err != nil {
			p.at = start + 1 + bytes.Count(body[:min(errorOffset(err), len(body))], []byte("\n"))
			return fmt.Errorf("the answer to %.80q: %w", question, err)
		}
		p.machine.setAnswer(question, answer{raw: raw})
	case ext == ".txt" && utf8.Valid(body):
		p.machine.Answer(question, string(body))
	default:
		return fmt.Errorf("an answer must be .json, or .txt in UTF-8: %.80q", text)
	}
	return nil
}

// questionOf takes the question, the rest of the marker and the extension
// from the name of an answer.
func questionOf(text string) (question, rest, ext string, err error) {
	if strings.HasPrefix(text, `"`) {
		question, rest, err = token(text)
		if strings.HasPrefix(rest, ".") {
			ext, rest, _ = strings.Cut(rest, " ")
		}
		return question, rest, ext, err
	}
	question, rest, _ = strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	if rest == "" {
		ext = path.Ext(question)
	}
	return strings.TrimSuffix(question, ext), rest, ext, nil
}

func compactJSON(text []byte) (json.RawMessage, error) {
	var b bytes.Buffer
	b.Grow(len(text))
	var valid json.RawMessage // Compact does not tell where an error is.
	if err := json.Unmarshal(text, &valid); err != nil {
		return nil, err
	}
	if err := json.Compact(&b, text); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// errorOffset is where in a text of JSON an error lies.
func errorOffset(err error) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return int(max(syntax.Offset-1, 0))
	}
	return 0
}
