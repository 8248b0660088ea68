package nccl

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/collective"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Bounds of what is taken from a log of our own ranks.
const (
	maxOwnPairs    = 256
	maxOwnWarnings = 8
	maxOwnText     = 300
)

// Read reads the log of the ranks of the probe, by the reader of any other log. If they failed, the
// messages are those of its warnings that the catalogue knows.
func Read(text string, failed bool) collective.Log {
	n, s := &log{}, parse.NewSink()
	var l collective.Log
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := parse.Line{Text: strings.Clone(lines.Text()), Number: number}
		body, _, level := split(line.Text)
		if level == levelWarn && len(l.Warnings) < maxOwnWarnings && !slices.Contains(l.Warnings, body) {
			l.Warnings = append(l.Warnings, body)
			if failed {
				l.Messages = append(l.Messages, messagesOf(line.Text)...)
			}
		}
		n.line(s, line)
	}
	for p, c := range n.pairs {
		if len(l.Transports) < maxOwnPairs && p.a >= 0 {
			l.Transports = append(l.Transports, probe.CollectiveTransport{
				A: p.a, B: p.b, Kind: p.way.kind, Network: p.way.network, Channels: max(c.sent, c.received),
			})
		}
	}
	slices.SortStableFunc(l.Transports, func(a, b probe.CollectiveTransport) int {
		return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B), strings.Compare(a.Kind, b.Kind))
	})
	l.Channels = n.channels
	if len(n.networks) > 0 {
		l.Network = n.networks[0].Name
	}
	if nics := s.Facts.NICs; nics != nil {
		for _, p := range nics.RDMA {
			l.Devices = append(l.Devices, fmt.Sprintf("%s:%d", p.Device, p.Port))
		}
		for i := 0; i < len(nics.Interfaces) && len(nics.RDMA) == 0; i++ {
			l.Devices = append(l.Devices, nics.Interfaces[i].Name)
		}
	}
	return l
}

// messagesOf is what a warning of a rank says; nothing where the catalogue does not know it. The name of
// the host and the number of the process say nothing about a rank of our own.
func messagesOf(line string) []probe.Message {
	who := parse.Identify(line)
	if _, behind, ok := strings.Cut(line, "] "); ok && strings.Contains(behind, levelWarn) {
		line = behind
	}
	row, fields, known := message.Of(line)
	if !known {
		return nil
	}
	return []probe.Message{{
		ID: row.ID, Program: row.Program, Role: row.Role, Text: escape.Printable(strings.TrimSpace(line), maxOwnText), Fields: fields,
		Place: row.PlaceOf(line), Device: who.Device,
	}}
}
