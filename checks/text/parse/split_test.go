package parse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// splitInto gives the lines of a text that comes in pieces of a size: the number, "~"
// where another one took its place, and what it says.
func splitInto(data []byte, size int) (lines []string, s *splitter) {
	s = newSplitter(data[:min(size, len(data))])
	number := 0
	for in := s.scanner(&withoutZeros{from: pieces{bytes.NewReader(data), size}}); in.Scan(); {
		if s.numbered {
			number++
		}
		mark := ""
		if s.overwritten {
			mark = "~"
		}
		lines = append(lines, fmt.Sprintf("%d%s %s", number, mark, in.Text()))
	}
	return lines, s
}

// pieces gives at most so many bytes at a time.
type pieces struct {
	io.Reader
	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }

// TestSplit checks what a line is, and by which number it goes.
func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"a\nb":                {"1 a", "2 b"},
		"a\r\n\r\nb\r\n":      {"1 a", "2 ", "3 b"},
		"a\r\r\nb\n":          {"1 a", "2 b"},
		"a\rb\r\nc\n":         {"1~ a", "1 b", "2 c"},
		"\ra\n\r\rb\rc\n":     {"1 a", "2~ b", "2 c"},
		"a\rb\rc":             {"1 a", "2 b", "3 c"},
		"a\r\rb\r":            {"1 a", "2 ", "3 b"},
		"a\nb\rc\r":           {"1 a", "2~ b", "2 c"},
		"\x00\x00a\nb\n":      {"1 a", "2 b"},
		"\x00\n\x00\x00\nb\n": {"1 ", "2 ", "3 b"},
		"A=1\x00B=2\x00":      {"1 A=1", "1 B=2"},
		"a\x00\x00\x00b\nc\n": {"1 a", "1 b", "2 c"},
		"a\nb\x00c\x00\n\x00": {"1 a", "2 bc"},
		"\n\n":                {"1 ", "2 "},
	} {
		got, _ := splitInto([]byte(text), 1<<20)
		expect.That(t, slices.Equal(got, want), "%q: got %q, want %q", text, got, want)
	}
}

// FuzzSplit checks that it does not matter in which chunks a text comes, that no byte
// but ends of lines is lost unnoticed, and that lines are numbered as editors do.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a\r\nb\rc\n\nd"), uint8(2))
	f.Add([]byte("a\rb\r\r\n\r\r"), uint8(1))
	f.Add(append(bytes.Repeat([]byte("x"), MaxLine+3), "\r\ny\n"...), uint8(255))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		for i, b := range data {
			if b == 0 {
				data[i] = '0' // Whether a zero byte is dropped depends on its neighbours.
			}
		}
		chunk := 1 + len(data)*max(int(size), len(data)>>12)/256 // A long text in single bytes takes seconds.
		first := data[:min(len(data), chunk)]
		if bytes.Contains(first, []byte("\n")) != bytes.Contains(data, []byte("\n")) {
			return // The first chunk tells what ends a line.
		}
		want, s := splitInto(data, 1<<30)
		if !s.returns && !bytes.Contains(first, []byte("\n")) && bytes.Contains(data, []byte("\r")) {
			return
		}
		got, parts := splitInto(data, chunk)
		expect.That(t, bytes.Contains(first, []byte("\r")) != bytes.Contains(data, []byte("\r")) || slices.Equal(got, want) && parts.cutBytes == s.cutBytes, "in chunks of %d: %q, want %q", chunk, got, want)
		said := int(s.cutBytes)
		for _, l := range want {
			_, text, _ := strings.Cut(l, " ")
			said += len(text)
		}
		there := len(data) - bytes.Count(data, []byte("\n")) - bytes.Count(data, []byte("\r"))
		expect.That(t, said == there, "%d of %d bytes are in a line", said, there)
		if n := bytes.Count(data, []byte("\n")); n > 0 && len(want) > 0 {
			last, _, _ := strings.Cut(want[len(want)-1], " ")
			lines := n
			if tail := bytes.Trim(data[bytes.LastIndexByte(data, '\n')+1:], "\r"); len(tail) > 0 {
				lines++
			} else if data[len(data)-1] == '\r' {
				return // Nothing but carriage returns: a line or none.
			}
			expect.That(t, strings.TrimSuffix(last, "~") == fmt.Sprint(lines), "the last line is %s, want %d", last, lines)
		}
	})
}

// TestEndOfStream checks that a compressed stream that was cut off is told from the end of a text.
func TestEndOfStream(t *testing.T) {
	for from, want := range map[error]error{io.EOF: nil, io.ErrUnexpectedEOF: io.ErrUnexpectedEOF} {
		r := newScanner(&anchorSet{AnchorSet: message.NewAnchorSet([][]string{{"NCCL WARN"}})}, false)
		r.split(nil, io.MultiReader(strings.NewReader("abc"), failed{from}))
		l, _, ok := r.next()
		expect.That(t, ok && l.Text == "abc" && errors.Is(r.err, want), "got %q, %v, want %v", l.Text, r.err, want)
	}
}

// TestPlain checks which bytes make a line one that is not plain, at each place.
func TestPlain(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c < 0x7f || c == '\t'
		for _, around := range []byte{' ', 'a', '~', '\t'} {
			for at := range 20 {
				line := bytes.Repeat([]byte{around}, 20)
				line[at] = byte(c)
				expect.Equal(t, want, plain(line), "%q", line)
			}
		}
	}
}

// TestWatch checks that a change is put down to a line only until another one is looked at.
func TestWatch(t *testing.T) {
	s := NewSink()
	s.begin("a.txt", "", &Prompt{})
	g := s.GPU("0000:01:00.0", Line{Number: 1})
	g.Name = "in line 1"
	s.ledger.reached(2)
	g.UUID = "too late"
	s.Watch("gpus.devices[0000:01:00.0]", g, Line{Number: 3})
	g.Architecture = "in line 3"
	s.Device("0000:02:00.0", Line{Number: 4})
	g.RecoveryAction = "too late as well"
	s.ledger.close()
	s.join()
	got := map[string]int{}
	for _, o := range s.ledger.origins(s.Facts) {
		got[o.Fact[strings.LastIndexByte(o.Fact, '.')+1:]] = o.Line
	}
	expect.That(t, fmt.Sprint(got) == "map[architecture:3 name:1]", "got %v", got)
}

// TestNameGPUs checks, for every way in which three GPUs can share two indices, that a
// GPU known by its index alone is the one GPU with that index, and none where several
// have it; and that the order in which a map is walked decides nothing.
func TestNameGPUs(t *testing.T) {
	t.Parallel()
	for indices := range 8 {
		var first *facts.Facts
		for range 16 {
			s := NewSink()
			owners := map[int][]string{}
			for i := range 3 {
				index := indices >> i & 1
				address := fmt.Sprintf("0000:%02x:00.0", i+1)
				s.GPU(address, Line{}).Index = &index
				owners[index] = append(owners[index], address)
			}
			for index := range 2 {
				s.GPU(GPUName(index), Line{}).Index = &index
				s.GPU(GPUName(index), Line{}).Name = fmt.Sprintf("model %d", index)
			}
			s.join()
			for _, g := range s.Facts.GPUs.Devices {
				same := owners[*g.Index]
				alone := len(same) == 1
				named := g.Name != ""
				expect.That(t, named == (alone || g.Address == GPUName(*g.Index)) && (!alone || g.Address == same[0]), "indices %03b: GPU %s has index %d and name %q; the index is that of %v", indices, g.Address, *g.Index, g.Name, same)
			}
			if first == nil {
				first = s.Facts
			} else {
				expect.NoDiff(t, first.GPUs, s.Facts.GPUs, "indices %03b", indices)
			}
		}
	}
}
