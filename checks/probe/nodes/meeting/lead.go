package meeting

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// Lead waits for the others where they meet, leads what all do, and says what became of it.
func Lead(ctx context.Context, o Options) (*nodes.Report, error) {
	_, port, err := net.SplitHostPort(o.Meet[0])
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return nil, err
	}
	defer listener.Close() //nolint:errcheck // It is only left.
	begun := time.Now()
	l := &leader{Options: o, members: map[int]*member{}, joining: true}
	go l.admit(listener)
	own := o
	own.Meet = []string{net.JoinHostPort("localhost", port)}
	var self sync.WaitGroup
	self.Go(func() { _ = Join(ctx, own) }) // How it went is in the report.
	l.await(ctx)
	r := l.roll()
	nodes.Examine(ctx, l, r, nodes.Options{PairShare: data.Thresholds().NodePairShare, Progress: o.Progress})
	r.Seconds = float64(time.Since(begun).Round(100*time.Millisecond).Milliseconds()) / 1000
	l.dismiss()
	self.Wait()
	return r, context.Cause(ctx)
}

type leader struct {
	Options
	mu      sync.Mutex // Guards all that follows, and what is known of members.
	joining bool
	members map[int]*member
	byName  map[string]*member
	last    uint64 // The number of the last run.
}

type member struct {
	*link
	rank int
	host string

	survey *Survey
	lost   error
	runs   map[uint64]*farRun
}

// farRun is a rank on another node: what that says of it, until done is closed.
type farRun struct {
	words chan word
	done  chan struct{}
}

func (r *farRun) hear(w word) {
	select {
	case r.words <- w:
	case <-r.done:
	}
}

// maxGreetings bounds the connections that have not yet proven anything.
const maxGreetings = 256

func (l *leader) admit(listener net.Listener) {
	places := make(chan struct{}, maxGreetings)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		select {
		case places <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		go func() {
			defer func() { <-places }()
			c := newLink(conn)
			m := &member{link: c, runs: map[uint64]*farRun{}}
			if _, err := c.welcome(l.Secret, func(h hello) string { return l.take(m, h) }); err != nil {
				_ = conn.Close()
				l.drop(m)
				return
			}
			go m.listen(l)
		}()
	}
}

func (l *leader) take(m *member, h hello) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.joining:
		return "it is too late: the nodes that had come have begun"
	case h.Count != l.Place.Count:
		return fmt.Sprintf("%d ranks, and the first rank knows of %d", h.Count, l.Place.Count)
	case h.Rank < 0 || h.Rank >= h.Count:
		return "a rank that is not possible"
	case l.members[h.Rank] != nil:
		return fmt.Sprintf("another process is rank %d", h.Rank)
	}
	m.rank, m.host = h.Rank, escape.Printable(cmp.Or(h.Host, fmt.Sprintf("rank-%d", h.Rank)), maxHost)
	l.members[h.Rank] = m
	return ""
}

// drop forgets a node that did not hear that it was taken. Once all have begun, it is one that was lost.
func (l *leader) drop(m *member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.joining && l.members[m.rank] == m {
		delete(l.members, m.rank)
	}
	m.lost = errRefused
}

func (m *member) listen(l *leader) {
	for {
		var w word
		err := m.receive(&w)
		l.mu.Lock()
		m.survey = cmp.Or(m.survey, w.Survey)
		hearing := []*farRun{m.runs[w.Run]}
		if err != nil {
			m.lost, hearing, w = err, slices.Collect(maps.Values(m.runs)), word{Error: "the connection to it was lost"}
			_ = m.conn.Close()
		}
		l.mu.Unlock()
		for _, r := range hearing {
			if r != nil && (w.Message != nil || w.Ended != nil || w.Error != "") {
				r.hear(w)
			}
		}
		if err != nil {
			return
		}
	}
}

// await waits until every node has come and said how it is, or the time for that is over.
func (l *leader) await(ctx context.Context) {
	arrive := time.After(l.Arrive)
	var alone <-chan time.Time
	for {
		came, surveyed := l.count()
		l.Progress(fmt.Sprintf("%d of %d nodes have come, %d have checked themselves", came, l.Place.Count, surveyed))
		if surveyed == l.Place.Count {
			break
		}
		select {
		case <-time.After(200 * time.Millisecond):
			continue
		case <-ctx.Done():
		case <-alone:
		case <-arrive: // Who has come by now may still finish its own check.
			l.close()
			if came, surveyed = l.count(); surveyed < came {
				alone = time.After(l.Alone)
				continue
			}
		}
		break
	}
	l.close()
}

func (l *leader) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joining = false
}

// count counts the nodes that came, and those that said how they are or are gone.
func (l *leader) count() (came, surveyed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if m.survey != nil || m.lost != nil {
			surveyed++
		}
	}
	return len(l.members), surveyed
}

// roll lists the nodes by rank. Where several ranks are on one host, their names have the rank.
func (l *leader) roll() *nodes.Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &nodes.Report{Schema: nodes.Schema, Engine: l.Place.Engine}
	hosts := map[string]int{}
	for _, m := range l.members {
		hosts[m.host]++
	}
	l.byName = map[string]*member{}
	for rank := range l.Place.Count {
		m := l.members[rank]
		n := nodes.Peer{Rank: rank, State: nodes.StateAbsent, Name: fmt.Sprintf("rank %d", rank), Reason: "it did not come"}
		if rank < len(l.Place.Names) {
			n.Name = l.Place.Names[rank]
		}
		if m != nil {
			n.Name = m.host
			if hosts[m.host] > 1 {
				n.Name = fmt.Sprintf("%s/%d", m.host, rank)
			}
			l.byName[n.Name] = m
			m.describe(&n)
		}
		r.Nodes = append(r.Nodes, n)
	}
	return r
}

func (m *member) describe(n *nodes.Peer) {
	s := m.survey
	switch {
	case m.lost != nil:
		n.State, n.Reason = nodes.StateLost, "the connection to it was lost during its own check"
		return
	case s == nil:
		n.State, n.Reason = nodes.StateUnknown, "its own check did not end"
		return
	case s.Outcome.Failed():
		n.State = nodes.StateFailed
	case !s.Outcome.Correct() || len(s.GPUs) == 0 || len(s.GPUs) > maxLocalRuns:
		n.State = nodes.StateUnknown
	default:
		n.State = nodes.StateOK
	}
	n.Reason, n.Version = escape.Printable(s.Reason, maxReason), escape.Printable(s.Version, maxHost)
	for _, gpu := range s.GPUs[:min(len(s.GPUs), maxLocalRuns)] {
		n.GPUs = append(n.GPUs, escape.Printable(gpu, maxHost))
	}
	n.Settings = map[string]string{}
	for name, value := range s.Settings {
		if len(n.Settings) < 100 {
			n.Settings[escape.Printable(name, maxHost)] = escape.Printable(value, maxReason)
		}
	}
}

// Run runs collectives between nodes.
func (l *leader) Run(ctx context.Context, names []string, only string) nodes.Run {
	b := collective.Between{Patience: l.Patience, Start: l.Start, Join: l.Join, ReadLog: l.ReadLog, Launch: l.launch, Only: only}
	for _, name := range names {
		m := l.byName[name]
		for _, gpu := range m.survey.GPUs {
			b.Seats = append(b.Seats, collective.Seat{Node: name, GPU: gpu})
		}
	}
	a := b.Run(ctx)
	r := nodes.Run{Outcome: a.Outcome, Reason: a.Reason, Stage: a.Stage, GPUs: len(b.Seats), Milliseconds: a.Milliseconds, Warnings: a.Warnings, Interfaces: map[string][]string{}}
	r.At = at(b.Seats, a)
	if len(a.Blamed) > 0 {
		first := a.Ranks[a.Blamed[0]]
		r.Reason = fmt.Sprintf("%s, %s on %s", first.Reason, cmp.Or(first.Stage, "its start"), strings.Join(r.At, ", "))
	}
	for _, op := range a.Operations {
		if op.Name != probe.AllReduce || op.Outcome != probe.OK {
			continue
		}
		r.Microseconds = cmp.Or(r.Microseconds, op.Microseconds)
		if op.BusGBps != nil && (r.BusGBps == nil || *op.BusGBps > *r.BusGBps) {
			r.BusGBps = op.BusGBps
		}
		r.Bytes, r.Verified = op.Bytes, op.Verified
	}
	for _, t := range a.Transports {
		if t.A < len(b.Seats) && t.B < len(b.Seats) && t.A >= 0 && t.B >= 0 && b.Seats[t.A].Node != b.Seats[t.B].Node {
			r.Transport = strings.ToUpper(t.Kind)
			if t.Network != "" {
				r.Transport += "/" + t.Network
			}
			break
		}
	}
	for name, log := range a.Logs {
		if devices := l.ReadLog(log, false).Devices; len(devices) > 0 {
			r.Interfaces[name] = devices[:min(len(devices), maxLocalRuns)]
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		if l.byName[name].lost != nil {
			r.Lost = append(r.Lost, name)
			r.Outcome, r.Reason = probe.Error, "the connection to "+strings.Join(r.Lost, ", ")+" was lost"
		}
	}
	return r
}

func (l *leader) launch(ctx context.Context, name string, s collective.Start, input <-chan any, receive func(json.RawMessage)) (child.Result, error) {
	m := l.byName[name]
	r := &farRun{words: make(chan word, 64), done: make(chan struct{})}
	defer close(r.done)
	l.mu.Lock()
	l.last++
	run, lost := l.last, m.lost
	m.runs[run] = r
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(m.runs, run)
	}()
	if lost != nil {
		return child.Result{}, errors.New("the connection to " + name + " was lost")
	}
	if err := m.send(word{Run: run, Start: &s}); err != nil {
		return child.Result{}, err
	}
	var patience <-chan time.Time
	done := ctx.Done()
	for {
		select {
		case v := <-input:
			raw, err := json.Marshal(v)
			if err != nil {
				return child.Result{}, err
			}
			if err := m.send(word{Run: run, Input: raw}); err != nil {
				return child.Result{}, err
			}
		case <-done:
			_ = m.send(word{Run: run, Stop: true}) // What does not hear it is not waited for long.
			done, patience = nil, time.After(deadline.Kill+time.Second)
		case <-patience:
			return child.Result{Canceled: true}, nil
		case w := <-r.words:
			switch {
			case w.Message != nil:
				receive(w.Message)
			case w.Ended != nil:
				return *w.Ended, nil
			default:
				return child.Result{}, errors.New(escape.Printable(w.Error, maxReason))
			}
		}
	}
}

func (l *leader) dismiss() {
	var all sync.WaitGroup
	for _, m := range l.byName {
		all.Go(func() {
			_ = m.send(word{Bye: true}) // Who is gone knows.
		})
	}
	all.Wait()
}

// at are the nodes that the reason of an arm names.
func at(seats []collective.Seat, a collective.BetweenArm) []string {
	var all []string
	add := func(rank int) {
		if name := seats[rank].Node; !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for _, rank := range a.Blamed {
		add(rank)
	}
	for i, r := range a.Ranks {
		if r.Outcome == probe.Corrupt {
			add(i)
		}
	}
	return all
}
