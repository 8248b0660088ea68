package nccl

import (
	"bufio"
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/sorting"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Bounds of what is taken from a log of our own ranks.
const (
	maxOwnPairs    = 256
	maxOwnWarnings = 8
)

// Read reads the log of the ranks of the probe, by the reader of any other log.
func Read(text string) collective.Log {
	n, s := newLog(), parse.NewSink()
	var l collective.Log
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := parse.Line{Text: strings.Clone(lines.Text()), Number: number}
		body, _, level := split(line.Text)
		if level == levelWarn && len(l.Warnings) < maxOwnWarnings && !slices.Contains(l.Warnings, body) {
			l.Warnings = append(l.Warnings, body)
		}
		n.line(s, line)
	}
	for p, c := range n.pairs {
		if len(l.Transports) < maxOwnPairs && p.a >= 0 {
			w := n.ways[p.way]
			l.Transports = append(l.Transports, probe.CollectiveTransport{
				A: int(p.a), B: int(p.b), Kind: w.kind, Network: w.network, Channels: max(c.sent, c.received),
			})
		}
	}
	sorting.Stable(l.Transports, func(a, b probe.CollectiveTransport) int {
		return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B), strings.Compare(a.Kind, b.Kind))
	})
	for _, c := range n.comms {
		if c.Channels != nil {
			l.Channels = c.Channels
		}
	}
	if len(n.networks) > 0 {
		l.Network = n.networks[0].Name
	}
	return l
}
