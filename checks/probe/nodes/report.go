// Package nodes decides how the network between the nodes of a job is proven: how a process finds its place in the job, which
// nodes run collectives with which others in what order, and which node, NIC or pair the outcomes accuse. It moves no data itself.
package nodes

import "github.com/gpudoctor/gpudoctor/checks/probe"

// Schema names the JSON document.
const Schema = "gpudoctor.nodes/v1"

// Report is what the nodes of a job did together.
type Report struct {
	// Schema is always "gpudoctor.nodes/v1".
	Schema string `json:"schema"`
	// Engine started the job.
	Engine string `json:"engine"`
	// Outcome is OK if all nodes came, and every run was correct and no pair slow. Reason says in words why it is not.
	Outcome probe.Outcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"`
	// Nodes are the nodes by rank.
	Nodes []Peer `json:"nodes"`
	// Together is the run of all nodes that take part, and Pairs are those of two.
	Together *Run  `json:"together,omitempty"`
	Pairs    []Run `json:"pairs,omitempty"`
	// Further are the runs that narrow a fault down, and those that prove that the others work.
	Further []Run `json:"further,omitempty"`
	// Blames are what is at fault, and how that is known.
	Blames []Blame `json:"blames,omitempty"`
	// Differs are settings and versions that differ between the nodes.
	Differs []Difference `json:"differs,omitempty"`
	// Untried is how many pairs were not run because the time ran out, or because one of them had failed with every other.
	Untried int `json:"untried,omitempty"`
	// Seconds is the time that it took.
	Seconds float64 `json:"seconds"`
}

// The states of a node.
const (
	// StateOK is a node whose own GPUs work.
	StateOK = "ok"
	// StateAbsent is one that did not come.
	StateAbsent = "absent"
	// StateFailed is one whose own check failed, and StateUnknown one whose own check could not be made.
	StateFailed  = "failed"
	StateUnknown = "unknown"
	// StateLost is one that stopped answering during the probe.
	StateLost = "lost"
)

// Peer is a node of the job, or a rank where several are on one node.
type Peer struct {
	Name   string `json:"name"`
	Rank   int    `json:"rank"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// GPUs are the addresses of those that take part.
	GPUs []string `json:"gpus,omitempty"`
	// Version is that of the library, Settings are the variables that shape what it does.
	Version  string            `json:"version,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	// Interfaces are the network devices that the library's log names.
	Interfaces []string `json:"interfaces,omitempty"`
}

// Run is collectives between nodes.
type Run struct {
	Nodes []string `json:"nodes"`
	// Only is the only NIC that the first node was to use.
	Only    string        `json:"only,omitempty"`
	Outcome probe.Outcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"`
	// Stage is the last step that was begun where it failed first, and At are these nodes.
	Stage string   `json:"stage,omitempty"`
	At    []string `json:"at,omitempty"`
	// GPUs is how many took part. Bytes is the largest all-reduce that was correct.
	GPUs     int    `json:"gpus,omitempty"`
	Verified string `json:"verified,omitempty"`
	Bytes    int64  `json:"bytes,omitempty"`
	// BusGBps is the bus bandwidth of the best all-reduce, Microseconds the time of one of 8 bytes.
	BusGBps      *float64 `json:"bus_gbps,omitempty"`
	Microseconds *float64 `json:"us,omitempty"`
	// Transport is how the library's log says that the nodes reach each other: "NET/IB", "NET/Socket".
	Transport string   `json:"transport,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	// Lost are nodes that stopped answering.
	Lost []string `json:"lost,omitempty"`
	// Milliseconds is the time that it took.
	Milliseconds float64 `json:"ms,omitempty"`
	// Interfaces are the network devices that the log of each node names.
	Interfaces map[string][]string `json:"-"`
}

// The kinds of what is at fault.
const (
	// AtNode is a node, AtRail a NIC of one or its cable, and AtPair the path between two nodes.
	AtNode = "node"
	AtRail = "rail"
	AtPair = "pair"
	// AtSplit is the path between groups of nodes that work among themselves; Nodes are the smaller group.
	AtSplit = "split"
	// AtAll is what all nodes share, where no pair works; AtSize the number of nodes, where fewer work whichever they are.
	AtAll  = "all"
	AtSize = "size"
)

// Blame is what is at fault.
type Blame struct {
	Kind  string   `json:"kind"`
	Nodes []string `json:"nodes"`
	// Rails are the NICs of the first node.
	Rails []string `json:"rails,omitempty"`
	// Slow is true if data arrives correctly, and too slowly.
	Slow bool `json:"slow,omitempty"`
	// Likely is true where another explanation is possible.
	Likely bool `json:"likely,omitempty"`
	// Because is how that is known, the most telling first.
	Because []string `json:"because"`
}

// Difference is a setting or version that differs between nodes.
type Difference struct {
	Name string `json:"name"`
	// Common is the value that most nodes have, Others those of the others, by node. Empty means not set.
	Common string            `json:"common"`
	Others map[string]string `json:"others"`
}
