package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// device is a PCI device of the machines below.
const (
	device     = "/sys/bus/pci/devices/0000:3b:00.0"
	realDevice = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"
)

// configSpace returns a config space of 4096 bytes with a few that are set.
func configSpace() []byte {
	b := make([]byte, 4096)
	copy(b, []byte{0xde, 0x10, 0x35, 0x23, 0x06, 0x04, 0x10, 0x00})
	b[0x7f], b[0xfff] = 0x80, 1
	return b
}

// hiddenCharacters are some of those that steer a terminal, turn the direction of writing or do not show.
const hiddenCharacters = "\x01\x1b\x7f\u0085\u009b\u00a0\u00ad\u034f\u061c\u200b\u200e\u2028\u202e\u2066\u3164\ufe0f\ufeff\ue000\U000e0041\U000e0100"

// visible reports a character of a recording that does not show.
func visible(tb testing.TB, recording []byte) {
	tb.Helper()
	for line := range bytes.Lines(recording) {
		for _, r := range string(line) {
			if r != '\n' && r != '\t' && !escape.Visible(r) {
				tb.Errorf("%U in %q", r, line)
				return
			}
		}
	}
}

// oddMachine returns one that shows each kind of thing that a recording has to keep, under names that try its notation.
func oddMachine() *Memory {
	m := &Memory{}
	m.AddLink(device, "../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0")
	m.AddFile(realDevice+"/config", configSpace())
	m.AddFile(realDevice+"/vendor", []byte("0x10de\n"))
	m.AddFile(realDevice+"/empty", nil)
	m.AddError(realDevice+"/busy", errors.New("input/output error"))
	m.AddError("/proc/secret", fs.ErrPermission)
	m.AddError("/mnt/dead", ErrSlow)
	m.AddInfo("/dev/nvidia0", FileInfo{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666})
	m.AddInfo("/tmp", FileInfo{Mode: fs.ModeDir | fs.ModeSticky | 0o777, Size: 4096})
	m.AddDir("/sys/class/iommu")
	m.AddFile("/etc/no-newline", []byte("unlimited"))
	m.AddFile("/etc/trap", []byte("first\n-- etc/passwd --\nlast\n"))
	m.AddFile("/etc/trap-crlf", []byte("first\r\n-- a --\r\n"))
	m.AddFile("/etc/latin", []byte("caf\xe9\n"))
	m.AddFile("/etc/nul", []byte("a=1\x00b=2\x00"))
	m.AddFile("/etc/blank lines", []byte("\n\n\n"))
	m.AddFile("/etc/!mark", []byte("x\n"))
	m.AddFile("/etc/-> --", []byte("y\n"))
	m.AddFile("/etc/new\nline", []byte("z\n"))
	m.AddFile("/etc/\xff", []byte("z\n"))
	m.AddFile("/answers/environ.json", []byte("a file\n"))
	m.AddFile("/!odd", []byte("odd\n"))
	m.AddFile("/large", bytes.Repeat([]byte("0123456789abcde\n"), 1000))
	for i, r := range hiddenCharacters {
		hidden := fmt.Sprintf("a%cb", r)
		m.AddFile(fmt.Sprintf("/hidden/%d", i), []byte(hidden+"\n"))
		m.AddFile("/hidden/"+hidden, []byte("x\n"))
		m.AddLink(fmt.Sprintf("/hidden/link%d", i), hidden)
		m.AddError(fmt.Sprintf("/hidden/error%d", i), errors.New(hidden))
		m.Answer("hidden "+hidden, hidden)
		m.AnswerError("hidden error "+hidden, errors.New(hidden))
	}
	m.AddLink("/etc/link with blanks", "../a b/\"c\"")
	m.Answer(AskUname, Uname{Node: "gpu-box-17", Release: "6.8.0", Machine: "x86_64"})
	m.Answer(AskKernelLog, "1.000000 NVRM: loading\n2.500000 AER: x <y> & z\n")
	m.Answer(AskAccess+"/dev/nvidia0", "rw")
	m.Answer("odd question "+"\n", []int{1, 2})
	m.Answer("text without end", "-- x --")
	m.AnswerError(AskStatfs+"/mnt", &fs.PathError{Op: "statfs", Path: "/mnt", Err: ErrSlow})
	m.AnswerError(AskNVML, fmt.Errorf("two\nlines%c", '\n'))
	return m
}

// visit does everything with a source that a check can do, with each path and question of a machine, and
// returns what came of it.
func visit(src Source, m *Memory) []string {
	var out []string
	note := func(op, name string, v any, err error) {
		if err != nil {
			word, _ := classify(err)
			out = append(out, fmt.Sprintf("%s %q: %s: %v", op, name, word, err))
			return
		}
		out = append(out, fmt.Sprintf("%s %q: %#v", op, name, v))
	}
	names := []string{"/nowhere", "/nowhere/at/all", "/etc/absent", device + "/vendor", device + "/absent", device + "/config", "/etc/trap/below"}
	names = slices.AppendSeq(names, maps.Keys(m.nodes))
	slices.Sort(names)
	for _, name := range names {
		b, err := src.ReadFile(name, 5000)
		note("read", name, string(b), err)
		list, err := src.ReadDir(name)
		note("list", name, list, err)
		target, err := src.ReadLink(name)
		note("link", name, target, err)
		info, err := src.Stat(name)
		note("stat", name, info, err)
	}
	for question := range m.answers {
		raw, err := src.Ask(context.Background(), question, nil)
		note("ask", question, string(escape.JSON(raw)), err) // However it is spelled.
	}
	slices.Sort(out)
	return out
}

// snapshot records a visit to a machine, and returns what was written.
func snapshot(tb testing.TB, m *Memory, opts RecordOptions) []byte {
	tb.Helper()
	r := NewRecorder(m)
	visit(r, m)
	var b bytes.Buffer
	expect.NoError(tb, r.Write(&b, opts))
	visible(tb, b.Bytes())
	return b.Bytes()
}

// roundTrip records a visit to a machine, and checks that a replay gives the same.
func roundTrip(t *testing.T, m *Memory) (written []byte, replay *Memory) {
	t.Helper()
	written = snapshot(t, m, RecordOptions{Version: "1.2.3", KeepNames: true})
	replay, err := Parse("test.txtar", written)
	expect.Must(t, err == nil, "%v in\n%s", err, written)
	diff := cmp.Diff(visit(m, m), visit(replay, m))
	expect.That(t, diff == "", "a replay answers otherwise than the machine (-machine +replay):\n%s\n%s", diff, written)
	return written, replay
}

func TestRoundTrip(t *testing.T) {
	written, replay := roundTrip(t, oddMachine())
	again, _ := roundTrip(t, replay)
	expect.NoDiff(t, string(written), string(again), "the recording of a replay differs")
}

func TestRoundTripRedacted(t *testing.T) {
	first := snapshot(t, oddMachine(), RecordOptions{})
	again := snapshot(t, expect.Value(Parse("first", first))(t), RecordOptions{})
	expect.NoDiff(t, string(first), string(again), "redacting twice changes something")
	expect.That(t, !bytes.Contains(first, []byte("gpu-box-17")), "the host's name is in the snapshot")
}

func TestNotRecorded(t *testing.T) {
	src := &Memory{}
	src.AddFile("/sys/a/read", []byte("1\n"))
	src.AddFile("/sys/a/unread", []byte("2\n"))
	src.AddFile("/sys/long", []byte("0123456789\n"))
	r := NewRecorder(src)
	for _, name := range []string{"/sys/a/read", "/sys/b"} {
		_, _ = r.ReadFile(name, 100) // What it gives is in the recording.
	}
	_, _ = r.ReadFile("/sys/long", 4)
	_, _ = r.ReadDir("/sys/a")
	var b bytes.Buffer
	expect.NoError(t, r.Write(&b, RecordOptions{}))
	m := expect.Value(Parse("x", b.Bytes()))(t)
	_, statErr := m.Stat("/sys/a/read")
	_, linkErr := m.ReadLink("/sys/a/read")
	_, listErr := m.ReadDir("/sys")
	_, askErr := m.Ask(t.Context(), AskIDs, nil)
	for _, tt := range []struct {
		what      string
		err, want error
	}{
		{"a file that was listed, not read", readErr(m, "/sys/a/unread", 9), ErrNotRecorded},
		{"a file that the folder's list lacks", readErr(m, "/sys/a/absent", 9), fs.ErrNotExist},
		{"a file that was not there", readErr(m, "/sys/b", 9), fs.ErrNotExist},
		{"a file below one that was not there", readErr(m, "/sys/b/c", 9), fs.ErrNotExist},
		{"a file that nobody asked for", readErr(m, "/sys/c", 9), ErrNotRecorded},
		{"more of a file than was read", readErr(m, "/sys/long", 5), ErrNotRecorded},
		{"as much of a file as was read", readErr(m, "/sys/long", 4), nil},
		{"what kind of file it is", statErr, ErrNotRecorded},
		{"whether it is a link", linkErr, ErrNotRecorded},
		{"a folder that was not listed", listErr, ErrNotRecorded},
		{"a question", askErr, ErrNotRecorded},
	} {
		expect.That(t, errors.Is(tt.err, tt.want) && (tt.want != nil || tt.err == nil), "%s: got %v, want %v", tt.what, tt.err, tt.want)
	}
}

func readErr(src Source, name string, limit int64) error {
	_, err := src.ReadFile(name, limit)
	return err
}

func TestRecordTooMuch(t *testing.T) {
	src := &Memory{}
	big := bytes.Repeat([]byte{1}, 10<<20)
	for i := range 3 {
		src.AddFile(fmt.Sprintf("/lib/%d", i), big)
	}
	r := NewRecorder(src)
	for i := range 3 {
		b, err := r.ReadFile(fmt.Sprintf("/lib/%d", i), 20<<20)
		expect.Must(t, err == nil && len(b) == len(big), "file %d: got %d bytes, %v", i, len(b), err)
	}
	var b bytes.Buffer
	expect.NoError(t, r.Write(&b, RecordOptions{}))
	m := expect.Value(Parse("x", b.Bytes()))(t)
	expect.NoError(t, readErr(m, "/lib/1", 20<<20)) // It is within the bound.
	expect.ErrorIs(t, ErrNotRecorded, readErr(m, "/lib/2", 20<<20), "a file beyond the bound")
}

// TestByHand reads a snapshot as a person would write it: what it does not hold is not there.
func TestByHand(t *testing.T) {
	const text = `gpudoctor.snapshot/v1
A machine with one GPU.

-- sys/bus/pci/devices/0000:3b:00.0 -> ../../../devices/pci0000:3a/0000:3b:00.0 --
-- /sys/devices/pci0000:3a/0000:3b:00.0/vendor --
0x10de
-- sys/devices/pci0000:3a/0000:3b:00.0/config hex --
de10 3523
00*60
-- sys/class/iommu/ --
-- proc/1/comm !permission --
-- proc/2/comm !error --
the disk is on fire
-- dev/nvidia0 stat Dcrw-rw-rw- 0 --
-- !not-exist --
dev/nvidiactl
-- answers/access:/dev/nvidia0.json --
"rw"
-- answers/kernel-log.txt --
1.0 NVRM: x
-- answers/nvml !error --
library not found
-- etc/last --
no end`
	m := expect.Value(Parse("hand", []byte(text)))(t)
	read := func(name string) string {
		b, err := m.ReadFile(name, 1000)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	list := func(name string) string {
		names, err := m.ReadDir(name)
		return fmt.Sprint(names, err)
	}
	ask := func(question string) string {
		raw, err := m.Ask(t.Context(), question, nil)
		return fmt.Sprint(string(raw), err)
	}
	for _, tt := range []struct{ what, got, want string }{
		{"through a link", read("/sys/bus/pci/devices/0000:3b:00.0/vendor"), "0x10de\n"},
		{"hex", read("/sys/devices/pci0000:3a/0000:3b:00.0/config"), "\xde\x10\x35\x23" + strings.Repeat("\x00", 60)},
		{"permission", read("/proc/1/comm"), "read /proc/1/comm: permission denied"},
		{"other error", read("/proc/2/comm"), "read /proc/2/comm: the disk is on fire"},
		{"device", read("/dev/nvidia0"), "read /dev/nvidia0: not a regular file"},
		{"absent", read("/dev/nvidiactl"), "read /dev/nvidiactl: no such file or directory"},
		{"not listed", read("/etc/other"), "read /etc/other: no such file or directory"},
		{"last line", read("/etc/last"), "no end\n"},
		{"empty folder", list("/sys/class/iommu"), "[] <nil>"},
		{"folder", list("/sys/bus/pci/devices/0000:3b:00.0"), "[config vendor] <nil>"},
		{"folder without what is gone", list("/dev"), "[nvidia0] <nil>"},
		{"answer", ask("access:/dev/nvidia0"), `"rw"<nil>`},
		{"text answer", ask(AskKernelLog), `"1.0 NVRM: x\n"<nil>`},
		{"failed answer", ask(AskNVML), "library not found"},
	} {
		expect.Equal(t, tt.want, tt.got, "%s", tt.what)
	}
}

func TestParseErrors(t *testing.T) {
	const head = "gpudoctor.snapshot/v1\n"
	for _, tt := range []struct{ text, want string }{
		{"", "x.txtar:1: not a snapshot: the first line is not gpudoctor.snapshot/v1"},
		{"-- a --\n", "x.txtar:1: not a snapshot: the first line is not gpudoctor.snapshot/v1"},
		{"gpudoctor.snapshot/v2\n", "x.txtar:1: made by a newer gpudoctor: its format is gpudoctor.snapshot/v2; this version reads up to 1"},
		{"gpudoctor.snapshot/vx\n", `x.txtar:1: unknown version of the format: "gpudoctor.snapshot/vx"`},
		{head, "x.txtar:1: the recording is truncated: its end is missing"},
		{head + "recorded by gpudoctor 1\n-- a --\nx\n", "x.txtar:4: the recording is truncated: its end is missing"},
		{head + "-- a --\n1\n-- !end --\n\n\nx\n", `x.txtar:4: text after the end of the recording`},
		{head + "-- a --\n1\n-- !end --\n-- b --\n", `x.txtar:4: text after the end of the recording`},
		{head + "-- a --\nx\n-- ../etc/passwd --\n", `x.txtar:4: the path contains ..: "../etc/passwd"`},
		{head + "-- a/../b --\n", `x.txtar:2: the path contains ..: "a/../b"`},
		{head + "-- a//b --\n", `x.txtar:2: the path is not in its canonical form: "a//b"`},
		{head + "-- a gzip --\n", `x.txtar:2: unknown attribute: "gzip"`},
		{head + "-- a hex --\n00\nzz\n", `x.txtar:2: not hex: "zz"`},
		{head + "-- a hex --\n00*99999999999\n", `x.txtar:2: not hex: "00*99999999999"`},
		{head + "-- a hex --\n00*60000000 00*60000000\n", `x.txtar:2: decompresses to more than 64 MiB`},
		{head + "-- a --\n1\n-- a --\n2\n", "x.txtar:4: duplicate entry for this path"},
		{head + "-- a -> --\n", `x.txtar:2: invalid target of a link: ""`},
		{head + "-- a -> b c --\n", `x.txtar:2: invalid target of a link: "b c"`},
		{head + "-- a -> b --\ntext\n", `x.txtar:2: unexpected text in the entry: "text"`},
		{head + "-- a/ --\nb\n../c\n", `x.txtar:4: invalid file name: "../c"`},
		{head + "-- a stat rwx 1 --\n", `x.txtar:2: invalid file mode: "rwx"`},
		{head + "-- a stat -rw-r--r-- -1 --\n", `x.txtar:2: invalid size: "-1"`},
		{head + "-- a !bad-luck --\n", `x.txtar:2: unknown class of failure: "bad-luck"`},
		{head + "-- !not-exist --\na\n..\n", `x.txtar:4: the path contains ..: ".."`},
		{head + "-- answers/nvml.json --\n{\n  \"a\": 1,\n  b\n}\n", `x.txtar:2: the answer to "nvml": invalid character 'b' looking for beginning of object key string`},
		{head + "-- answers/nvml.yaml --\n", `x.txtar:2: an answer must be .json, or .txt in UTF-8: "nvml.yaml"`},
		{head + "-- \"a --\n", `x.txtar:2: unterminated quoted name: "\"a"`},
	} {
		_, err := Parse("x.txtar", []byte(tt.text))
		expect.That(t, err != nil && err.Error() == tt.want, "%q:\n got %v\nwant %s", tt.text, err, tt.want)
	}
	expect.Fails(Parse("x", []byte("gpudoctor.snapshot/v7")))(t, ErrNewer, "it")
}

func TestParseBounds(t *testing.T) {
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	many := "gpudoctor.snapshot/v1\n-- a/ --\n" + strings.Repeat("n\n", maxEntries)
	expect.Fails(Parse("x", []byte(many)))(t, "more than 200000 entries", "many names")
	var deep strings.Builder
	deep.WriteString("gpudoctor.snapshot/v1\n")
	for i := range 1000 {
		fmt.Fprintf(&deep, "-- %d/%s --\n", i, strings.TrimSuffix(strings.Repeat("a/", 1000), "/"))
	}
	expect.Fails(Parse("x", []byte(deep.String())))(t, "more than 400000 paths", "deep paths")
	expect.Fails(Parse("x", make([]byte, MaxSnapshot+1)))(t, "larger than 64 MiB", "large")
}

func TestLinkLoop(t *testing.T) {
	m := &Memory{}
	m.AddLink("/a", "b")
	m.AddLink("/b", "/a")
	m.AddLink("/root", "/")
	m.AddFile("/f", []byte("1"))
	expect.ErrorIs(t, ErrTooManyLinks, readErr(m, "/a", 1), "it")
	b, err := m.ReadFile("/root/root/f", 9)
	expect.That(t, err == nil && string(b) == "1", "through a link to the root: got %q, %v", b, err)
}

// trailers are what may follow a recording, or the place where it was cut off.
var trailers = []string{
	"", "\n", "\n\n \t\r\n", "x", "--", "-- ", "-- --\n", "--  --\n", "-- x --\n", "-- x --", "  -- x --\n", "-- x -- \n", "$ exit\n",
	"this line is longer than any marker -- x --\n", "-- !end --\n", "gpudoctor.snapshot/v1\n-- etc/hostname --\nother\n", "\x00\n", "\xff\xfe",
}

// blank reports whether a trailer says nothing.
func blank(trailer string) bool { return strings.TrimSpace(trailer) == "" }

// checkParsed checks what every text must do: it is parsed, or there is one line that names the place.
func checkParsed(t *testing.T, what string, text []byte) error {
	t.Helper()
	m, err := Parse("x.txtar", text)
	expect.Must(t, err != nil || m != nil, "%s: neither a machine nor an error", what)
	expect.That(t, err == nil || strings.HasPrefix(err.Error(), "x.txtar:") && !strings.Contains(err.Error(), "\n"), "%s: not one line that names the place: %v", what, err)
	return err
}

// smallRecording is a recording of the odd machine without its large file.
func smallRecording(tb testing.TB) []byte {
	tb.Helper()
	return bytes.ReplaceAll(snapshot(tb, oddMachine(), RecordOptions{}), []byte("0123456789abcde\n"), nil)
}

// TestEveryCut cuts a recording at each of its bytes, and puts each trailer behind each of its lines. None may be taken
// for a whole recording but the whole one, with nothing or blank lines behind it.
func TestEveryCut(t *testing.T) {
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	whole, tried := smallRecording(t), 0
	for end := range len(whole) + 1 {
		for i, trailer := range trailers {
			if trailer != "" && (end == 0 || whole[end-1] != '\n') || expect.FewRows() && (end+i)%6 > 0 && end < len(whole) {
				continue
			}
			tried++
			what := fmt.Sprintf("cut at %d of %d, then %q", end, len(whole), trailer)
			err := checkParsed(t, what, slices.Concat(whole[:end], []byte(trailer)))
			switch complete := end >= len(whole)-1; {
			case complete && blank(trailer) && err != nil:
				t.Errorf("%s: %v", what, err)
			case complete && !blank(trailer) && !errors.Is(err, ErrAfterEnd):
				t.Errorf("%s: got %v, want ErrAfterEnd", what, err)
			case !complete && err == nil && trailer != "-- !end --\n" && !headOnly(whole[:end], trailer):
				t.Errorf("%s: taken for a whole recording", what)
			}
		}
	}
	t.Logf("%d texts", tried)
}

// headOnly reports whether a text is cut so short that it does not say that it is
// a recording, and goes on as one by hand.
func headOnly(head []byte, trailer string) bool {
	return !bytes.Contains(head, []byte(recordedBy)) && strings.Contains(trailer, "-- ")
}

func FuzzParse(f *testing.F) {
	recording := smallRecording(f)
	for i, trailer := range trailers {
		f.Add(slices.Concat(recording, []byte(trailer)))
		f.Add(slices.Concat(recording[:len(recording)*i/len(trailers)], []byte(trailer)))
	}
	f.Add([]byte("gpudoctor.snapshot/v1\n-- a/ --\nb\n-- a/b -> c --\n-- answers/x.json --\n{}\n-- !not-exist --\nq\n"))
	f.Add([]byte("gpudoctor.snapshot/v1\nunlisted: not-recorded\n-- a hex part --\n00*9 ff\n-- a stat -rw-r--r-- 1 --\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		roundTrip(t, m)
		if len(data) < 1<<9 {
			_ = recordingRedactor{redact.New()}.memory(m) // It must not panic; FuzzRedact tries texts.
		}
	})
}
