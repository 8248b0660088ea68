package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

const (
	// MaxMessages bounds the messages that differ from each other, and
	// maxVariants those of one form.
	MaxMessages = 2000
	maxVariants = 16
	// maxSpeakers bounds the processes that are distinguished for one message.
	maxSpeakers = 4096
	// maxText bounds a message's text, as facts.Message promises.
	maxText = 300
	// maxPlaced bounds what is looked at of a message to find its place: the plugin for
	// libfabric writes the whole signature of a function before its words.
	maxPlaced = 1200
)

// messageLog collects the statements of programs.
type messageLog struct {
	sink  *Sink
	found map[string]*found
	order []*found
	// variants counts the different messages of one form.
	variants map[string]int
}

// heard is a message and who said it.
type found struct {
	message  facts.Message
	speakers map[string]bool
	// last is who said it last, and where.
	last line
}

// utterance is a line of a text, and the process that wrote it as far as that is known.
type line struct {
	source string
	line   int
	rank   *int
	pid    int
}

func newMessageLog(s *Sink) *messageLog {
	return &messageLog{sink: s, found: make(map[string]*found), variants: make(map[string]int)}
}

// add counts a message, or begins it.
func (m *messageLog) add(id string, fields map[string]string, l Line) {
	row := message.StatementOf(id)
	if row == nil {
		panic("the catalogue has no row " + id) // A bug: the id is written in a parser.
	}
	m.sink.Tell(Event{Kind: MessageSaid, Name: id, Value: row.Role, Fields: fields, Line: l})
	who := Identify(l.Whole())
	if row.Role != "setting" && row.Role != "warning" && !message.OfProcess(id) {
		m.sink.complained(id, who, l)
	}
	key := fmt.Sprintf("%s %q", id, fields) // What is said distinguishes messages, not who says it.
	h := m.found[key]
	if h == nil {
		if m.variants[id] >= maxVariants { // One more of its kind adds nothing: count it with the first.
			for _, other := range m.order {
				if other.message.ID == id {
					h = other
					break
				}
			}
		} else if len(m.order) >= MaxMessages {
			m.sink.Logs().Truncated = true
			return
		}
	}
	if h == nil {
		m.variants[id]++
		h = &found{speakers: make(map[string]bool), message: facts.Message{
			ID: id, Program: row.Program, Role: row.Role, Text: escape.Printable(strings.TrimSpace(l.Whole()), maxText), Fields: fields,
			Host: cmp.Or(who.Host, m.sink.Host()), PID: who.pid, Rank: who.rank, Device: who.device, Time: who.time,
			Source: m.sink.name, Line: l.Number,
		}}
		if row.Role != "setting" {
			// More of a line than its text.
			h.message.Place = row.PlaceOf(cmp.Or(l.said, escape.Printable(strings.TrimSpace(l.bare), maxPlaced)))
		}
		m.found[key] = h
		m.order = append(m.order, h)
	}
	h.message.Count++
	h.last = line{m.sink.name, l.Number, who.rank, who.pid}
	if len(h.speakers) < maxSpeakers {
		h.speakers[who.key()] = true
	}
}

// messages returns what was found, in order.
func (m *messageLog) messages() []facts.Message {
	list := make([]facts.Message, 0, len(m.order))
	timed := true
	for _, h := range m.order {
		h.message.Ranks = max(len(h.speakers), 1)
		if h.message.Role == "category" {
			h.message.StepsAfter = m.sink.processes.after(h.last)
		}
		timed = timed && h.message.Time != ""
		list = append(list, h.message)
	}
	if timed {
		slices.SortStableFunc(list, func(a, b facts.Message) int { return cmp.Compare(a.Time, b.Time) })
	}
	for i := range list {
		list[i].Order = i
	}
	return list
}

// Speaker is the process that wrote a line, as far as the line tells.
type Speaker struct {
	Host   string
	pid    int
	rank   *int
	device *int
	time   string
}

func (s Speaker) key() string {
	rank := "-"
	if s.rank != nil {
		rank = strconv.Itoa(*s.rank)
	}
	return s.Host + " " + strconv.Itoa(s.pid) + " " + rank
}
