package parse

import (
	"cmp"
	"math"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

const (
	// maxProcesses bounds the processes of all texts together, maxSteps the lines that are
	// remembered for each that tells of its steps.
	maxProcesses = 4096
	maxSteps     = 8
)

// processLog collects what each text shows of each process that wrote in it.
type processLog struct {
	list  []*process
	byKey map[processKey]*process
	// ended is true where a job ended well.
	ended bool
}

// processKey distinguishes processes, those of each section of a text.
type processKey struct {
	source, host       string
	section, pid, rank int
}

// process is one process in one text, and the last lines in which it reported a step of its work.
type process struct {
	facts.Process
	section int
	steps   []int
	// done is the last line that says that the job ended well, closed one that shows it at the end of the text (see close).
	done, closed int
	// began is where the command was typed whose job ended so; 0 if none was.
	began int
}

// process is the one that wrote a line of the present text; nil if there are too many. Of a line
// that names none it is one that has neither a rank nor a number.
func (s *Sink) process(who Speaker, l Line) *process {
	key, log := who.key(), &s.processes
	key.source, key.section = s.name, s.TextUnderWay().SectionOf(l.Number)
	p := log.byKey[key]
	if p == nil && len(log.list) < maxProcesses {
		p = &process{Process: facts.Process{Rank: who.rank, Host: who.Host, PID: who.pid, Source: s.name}, section: key.section}
		facts.Put(&log.byKey, key, p)
		log.list = append(log.list, p)
	}
	if p != nil && p.Device == nil {
		p.Device = who.Device
	}
	return p
}

// Step notes a line in which a process reports another step of its work.
func (s *Sink) Step(l Line) {
	s.telling = true
	p := s.process(s.identify(l), l)
	if p == nil {
		return
	}
	if len(p.steps) >= maxSteps {
		p.steps = p.steps[1:]
	}
	p.steps, p.Step = append(p.steps, l.Number), l.Number
}

// done notes that a line says that the job ended well.
func (s *Sink) done(l Line) {
	s.telling = true
	if p := s.process(s.identify(l), l); p != nil {
		p.done, p.began, s.processes.ended = l.Number, s.started, true
	}
}

// startsJob is a command that may start a job of its own.
var startsJob = lazy.New(`^(?:\w+=\S* )*(?:mpirun|mpiexec|srun|torchrun|python[\d.]*|(?:docker|podman) run|\./\S+) `)

// complained notes that a process said that something is wrong or went wrong.
func (s *Sink) complained(id string, who Speaker, l Line) {
	who.rank = cmp.Or(who.rank, rankOfName(s.name))
	if p := s.process(who, l); p != nil {
		p.Said, p.Line = id, l.Number
	}
}

// Began notes that a process began a communicator of some size, or completed its start.
func (s *Sink) Began(l Line, rank, ranks int, device *int, ready bool) {
	who := s.identify(l)
	who.rank, who.Device = &rank, device
	p := s.process(who, l)
	if p == nil || p.Ranks != 0 && p.Ranks != ranks { // The first communicator is that of the whole job.
		return
	}
	p.Ranks, p.Ready = ranks, p.Ready || ready
}

// facts are the processes that the texts name.
func (log *processLog) facts() []facts.Process {
	var all []facts.Process
	for _, p := range log.list {
		if p.Rank != nil || p.PID != 0 {
			all = append(all, p.Process)
		}
	}
	last := new(math.MaxInt) // The place of one without a rank.
	slices.SortStableFunc(all, func(a, b facts.Process) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(*cmp.Or(a.Rank, last), *cmp.Or(b.Rank, last)), cmp.Compare(a.PID, b.PID))
	})
	return all
}

// after counts the steps that the process of a line reported after it; it is facts.EndedWell where the job ended well then. Lines that name
// no process may be of any.
func (s *Sink) after(u line) int {
	n, section := 0, s.textOf(u.source).SectionOf(u.line)
	for _, p := range s.processes.list {
		if p.Source != u.source || p.section != section || u.rank != nil && p.Rank != nil && *u.rank != *p.Rank {
			continue
		}
		other := u.pid != 0 && p.PID != 0 && u.pid != p.PID
		done := p.done > u.line && p.began <= u.line || p.closed > u.line && (u.rank != nil || s.allClosed(p))
		if done && (!other || p.Rank == nil) { // A launcher, which has no rank, speaks for all.
			return facts.EndedWell
		}
		if other {
			continue
		}
		for _, line := range p.steps {
			if line > u.line {
				n++
			}
		}
	}
	return min(n, maxSteps)
}

// allClosed reports whether all ranks that write where a process writes end well, where it is a rank.
func (s *Sink) allClosed(by *process) bool {
	return by.Rank == nil || !slices.ContainsFunc(s.processes.list, func(p *process) bool {
		return p.Rank != nil && p.Source == by.Source && p.section == by.section && p.closed == 0
	})
}
