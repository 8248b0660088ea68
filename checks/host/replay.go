package host

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

	"golang.org/x/tools/txtar"
)

const (
	// MaxSnapshot is the size of the largest one.
	MaxSnapshot = 64 << 20
	// maxEntries bounds its entries together with the names that it lists.
	maxEntries = 200_000
	// maxNodes bounds the paths that these make, the folders above them included.
	maxNodes = 2 * maxEntries
	// maxPath is PATH_MAX (include/uapi/linux/limits.h).
	maxPath = 4096
)

// ErrNewer is returned for a document of a version that this program does not know yet.
var ErrNewer = errors.New("made by a newer gpudoctor")

// ErrNotSnapshot is returned for a document that is not a snapshot at all.
var ErrNotSnapshot = errors.New("not a snapshot")

func isSnapshot(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(withoutBOM(data), " \t\r\n"), []byte(SnapshotFormat))
}

func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// Parse reads a snapshot, and keeps parts of data. Errors name the place as "name:line".
func Parse(name string, data []byte) (*Memory, error) {
	if len(data) > MaxSnapshot {
		return nil, fmt.Errorf("%s: larger than %d MiB", name, MaxSnapshot>>20)
	}
	if !isSnapshot(data) {
		return nil, fmt.Errorf("%s:1: %w: the first line is not %s%d", name, ErrNotSnapshot, SnapshotFormat, snapshotVersion)
	}
	if bytes.Count(data, []byte("\n-- ")) > maxEntries {
		return nil, fmt.Errorf("%s: %w", name, errTooManyEntries)
	}
	p := parser{machine: &Memory{}}
	p.machine.node("/")
	if err := p.parse(txtar.Parse(withoutBOM(data))); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.at, err)
	}
	p.machine.settle()
	return p.machine, nil
}

var errTooManyEntries = fmt.Errorf("more than %d entries", maxEntries)

// settle notes that nothing is at a path of which an operation found nothing, and of which no more is known.
func (m *Memory) settle() {
	for name, n := range m.nodes {
		if name != "/" && len(n.children) == 0 && absentFrom(n) {
			m.addGone(name)
		}
	}
}

type parser struct {
	machine *Memory
	at      int // The line that an error is about.
	entries int
	decoded int // Bytes that came out of hex.
}

// ErrCutShort is returned for a truncated recording.
var ErrCutShort = errors.New("the recording is truncated: its end is missing")

// ErrAfterEnd is returned for a recording with more text after its end, such as two in one file.
var ErrAfterEnd = errors.New("text after the end of the recording")

func (p *parser) parse(archive *txtar.Archive) error {
	recorded, err := p.comment(archive.Comment)
	if err != nil {
		return err
	}
	line := 1 + bytes.Count(archive.Comment, []byte("\n"))
	for i, f := range archive.Files {
		p.at = line
		if f.Name == endWord {
			if len(bytes.TrimSpace(f.Data)) > 0 || i+1 < len(archive.Files) {
				return ErrAfterEnd
			}
			return nil
		}
		if err := p.count(); err != nil {
			return err
		}
		if err := p.entry(f.Name, f.Data); err != nil {
			return err
		}
		if len(p.machine.nodes) > maxNodes {
			return fmt.Errorf("more than %d paths", maxNodes)
		}
		line += 1 + bytes.Count(f.Data, []byte("\n"))
	}
	if recorded || len(archive.Files) == 0 {
		// One written by hand needs no end, but an entry: a file that was cut off in its head shows a machine that has nothing.
		p.at = line - 1
		return ErrCutShort
	}
	return nil
}

// comment reads what precedes the first entry. A snapshot that a program recorded has an end.
func (p *parser) comment(comment []byte) (recorded bool, err error) {
	p.at = 1
	head, rest, _ := strings.Cut(strings.TrimSpace(string(comment)), "\n")
	number, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(head, SnapshotFormat)), " ")
	version, err := strconv.Atoi(number)
	switch {
	case err != nil || version < 1:
		return false, fmt.Errorf("unknown version of the format: %.40q", head)
	case version > snapshotVersion:
		return false, fmt.Errorf("%w: its format is %s%d; this version reads up to %d", ErrNewer, SnapshotFormat, version, snapshotVersion)
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		p.machine.partial = p.machine.partial || line == unlistedLine
		recorded = recorded || line == unlistedLine || strings.HasPrefix(line, recordedBy)
	}
	return recorded, nil
}

func (p *parser) count() error {
	if p.entries++; p.entries > maxEntries {
		return errTooManyEntries
	}
	return nil
}

// entry reads one entry: text stands in its marker, and body is below it.
func (p *parser) entry(text string, body []byte) error {
	if word, ok := strings.CutPrefix(text, "!"); ok {
		return p.pathList(word, body)
	}
	if question, ok := strings.CutPrefix(text, "answers/"); ok {
		return p.answer(question, body)
	}
	name, rest, err := token(text)
	if err != nil {
		return err
	}
	folder := strings.HasSuffix(name, "/")
	where, err := entryPath(strings.TrimSuffix(name, "/"), folder)
	if err != nil {
		return err
	}
	op, value, words := read, p.file, rest
	switch {
	case folder:
		op, value = list, p.folder
	case rest == "->" || strings.HasPrefix(rest, "-> "):
		op, value, words = link, p.link, strings.TrimSpace(rest[len("->"):])
	case strings.HasPrefix(rest, "stat "):
		op, value, words = stat, p.stat, strings.TrimSpace(rest[len("stat "):])
	}
	var o outcome
	if strings.HasPrefix(words, "!") {
		o.err, err = p.failure(words, body)
	} else {
		o.value, err = value(words, body)
	}
	if err != nil {
		return err
	}
	return p.fill(where, op, o)
}

// fill notes an outcome that was not known yet. A file that was not there when it was read is gone, unless something is known
// of it: a dangling link.
func (p *parser) fill(where string, op operation, o outcome) error {
	n := p.machine.node(where)
	switch {
	case op == read && isUsual(o.err, "not-exist") && !n.anyKnown():
		return p.gone(where)
	case n.outcomes[op] != nil:
		return errors.New("duplicate entry for this path")
	}
	n.outcomes[op] = &o
	return nil
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

// entryPath turns the name of an entry into an absolute path, and rejects all but the canonical form.
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

// failure reads the error that an entry holds: words are its class and how its text is encoded.
func (p *parser) failure(words string, body []byte) (failure, err error) {
	class, attributes, _ := strings.Cut(strings.TrimPrefix(words, "!"), " ")
	text, err := p.content(attributes, body)
	if err != nil {
		return nil, err
	}
	if attributes == "" { // The newline is no part of it.
		text.data = bytes.TrimSuffix(text.data, []byte("\n"))
	}
	if failure = declassify(class, string(text.data)); failure == nil {
		return nil, fmt.Errorf("unknown class of failure: %.40q", class)
	}
	return failure, nil
}

func (p *parser) file(attributes string, body []byte) (any, error) {
	return p.content(attributes, body)
}

func (p *parser) content(attributes string, body []byte) (c content, err error) {
	c.data = body
	for word := range strings.FieldsSeq(attributes) {
		switch word {
		case "hex":
			c.data, err = p.unhex(c.data)
		case "no-newline":
			c.data = bytes.TrimSuffix(c.data, []byte("\n"))
		case "part":
			c.more = true
		default:
			err = fmt.Errorf("unknown attribute: %.40q", word)
		}
		if err != nil {
			return content{}, err
		}
	}
	return c, nil
}

func (p *parser) unhex(text []byte) ([]byte, error) {
	var data []byte
	for word := range bytes.FieldsSeq(text) {
		part, times, err := unhexWord(word)
		if err != nil {
			return nil, fmt.Errorf("not hex: %.80q", word)
		}
		if p.decoded += times; p.decoded > MaxSnapshot {
			return nil, fmt.Errorf("decompresses to more than %d MiB", MaxSnapshot>>20)
		}
		data = append(data, bytes.Repeat(part, times)...)
	}
	return data, nil
}

// unhexWord decodes hex that stands a number of times: 00*64 is 64 zero bytes.
func unhexWord(word []byte) (part []byte, times int, err error) {
	digits, number, folded := bytes.Cut(word, []byte("*"))
	part, err = hex.AppendDecode(nil, digits)
	if err != nil || !folded {
		return part, 1, err
	}
	times, err = strconv.Atoi(string(number))
	if err == nil && (times < 0 || len(part) != 1 || times > MaxSnapshot) {
		err = strconv.ErrRange
	}
	return part, times, err
}

func (n *node) anyKnown() bool { return n.outcomes != [operations]*outcome{} }

func (p *parser) gone(where string) error {
	if n := p.machine.nodes[where]; n != nil && (n.gone || n.anyKnown()) {
		return errors.New("another entry describes this path, which does not exist")
	}
	p.machine.addGone(where)
	return nil
}

func (p *parser) link(target string, body []byte) (any, error) {
	word, rest, err := token(target)
	switch {
	case err != nil:
		return nil, err
	case rest != "" || word == "" || len(word) > maxPath || strings.ContainsRune(word, 0):
		return nil, fmt.Errorf("invalid target of a link: %.80q", target)
	}
	return word, nothing(body)
}

// nothing rejects lines under an entry that consists only of its marker.
func nothing(body []byte) error {
	if body = bytes.TrimSpace(body); len(body) > 0 {
		return fmt.Errorf("unexpected text in the entry: %.40q", body)
	}
	return nil
}

func (p *parser) stat(words string, body []byte) (any, error) {
	mode, number, _ := strings.Cut(words, " ")
	kind, ok := parseMode(mode)
	if !ok {
		return nil, fmt.Errorf("invalid file mode: %.40q", mode)
	}
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || size < 0 {
		return nil, fmt.Errorf("invalid size: %.40q", number)
	}
	return FileInfo{Mode: kind, Size: size}, nothing(body)
}

// parseMode reads what fs.FileMode.String writes: a letter for each of the bits from 19 on that is set, and the permissions.
func parseMode(s string) (mode fs.FileMode, ok bool) {
	letters := len(s) - len("rwxrwxrwx")
	if letters < 1 {
		return 0, false
	}
	for i := range 32 {
		bit := fs.FileMode(1) << i
		if i < 9 && s[len(s)-1-i] != '-' || i >= 19 && strings.Contains(s[:letters], bit.String()[:1]) {
			mode |= bit
		}
	}
	return mode, mode.String() == s
}

func (p *parser) folder(attributes string, body []byte) (any, error) {
	if attributes != "" {
		return nil, fmt.Errorf("unknown attribute: %.40q", attributes)
	}
	names := []string{}
	err := p.eachName(body, func(name string) error {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || len(name) > maxPath {
			return fmt.Errorf("invalid file name: %.80q", name)
		}
		names = append(names, name)
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// eachName takes the names on the lines of an entry, and stops at an error.
func (p *parser) eachName(body []byte, take func(name string) error) error {
	marker := p.at
	for line := range strings.Lines(string(body)) {
		p.at++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, rest, err := line, "", p.count()
		if err == nil && line[0] == '"' {
			name, rest, err = token(line)
		}
		if err == nil && rest != "" {
			err = fmt.Errorf("text after a quoted name: %.80q", line)
		}
		if err == nil {
			err = take(name)
		}
		if err != nil {
			return err
		}
	}
	p.at = marker
	return nil
}

// pathList reads a list of paths that a failure applies to.
func (p *parser) pathList(word string, body []byte) error {
	failure := declassify(word, "")
	if failure == nil {
		return fmt.Errorf("unknown class of failure: %.40q", word)
	}
	return p.eachName(body, func(name string) error {
		where, err := entryPath(name, name == "/")
		if err != nil {
			return err
		}
		switch word {
		case "not-exist":
			err = p.gone(where)
		case "not-link":
			err = p.fill(where, link, outcome{err: failure})
		default:
			err = p.fill(where, read, outcome{err: failure})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		return nil
	})
}

func (p *parser) answer(text string, body []byte) error {
	question, rest, ext, err := questionOf(text)
	if err != nil {
		return err
	}
	switch {
	case p.machine.answers[question] != nil:
		return fmt.Errorf("duplicate answer to %.80q", question)
	case strings.HasPrefix(rest, "!") && ext == "":
		failure, err := p.failure(rest, body)
		if err != nil {
			return err
		}
		p.machine.AnswerError(question, failure)
	case rest != "":
		return fmt.Errorf("unknown attribute: %.40q", rest)
	case ext == ".json":
		var b bytes.Buffer
		if err := json.Compact(&b, body); err != nil {
			return fmt.Errorf("the answer to %.80q: %w", question, err)
		}
		p.machine.setAnswer(question, b.Bytes(), nil)
	case ext == ".txt" && utf8.Valid(body):
		p.machine.Answer(question, string(body))
	default:
		return fmt.Errorf("an answer must be .json, or .txt in UTF-8: %.80q", text)
	}
	return nil
}

// questionOf takes the question, the rest of the marker and the extension from an answer's name.
func questionOf(text string) (question, rest, ext string, err error) {
	question, rest, err = token(text)
	switch {
	case strings.HasPrefix(rest, "."): // Behind a quoted name.
		ext, rest, _ = strings.Cut(rest, " ")
	case rest == "":
		ext = path.Ext(question)
		question = strings.TrimSuffix(question, ext)
	}
	return question, rest, ext, err
}
