package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

const (
	// MaxMessages bounds the messages that differ from each other, and maxVariants those of one form.
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

// messageLog is what is known of the messages in the facts.
type messageLog struct {
	// found are the places of the messages in the facts, by what they say, and first those of the first of each row;
	// variants counts the different messages of a row.
	found, first, variants map[string]int
	// heard says of each message in the facts who said it.
	heard []heard
}

// heard is who said a message, and who said it last.
type heard struct {
	speakers map[processKey]bool
	last     line
}

// line is a line of a text, and the process that wrote it as far as that is known.
type line struct {
	source string
	line   int
	rank   *int
	pid    int
}

// sourceCode is a line of a program's source, as grep -n shows it, a call that would print a message, or one that strace
// shows to fail as programs that look around expect; or what documentation says that a function returns.
var sourceCode = lazy.New(`^\S+\.(?:py|c|cc|cpp|cu|cuh|h|hpp|go|rs)[:-]\d+[:-]\s*(?:raise\b|return\b|if\b|else\b|#|//|["'(]|[\w.]+\((?:\w+, ?)?f?["'])|^\s*(?:WARN|INFO|ERROR|f?printf|fputs|log(?:ger|ging)?\.\w+|raise \w+)\((?:\w+, ?)?f?["']|\) += -1 E(?:CONNREFUSED|ADDRINUSE|AGAIN|EXIST|INPROGRESS) \(|[^\w%]%(?:s|d|u|zu|l[dux]|p)\b|^\s*return \w+;|\breturns? \W{0,3}(?:CUDA_ERROR_|cudaError|hipError|nccl[A-Z])\w*\W{0,3} (?:if|when|unless|in case)\b`)

// searches are the commands that print a program's texts.
var searches = lazy.New(`^(?:sudo )?(?:strings|man|git (?:log|show|grep|diff)) |\bgrep\b.*\.(?:py|cc|cpp|cu|h)\b`)

// Message puts a message into the facts, or counts it there. id is a row of the catalogue.
func (s *Sink) Message(id string, fields map[string]string, l Line) {
	m := &s.messages
	row := message.StatementOf(id)
	if row == nil {
		panic("the catalogue has no row " + id) // A bug: the id is written in a parser.
	}
	complains := row.Role != "setting" && row.Role != "warning"
	if complains && (row.Survived(l.Whole()) || sourceCode.MatchString(l.Whole()) || searches.MatchString(s.typed)) {
		return
	}
	if row.Done {
		s.done(l)
	}
	if row.Step {
		s.Step(l)
	}
	s.Tell(Event{Kind: MessageSaid, Name: id, Value: row.Role, Fields: fields, Line: l})
	who := Identify(l.Whole())
	if complains && !message.OfProcess(id) {
		s.complained(id, who, l)
	}
	logs := s.Logs()
	key := fmt.Sprintf("%s %q", id, fields) // What is said distinguishes messages, not who says it.
	if row.Done || row.Program == "tests" { // How a text ends says nothing of others.
		key += s.name
	}
	at, known := m.found[key]
	switch {
	case known:
	case m.variants[id] >= maxVariants: // One more of its kind adds nothing: count it with the first.
		at = m.first[id]
	case len(logs.Messages) >= MaxMessages:
		logs.Truncated = true
		return
	default:
		if at = len(logs.Messages); m.variants[id] == 0 {
			m.first[id] = at
		}
		m.variants[id]++
		m.found[key] = at
		m.heard = append(m.heard, heard{speakers: map[processKey]bool{}})
		logs.Messages = append(logs.Messages, s.message(row, fields, who, l))
	}
	logs.Messages[at].Count++
	s.telling = s.telling || row.Role != "setting"
	h := &m.heard[at]
	h.last = line{s.name, l.Number, who.rank, who.pid}
	if len(h.speakers) < maxSpeakers {
		h.speakers[who.key()] = true
	}
}

// message is what a line says for the first time.
func (s *Sink) message(row *message.Statement, fields map[string]string, who Speaker, l Line) facts.Message {
	said := facts.Message{
		ID: row.ID, Program: row.Program, Role: row.Role, Text: escape.Printable(strings.TrimSpace(l.Whole()), maxText), Fields: fields,
		Host: cmp.Or(who.Host, s.Host()), PID: who.pid, Rank: who.rank, Device: who.Device, Time: who.time,
		Source: s.name, Line: l.Number,
	}
	if row.Role != "setting" {
		// More of a line than its text.
		said.Place = row.PlaceOf(cmp.Or(l.said, escape.Printable(strings.TrimSpace(l.bare), maxPlaced)))
	}
	return said
}

// settle says of the messages what all texts together tell, and puts them in order.
func (s *Sink) settle(all []facts.Message) {
	_, preempted := s.messages.first["job-preempted"] // Such a job may go on in the same text.
	for i := range all {
		all[i].Ranks = max(len(s.messages.heard[i].speakers), 1)
		if passes := message.Passes(all[i].ID) > 0 || preempted; passes || s.processes.ended {
			last := s.messages.heard[i].last // Ranks also take the steps that one of them reports.
			if n := s.after(line{source: last.source, line: last.line}); passes || n == facts.EndedWell {
				all[i].StepsAfter = n
			}
		}
	}
	if !slices.ContainsFunc(all, func(said facts.Message) bool { return said.Time == "" }) {
		slices.SortStableFunc(all, func(a, b facts.Message) int { return cmp.Compare(a.Time, b.Time) })
	}
	for i := range all {
		all[i].Order = i
	}
}
