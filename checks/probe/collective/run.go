// Package collective runs the collectives of NCCL or RCCL between the GPUs of this machine, as a job does: a process
// for each GPU, with the library that a job would load. Every word that a rank receives is verified on its GPU. A rank
// that hangs, dies or fails ends all of them. It judges nothing.
package collective

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Options says how the collectives are run.
type Options struct {
	// Mode is quick, for the first arm and few sizes, or full.
	Mode probe.Mode
	// Candidates are the copies of the library that were found, the one to load first. If
	// empty, it is loaded by its name.
	Candidates []probe.Candidate
	// Arms are the names of the arms to run; empty means those of the mode.
	Arms []string
	// Brief is the short form that check runs by itself: after the first arm, that without the library's variables;
	// others only where the first failed and that one did not work, and none once the time for them is used.
	Brief bool
	// Files are the settings, by name, that the library reads from its files and that the
	// environment does not override.
	Files map[string]string
	// Patience bounds one wait for a GPU, Start the start of the driver, Join the creation of a
	// communicator, and Whole everything; 0 means those of package deadline.
	Patience, Start, Join, Whole time.Duration
	// Busy returns which GPUs are in use, by address, and by what; those are left out.
	Busy func(ctx context.Context) map[string]probe.User
	// FilesLimit is the soft limit on open files of a job; 0 where it is not known.
	FilesLimit int64
	// ReadLog reads what the library logged on all ranks, and, if failed is true, the messages in
	// it that the catalogue knows; nil reads nothing.
	ReadLog func(text string, failed bool) Log
	// Progress, if set, is called with the name of each arm as it begins.
	Progress func(arm string)
	// Env is added to the environment of the ranks.
	Env []string
}

// Log is what the library's log says.
type Log struct {
	Transports []probe.CollectiveTransport
	Channels   map[string]int
	Network    string
	// Devices are the network devices that it may use: "mlx5_0:1", "eth0".
	Devices  []string
	Warnings []string
	// Messages are of the process whose GPU has the ordinal Device.
	Messages []probe.Message
}

// libraryName is the name by which programs load NCCL.
const libraryName = "libnccl.so.2"

type session struct {
	options Options
	report  *probe.Collectives
	env     map[string]string
	api     string
	places  []place
	library string
	hung    bool // An arm hung in its start: later ones get less time.
	// tried is when the first arm had ended.
	tried time.Time
	// launch starts the process of a rank and waits for its end; nil starts it here.
	launch func(ctx context.Context, at place, spec child.Spec) (child.Result, error)
}

// Run runs the collectives. Whatever the library and the driver do is part of the report.
func Run(ctx context.Context, o Options) (*probe.Collectives, error) {
	s := newSession(o)
	ctx, stop := context.WithTimeout(ctx, s.options.Whole)
	defer stop()
	if !s.survey(ctx) {
		return s.report, context.Cause(ctx)
	}
	s.leaveBusy(ctx)
	if len(s.places) == 0 {
		s.report.Reason, s.report.Cause = "no GPU takes part", probe.CauseDevice
		if len(s.report.Left) > 0 {
			s.report.Reason, s.report.Cause = s.report.Left[0].GPU+": "+s.report.Left[0].Reason, s.report.Left[0].Cause
		}
		return s.report, nil
	}
	s.runArms(ctx)
	return s.report, nil
}

func newSession(o Options) *session {
	o.Patience = cmp.Or(o.Patience, deadline.Transfer)
	o.Start = cmp.Or(o.Start, deadline.Start)
	o.Join = cmp.Or(o.Join, deadline.Join)
	o.Whole = cmp.Or(o.Whole, deadline.Full)
	s := &session{options: o, env: environment(o.Env), report: &probe.Collectives{
		Mode: o.Mode, Outcome: probe.Unknown, GPUs: []string{}, Arms: []probe.Arm{}, Candidates: o.Candidates,
	}}
	for name, value := range o.Files {
		if _, set := s.env[name]; !set {
			s.env[name] = value
		}
	}
	return s
}

// runArms runs the arms, each of which decides whether later ones are worth a run.
func (s *session) runArms(ctx context.Context) {
	for i, a := range arms {
		switch {
		case i > 0 && !s.takes(a):
		case ctx.Err() != nil || s.spent():
			s.report.Untried = append(s.report.Untried, a.name)
		case a.searches:
			s.search(ctx, a)
		default:
			s.run(ctx, a)
		}
	}
}

// briefTime is the time after the first arm from which on the short form begins no further arm: the search for one variable
// among several takes up to eight runs of a second.
const briefTime = 20 * time.Second

// spent reports whether the short form has used its time. One arm after the first is always begun: without it, a failure
// would have no cure.
func (s *session) spent() bool {
	return s.options.Brief && len(s.report.Arms) > 1 && time.Since(s.tried) > briefTime
}

func environment(changes []string) map[string]string {
	env := map[string]string{}
	for _, s := range append(os.Environ(), changes...) {
		name, value, _ := strings.Cut(s, "=")
		env[name] = value
	}
	return env
}

func (s *session) takes(a arm) bool {
	if len(s.options.Arms) > 0 && !slices.Contains(s.options.Arms, a.name) {
		return false
	}
	first := &s.report.Arms[0]
	if first.Outcome == probe.Unknown {
		return false // What stopped it stops the others.
	}
	compares := s.options.Brief && (a.cleans || a.searches)
	if len(s.options.Arms) == 0 && s.options.Mode != probe.Full && first.Outcome == probe.OK && !compares {
		return false
	}
	cleaned := s.armNamed(probe.ArmCleaned)
	switch cured := cleaned != nil && cleaned.Outcome == probe.OK; {
	case a.searches:
		return cured && len(cleaned.Unset) > 1 && (first.Outcome.Failed() || slower(first, cleaned))
	case s.options.Brief && !a.cleans && (cured || a.inProcess): // No setting makes a job run in one process.
		return false
	case s.options.Brief && first.Outcome == probe.Hang && s.anyWorks(): // Others may take a deadline each.
		return false
	}
	return a.applies(s.env, len(s.places), first)
}

func (s *session) anyWorks() bool {
	return slices.ContainsFunc(s.report.Arms, func(a probe.Arm) bool { return a.Outcome == probe.OK })
}

func (s *session) armNamed(name string) *probe.Arm {
	return facts.Find(s.report.Arms, func(a *probe.Arm) bool { return a.Name == name })
}

// survey asks a process which GPUs there are, and loads the library there.
func (s *session) survey(ctx context.Context) bool {
	first := probe.Candidate{Path: libraryName, FoundBy: "loader"}
	if len(s.options.Candidates) > 0 {
		first = s.options.Candidates[0]
	}
	s.library, s.report.FoundBy = first.Path, first.FoundBy
	g := newGroup(s, order{Library: s.library}, s.options.Env, nil)
	defer g.end()
	g.start(ctx, [][]place{nil})
	var found *survey
	f := g.await(ctx, s.options.Start, func(_ *member, x message) bool {
		if x.Survey != nil {
			found = x.Survey
		}
		return x.Left
	})
	if found != nil {
		s.api = found.API
		s.report.Path, s.report.Version = printable(found.Path), printable(found.Version)
		for i := range min(len(found.GPUs), maxRanks) {
			address := printable(found.GPUs[i])
			if address != "" && slices.Contains(s.report.GPUs, address) { // NCCL rejects two ranks on one GPU.
				s.report.Left = append(s.report.Left, probe.LeftOut{GPU: address, Reason: "another part of the same GPU takes part", Cause: probe.CauseUnavailable})
				continue
			}
			s.places = append(s.places, place{Rank: len(s.places), Ordinal: i})
			s.report.GPUs = append(s.report.GPUs, address)
		}
	}
	s.report.Library = "nccl"
	if strings.Contains(cmp.Or(s.report.Path, s.library), "librccl") {
		s.report.Library = "rccl"
	}
	if f == nil {
		return true
	}
	r := g.outcome(0)
	s.report.Outcome, s.report.Reason, s.report.Cause = r.Outcome, r.Reason, r.Cause
	s.report.Remains = g.remains
	return false
}

// maxRanks bounds the ranks: the largest machine has 72 GPUs.
const maxRanks = 72

func (s *session) leaveBusy(ctx context.Context) {
	if s.options.Busy == nil {
		return
	}
	busy := s.options.Busy(ctx)
	places, gpus := []place{}, []string{}
	for i, address := range s.report.GPUs {
		if user, is := busy[address]; is {
			s.report.Left = append(s.report.Left, probe.LeftOut{GPU: address, Reason: user.String(), Cause: probe.CauseBusy})
			continue
		}
		places = append(places, place{Rank: len(places), Ordinal: s.places[i].Ordinal})
		gpus = append(gpus, address)
	}
	s.places, s.report.GPUs = places, gpus
}

// logLevel makes the library log what the reader reads, to its stdout: to a file it writes line by line.
var logLevel = []string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,NET", "NCCL_DEBUG_FILE=/proc/self/fd/1"}

func (s *session) run(ctx context.Context, a arm) probe.Arm {
	first := len(s.report.Arms) == 0
	if a.cleans {
		a.unset = leftovers(s.env, !first && s.report.Arms[0].Outcome.Failed())
	}
	a = a.withoutAlgorithms(s.env)
	if s.options.Progress != nil {
		s.options.Progress(strings.TrimSpace(a.name + " " + strings.Join(a.unset, ", ")))
	}
	result := probe.Arm{Name: a.name, Set: a.set, Unset: a.unset}
	set, unset := s.environmentOf(a)
	todo := a.todo
	switch {
	case first && s.options.Mode == probe.Full:
		todo = fullPlan
	case first:
		todo = quickPlan
	case todo == nil:
		todo = armPlan
	}
	together := 1
	if a.inProcess {
		together = len(s.places)
	}
	g := newGroup(s, order{
		API: s.api, Library: s.library, Ranks: len(s.places), Bytes: todo.largest(), Patience: s.options.Patience, Files: s.options.FilesLimit,
	}, set, unset)
	g.run(ctx, slices.Collect(slices.Chunk(s.places, together)), todo, &result)
	s.report.Remains = s.report.Remains || g.remains
	s.hung = s.hung || result.Outcome == probe.Hang
	s.report.Arms = append(s.report.Arms, result)
	if first {
		s.tried = time.Now()
		s.report.Outcome, s.report.Reason, s.report.Cause = result.Outcome, result.Reason, result.Cause
	}
	return result
}

// environmentOf returns what an arm sets in the environment of its ranks, and what it removes
// from it. A variable that a file of the library sets is set to nothing: the library takes what
// the environment has, and treats an empty value as none.
func (s *session) environmentOf(a arm) (set, unset []string) {
	unset = slices.Concat(neverPassed, a.unset)
	set = slices.DeleteFunc(slices.Clone(s.options.Env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, other := a.set[name]
		return other || slices.Contains(unset, name)
	})
	for _, name := range a.unset {
		if _, inFile := s.options.Files[name]; inFile {
			set = append(set, name+"=")
			unset = slices.DeleteFunc(unset, func(n string) bool { return n == name })
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.set)) {
		set = append(set, name+"="+a.set[name])
	}
	return set, unset
}

func (s *session) join() time.Duration {
	if s.hung {
		return s.options.Join / 2
	}
	return s.options.Join
}

const maxWords = 300

func printable(s string) string { return escape.Printable(s, maxWords) }

func decode(raw json.RawMessage) (m message, ok bool) {
	if json.Unmarshal(raw, &m) != nil {
		return m, false
	}
	if f := m.Failure; f != nil && !slices.Contains([]probe.Outcome{probe.Error, probe.Hang, probe.Unknown}, f.Outcome) {
		return m, false
	}
	if r := m.Result; r != nil && (r.Seconds < 0 || math.IsNaN(r.Seconds) || r.Verified == "" && !r.Unsupported) {
		return m, false
	}
	return m, true
}

// ranksIn names ranks: "rank 0", "ranks 0, 2 and 3".
func ranksIn(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("rank %d", list[0])
	}
	var words []string
	for _, r := range list[:min(len(list), 8)] {
		words = append(words, fmt.Sprint(r))
	}
	if more := len(list) - len(words); more > 0 {
		return fmt.Sprintf("ranks %s and %d more", strings.Join(words, ", "), more)
	}
	return "ranks " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
