package nccl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// collectiveCall is how NCCL logs a call with NCCL_DEBUG_SUBSYS=COLL (src/enqueue.cc of 2.4 to 2.30).
var collectiveCall = lazy.New(`([A-Za-z0-9][\w.-]*:\d+):\d+ (?:\[\d+\] )?NCCL INFO (\w+): opCount ([0-9a-f]+) sendbuff \S+ recvbuff \S+ count (\d+) datatype (\d+) op (\d+) root (\d+) comm (\S+) \[nranks=(\d+)\]`)

// dataTypes are the numbers of ncclDataType_t (src/nccl.h.in).
var dataTypes = []string{"int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"}

// maxCalls bounds the calls that are remembered, over all communicators.
const maxCalls = 1 << 16

// collectives are the calls of collectives in one text. Each process names a communicator by a pointer of its own, so they are only
// compared where each process has one of that size.
type collectives struct {
	// calls are what the first process called, by size and number.
	calls map[string]call
	// comms are the pointers by size and process, and several the sizes of which a process has two.
	comms   map[string]string
	several map[string]bool
	// differ are the first calls of a size that differ.
	differ []difference
}

type call struct{ process, what string }

type difference struct {
	size   string
	fields map[string]string
	line   parse.Line
}

func collectivesKind(c *collectives) *parse.Kind {
	return &parse.Kind{
		Name: "nccl-collectives", Title: "calls of collectives, with NCCL_DEBUG_SUBSYS=COLL", Gives: []string{"logs"},
		Anchors: []string{": opCount "},
		Line:    parse.LineLike(collectiveCall, func(_ *parse.Sink, l parse.Line, m []string) bool { return c.read(l, m) }),
	}
}

func (c *collectives) read(l parse.Line, m []string) bool {
	if m[2] == "Send" || m[2] == "Recv" {
		return true
	}
	process, size, number := m[1], m[9], m[9]+" "+m[3]
	known, seen := c.comms[size+" "+process]
	if !seen && len(c.comms) < maxRanks {
		facts.Put(&c.comms, size+" "+process, strings.Clone(m[8]))
	} else if known != m[8] {
		facts.Put(&c.several, size, true)
	}
	kind := m[5]
	if i := parse.Number(kind); i < len(dataTypes) {
		kind = dataTypes[i]
	}
	what := fmt.Sprintf("%s of %s %s (op %s, root %s)", m[2], m[4], kind, m[6], m[7])
	first, begun := c.calls[number]
	switch {
	case !begun && len(c.calls) < maxCalls:
		facts.Put(&c.calls, number, call{strings.Clone(process), what})
	case begun && first.process != process && first.what != what && !slices.ContainsFunc(c.differ, func(d difference) bool { return d.size == size }):
		c.differ = append(c.differ, difference{size, map[string]string{"number": m[3], "a": first.what, "b": what}, l})
	}
	return true
}

// end reports the first difference of the text.
func (c *collectives) end(s *parse.Sink) {
	for _, d := range c.differ {
		if !c.several[d.size] {
			s.Message("nccl-collectives-differ", d.fields, d.line)
			break
		}
	}
	*c = collectives{}
}
