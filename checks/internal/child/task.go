package child

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// task is what a child does. It gets the arguments of its Spec and sends
// messages as it goes; an error that it returns becomes Result.Failure.
type task func(ctx context.Context, args json.RawMessage, send func(message any) error) error

var tasks = map[string]task{}

// Register names a task, which gets the arguments of its Spec. Call it before Main, from an init
// function; a duplicate name is a bug and panics.
func Register[T any](task string, f func(ctx context.Context, args T, send func(message any) error) error) {
	if _, taken := tasks[task]; taken {
		panic("child: task " + task + " is registered twice")
	}
	tasks[task] = func(ctx context.Context, raw json.RawMessage, send func(message any) error) error {
		var args T
		if err := json.Unmarshal(raw, &args); err != nil {
			return err
		}
		return f(ctx, args, send)
	}
}

// Root prepares a program that starts processes only by Run, before any is started: whatever descends from a child then
// ends with it. Without Root, as in a test, only the child's process group does.
func Root() error {
	if err := numbered(); err != nil {
		return err
	}
	claim()
	return nil
}

// Exit exits without waiting for a Run: its child, and all that descends from it, is ended.
func Exit(code int) {
	endChildren()
	os.Exit(code)
}

// numbered returns an error if this process does not know its number, by which it is signaled.
func numbered() error {
	if pid := os.Getpid(); pid < 1 {
		return fmt.Errorf("the system denies the process its own ID: getpid returns %d", pid)
	}
	return nil
}

// Main runs the task if this process is a child, and never returns then. It must be called first in main, and in TestMain.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != mark {
		return
	}
	if err := numbered(); err != nil {
		fmt.Fprintf(os.Stderr, "gpudoctor: %s\n", err)
		os.Exit(2)
	}
	messages, lifeline := inherited(messageFD), inherited(lifelineFD)
	if len(os.Args) != 4 || messages == nil || lifeline == nil {
		fmt.Fprintf(os.Stderr, "gpudoctor: %s is for internal use only\n", mark)
		os.Exit(2)
	}
	settle()
	// One goroutine shows where a crash was; all would push that out of what is kept.
	debug.SetTraceback("single")
	atomic.StoreUint32(wordAt(startedAt), 1)
	go hold(lifeline)
	out := &outbox{pipe: messages}
	err := perform(os.Args[2], json.RawMessage(os.Args[3]), out)
	end := envelope{Done: true}
	if err != nil {
		end.Failure = words(err.Error())
	}
	code := 0
	if out.write(end) != nil {
		code = 1
	}
	// os.Exit is exit_group(2) at once: no destructor of a vendor library runs, which may hang.
	os.Exit(code)
}

func perform(name string, args json.RawMessage, out *outbox) error {
	task, ok := tasks[name]
	if !ok {
		return fmt.Errorf("no task %q", name)
	}
	return task(context.Background(), args, out.send)
}

// hold ends this process, and those that it left in its group, when the parent is gone.
func hold(lifeline *os.File) {
	lines := bufio.NewScanner(lifeline)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		incoming <- json.RawMessage(bytes.Clone(lines.Bytes()))
	}
	killGroup()
	os.Exit(1)
}

// incoming holds what the task has not yet read. A parent sends no more than that: it does not fill up.
var incoming = make(chan json.RawMessage, 1024)

// Receive waits for the next of the parent's Spec.Input.
func Receive[T any](ctx context.Context) (message T, err error) {
	select {
	case raw := <-incoming:
		if err = json.Unmarshal(raw, &message); err != nil {
			err = fmt.Errorf("decode the parent's message: %w", err)
		}
		return message, err
	case <-ctx.Done():
		return message, ctx.Err()
	}
}

// inherited returns the pipe that the parent gave this process as a descriptor, or nil.
func inherited(fd uintptr) *os.File {
	f := os.NewFile(fd, "pipe from the parent")
	if f == nil {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	return f
}

// outbox sends messages; it may be used by several goroutines.
type outbox struct {
	mu   sync.Mutex
	pipe *os.File
}

// send sends a message. The parent hears if one cannot be sent, even if the task ignores the error.
func (o *outbox) send(message any) error {
	raw, err := json.Marshal(message)
	if err == nil && len(raw) > maxMessage-envelopeBytes {
		err = fmt.Errorf("%d bytes are over the limit", len(raw))
	}
	if err != nil {
		err = fmt.Errorf("encode a message: %w", err)
		return errors.Join(err, o.write(envelope{Unsent: words(err.Error())}))
	}
	return o.write(envelope{Message: raw})
}

// envelopeBytes is more than an envelope has around its message.
const envelopeBytes = 64

func (o *outbox) write(e envelope) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.pipe.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("send a message: %w", err)
	}
	return nil
}
