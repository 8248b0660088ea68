package parse

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// maxDeaths bounds the deaths that are kept: the first half of them, and of the rest the last.
const maxDeaths = 64

// noted is a death and the number of the text that reports it.
type noted struct {
	facts.Death
	text int
}

// Death notes the end of a process that a line tells. What the death leaves out of who
// it was is read from the line and the name of the text.
func (s *Sink) Death(d facts.Death, l Line) {
	who := s.identify(l)
	d.Rank = cmp.Or(d.Rank, who.rank)
	d.Host, d.PID, d.Time = cmp.Or(d.Host, who.Host), cmp.Or(d.PID, who.pid), cmp.Or(d.Time, who.time)
	d.Source, d.Line, d.Text, d.Count = s.name, l.Number, escape.Printable(strings.TrimSpace(l.Text), maxText), 1
	d.Said = escape.Printable(d.Said, maxText)
	d.Begins = cmp.Or(d.Begins, l.Number)
	s.telling = true
	s.addDeath(noted{d, len(s.Facts.Texts)})
}

func (s *Sink) addDeath(d noted) {
	for i := range s.deaths {
		k := &s.deaths[i]
		if explains(&d, k) {
			d.Begins = k.Begins
			*k = d
			return
		}
		if alike(k, &d) {
			d.Count += k.Count
			if d.What != "exception" || d.Uncaught {
				d.Line, d.Begins, d.Text, d.Time = k.Line, k.Begins, k.Text, k.Time
			}
			*k = d // Of exceptions that may have been caught the last counts.
			return
		}
	}
	if len(s.deaths) >= maxDeaths {
		s.deaths = slices.Delete(s.deaths, maxDeaths/2, maxDeaths/2+1)
	}
	s.deaths = append(s.deaths, d)
}

// identify reads who wrote a line; where the line names no rank, the name of the text may.
func (s *Sink) identify(l Line) Speaker {
	who := Identify(l.Whole())
	if i := s.TextUnderWay().SectionOf(l.Number); i > 0 {
		of := s.sections[i-1]
		who.Host, who.rank = cmp.Or(who.Host, of.host), cmp.Or(who.rank, of.rank)
	}
	who.rank = cmp.Or(who.rank, rankOfName(s.name))
	return who
}

// RankOf is the rank that wrote a line, by the line or the name of its text; nil if neither tells.
func (s *Sink) RankOf(l Line) *int { return s.identify(l).rank }

// alike reports whether two deaths tell the same of the same process.
func alike(k, d *noted) bool {
	return k.What == d.What && k.Class == d.Class && k.Said == d.Said && k.File == d.File && k.FileLine == d.FileLine && k.text == d.text &&
		k.Reporter == d.Reporter && k.First == d.First && k.Uncaught == d.Uncaught && k.Ignored == d.Ignored && k.Host == d.Host && k.PID == d.PID &&
		equal(k.Rank, d.Rank) && equal(k.Code, d.Code)
}

// explains reports whether a launcher says with d by which signal a process ended whose exit code it gave
// before, as Hydra does: its code is the number of the signal then.
func explains(d, code *noted) bool {
	return d.What == "signal" && code.What == "exit" && d.PID != 0 && d.PID == code.PID && d.Host == code.Host && d.Reporter == code.Reporter && d.text == code.text
}

func equal(a, b *int) bool { return a == b || a != nil && b != nil && *a == *b }

// deathsIn returns the deaths in order, with their places among the messages.
func (s *Sink) deathsIn(messages []facts.Message) []facts.Death {
	timed := len(messages) > 0 && !slices.ContainsFunc(messages, func(m facts.Message) bool { return m.Time == "" })
	for i := range s.deaths {
		d := &s.deaths[i]
		d.Order, d.StepsAfter = placeOf(&d.Death, s.textOf(d.Source), messages, timed), s.after(line{d.Source, d.Line, d.Rank, d.PID})
	}
	dated := !slices.ContainsFunc(s.deaths, func(d noted) bool { return d.Time == "" })
	slices.SortStableFunc(s.deaths, func(a, b noted) int {
		if dated && a.Time != b.Time {
			return cmp.Compare(a.Time, b.Time)
		}
		return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.Line, b.Line))
	})
	list := make([]facts.Death, len(s.deaths))
	for i, d := range s.deaths {
		list[i] = d.Death
	}
	return list
}

// placeOf is the order of the first message behind a death, which is before those of other sections.
func placeOf(d *facts.Death, t *facts.Text, messages []facts.Message, timed bool) int {
	if timed && d.Time != "" {
		i, _ := slices.BinarySearchFunc(messages, d.Time, func(m facts.Message, time string) int { return cmp.Compare(m.Time, time) })
		return i
	}
	place := 0
	for i, m := range messages {
		if m.Source == d.Source && m.Line < d.Line && t.SectionOf(m.Line) == t.SectionOf(d.Line) {
			place = i + 1
		}
	}
	return place
}

// rankName are the names that launchers give to the output of one rank:
// "attempt_0/3/stderr.log" of torchrun --log-dir, "rank3.log", "out.rank_03.txt".
var rankName = lazy.New(`rank[-_.]?(\d{1,5})\b|attempt_\d+/(\d{1,5})/std`)

func rankOfName(name string) *int {
	name = strings.ToLower(name[strings.LastIndexByte(name, ':')+1:])
	if !strings.Contains(name, "attempt_") {
		name = path.Base(name)
	}
	if m := rankName.FindStringSubmatch(name); m != nil {
		return Optional(m[1] + m[2])
	}
	return nil
}
