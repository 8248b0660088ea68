package machine

import (
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxStuck bounds the operations that are left behind in the kernel.
	// Once so many hang, the machine is no longer read.
	maxStuck = 32
	// idleAfter is how long a worker waits for the next operation.
	idleAfter = time.Second
	// scratchSize holds any file of sysfs (one page) and most of procfs.
	scratchSize = 64 << 10
)

// pool runs file operations in workers of its own, because a read in the
// kernel cannot be canceled: one that outlasts the deadline is left behind
// with its worker, and its caller continues. Workers are reused, so that an
// operation costs two switches of goroutine and no timer of its own.
type pool struct {
	deadline time.Duration
	jobs     chan job
	tickets  sync.Pool // *ticket

	stuck atomic.Int32
	mu    sync.Mutex
	// hung counts the operations left behind, by the folder, or the file, to
	// which no further operation is admitted.
	hung map[string]int
}

// job is one operation; it uses a worker's scratch space.
type job struct {
	run    func(scratch []byte)
	ticket *ticket
	place  string
}

// ticket is what a caller waits on.
type ticket struct {
	done  chan struct{} // Of capacity 1.
	timer *time.Timer
	state atomic.Int32 // One of the states below.
}

const (
	running int32 = iota
	ended
	abandoned
)

func newPool(deadline time.Duration) *pool {
	p := &pool{deadline: deadline, jobs: make(chan job), hung: make(map[string]int)}
	p.tickets.New = func() any {
		t := &ticket{done: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
		t.timer.Stop()
		return t
	}
	return p
}

// run runs one operation on a path and returns its result, or ErrSlow if it
// did not end within the deadline.
func run[T any](p *pool, op, name string, f func(scratch []byte) (T, error)) (T, error) {
	var value T
	var err error
	var none T
	place := placeOf(op, name)
	if p.refuses(name) {
		return none, &fs.PathError{Op: op, Path: name, Err: ErrSlow}
	}
	t, _ := p.tickets.Get().(*ticket)
	t.state.Store(running)
	t.timer.Reset(p.deadline)
	j := job{ticket: t, place: place, run: func(scratch []byte) { value, err = f(scratch) }}
	select {
	case p.jobs <- j:
	default:
		go p.work(j)
	}
	select {
	case <-t.done:
	case <-t.timer.C:
		if p.abandon(t, place) {
			return none, &fs.PathError{Op: op, Path: name, Err: ErrSlow} // Value and err are the worker's now.
		}
		<-t.done // It ended at the last moment.
	}
	t.timer.Stop()
	p.tickets.Put(t)
	if err != nil {
		return none, &fs.PathError{Op: op, Path: name, Err: cause(err)}
	}
	return value, nil
}

// work runs operations until none arrives for a while, or one was left behind.
func (p *pool) work(j job) {
	scratch := make([]byte, scratchSize)
	idle := time.NewTimer(idleAfter)
	defer idle.Stop()
	for {
		j.run(scratch)
		if !j.ticket.state.CompareAndSwap(running, ended) {
			p.recover(j.place)
			return
		}
		j.ticket.done <- struct{}{}
		j = job{} // What it read belongs to its caller.
		idle.Reset(idleAfter)
		select {
		case j = <-p.jobs:
		case <-idle.C:
			return
		}
	}
}

// abandon leaves an operation behind, unless it has just ended.
func (p *pool) abandon(t *ticket, place string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !t.state.CompareAndSwap(running, abandoned) {
		return false
	}
	p.hung[place]++
	p.stuck.Add(1)
	return true
}

// recover admits operations again after one that was left behind has ended.
func (p *pool) recover(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hung[place]--; p.hung[place] == 0 {
		delete(p.hung, place)
	}
	p.stuck.Add(-1)
}

// refuses reports whether an operation on a path would likely hang as well.
func (p *pool) refuses(name string) bool {
	stuck := p.stuck.Load()
	if stuck == 0 {
		return false
	}
	if stuck >= maxStuck {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for place := range p.hung {
		if name == place || (strings.HasPrefix(name, place) && name[len(place)] == '/') {
			return true
		}
	}
	return false
}

// placeOf returns what is closed to further operations when one on a path
// hangs: the folder that it lies in, or the path alone where that folder is
// one like /proc or /dev, whose files have nothing in common.
func placeOf(op, name string) string {
	dir := path.Dir(name)
	if op == opList || strings.Count(dir, "/") < 2 {
		return name
	}
	return dir
}
