package meeting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
)

// Options says how a node takes part.
type Options struct {
	Place nodes.Place
	// Host is the name of this node.
	Host string
	// Secret is known to all ranks of the job, and to nobody else.
	Secret string
	// Meet are the addresses at which the first rank may be reached.
	Meet []string
	// Arrive bounds the wait for the others, Alone the check that each node makes by itself.
	Arrive, Alone time.Duration
	// Patience, Start and Join bound the calls of libraries, as those of collective.Options.
	Patience, Start, Join time.Duration
	// Survey makes that check.
	Survey func(ctx context.Context) Survey
	// ReadLog reads the library's log.
	ReadLog  func(text string, failed bool) collective.Log
	Progress func(string)
}

// Points are where the first rank may be reached: as the user says, or at the hosts that the engine lists.
func Points(meet string, p nodes.Place) ([]string, error) {
	if meet != "" {
		if _, port, err := net.SplitHostPort(meet); err != nil || port == "" {
			return nil, fmt.Errorf("%q is not HOST:PORT", meet)
		}
		return []string{meet}, nil
	}
	hosts := p.Hosts
	if len(hosts) == 0 {
		if p.Rank > 0 {
			return nil, fmt.Errorf("%s does not say on which host the first rank is", p.Engine)
		}
		hosts = []string{"localhost"}
	}
	var all []string
	for _, h := range hosts {
		all = append(all, net.JoinHostPort(h, strconv.Itoa(p.Port())))
	}
	return all, nil
}

// Join takes part in what the first rank leads, until it says that all is done.
func Join(ctx context.Context, o Options) error {
	l, err := reach(ctx, o)
	if err != nil {
		return fmt.Errorf("rank %d did not reach the first rank: %w", o.Place.Rank, err)
	}
	n := &node{link: l, runs: map[uint64]*localRun{}}
	return n.work(ctx, o)
}

// reach connects to the first rank, which may start later. Where several addresses are known, the one that answers as it should counts.
func reach(ctx context.Context, o Options) (*link, error) {
	ctx, stop := context.WithTimeout(ctx, o.Arrive)
	defer stop()
	last := errors.New("no address is known")
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		for _, at := range o.Meet {
			d := net.Dialer{Timeout: dialing}
			conn, err := d.DialContext(ctx, "tcp", at)
			if err == nil {
				l := newLink(conn)
				if err = l.greet(o.Secret, o.Place.Rank, o.Place.Count, o.Host); err == nil {
					return l, nil
				}
				_ = conn.Close()
				err = fmt.Errorf("%s: %w", at, err)
			}
			if ctx.Err() == nil { // The end of the time says less than why it was needed.
				last = err
			}
			if errors.Is(err, errRefused) {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, last
		case <-time.After(wait):
		}
	}
}

type node struct {
	*link
	mu     sync.Mutex
	runs   map[uint64]*localRun
	survey *Survey // Nil until its own check has ended.
}

type localRun struct {
	input chan any
	stop  context.CancelFunc
}

// maxLocalRuns bounds the ranks at a time: one for each GPU, and those that are just ending.
const maxLocalRuns = 64

func (n *node) work(ctx context.Context, o Options) error {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	defer n.conn.Close()                                          //nolint:errcheck // Nothing is left to write.
	defer context.AfterFunc(ctx, func() { _ = n.conn.Close() })() // It ends the wait for the next word.
	running.Go(func() {
		alone, done := context.WithTimeout(ctx, o.Alone)
		defer done()
		survey := o.Survey(alone)
		n.mu.Lock()
		n.survey = &survey
		n.mu.Unlock()
		_ = n.send(word{Survey: &survey}) // The leader sees the end of the connection.
	})
	for {
		var w word
		if err := n.receive(&w); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("the first rank ended before the probe did: %w", err)
		}
		if w.Bye {
			return nil
		}
		n.mu.Lock()
		r := n.runs[w.Run]
		n.mu.Unlock()
		switch {
		case w.Start != nil && r == nil:
			n.begin(ctx, w, &running)
		case w.Stop && r != nil:
			r.stop()
		case w.Input != nil && r != nil:
			select {
			case r.input <- w.Input:
			default: // It takes no more.
			}
		}
	}
}

func (n *node) begin(ctx context.Context, w word, running *sync.WaitGroup) {
	ctx, stop := context.WithCancel(ctx)
	r := &localRun{input: make(chan any, 64), stop: stop}
	n.mu.Lock()
	survey := n.survey
	ready := survey != nil && len(n.runs) < maxLocalRuns
	if ready {
		n.runs[w.Run] = r
	}
	n.mu.Unlock()
	running.Go(func() {
		defer stop()
		end := word{Run: w.Run, Error: "the node is not ready for a rank"}
		if ready {
			result, err := survey.Local.Run(ctx, *w.Start, r.input, func(raw json.RawMessage) {
				_ = n.send(word{Run: w.Run, Message: raw}) // The leader sees a gap.
			})
			if end.Ended, end.Error = &result, ""; err != nil {
				end.Ended, end.Error = nil, err.Error()
			}
			n.mu.Lock()
			delete(n.runs, w.Run)
			n.mu.Unlock()
		}
		_ = n.send(end)
	})
}
