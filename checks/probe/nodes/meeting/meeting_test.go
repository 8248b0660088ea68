package meeting

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// options are those of a rank of a job of so many, whose nodes have no GPU.
func options(rank, count int, port string) Options {
	return Options{
		Place: nodes.Place{Engine: "test", Rank: rank, Count: count}, Host: fmt.Sprintf("n%d", rank), Secret: "s", Meet: []string{"127.0.0.1:1", "127.0.0.1:" + port}, Arrive: 3 * time.Second, Alone: 5 * time.Second,
		Survey: func(context.Context) Survey {
			return Survey{Outcome: probe.Unknown, Reason: fmt.Sprintf("none at %d", rank)}
		},
		ReadLog:  func(string, bool) collective.Log { return collective.Log{} },
		Progress: func(string) {},
	}
}

// free is a port that nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	l := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() //nolint:errcheck // It was only opened for its number.
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestRoll checks that each rank is listed once with what it said, whoever else connects: strangers, liars, twins, and those who
// say nothing, too much or something else.
func TestRoll(t *testing.T) {
	t.Parallel()
	port := free(t)
	said := make(chan string, 16)
	join := func(rank int, change func(*Options)) {
		o := options(rank, 4, port)
		change(&o)
		go func() { said <- fmt.Sprint(rank, " ", Join(t.Context(), o)) }()
	}
	join(1, func(*Options) {})
	join(2, func(o *Options) { o.Host = "n1" })
	join(3, func(o *Options) { o.Secret = "other" })
	join(3, func(o *Options) { o.Place.Count = 5 })
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", "{}\n", "null\n", strings.Repeat("x", 3<<20), `{"protocol":"gpudoctor.nodes/1","rank":3,"count":4}` + "\n", ""} {
		go func() {
			for range 50 {
				if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
					_, _ = conn.Write([]byte(garbage)) // It may be refused before.
					time.Sleep(6 * time.Second)
					_ = conn.Close()
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	go func() {
		time.Sleep(time.Second)
		join(1, func(*Options) {})
	}()
	leading := options(0, 4, port)
	leading.Meet = leading.Meet[1:]
	r := expect.Value(Lead(t.Context(), leading))(t)
	got := expect.Map(r.Nodes, func(n nodes.Peer) string { return fmt.Sprintf("%d %s %s: %s", n.Rank, n.Name, n.State, n.Reason) })
	expect.NoDiff(t, []string{"0 n0 unknown: none at 0", "1 n1/1 unknown: none at 1", "2 n1/2 unknown: none at 2", "3 rank 3 absent: it did not come"}, got, "nodes")
	expect.That(t, r.Outcome == probe.Unknown && len(r.Blames) == 0, "%+v", r)
	answers := map[string]int{}
	for range 5 {
		answers[<-said]++
	}
	for _, want := range []string{"1 <nil>", "2 <nil>", "another secret", "5 ranks, and the first rank knows of 4", "another process is rank 1"} {
		found := false
		for answer := range answers {
			found = found || strings.Contains(answer, want)
		}
		expect.That(t, found, "nobody is told %q: %v", want, answers)
	}
}

// TestLeaderIsSought checks that a node does as no stranger says, and waits for the first rank no longer than it may.
func TestLeaderIsSought(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nobody": "", "something else": "220 mail.example\r\n", "a liar": `{"protocol":"gpudoctor.nodes/1","nonce":"x"}` + "\n" + `{"proof":"AAAA"}` + "\n", "an endless line": strings.Repeat("x", 3<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := free(t)
			if answer != "" {
				l := expect.Value(net.Listen("tcp", "127.0.0.1:"+port))(t)
				defer l.Close() //nolint:errcheck // The test is over.
				go func() {
					for {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						_, _ = conn.Write([]byte(answer)) // What it does not take is what it does not want.
					}
				}()
			}
			begun := time.Now()
			err := Join(t.Context(), options(1, 2, port))
			expect.That(t, err != nil && strings.HasPrefix(err.Error(), "rank 1 did not reach the first rank: ") && len(err.Error()) < 300, "%v", err)
			expect.That(t, time.Since(begun) < 30*time.Second, "it waited for %s", time.Since(begun))
		})
	}
}

// TestOrders checks that a node runs nothing that it is not to run.
func TestOrders(t *testing.T) {
	t.Parallel()
	good := collective.Start{Rank: 0, Ranks: 2, GPU: "x", Bytes: 8, Patience: time.Second}
	for name, change := range map[string]func(*collective.Start){
		"no ranks":        func(s *collective.Start) { s.Ranks = 0 },
		"another rank":    func(s *collective.Start) { s.Rank = 2 },
		"negative rank":   func(s *collective.Start) { s.Rank = -1 },
		"too many":        func(s *collective.Start) { s.Ranks = 1 << 30 },
		"too much":        func(s *collective.Start) { s.Bytes = 1 << 40 },
		"nothing":         func(s *collective.Start) { s.Bytes = 0 },
		"for ever":        func(s *collective.Start) { s.Patience = time.Hour },
		"a second device": func(s *collective.Start) { s.Only = "eth0,eth1" },
		"a setting":       func(s *collective.Start) { s.Only = "eth0=x" },
		"a line":          func(s *collective.Start) { s.Only = "eth0\nx" },
	} {
		s := good
		change(&s)
		expect.Fails(collective.Local{}.Run(t.Context(), s, nil, nil))(t, nil, "%s is run", name)
	}
}
