// Package meeting brings the nodes of a job together over TCP, where the first rank leads: it tells the others which collectives to
// run with whom, and hears what became of them. Every call of a library is made in a child, on the node whose GPU it is.
package meeting

import (
	"bufio"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
)

// The deadlines and bounds of what goes over the network.
const (
	dialing   = 3 * time.Second
	greeting  = 5 * time.Second
	writing   = 10 * time.Second
	maxWord   = 2 << 20
	protocol  = "gpudoctor.nodes/1"
	maxHost   = 64
	maxReason = 500
)

// Survey is what a node says about itself: how its own check went, and what takes part.
type Survey struct {
	Outcome probe.Outcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"`
	GPUs    []string      `json:"gpus"`
	Version string        `json:"version,omitempty"`
	// Settings are the variables that shape what the library does.
	Settings map[string]string `json:"settings,omitempty"`
	// Local is what its ranks are run with. It stays on the node.
	Local collective.Local `json:"-"`
}

// word is one message. A node says Survey, once, of each run Message or Ended; the leader says Start, Input and Stop
// of a run, and Bye at the end.
type word struct {
	Survey  *Survey           `json:"survey,omitempty"`
	Run     uint64            `json:"run,omitempty"`
	Message json.RawMessage   `json:"message,omitempty"`
	Ended   *child.Result     `json:"ended,omitempty"`
	Error   string            `json:"error,omitempty"`
	Start   *collective.Start `json:"start,omitempty"`
	Input   json.RawMessage   `json:"input,omitempty"`
	Stop    bool              `json:"stop,omitempty"`
	Bye     bool              `json:"bye,omitempty"`
}

// link is a connection between the leader and a node, on which each message is a line of JSON.
type link struct {
	conn net.Conn
	mu   sync.Mutex
	in   *bufio.Scanner
}

func newLink(conn net.Conn) *link {
	if c, ok := conn.(*net.TCPConn); ok { // A host that is switched off answers nothing.
		_ = c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 4})
	}
	in := bufio.NewScanner(conn)
	in.Buffer(nil, maxWord)
	return &link{conn: conn, in: in}
}

func (l *link) send(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(writing))
	if _, err := l.conn.Write(append(raw, '\n')); err != nil {
		_ = l.conn.Close() // Half a line may have been written.
		return err
	}
	return nil
}

func (l *link) receive(v any) error {
	if !l.in.Scan() {
		return cmp.Or(l.in.Err(), io.EOF)
	}
	return json.Unmarshal(l.in.Bytes(), v)
}

// hello is what the two say to each other first. The leader begins with a number that was never used, and each side then proves
// that it knows the secret.
type hello struct {
	Protocol string `json:"protocol,omitempty"`
	Nonce    string `json:"nonce,omitempty"`
	Rank     int    `json:"rank"`
	Count    int    `json:"count,omitempty"`
	Host     string `json:"host,omitempty"`
	Proof    []byte `json:"proof,omitempty"`
	Refused  string `json:"refused,omitempty"`
}

func prove(secret, side, ours, theirs string, h hello) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%q %q %q %q %d %d %q", protocol, side, ours, theirs, h.Rank, h.Count, h.Host) // It never fails.
	return mac.Sum(nil)
}

// errRefused is what the leader says no with.
var errRefused = errors.New("the first rank refuses")

func (l *link) greet(secret string, rank, count int, host string) error {
	_ = l.conn.SetDeadline(time.Now().Add(greeting))
	defer l.conn.SetDeadline(time.Time{}) //nolint:errcheck // What is sent next shows it.
	var theirs, answer hello
	err := l.receive(&theirs)
	if err == nil && theirs.Protocol != protocol {
		err = fmt.Errorf("it says %.40q", theirs.Protocol)
	}
	if err != nil {
		return fmt.Errorf("what answers there is not gpudoctor of this version: %w", err)
	}
	mine := hello{Protocol: protocol, Nonce: rand.Text(), Rank: rank, Count: count, Host: host}
	mine.Proof = prove(secret, "node", theirs.Nonce, mine.Nonce, mine)
	if err := l.send(mine); err != nil {
		return err
	}
	if err := l.receive(&answer); err != nil {
		return err
	}
	switch {
	case answer.Refused != "":
		return fmt.Errorf("%w: %.100q", errRefused, answer.Refused)
	case !hmac.Equal(answer.Proof, prove(secret, "leader", theirs.Nonce, mine.Nonce, mine)):
		return errors.New("what answers there does not know the secret of this job")
	}
	return nil
}

// welcome is the leader's side. admit says why a node cannot take part, or nothing.
func (l *link) welcome(secret string, admit func(hello) string) (hello, error) {
	_ = l.conn.SetDeadline(time.Now().Add(greeting))
	defer l.conn.SetDeadline(time.Time{}) //nolint:errcheck // What is sent next shows it.
	nonce := rand.Text()
	if err := l.send(hello{Protocol: protocol, Nonce: nonce}); err != nil {
		return hello{}, err
	}
	var h hello
	if err := l.receive(&h); err != nil {
		return h, err
	}
	reason := ""
	switch {
	case h.Protocol != protocol:
		reason = "another version of gpudoctor"
	case !hmac.Equal(h.Proof, prove(secret, "node", nonce, h.Nonce, h)):
		reason = "another secret, or another job"
	default:
		reason = admit(h)
	}
	if reason != "" {
		return h, errors.Join(fmt.Errorf("%w: %s", errRefused, reason), l.send(hello{Refused: reason}))
	}
	return h, l.send(hello{Proof: prove(secret, "leader", nonce, h.Nonce, h)})
}
