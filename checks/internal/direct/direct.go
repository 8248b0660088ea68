// Package direct tries, in child processes, whether devices reach the memory of GPUs without the host's: a
// NIC, with which the memory is registered through libibverbs (GPUDirect RDMA), and a drive, from which cuFile
// reads into it (GPUDirect Storage). Loaded modules and versions say what should work; only the calls
// show what does.
//
// Nothing that is tried outlives the child: memory and its registrations are the child's own, and the file
// that is read has a name only while cuFile opens it.
package direct

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// The questions: Registrations are answered with an Answer of Tries, Reads with one of reads.
const (
	Registrations = "gpudirect-registrations"
	Reads         = "gpudirect-reads"
)

// The ways to register memory with an RDMA device.
const (
	// Host is memory of the process: the control, which needs no GPU.
	Host = "host"
	// DMABuf is memory of a GPU that its driver gives as a DMA-BUF, Peermem the same by its address, for
	// which the module nvidia-peermem gives the pages.
	DMABuf  = "dmabuf"
	Peermem = "peermem"
)

// The ways in which cuFile reads.
const (
	// Direct is with the compatibility mode forbidden, Configured as cuFile is set up.
	Direct     = "direct"
	Configured = "configured"
)

// forbidCompat forbids the compatibility mode (GPUDirect Storage Troubleshooting Guide, environment variables).
const forbidCompat = "CUFILE_ALLOW_COMPAT_MODE=false"

// Corrupt is the outcome of a read that succeeded and brought other data.
const Corrupt = "corrupt"

// Try is one thing to try.
type Try struct {
	Way string `json:"way"`
	// GPU is its PCI address, empty for Host.
	GPU string `json:"gpu,omitempty"`
	// Device is the name of an RDMA device, Mount the path of a file system.
	Device string `json:"device,omitempty"`
	Mount  string `json:"mount,omitempty"`

	// name is that of a file on the mount, for the child that makes it.
	name string
}

// Tried is what came of it.
type Tried struct {
	Try

	Result attempt.Result `json:"result"`
}

// Answer is what was tried, in order.
type Answer struct {
	Tried []Tried `json:"tried"`
}

// Limits are how long something may take; 0 means the usual.
type Limits struct {
	// Step bounds each call that may hang, All everything.
	Step, All time.Duration
}

// message is what a child sends: that it begins with a try, or what came of it. At is -1 when it has started.
type message struct {
	At     int             `json:"at"`
	Begun  bool            `json:"begun,omitempty"`
	Result *attempt.Result `json:"result,omitempty"`
}

// order says what a child does.
type order struct {
	Tries []Try `json:"tries"`
	// Name is what a file on a mount is called while cuFile opens it.
	Name string `json:"name,omitempty"`
}

const (
	registerTask = "register with NICs"
	readTask     = "read with cuFile"
)

func init() {
	for task, begin := range map[string]func() func(Try) attempt.Result{registerTask: newRegistrar, readTask: newReader} {
		child.Register(task, func(_ context.Context, args json.RawMessage, send func(any) error) error {
			var o order
			if err := json.Unmarshal(args, &o); err != nil {
				return err
			}
			if err := send(message{At: -1}); err != nil {
				return err
			}
			perform := begin()
			for i, t := range o.Tries {
				if err := send(message{At: i, Begun: true}); err != nil {
					return err
				}
				t.name = o.Name
				r := perform(t)
				if err := send(message{At: i, Result: &r}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// maxChildren bounds the children that continue after one that ended: each starts the driver again.
const maxChildren = 3

// runner tries one thing after the other.
type runner struct {
	task   string
	env    []string
	limits Limits
	// file is the name of a file that a child makes on a mount.
	file string
}

// Register registers memory in the ways that the tries name.
func Register(ctx context.Context, tries []Try, limits Limits) (*Answer, error) {
	return (&runner{task: registerTask, limits: limits}).run(ctx, tries)
}

// Read has cuFile read a file of a mount into the memory of a GPU: directly, and where that is not possible, as
// it is set up. Each is in a child of its own, because cuFile reads its settings once.
func Read(ctx context.Context, gpu, mount string, limits Limits) *Answer {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(limits.All, deadline.DirectAll))
	defer cancel()
	var all Answer
	for _, way := range []string{Direct, Configured} {
		env := []string{"CUFILE_LOGFILE_PATH="}
		if way == Direct {
			env = append(env, forbidCompat)
		}
		t := Tried{Try: Try{Way: way, GPU: gpu, Mount: mount}}
		if a, err := readOn(ctx, &runner{task: readTask, env: env, limits: limits}, t.Try); err != nil {
			t.Result = unknown(err.Error())
		} else {
			t = a.Tried[0]
		}
		all.Tried = append(all.Tried, t)
		if t.Result.Outcome != attempt.Refused {
			break
		}
	}
	return &all
}

// readOn makes one read. Whatever became of the child, no file of its has a name after that.
func readOn(ctx context.Context, r *runner, t Try) (*Answer, error) {
	r.file = ".gpudoctor-" + rand.Text()
	defer func() {
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_ = os.Remove(filepath.Join(t.Mount, r.file)) // The child did, usually.
		}()
		select {
		case <-gone:
		case <-time.After(deadline.File): // The drive does not answer.
		}
	}()
	return r.run(ctx, []Try{t})
}

// run makes the tries. One that ends the child, or hangs, has an unknown outcome, and another child continues
// with the next.
func (r *runner) run(ctx context.Context, tries []Try) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.limits.All, deadline.DirectAll))
	defer cancel()
	a := &Answer{Tried: make([]Tried, len(tries))}
	for i, t := range tries {
		a.Tried[i] = Tried{t, attempt.Result{Outcome: attempt.Unknown, Reason: "it was not tried: the process that tries it ended before"}}
	}
	left := a.Tried
	for range maxChildren {
		if len(left) == 0 {
			break
		}
		at, more, err := r.child(ctx, left)
		if err != nil && len(left) == len(a.Tried) {
			return nil, fmt.Errorf("%s: %w", r.task, err)
		}
		if !more {
			break
		}
		left = left[at+1:]
	}
	return a, nil
}

// child makes tries in one child. If more is true, it ended at the one whose index is returned.
func (r *runner) child(ctx context.Context, left []Tried) (at int, more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	step := cmp.Or(r.limits.Step, deadline.Direct)
	var late atomic.Bool
	timer := time.AfterFunc(deadline.Spawn, func() { late.Store(true); cancel() })
	defer timer.Stop()
	at = -1
	known := false
	o := order{Name: r.file}
	for _, t := range left {
		o.Tries = append(o.Tries, t.Try)
	}
	result, err := child.Run(ctx, child.Spec{
		Task: r.task, Args: o, Env: append([]string{"CUDA_CACHE_DISABLE=1"}, r.env...),
		Receive: func(raw json.RawMessage) {
			var m message
			if json.Unmarshal(raw, &m) != nil || m.At >= len(left) {
				return
			}
			timer.Reset(step)
			switch {
			case m.At < 0:
			case m.Begun:
				at, known = m.At, false
			case m.Result != nil && m.At == at:
				left[at].Result, known = checked(m.Result), true
			}
		},
	})
	if err != nil {
		return 0, false, err
	}
	if result.Finished {
		return 0, false, nil
	}
	why := ending(&result, late.Load(), step)
	if at < 0 || result.Left || ctx.Err() != nil && !late.Load() { // Another child would fare no better.
		for i := range left {
			if i > at || i == at && !known {
				left[i].Result.Reason = why
			}
		}
		return 0, false, nil
	}
	if !known {
		left[at].Result = attempt.Result{Outcome: attempt.Unknown, Reason: why}
	}
	return at, true, nil
}

// checked is a result that a child sent, with nothing but what a result may be.
func checked(r *attempt.Result) attempt.Result {
	if !slices.Contains([]string{attempt.OK, attempt.Refused, Corrupt}, r.Outcome) {
		return attempt.Result{Outcome: attempt.Unknown, Reason: cmp.Or(r.Reason, "the process that tried it gave no answer")}
	}
	return *r
}

// ending says in words how a child ended before its work did.
func ending(r *child.Result, late bool, step time.Duration) string {
	call := "it"
	if len(r.Inside) > 0 {
		call = r.Inside[0]
	}
	switch {
	case late:
		return fmt.Sprintf("%s did not return within %s", call, step)
	case r.TimedOut || r.Canceled:
		return "the time for it ran out"
	case r.Death == child.DeathByLibrary && r.Signal != "":
		return fmt.Sprintf("%s crashed: %s", call, r.Signal)
	case r.Death == child.DeathByLibrary:
		return fmt.Sprintf("%s ended its process with exit code %d", call, r.Code)
	}
	return "its process was ended: " + r.End()
}

func unknown(reason string) attempt.Result {
	return attempt.Result{Outcome: attempt.Unknown, Reason: reason}
}
