package child

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestFlood checks that a child that writes without end is ended soon, that the
// result names the stream, and that this costs a share of one core.
func TestFlood(t *testing.T) {
	for _, tt := range []struct {
		stream Stream
		task   string
		fd     int
	}{
		{Stdout, "flood", 1},
		{Stderr, "flood", 2},
		{Messages, "flood", messageFD},
		{Messages, "lines", 0},
	} {
		t.Run(fmt.Sprint(tt.task, " ", tt.stream), func(t *testing.T) {
			start, cpu := time.Now(), spent(t)
			var received, size int
			r := expect.Value(Run(t.Context(), Spec{Task: tt.task, Args: tt.fd, Deadline: 5 * time.Minute, Receive: func(m json.RawMessage) {
				received++
				size += len(m)
			}}))(t)
			took, cpu := time.Since(start), spent(t)-cpu
			want := Result{Flooded: tt.stream, Signal: "SIGKILL", Stdout: r.Stdout, Stderr: r.Stderr, Malformed: r.Malformed, Recorded: r.Recorded}
			expect.NoDiff(t, want, r, "Run")
			if len(r.Stdout) > maxOutput || len(r.Stderr) > maxOutput || received == 0 || received > maxMessages {
				t.Errorf("kept %d and %d bytes of output, received %d messages", len(r.Stdout), len(r.Stderr), received)
			}
			if took > time.Minute { // 2 s on an idle machine.
				t.Errorf("took %s", took)
			}
			if cpu > 20*time.Second { // 0.2 s on an idle machine.
				t.Errorf("took %s of processor time", cpu)
			}
			t.Logf("%s, of which %s of this process's processor time; %d messages", took.Round(time.Millisecond), cpu.Round(time.Millisecond), received)
		})
	}
}

// spent is the processor time of this process.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	expect.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestUnsent checks that a message that could not be sent is reported, although the task ran to its end.
func TestUnsent(t *testing.T) {
	var sizes []int
	r := expect.Value(Run(t.Context(), Spec{Task: "unsendable", Receive: func(m json.RawMessage) { sizes = append(sizes, len(m)) }}))(t)
	want := Result{Finished: true, Exited: true, Unsent: 3, UnsentReason: "encode a message: json: unsupported value: NaN", Recorded: r.Recorded}
	expect.NoDiff(t, want, r, "Run")
	expect.NoDiff(t, []int{maxMessage - envelopeBytes}, sizes, "sizes of messages")
}

// TestBoundedBytes checks that as much as the bound is no flood, and one byte more is, of which no more is read.
func TestBoundedBytes(t *testing.T) {
	const limit = 1000
	for size, want := range map[int]bool{0: false, 1: false, 999: false, 1000: false, 1001: true, 5000: true} {
		r := strings.NewReader(strings.Repeat("x", size))
		kept := &tail{max: 10}
		expect.Equal(t, want, drainInto(kept, r, limit), "%d bytes: flooded", size)
		read := size - r.Len()
		expect.That(t, read <= 1001, "%d bytes were read of %d", read, size)
		expect.That(t, len(kept.buf) <= 10, "kept %d bytes", len(kept.buf))
	}
	failing := io.MultiReader(strings.NewReader("x"), failingReader{})
	expect.That(t, !drainInto(io.Discard, failing, limit), "a pipe that breaks is taken for a flood")
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestInboxBounds(t *testing.T) {
	done := `{"done":true}` + "\n"
	for _, tt := range []struct {
		name, in string
		flooded  bool
	}{
		{"as long as may be", `{"message":"` + strings.Repeat("x", 85) + `"}` + "\n" + done, false},
		{"a message too long", `{"message":"` + strings.Repeat("x", 86) + `"}` + "\n" + done, true},
		{"noise without an end of line", strings.Repeat("x", 500) + "\n" + done, true},
		{"as many as may be", strings.Repeat("\n", 19) + done, false},
		{"too many", strings.Repeat("\n", 20) + done, true},
		{"too many that are good", strings.Repeat(`{"message":1}`+"\n", 20) + done, true},
		{"as many bytes as may be", strings.Repeat(strings.Repeat("x", 90)+"\n", 10) + strings.Repeat("x", 75) + "\n" + done, false},
		{"too many bytes", strings.Repeat(strings.Repeat("x", 90)+"\n", 10) + strings.Repeat("x", 76) + "\n" + done, true},
	} {
		in := small(func(json.RawMessage) {})
		flooded := in.read(strings.NewReader(tt.in))
		// That the end stood there before the flood's last byte is no matter.
		expect.That(t, flooded == tt.flooded && (flooded || in.Finished), "%s: flooded %t, finished %t; want flooded %t", tt.name, flooded, in.Finished, tt.flooded)
	}
}

func small(receive func(json.RawMessage)) *inbox {
	in := newInbox(&Result{}, receive)
	in.bytes, in.longest, in.most = 1000, 100, 20
	return in
}

// understood is what an inbox is to make of messages: the reference for the fuzzing, in the plainest words.
func understood(b []byte, longest, most int, total int64) (messages []string, malformed, unsent int, finished, flooded bool) {
	if int64(len(b)) > total {
		b, flooded = b[:total+1], true
	}
	lines := bytes.Split(b, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	for i, line := range lines {
		last := i == len(lines)-1 && !bytes.HasSuffix(b, []byte("\n"))
		if i == most || len(line) >= longest || (last && flooded && len(line) >= longest) {
			return messages, malformed, unsent, finished, true
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		var e struct {
			Message json.RawMessage
			Unsent  string
			Done    bool
			Failure string
		}
		err := json.Unmarshal(line, &e)
		switch {
		case err != nil || finished:
			malformed++
		case e.Message != nil && e.Unsent == "" && !e.Done:
			messages = append(messages, string(e.Message))
		case e.Message == nil && e.Unsent != "" && !e.Done:
			unsent++
		case e.Message == nil && e.Unsent == "" && e.Done:
			finished = true
		default:
			malformed++
		}
	}
	return messages, malformed, unsent, finished, flooded
}

// protocolSeeds are conversations that went wrong.
var protocolSeeds = []string{
	"",
	"{\"message\":1}\n{\"done\":true}\n",
	"{\"done\":true}\n{\"done\":true}\nnoise",
	"{\"done\":true,\"failure\":\"no luck\"}\n{\"message\":1}\n",
	"{\"message\":1}\n{\"message\":1}\n{\"message\":2}\n",
	"{\"message\":{\"transfer\":{\"gbps\":NaN}}}\n{\"done\":true}\n",
	"{\"message\":{\"transfer\":{\"gbps\":1e999}}}\n{\"done\":true}\n",
	"{\"unsent\":\"NaN\"}\n{\"done\":true}\n",
	"{\"unsent\":\"NaN\",\"done\":true}\n",
	"{\"message\":null}\n{\"message\":{}}\n{}\nnull\n[]\n1\n\"done\"\n",
	"{\"message\":1}\n{\"done\":tr",
	"{\"DONE\":true}\n",
	"\r\n{\"done\":true}\r\n",
	"SIGSEGV: segmentation violation\n",
	"\x00\xff{\"done\":true}\n",
	strings.Repeat("[", 99) + "\n",
	strings.Repeat("\n", 25),
	strings.Repeat("x", 2000),
}

func FuzzInbox(f *testing.F) {
	for _, s := range protocolSeeds {
		f.Add([]byte(s), byte(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, chunk byte) {
		var got []string
		in := small(func(m json.RawMessage) {
			expect.That(t, json.Valid(m), "received %q, which is no JSON", m)
			got = append(got, string(m))
		})
		r := bytes.NewReader(b)
		flooded := in.read(chunks{r, int(chunk)%50 + 1})
		messages, malformed, unsent, finished, wantFlooded := understood(b, in.longest, in.most, in.bytes)
		expect.Must(t, flooded == wantFlooded, "flooded %t, want %t", flooded, wantFlooded)
		read := len(b) - r.Len()
		expect.That(t, int64(read) <= in.bytes+1, "%d bytes were read", read)
		expect.NoDiff(t, messages, got, "messages")
		if in.Malformed != malformed || in.Unsent != unsent || in.Finished != finished {
			t.Errorf("malformed %d, unsent %d, finished %t; want %d, %d, %t", in.Malformed, in.Unsent, in.Finished, malformed, unsent, finished)
		}
		_ = parentIn(b) // It must not panic.
		s := runtimeSignal.First(string(b))
		expect.That(t, s == "" || strings.HasPrefix(s, "SIG"), "the signal is %q", s)
	})
}

// chunks reads so many bytes at a time, as a pipe may give them.
type chunks struct {
	r io.Reader
	n int
}

func (c chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), c.n)]) }
