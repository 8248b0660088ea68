package host

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/files"
)

// maxStuck bounds the operations that hang in the kernel. Beyond it, the machine is no longer read.
const maxStuck = 32

// pool runs file operations with a deadline. A read that outlasts it cannot be canceled, and is left behind with its goroutine.
type pool struct {
	deadline time.Duration

	mu      sync.Mutex
	running map[*job]struct{}
}

// job is an operation that has not ended.
type job struct {
	// place is closed to further operations once this one hangs.
	place string
	began time.Time
}

func newPool(deadline time.Duration) *pool {
	return &pool{deadline: deadline, running: make(map[*job]struct{})}
}

// run runs an operation on a path, which fails with ErrSlow beyond the deadline.
func run[T any](p *pool, op, name string, f func() (T, error)) (T, error) {
	var value T
	err := ErrSlow
	if o := p.begin(op, name); o != nil {
		value, err = files.Within(context.Background(), p.deadline, func() (T, error) {
			defer p.end(o)
			return f()
		})
	}
	switch {
	case errors.Is(err, files.ErrSilent):
		err = ErrSlow
	case err == nil:
		return value, nil
	}
	var none T
	return none, &fs.PathError{Op: op, Path: name, Err: cause(err)}
}

// begin admits an operation on a path, unless it would likely hang as others do.
func (p *pool) begin(op, name string) *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, stuck := time.Now(), 0
	for o := range p.running {
		if now.Sub(o.began) < p.deadline {
			continue
		}
		if stuck++; stuck >= maxStuck || name == o.place || strings.HasPrefix(name, o.place+"/") {
			return nil
		}
	}
	o := &job{place: placeOf(op, name), began: now}
	p.running[o] = struct{}{}
	return o
}

func (p *pool) end(o *job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, o)
}

// placeOf is what an operation that hangs closes: its folder, or the path alone in folders like /proc or /dev, whose files have
// nothing in common.
func placeOf(op, name string) string {
	dir := path.Dir(name)
	if op == list.String() || strings.Count(dir, "/") < 2 {
		return name
	}
	return dir
}
