package meeting

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
)

const (
	// exchanges is how often a clock is asked; the quickest answer counts.
	exchanges = 8
	// clockWait bounds them all.
	clockWait = 2 * time.Second
	// clocksAtATime bounds the nodes that are asked at the same time, which makes answers slower.
	clocksAtATime = 64
)

// askClocks measures the clock of each node against the one here.
func (l *leader) askClocks(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all errgroup.Group
	all.SetLimit(clocksAtATime)
	l.mu.Lock()
	members := make([]*member, 0, len(l.members))
	for _, m := range l.members {
		members = append(members, m)
	}
	l.mu.Unlock()
	for _, m := range members {
		all.Go(func() error {
			m.askClock(ctx, l)
			return nil
		})
	}
	_ = all.Wait() // None fails.
}

// askClock asks a node for its time as NTP does (RFC 5905, section 8): it answered in the middle between question and answer, give or
// take half of the time between them.
func (m *member) askClock(ctx context.Context, l *leader) {
	ctx, stop := context.WithTimeout(ctx, clockWait)
	defer stop()
	for range exchanges {
		asked := l.now()
		if m.send(word{Clock: true}) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case answer := <-m.times:
			half := l.now().Sub(asked) / 2
			c := nodes.Clock{Ahead: answer.Round(0).Sub(asked.Add(half).Round(0)).Seconds(), Error: half.Seconds()}
			l.mu.Lock()
			if m.clock == nil || c.Error < m.clock.Error {
				m.clock = &c
			}
			l.mu.Unlock()
		}
	}
}

// now is the time of this node's clock.
func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}
