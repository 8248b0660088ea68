package host

import (
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
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
)

// SnapshotFormat begins the first line of every snapshot; the version of the format follows it.
const SnapshotFormat = "gpudoctor.snapshot/v"

// snapshotVersion changes when an older program would misread a snapshot.
const snapshotVersion = 1

// unlistedLine says that what a snapshot does not hold was not read. Without it, it does not exist.
const unlistedLine = "unlisted: not-recorded"

// recordedBy begins the second line of a snapshot that a program wrote.
const recordedBy = "recorded by gpudoctor "

// endWord is the last entry of a recorded snapshot: what one that lacks it does not hold may exist.
const endWord = "!end"

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

// RecordOptions says how a recording is written as a snapshot.
type RecordOptions struct {
	// Version is gpudoctor's own.
	Version string
	// KeepNames leaves names, addresses, serial numbers and secrets as they are.
	KeepNames bool
}

// Write writes what was recorded so far as a snapshot, in an order that depends only on the content.
func (r *Recorder) Write(w io.Writer, opts RecordOptions) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, note := &r.seen, rawNote
	if !opts.KeepNames {
		note = redactedNote
		m = recordingRedactor{redact.New()}.memory(m)
	}
	version := cmp.Or(strings.Join(strings.Fields(opts.Version), " "), "of unknown version")
	archive := txtar.Archive{
		Comment: fmt.Appendf(nil, "%s%d\n%s%s\n%s\n"+notation, SnapshotFormat, snapshotVersion, recordedBy, version, unlistedLine, note),
		Files:   slices.Concat(m.entries(), m.answerEntries(), []txtar.File{entry(nil, endWord)}),
	}
	_, err := w.Write(txtar.Format(&archive))
	return err
}

// entry is an entry of a snapshot. A last line without an end gets one.
func entry(data []byte, words ...string) txtar.File {
	return txtar.File{Name: strings.Join(words, " "), Data: data}
}

func failureEntry(err error, words ...string) txtar.File {
	word, text := classify(err)
	words = append(words, "!"+word)
	if !isText([]byte(text)) || strings.HasSuffix(text, "\n") {
		return entry(hexLines([]byte(text)), append(words, "hex")...)
	}
	return entry([]byte(text), words...)
}

// entries is everything known about the paths, then those that do not exist and those that are not links.
func (m *Memory) entries() (all []txtar.File) {
	var gone, plain []string
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		n := m.nodes[name]
		if absentFrom(n) {
			if !m.derives(name) {
				gone = append(gone, quoted(entryName(name)))
			}
			continue
		}
		for _, op := range []operation{link, list, stat, read} {
			switch o := n.outcomes[op]; {
			case o == nil:
			case op == link && isUsual(o.err, "not-link"):
				plain = append(plain, quoted(entryName(name)))
			default:
				all = append(all, o.entry(op, name))
			}
		}
	}
	if len(gone) > 0 {
		all = append(all, entry([]byte(strings.Join(gone, "\n")), "!not-exist"))
	}
	if len(plain) > 0 {
		all = append(all, entry([]byte(strings.Join(plain, "\n")), "!not-link"))
	}
	return all
}

func (o *outcome) entry(op operation, name string) txtar.File {
	words := []string{quoted(entryName(name))}
	switch op {
	case read:
	case list:
		words[0] = quoted(entryName(name) + "/")
	case link:
		words = append(words, "->")
	case stat:
		words = append(words, "stat")
	}
	switch v := o.value.(type) {
	case []string:
		var names []byte
		for _, child := range v {
			names = append(names, quoted(child)+"\n"...)
		}
		return entry(names, words...)
	case string:
		return entry(nil, append(words, quoted(v))...)
	case FileInfo:
		return entry(nil, append(words, v.Mode.String(), strconv.FormatInt(v.Size, 10))...)
	case content:
		return v.entry(words)
	}
	return failureEntry(o.err, words...)
}

func (c content) entry(words []string) txtar.File {
	data := c.data
	switch {
	case !isText(data):
		data = hexLines(data)
		words = append(words, "hex")
	case len(data) > 0 && data[len(data)-1] != '\n':
		words = append(words, "no-newline")
	}
	if c.more {
		words = append(words, "part")
	}
	return entry(data, words...)
}

func (m *Memory) answerEntries() (all []txtar.File) {
	for _, question := range slices.Sorted(maps.Keys(m.answers)) {
		all = append(all, m.answers[question].answerEntry("answers/"+quoted(question)))
	}
	return all
}

func (o *outcome) answerEntry(name string) txtar.File {
	if o.err != nil {
		return failureEntry(o.err, name)
	}
	raw, _ := o.value.(json.RawMessage)
	var text string
	if json.Unmarshal(raw, &text) == nil && strings.HasSuffix(text, "\n") && isText([]byte(text)) {
		return entry([]byte(text), name+".txt")
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, raw, "", "  "); err != nil {
		return failureEntry(fmt.Errorf("the answer is not JSON: %w", err), name) // No source gives one.
	}
	return entry(escape.JSON(indented.Bytes()), name+".json")
}

// absentFrom reports whether all that is known about a path is that it does not exist.
func absentFrom(n *node) bool {
	known := false
	for _, o := range n.outcomes {
		if o != nil {
			known = true
			if !isUsual(o.err, "not-exist") {
				return n.gone
			}
		}
	}
	return n.gone || known
}

// derives reports whether a replay knows from the list of a folder that a path does not exist.
func (m *Memory) derives(name string) bool {
	names, known := valueOf[[]string](m.nodes[path.Dir(name)], list)
	if !known || len(m.nodes[name].children) > 0 {
		return false // With something below it the path may have come into being meanwhile.
	}
	_, listed := slices.BinarySearch(names, path.Base(name))
	return !listed
}

func isUsual(err error, class string) bool {
	if err == nil {
		return false
	}
	word, text := classify(err)
	return word == class && text == ""
}

// entryName is a path without the leading slash; the root is a dot.
func entryName(name string) string {
	if name == "/" {
		return "."
	}
	return strings.TrimPrefix(name, "/")
}

// quoted quotes a name that would not be read back as it is. A quoted name is always a path.
func quoted(name string) string {
	odd := func(r rune) bool { return r == ' ' || r == '"' || r == utf8.RuneError || !escape.Visible(r) }
	if name == "" || name[0] == '!' || strings.HasPrefix(name, "answers/") || name == "--" || strings.ContainsFunc(name, odd) {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// isText reports whether data is visible, and no line of it looks like the beginning of an entry.
func isText(data []byte) bool {
	if !utf8.Valid(data) {
		return false
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		marker := bytes.HasPrefix(line, []byte("-- ")) && bytes.HasSuffix(line, []byte(" --")) && len(line) > len("-- --")
		if marker || bytes.ContainsFunc(line, func(r rune) bool { return r != '\t' && !escape.Visible(r) }) {
			return false
		}
	}
	return true
}

// hexWidth is how many bytes a line of hex holds: most capabilities of config space fit on one.
const hexWidth = 32

// hexLines writes data as hex. Whole lines of zeros are folded to "00*N".
func hexLines(data []byte) []byte {
	var out []byte
	for len(data) > 0 {
		n := len(data) - len(bytes.TrimLeft(data, "\x00"))
		if n < len(data) {
			n -= n % hexWidth
		}
		if n > 0 {
			out = fmt.Appendf(out, "00*%d\n", n)
		} else {
			n = min(hexWidth, len(data))
			out = append(hex.AppendEncode(out, data[:n]), '\n')
		}
		data = data[n:]
	}
	return out
}
