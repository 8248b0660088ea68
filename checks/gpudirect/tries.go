package gpudirect

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
)

// The questions. Each is answered with an Answer.
const (
	askRegistrations = "gpudirect-registrations"
	askReads         = "gpudirect-reads"
)

// The ways to register memory with an RDMA device.
const (
	// wayHost is memory of the process: the control, which needs no GPU.
	wayHost = "host"
	// wayDMABuf is memory of a GPU that its driver gives as a DMA-BUF, wayPeermem the same by its address, for
	// which the module nvidia-peermem gives the pages.
	wayDMABuf  = "dmabuf"
	wayPeermem = "peermem"
)

// The ways in which cuFile reads.
const (
	// wayDirect is with the compatibility mode forbidden, wayConfigured as cuFile is set up.
	wayDirect     = "direct"
	wayConfigured = "configured"
)

// forbidCompat forbids the compatibility mode (GPUDirect Storage Troubleshooting Guide, environment variables).
const forbidCompat = "CUFILE_ALLOW_COMPAT_MODE=false"

// Try is one thing to try.
type Try struct {
	Way string `json:"way"`
	// GPU is its PCI address, empty for wayHost.
	GPU string `json:"gpu,omitempty"`
	// Device is the name of an RDMA device, Mount the path of a file system.
	Device string `json:"device,omitempty"`
	Mount  string `json:"mount,omitempty"`
	// Name is what a file on the mount is called while cuFile opens it; only the child is told.
	Name string `json:"name,omitempty"`
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

const (
	registerTask = "register with NICs"
	readTask     = "read with cuFile"
)

func init() {
	attempt.Register(registerTask, newRegistrar)
	attempt.Register(readTask, newReader)
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

// register registers memory in the ways that the tries name.
func register(ctx context.Context, tries []Try, limits Limits) (*Answer, error) {
	return (&runner{task: registerTask, limits: limits}).run(ctx, tries)
}

// readMount has cuFile read a file of a mount into the memory of a GPU: directly, and where that is not possible, as
// it is set up. Each is in a child of its own, because cuFile reads its settings once.
func readMount(ctx context.Context, gpu, mount string, limits Limits) *Answer {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(limits.All, deadline.DirectAll))
	defer cancel()
	var all Answer
	for _, way := range []string{wayDirect, wayConfigured} {
		env := []string{"CUFILE_LOGFILE_PATH="}
		if way == wayDirect {
			env = append(env, forbidCompat)
		}
		t := Try{Way: way, GPU: gpu, Mount: mount}
		a, err := readOn(ctx, &runner{task: readTask, env: env, limits: limits}, t)
		if err != nil {
			a = &Answer{[]Tried{{t, attempt.NotKnown(err.Error())}}}
		}
		all.Tried = append(all.Tried, a.Tried...)
		if a.Tried[0].Result.Outcome != attempt.Refused {
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

// run makes the tries.
func (r *runner) run(ctx context.Context, tries []Try) (*Answer, error) {
	orders := slices.Clone(tries)
	for i := range orders {
		orders[i].Name = r.file
	}
	s := attempt.Series[Try]{
		Task: r.task, Env: append([]string{"CUDA_CACHE_DISABLE=1"}, r.env...), Children: maxChildren,
		Step: cmp.Or(r.limits.Step, deadline.Direct), All: cmp.Or(r.limits.All, deadline.DirectAll),
	}
	results, err := s.Run(ctx, orders)
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	for i, t := range tries {
		a.Tried = append(a.Tried, Tried{t, results[i]})
	}
	return a, nil
}
