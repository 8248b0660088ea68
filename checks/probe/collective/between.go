package collective

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// Seat is a rank of a run over several nodes: a GPU of one of them.
type Seat struct {
	Node string
	GPU  string
}

// Start is what a node is asked to run: one rank.
type Start struct {
	Rank     int           `json:"rank"`
	Ranks    int           `json:"ranks"`
	GPU      string        `json:"gpu"`
	Bytes    int64         `json:"bytes"`
	Patience time.Duration `json:"patience"`
	// Only is the only network device that the rank is to use; empty leaves that to the library.
	Only string `json:"only,omitempty"`
}

// Between is a run of collectives between nodes.
type Between struct {
	Seats []Seat
	// Patience, Start and Join are those of Options.
	Patience, Start, Join time.Duration
	ReadLog               func(text string, failed bool) Log
	// Launch starts a rank on its node, gives it what comes from input, calls receive with what it says, and waits for its end.
	Launch func(ctx context.Context, node string, s Start, input <-chan any, receive func(json.RawMessage)) (child.Result, error)
	// Only is the only network device that the ranks on the first node are to use.
	Only string
}

// BetweenArm is a run, the ranks that its reason names, and the log of the first rank of each node.
type BetweenArm struct {
	probe.Arm
	Blamed []int
	Logs   map[string]string
}

// Run runs the collectives of an arm. It is led from here, and all ranks end together.
func (b Between) Run(ctx context.Context) BetweenArm {
	s := &session{
		options: Options{Patience: cmp.Or(b.Patience, deadline.Transfer), Start: cmp.Or(b.Start, deadline.Start), Join: cmp.Or(b.Join, deadline.Join), ReadLog: b.ReadLog},
		report:  &probe.Collectives{},
	}
	for i, seat := range b.Seats {
		s.places = append(s.places, place{Rank: i, GPU: seat.GPU})
		s.report.GPUs = append(s.report.GPUs, seat.Node+" "+seat.GPU)
	}
	g := newGroup(s, order{Ranks: len(b.Seats), Bytes: betweenPlan.largest(), Patience: s.options.Patience}, nil, nil)
	s.launch = func(ctx context.Context, at place, spec child.Spec) (child.Result, error) {
		start := Start{Rank: at.Rank, Ranks: g.order.Ranks, GPU: at.GPU, Bytes: g.order.Bytes, Patience: g.order.Patience}
		if b.Seats[at.Rank].Node == b.Seats[0].Node {
			start.Only = b.Only
		}
		return b.Launch(ctx, b.Seats[at.Rank].Node, start, spec.Input, spec.Receive)
	}
	a := BetweenArm{Arm: probe.Arm{Name: probe.ArmConfigured}, Logs: map[string]string{}}
	g.run(ctx, slices.Collect(slices.Chunk(s.places, 1)), betweenPlan, &a.Arm)
	a.Blamed = g.blamed
	for i, m := range slices.Backward(g.members) {
		a.Logs[b.Seats[i].Node] = m.result.Stdout
	}
	return a
}

// betweenPlan shows the latency, and the bandwidth by both ways to move data.
var betweenPlan = plan{{probe.AllReduce, []int64{8, mib, 64 * mib}}, {probe.SendReceive, []int64{mib}}}

// Bounds of what a node runs for another one.
const (
	maxBetween  = 4096 * 16
	longestRank = 3 * time.Minute
	maxFarLog   = 128 << 10
)

// Local is what the ranks of this node are run with.
type Local struct {
	// API is "cuda" or "hip", Library the file to load, FilesLimit as in Options.
	API, Library string
	FilesLimit   int64
}

// Run runs a rank for a node that leads. What that asks for is checked: it chooses nothing but sizes, one of the GPUs here and one
// of the network devices here.
func (l Local) Run(ctx context.Context, s Start, input <-chan any, receive func(json.RawMessage)) (child.Result, error) {
	if s.Ranks < 1 || s.Ranks > maxBetween || s.Rank < 0 || s.Rank >= s.Ranks || s.Bytes < 8 || s.Bytes > betweenPlan.largest() || s.Patience <= 0 || s.Patience > time.Minute {
		return child.Result{}, fmt.Errorf("rank %d of %d with %d bytes is not possible", s.Rank, s.Ranks, s.Bytes)
	}
	only, err := onlyDevice(s.Only)
	if err != nil {
		return child.Result{}, err
	}
	env := slices.Concat(drive.Environment(), only, logLevel)
	return child.Run(ctx, child.Spec{
		Task: rankTask, Input: input, Receive: receive, Unset: neverPassed, Env: env, Stdout: maxFarLog, Deadline: longestRank,
		Args: order{
			API: l.API, Library: l.Library, Ranks: s.Ranks, Bytes: s.Bytes, Patience: s.Patience, Files: l.FilesLimit,
			Mine: []place{{Rank: s.Rank, GPU: s.GPU}},
		},
	})
}

// onlyDevice are the settings by which the library uses one network device: of an adapter "mlx5_0:1", or an interface "eth0".
func onlyDevice(name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(",=^", r) }) {
		return nil, fmt.Errorf("%.70q is not a network device", name)
	}
	if strings.Contains(name, ":") {
		return []string{"NCCL_IB_HCA==" + name}, nil
	}
	return []string{"NCCL_SOCKET_IFNAME==" + name}, nil
}

// Shaping are the settings of this process that shape how the library communicates.
func Shaping() map[string]string {
	all := environment(nil)
	maps.DeleteFunc(all, func(name, value string) bool { return value == "" || !shaping(name) })
	return all
}
