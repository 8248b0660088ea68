// Package child runs a part of this program in a child process of the same binary. Vendor libraries hang for minutes or
// crash on a sick GPU: in a child that costs gpudoctor an answer but does not end it. A child sends what it learns as
// it learns it, so that one that hangs or crashes costs only what it had not yet sent.
//
// A child lives in a process group of its own and never outlives its parent:
// it holds the reading end of a pipe (the lifeline) whose end of file means
// that the parent is gone, and on Linux the kernel kills it as well when the
// thread that started it dies.
package child

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

const (
	// mark is the hidden first argument that makes this binary a child.
	mark = "__child"
	// messageFD and lifelineFD are the numbers, in the child, of its pipes.
	messageFD  = 3
	lifelineFD = 4
	// recordFD is the number, in the child, of the memory that holds its record.
	recordFD = 5
	// maxMessage bounds one message: the answer of 16 GPUs is below 100 kB.
	maxMessage = 8 << 20
	// maxOutput bounds what is kept of a child's stdout and stderr each, unless more is asked for.
	maxOutput = 64 << 10
	// maxWords bounds what is kept of an error that a child reports.
	maxWords = 4 << 10
)

// Spec says what a child does.
type Spec struct {
	// Task is the name of a registered task.
	Task string
	// Args is given to the task as JSON.
	Args any
	// Env is added to the environment of the child, as "NAME=value", and overrides existing variables.
	Env []string
	// Unset are variables that the child does not get.
	Unset []string
	// Deadline bounds the child's life; 0 leaves that to the context.
	Deadline time.Duration
	// Silence, if set, says for how long the child may send no message from now on. It is called at
	// the start, and after each message that was received.
	Silence func() time.Duration
	// Stdout is how much of the child's stdout is kept; 0 means maxOutput.
	Stdout int
	// Input is sent to the child as it comes, until it is closed or the child
	// has ended; the task reads it with Receive.
	Input <-chan any
	// Receive is called with each message as it arrives, from one goroutine, and not after Run has returned.
	Receive func(message json.RawMessage)
}

// Result is the outcome of a child.
type Result struct {
	// Finished is true when the task ran to its end. Failure is the error that it returned then, or empty.
	Finished bool
	Failure  string
	// Exited is true when the process ended with an exit code, which Code is.
	Exited bool
	Code   int
	// Signal names the signal that ended it: "SIGSEGV". A crash that the Go
	// runtime caught (it exits with code 2 then) counts as well.
	Signal string
	// Death says what ended it before its task was done, and Why
	// gives details. Both are empty if this process ended it.
	Death Death
	Why   string
	// Inside are the functions of vendors' libraries that were running when it
	// ended. Recorded is false if that is not known.
	Inside   []string
	Recorded bool
	// TimedOut is true when the deadline ended it, Canceled when the context was canceled.
	TimedOut bool
	Canceled bool
	// Silent is true when it was ended because it sent nothing for too long. Quiet is for how long
	// it had sent nothing when this process ended it.
	Silent bool
	Quiet  time.Duration
	// Flooded is the stream of which the child, or a library in it, wrote more
	// than any healthy one does; it was ended for that. Empty if none.
	Flooded Stream
	// Left is true when it was killed but still exists: it is blocked in the kernel until the kernel releases it.
	Left bool
	// Stdout and Stderr are the last output of it and of the libraries in it.
	Stdout string
	Stderr string
	// Malformed counts messages that could not be understood.
	Malformed int
	// Unsent counts messages that the task could not send: one that holds a NaN, which JSON cannot express, or one that
	// is too long. UnsentReason is the first one's error.
	Unsent       int
	UnsentReason string
}

// envelope is one line on the message pipe: a message, why it is missing, or the end.
type envelope struct {
	Message json.RawMessage `json:"message,omitempty"`
	Unsent  string          `json:"unsent,omitempty"`
	Done    bool            `json:"done,omitempty"`
	Failure string          `json:"failure,omitempty"`
}

func (e *envelope) whole() bool {
	things := 0
	for _, is := range []bool{e.Message != nil, e.Unsent != "", e.Done} {
		if is {
			things++
		}
	}
	return things == 1
}

// Run runs a task in a child and waits for its end, at most until the deadline and 2 s more. All that it wrote is read. An
// error means that there was no child; whatever a child did is in the Result.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if spec.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, spec.Deadline)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("start task %s: %w", spec.Task, err)
	}
	args, err := json.Marshal(spec.Args)
	if err != nil {
		return Result{}, fmt.Errorf("start task %s: %w", spec.Task, err)
	}
	pipes, err := openPipes()
	if err != nil {
		return Result{}, fmt.Errorf("start task %s: %w", spec.Task, err)
	}
	defer pipes.close()
	proc, ended, err := start(spec, string(args), pipes)
	if err != nil {
		return Result{}, fmt.Errorf("start task %s: %w", spec.Task, err)
	}
	pipes.closeTheirs()

	gone := make(chan struct{})
	defer close(gone)
	go feed(pipes.lifeline.ours, spec.Input, gone)
	heard, awaited := make(chan time.Duration), make(chan struct{})
	var r Result
	inbox := newInbox(&r, func(m json.RawMessage) {
		if spec.Receive != nil {
			spec.Receive(m)
		}
		select {
		case heard <- spec.silence():
		case <-awaited:
		}
	})
	limit := spec.silence() // Before anything is received, which may change it.
	stdout, stderr := &tail{max: cmp.Or(spec.Stdout, maxOutput)}, &tail{max: maxOutput}
	var readers sync.WaitGroup
	flooded := make(chan Stream, 3) // One place for each reader.
	read := func(name Stream, passed func() bool) {
		readers.Go(func() {
			if passed() {
				flooded <- name
			}
		})
	}
	read(Messages, func() bool { return inbox.read(toEmpty{pipes.message.ours}) })
	read(Stdout, func() bool { return drainInto(stdout, toEmpty{pipes.stdout.ours}, maxOutputRead) })
	read(Stderr, func() bool { return drainInto(stderr, toEmpty{pipes.stderr.ours}, maxOutputRead) })

	state := await(ctx, &r, ended, inbox.done, flooded, heard, limit)
	close(awaited)
	if state == nil { // It must go.
		kill(proc)
		shut(pipes.lifeline.ours)
		state = within(deadline.Kill, ended)
	}
	r.Left = state == nil
	pipes.hurry()
	readers.Wait()
	select {
	case stream := <-flooded: // It was seen after another end.
		r.Flooded = cmp.Or(r.Flooded, stream)
	default:
	}
	r.Stdout, r.Stderr = stdout.String(), stderr.String()
	r.conclude(state)
	var rec record
	if pipes.record != nil {
		rec = readRecord(pipes.record)
	}
	r.judge(rec)
	return r, nil
}

func feed(w io.Writer, input <-chan any, gone <-chan struct{}) {
	for {
		select {
		case v, ok := <-input:
			if !ok {
				return
			}
			if line, err := json.Marshal(v); err == nil {
				_, _ = w.Write(append(line, '\n')) // A child that is gone needs no word.
			}
		case <-gone:
			return
		}
	}
}

// await returns the child's state once it has exited by itself, or nil once it has to be ended.
func await(
	ctx context.Context, r *Result, ended <-chan *ending, done <-chan struct{}, flooded <-chan Stream, heard <-chan time.Duration, limit time.Duration,
) *ending {
	last, silence := time.Now(), time.NewTimer(limit)
	defer silence.Stop()
	for {
		select {
		case state := <-ended:
			return state
		case <-done:
			return within(deadline.Kill, ended)
		case r.Flooded = <-flooded:
			return nil
		case limit := <-heard:
			last = time.Now()
			silence.Reset(limit)
			continue
		case <-silence.C:
			r.Silent = true
		case <-ctx.Done():
			r.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
			r.Canceled = !r.TimedOut
		}
		r.Quiet = time.Since(last)
		return nil
	}
}

func (s *Spec) silence() time.Duration {
	if s.Silence == nil {
		return math.MaxInt64
	}
	return s.Silence()
}

func within(d time.Duration, ended <-chan *ending) *ending {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case state := <-ended:
		return state
	case <-timer.C:
		return nil
	}
}

func (r *Result) conclude(state *ending) {
	if r.Finished { // The deadline that came while it was leaving took nothing.
		r.TimedOut, r.Canceled, r.Silent, r.Quiet = false, false, false, 0
	}
	if state == nil {
		return
	}
	r.Exited, r.Code, r.Signal = state.exited, state.code, state.signal
	if r.Code == 2 && !r.Finished {
		r.Signal = runtimeSignal.First(r.Stderr)
	}
}

// ending is how a process ended: with an exit code, by a signal, or in an unknown way.
type ending struct {
	exited bool
	code   int
	signal string
}

// runtimeSignal is how the Go runtime begins its report of a fatal signal: "SIGSEGV: segmentation violation" or
// "[signal SIGSEGV: ..." (runtime, fatalsignal and printpanics).
var runtimeSignal = lazy.New(`(?m)^(?:\[signal )?(SIG[A-Z]{2,6}):? `)

// family are the children that this process has started.
var family struct {
	sync.Mutex
	// pids are their numbers. The value is false for one that has ended.
	pids map[int]bool
	// adopted is true if each child of this process descends from one of them. It is set before the first.
	adopted bool
}

// give starts a child and adds it to the family, before any sweep may come across it.
func give(begin func() (*os.Process, error)) (*os.Process, error) {
	family.Lock()
	defer family.Unlock()
	proc, err := begin()
	if err != nil {
		return nil, err
	}
	if family.pids == nil {
		family.pids = make(map[int]bool)
	}
	family.pids[proc.Pid] = true
	return proc, nil
}

// Own is true for this process, all children that it has started, and their living descendants.
func Own(pid int) bool {
	family.Lock()
	defer family.Unlock()
	const generations = 8 // A child of a child is the deepest there is; more are a loop of reused numbers.
	for generation := range generations {
		_, started := family.pids[pid]
		if started || pid == os.Getpid() && (generation == 0 || family.adopted) {
			return true
		}
		if pid = parentOf(pid); pid <= 1 {
			return false
		}
	}
	return false
}

// parentIn returns the parent's id from /proc/PID/stat, or 0. The name in parentheses may hold anything.
func parentIn(stat []byte) int {
	_, rest, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1])) // state ppid: proc_pid_stat(5).
	if err != nil {
		return 0
	}
	return pid
}

// start starts the child. The channel gives its state once it was reaped.
func start(spec Spec, args string, pipes *pipes) (*os.Process, <-chan *ending, error) {
	path, err := self()
	if err != nil {
		return nil, nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer shut(null)
	attr := &os.ProcAttr{
		Env:   environment(os.Environ(), spec.Unset, spec.Env),
		Files: []*os.File{null, pipes.stdout.theirs, pipes.stderr.theirs, pipes.message.theirs, pipes.lifeline.theirs, cmp.Or(pipes.record, null)},
		Sys:   attributes(),
	}
	var proc *os.Process
	begun, ended := make(chan error, 1), make(chan *ending, 1)
	go func() {
		// The kernel ties the child's life to the thread that started it (PR_SET_PDEATHSIG).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		proc, err = give(func() (*os.Process, error) {
			return os.StartProcess(path, []string{os.Args[0], mark, spec.Task, args}, attr)
		})
		begun <- err
		if err != nil {
			return
		}
		awaitExit(proc)
		state := reap(proc)
		sweep()
		ended <- state
	}()
	err = <-begun
	return proc, ended, err
}

// environment returns base without some variables, and with those of extra instead of
// those of the same name: of two, libc and Go would take the first.
func environment(base, unset, extra []string) []string {
	return append(slices.Clone(extra), slices.DeleteFunc(slices.Clone(base), func(old string) bool {
		name, _, _ := strings.Cut(old, "=")
		return slices.Contains(unset, name) || slices.ContainsFunc(extra, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})...)
}

type pipe struct{ ours, theirs *os.File }

// pipes are those of a child, and the memory for its record, nil if it has no record.
type pipes struct {
	stdout, stderr, message, lifeline pipe
	record                            *os.File
}

func openPipes() (*pipes, error) {
	p := &pipes{}
	for _, end := range []struct{ reader, writer **os.File }{
		{&p.stdout.ours, &p.stdout.theirs},
		{&p.stderr.ours, &p.stderr.theirs},
		{&p.message.ours, &p.message.theirs},
		{&p.lifeline.theirs, &p.lifeline.ours},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, err
		}
		*end.reader, *end.writer = r, w
	}
	p.record = newRecord()
	return p, nil
}

func (p *pipes) all() []pipe { return []pipe{p.stdout, p.stderr, p.message, p.lifeline} }

func (p *pipes) close() {
	p.closeTheirs()
	for _, one := range p.all() {
		shut(one.ours)
	}
	shut(p.record)
}

func (p *pipes) closeTheirs() {
	for _, one := range p.all() {
		shut(one.theirs)
	}
}

// shut closes a file: nothing more is to be written, so that an error loses nothing.
func shut(f *os.File) { _ = f.Close() }

// hurry makes the readers stop once a pipe is empty: a process that left the child's group may hold it open.
func (p *pipes) hurry() {
	for _, one := range []pipe{p.stdout, p.stderr, p.message} {
		if err := one.ours.SetReadDeadline(time.Unix(1, 0)); err != nil {
			shut(one.ours) // Where pipes know no deadline.
		}
	}
}

// toEmpty reads a pipe to its end and, past the pipe's deadline, what is there: all that a process wrote lies in the pipe
// by the time that it is dead.
type toEmpty struct{ pipe *os.File }

func (t toEmpty) Read(b []byte) (int, error) {
	n, err := t.pipe.Read(b)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	return readNow(t.pipe, b)
}

// inbox takes the messages of one child, and adds to its result what they say of its task.
type inbox struct {
	*Result
	receive func(json.RawMessage)
	done    chan struct{} // Closed when the task has ended.
	// bytes, longest and most bound the messages together, each one's length, and their number.
	bytes         int64
	longest, most int
}

func newInbox(r *Result, receive func(json.RawMessage)) *inbox {
	return &inbox{Result: r, receive: receive, done: make(chan struct{}), bytes: maxMessageBytes, longest: maxMessage, most: maxMessages}
}

// read takes messages until the end of r, or until a bound is passed, which it reports. What cannot be understood, such as
// the noise of a library that writes to a descriptor that is not its own, is counted.
func (in *inbox) read(r io.Reader) (flooded bool) {
	from := bounded(r, in.bytes)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, in.longest)
	for n := 0; lines.Scan(); n++ {
		if n == in.most {
			return true
		}
		in.take(lines.Bytes())
	}
	return from.N == 0 || errors.Is(lines.Err(), bufio.ErrTooLong)
}

func (in *inbox) take(line []byte) {
	var e envelope
	switch err := json.Unmarshal(line, &e); {
	case in.Finished || err != nil || !e.whole():
		in.Malformed++
	case e.Done:
		in.Finished, in.Failure = true, words(e.Failure)
		close(in.done)
	case e.Unsent != "":
		in.Unsent++
		in.UnsentReason = cmp.Or(in.UnsentReason, words(e.Unsent))
	default:
		in.receive(e.Message)
	}
}

// words returns the first maxWords bytes of s, without a partial character.
func words(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWords)], "") }

type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	n := len(b)
	b = b[max(0, n-t.max):]
	if over := len(t.buf) + len(b) - t.max; over > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[over:])]
	}
	t.buf = append(t.buf, b...)
	return n, nil
}

func (t *tail) String() string { return string(bytes.ToValidUTF8(t.buf, []byte("?"))) }
