package machine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
)

// SnapshotFormat begins the first line of every snapshot; the version of the
// format follows it.
const SnapshotFormat = "gpudoctor.snapshot/v"

// snapshotVersion changes when an older program would misread a snapshot.
const snapshotVersion = 1

// unlistedLine says that what a snapshot does not hold was not
// read. Without it, as in one written by hand, what is not listed does not exist.
const unlistedLine = "unlisted: not-recorded"

// recordedBy begins the second line of a snapshot that a program wrote.
const recordedBy = "recorded by gpudoctor "

// endWord is the last entry of a recorded snapshot: one that lacks it was cut
// short in transit, and what is missing must not be treated as absent.
const endWord = "!end"

// notation explains a snapshot to its reader.
const notation = `
This is a txtar archive of what gpudoctor read on one machine. Replay it with
"gpudoctor check --from FILE". %s

Each entry is a path, without the leading slash, and what was found there:
  -- PATH --              the text of a file
  -- PATH hex --          its bytes, 32 per line; 00*64 stands for 64 zero bytes
  -- PATH no-newline --   a text whose last line does not end in a newline
  -- PATH part --         the file continues; no more of it was read
  -- PATH -> TARGET --    a symbolic link
  -- PATH/ --             a folder, one name per line
  -- PATH stat MODE SIZE --
  -- PATH !CLASS --       the failure to read it; the text gives details
  -- !CLASS --            a list of paths to which this applies
  -- answers/QUESTION --  what the system or a library answered
  -- !end --              the end of a complete recording
A name with blanks or odd characters is quoted as in Go.
`

const (
	redactedNote = "Names, addresses and serial\nnumbers have been replaced by stand-ins, each always by the same one."
	rawNote      = "Nothing in it has been\nredacted: it shows names, addresses and serial numbers."
)

// WriteOptions says how a snapshot is written.
type WriteOptions struct {
	// Version is gpudoctor's own.
	Version string
	// KeepNames leaves names, addresses, serial numbers and secrets as they are.
	KeepNames bool
}

// Write writes what was recorded so far as a snapshot, in an order that
// depends only on the content.
func (r *Recorder) Write(w io.Writer, opts WriteOptions) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, note := &r.seen, rawNote
	if !opts.KeepNames {
		note = redactedNote
		m = recordingRedactor{redact.New()}.memory(m)
	}
	s := snapshotWriter{w: bufio.NewWriter(w)}
	s.printf("%s%d\n%s%s\n%s\n", SnapshotFormat, snapshotVersion, recordedBy,
		cmp.Or(strings.TrimSpace(oneLine(opts.Version)), "of unknown version"), unlistedLine)
	s.printf(notation, note)
	s.nodes(m)
	s.answers(m)
	s.marker(endWord)
	return s.w.Flush()
}

// oneLine makes a text a single line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// snapshotWriter writes the entries of a snapshot. The first error sticks to
// the writer below and is returned by its Flush.
type snapshotWriter struct{ w *bufio.Writer }

func (s *snapshotWriter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.w, format, args...) // Flush returns the error.
}

// marker writes the line that begins an entry.
func (s *snapshotWriter) marker(words ...string) {
	s.printf("-- %s --\n", strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "))
}

// failure writes an entry that holds an error.
func (s *snapshotWriter) failure(err error, words ...string) {
	word, text := classify(err)
	words = append(words, "!"+word)
	switch {
	case text == "":
		s.marker(words...)
	case isText([]byte(text)) && !strings.HasSuffix(text, "\n"):
		s.marker(words...)
		s.printf("%s\n", text) // The newline is no part of it.
	default:
		s.marker(append(words, "hex")...)
		_, _ = s.w.Write(hexLines([]byte(text)))
	}
}

// nodes writes everything known about the paths: what each operation returned, then
// the paths that do not exist and those that are not links.
func (s *snapshotWriter) nodes(m *Memory) {
	var gone, plain []string
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		n := m.nodes[name]
		if absentFrom(n) {
			if !m.derives(name) {
				gone = append(gone, quoted(entryName(name)))
			}
			continue
		}
		switch shown := quoted(entryName(name)); {
		case !n.link.known:
		case n.link.err == nil:
			s.marker(shown, "->", quoted(n.link.value))
		case isUsual(n.link.err, "not-link"):
			plain = append(plain, shown)
		default:
			s.failure(n.link.err, shown, "->")
		}
		s.node(name, n)
	}
	for _, list := range []struct {
		word  string
		paths []string
	}{{"!not-exist", gone}, {"!not-link", plain}} {
		if len(list.paths) > 0 {
			s.marker(list.word)
			s.printf("%s\n", strings.Join(list.paths, "\n"))
		}
	}
}

// node writes the results of reading, listing and describing one path.
func (s *snapshotWriter) node(name string, n *node) {
	shown := quoted(entryName(name))
	if n.list.known {
		folder := quoted(entryName(name) + "/")
		if n.list.err != nil {
			s.failure(n.list.err, folder)
		} else {
			s.marker(folder)
			for _, child := range n.list.value {
				s.printf("%s\n", quoted(child))
			}
		}
	}
	if n.stat.known {
		if n.stat.err != nil {
			s.failure(n.stat.err, shown, "stat")
		} else {
			s.marker(shown, "stat", n.stat.value.Mode.String(), strconv.FormatInt(n.stat.value.Size, 10))
		}
	}
	switch {
	case !n.read.known:
	case n.read.err != nil:
		s.failure(n.read.err, shown)
	default:
		body, attributes := encode(n.read.value)
		if n.more {
			attributes = append(attributes, "part")
		}
		s.marker(append([]string{shown}, attributes...)...)
		_, _ = s.w.Write(body)
	}
}

// answers writes the answers in order of their questions.
func (s *snapshotWriter) answers(m *Memory) {
	for _, question := range slices.Sorted(maps.Keys(m.answers)) {
		a := m.answers[question]
		name := "answers/" + quoted(question)
		if a.err != nil {
			s.failure(a.err, name)
			continue
		}
		var text string
		if json.Unmarshal(a.raw, &text) == nil && strings.HasSuffix(text, "\n") && isText([]byte(text)) {
			s.marker(name + ".txt")
			s.printf("%s", text)
			continue
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, a.raw, "", "  "); err != nil {
			s.failure(fmt.Errorf("the answer is not JSON: %w", err), name) // No source gives one.
			continue
		}
		s.marker(name + ".json")
		s.printf("%s\n", escape.JSON(indented.Bytes()))
	}
}

// absentFrom reports whether all that is known about a path is that it does not
// exist.
func absentFrom(n *node) bool {
	if n.gone {
		return true
	}
	known, others := 0, 0
	count := func(isKnown bool, err error) {
		if isKnown {
			known++
			if !isUsual(err, "not-exist") {
				others++
			}
		}
	}
	count(n.read.known, n.read.err)
	count(n.list.known, n.list.err)
	count(n.link.known, n.link.err)
	count(n.stat.known, n.stat.err)
	return known > 0 && others == 0
}

// derives reports whether a replay knows from the list of a folder that a path
// does not exist.
func (m *Memory) derives(name string) bool {
	parent := m.nodes[path.Dir(name)]
	if parent == nil || !parent.list.known || parent.list.err != nil || len(m.nodes[name].children) > 0 {
		return false // With something below it the path may have come into being meanwhile.
	}
	_, listed := slices.BinarySearch(parent.list.value, path.Base(name))
	return !listed
}

// isUsual reports whether an error is of a class, in its usual words.
func isUsual(err error, class string) bool {
	if err == nil {
		return false
	}
	word, text := classify(err)
	return word == class && text == ""
}

// entryName is a path as entries write it, without the leading slash; the
// root is a dot.
func entryName(name string) string {
	if name == "/" {
		return "."
	}
	return strings.TrimPrefix(name, "/")
}

// quoted quotes a name that would not be read back as it is. A quoted name is
// always a path.
func quoted(name string) string {
	odd := func(r rune) bool { return r == ' ' || r == '"' || r == utf8.RuneError || !escape.Visible(r) }
	if name == "" || name[0] == '!' || strings.HasPrefix(name, "answers/") || name == "--" || strings.ContainsFunc(name, odd) {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// encode returns the lines that stand for data, and the words that say how.
func encode(data []byte) (body []byte, attributes []string) {
	switch {
	case !isText(data):
		return hexLines(data), []string{"hex"}
	case len(data) > 0 && data[len(data)-1] != '\n':
		return append(bytes.Clone(data), '\n'), []string{"no-newline"}
	}
	return data, nil
}

// isText reports whether data can stand as text: visible, and no line of it
// looks like the beginning of an entry.
func isText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if isMarker(line) || bytes.ContainsFunc(line, func(r rune) bool { return r != '\t' && !escape.Visible(r) }) {
			return false
		}
	}
	return true
}

// isMarker reports whether a line begins an entry, as package txtar of
// golang.org/x/tools defines it.
func isMarker(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte("\r"))
	return bytes.HasPrefix(line, []byte("-- ")) && bytes.HasSuffix(line, []byte(" --")) && len(line) >= len("--  --")
}

// hexWidth is how many bytes a line of hex holds: a capability of config
// space then mostly fits on one.
const hexWidth = 32

// hexLines writes data as hex. Whole lines of zeros are folded to "00*N".
func hexLines(data []byte) []byte {
	var out []byte
	zeros := 0
	flush := func() {
		if zeros > 0 {
			out = append(fmt.Appendf(out, "00*%d", zeros), '\n')
			zeros = 0
		}
	}
	for line := range slices.Chunk(data, hexWidth) {
		if len(bytes.Trim(line, "\x00")) == 0 {
			zeros += len(line)
			continue
		}
		flush()
		out = append(hex.AppendEncode(out, line), '\n')
	}
	flush()
	return out
}
