// Package units judges the files of jobs in parts: each container, service, stage of a Dockerfile and
// script by itself, so that the variables and limits of one do not count for another.
package units

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Split splits the facts of files into units, in the order of the files. The nodes of Slurm are one unit,
// whatever files describe them, and count for each batch job.
func Split(f *facts.Facts) []report.Part {
	type key struct {
		source string
		unit   int
	}
	var order []key
	by := map[key][]facts.Launch{}
	var nodes []facts.Launch
	for _, l := range f.Launches {
		k := key{l.Source, l.Unit}
		if l.Kind == "slurm-node" {
			k = key{}
			nodes = append(nodes, l)
		}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], l)
	}
	all := make([]report.Part, 0, len(order))
	for _, k := range order {
		launches := by[k]
		o := rules.Object{File: launches[0].Source, Line: launches[0].Line}
		for _, l := range launches {
			o.Name = cmp.Or(o.Name, l.Object)
			if l.Source == o.File {
				o.Line = min(o.Line, l.Line)
			}
		}
		isBatch := slices.ContainsFunc(launches, func(l facts.Launch) bool { return l.Kind == "slurm" })
		own := *f
		own.Launches, own.Env = launches, environment(launches)
		if isBatch && k != (key{}) {
			own.Launches = slices.Concat(launches, nodes)
		}
		own.Logs, own.Runs, own.Origins, own.Benchmarks, own.Comparisons, own.Software, own.KernelLog = nil, nil, nil, nil, nil, nil, nil
		own.Texts = nil
		if i := slices.IndexFunc(f.Texts, func(t facts.Text) bool { return t.Name == o.File }); i >= 0 {
			own.Texts = f.Texts[i : i+1]
		}
		own.Unknown = nil
		all = append(all, report.Part{Object: o, Facts: &own})
	}
	return all
}

// environment is what launches set of the variables that steer communication. A variable that two of them
// set to different values has neither in force.
func environment(launches []facts.Launch) *facts.EnvFacts {
	e := &facts.EnvFacts{Variables: []facts.Variable{}}
	values := map[string]map[string]bool{}
	for _, l := range launches {
		for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
			if !env.SteersCommunication(name) || values[name][l.Variables[name]] {
				continue
			}
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][l.Variables[name]] = true
			line := cmp.Or(l.Lines[launch.VariablePart(name)], l.Line)
			e.Variables = append(e.Variables, facts.Variable{Name: name, Value: l.Variables[name], Source: l.Source, Line: line, Effective: true})
		}
	}
	for i, v := range e.Variables {
		e.Variables[i].Effective = len(values[v.Name]) == 1
	}
	slices.SortStableFunc(e.Variables, func(a, b facts.Variable) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source))
	})
	return e
}

// Evaluate judges each unit, several at a time, and joins what the rules say of them.
func Evaluate(ctx context.Context, set *rules.Set, all []report.Part, opts rules.Options) (*rules.Result, error) {
	if len(all) > 1 {
		if err := set.Compile(opts); err != nil {
			return nil, err
		}
	}
	verdicts := make([]*rules.Result, len(all))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range all {
		g.Go(func() (err error) {
			verdicts[i], err = set.Evaluate(ctx, all[i].Facts, opts)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return joined(all, verdicts), nil
}

// joined is what the rules say of all units. A rule that found something in one has not passed, and one that could not
// judge a unit is skipped.
func joined(all []report.Part, verdicts []*rules.Result) *rules.Result {
	result := &rules.Result{NotApplicable: map[string]string{}}
	skipped, passed, found := map[string]*rules.Skipped{}, map[string]bool{}, map[string]bool{}
	for i := range all {
		u, v := &all[i], verdicts[i]
		for _, f := range v.Findings {
			if !elsewhere(u, f) { // Else it is one of the nodes of Slurm.
				result.Findings = append(result.Findings, f.In(&u.Object))
				found[f.Rule] = true
			}
		}
		for _, id := range v.Passed {
			passed[id] = true
		}
		u.Open = len(v.Skipped) > 0
		for _, s := range v.Skipped {
			whole := cmp.Or(skipped[s.Rule], &rules.Skipped{Rule: s.Rule})
			skipped[s.Rule] = whole
			whole.Fault = whole.Fault || s.Fault
			whole.Missing = lines.Unique(append(whole.Missing, s.Missing...))
		}
		maps.Copy(result.NotApplicable, v.NotApplicable)
	}
	for _, id := range slices.Sorted(maps.Keys(skipped)) {
		result.Skipped = append(result.Skipped, *skipped[id])
	}
	for _, id := range slices.Sorted(maps.Keys(passed)) {
		if !found[id] && skipped[id] == nil {
			result.Passed = append(result.Passed, id)
		}
	}
	maps.DeleteFunc(result.NotApplicable, func(id, _ string) bool { return found[id] || passed[id] || skipped[id] != nil })
	slices.SortStableFunc(result.Findings, rules.Finding.Compare)
	return result
}

// elsewhere reports whether all evidence of a finding stands in the other files about a unit.
func elsewhere(u *report.Part, f rules.Finding) bool {
	return !slices.ContainsFunc(f.Evidence, func(e rules.Evidence) bool {
		return !slices.ContainsFunc(u.Facts.Launches, func(l facts.Launch) bool { return l.Source != u.File && strings.HasPrefix(e.Source, l.Source+":") })
	})
}

// Rank ranks the remedies of the findings about each unit by itself, those of the worst first. What is about no
// unit is about the machine.
func Rank(all []report.Part, findings []rules.Finding, machine *facts.Facts, rank func([]rules.Finding, *facts.Facts) remedies.Ranking) remedies.Ranking {
	known := map[rules.Object]*facts.Facts{{}: machine}
	for _, u := range all {
		known[u.Object] = u.Facts
	}
	of := map[rules.Object][]rules.Finding{}
	for _, f := range findings {
		of[f.Scope()] = append(of[f.Scope()], f)
	}
	var joined remedies.Ranking
	for _, f := range findings {
		o := f.Scope()
		if len(of[o]) == 0 {
			continue // They are ranked.
		}
		r := rank(of[o], known[o])
		joined.Advice, joined.Withheld = append(joined.Advice, r.Advice...), append(joined.Withheld, r.Withheld...)
		delete(of, o)
	}
	return joined
}

// Accepted are the waivers that remarks in the files are.
func Accepted(all []report.Part) []waivers.Waiver {
	var accepted []waivers.Waiver
	for i := range all {
		u := &all[i]
		for _, l := range lines.Filter(u.Facts.Launches, func(l facts.Launch) bool { return l.Source == u.File }) {
			for _, i := range l.Ignored {
				accepted = append(accepted, waivers.Waiver{Rule: i.Rule, Reason: i.Reason, Path: u.File, Object: u.Name, File: l.Source, Line: i.Line, In: &u.Object})
			}
		}
	}
	return lines.Unique(accepted)
}

// Takes is what --profile launch takes, for hints.
const Takes = "--profile launch takes pods and their templates, compose files, Dockerfiles, batch scripts, command lines and settings of Slurm"

// errNone is input that describes no job.
var errNone = errors.New("no description of a job was recognized")

// DropBroken removes the jobs that broken documents describe, which are not judged. Facts without any
// description of a job are an error: nothing of them could be judged.
func DropBroken(f *facts.Facts) error {
	f.Launches = slices.DeleteFunc(f.Launches, func(l facts.Launch) bool { return inBroken(f, l) })
	if len(f.Launches) == 0 && !slices.ContainsFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section == report.LaunchesSection }) {
		return noLaunch(f)
	}
	return nil
}

// inBroken reports whether a job is described in a document that is broken.
func inBroken(f *facts.Facts, l facts.Launch) bool {
	return slices.ContainsFunc(f.Texts, func(t facts.Text) bool {
		return t.Name == l.Source && t.Unread == facts.UnreadBroken && l.Line >= t.Document
	})
}

// noLaunch says what is broken, or what was recognized instead.
func noLaunch(f *facts.Facts) error {
	for _, t := range f.Texts {
		if t.Unread == facts.UnreadBroken {
			return complaint.Hinted(fmt.Errorf("%s: %s", t.Name, t.Problem), "correct it: no complete description of a job was found", Takes)
		}
	}
	err := errNone
	if i := slices.IndexFunc(f.Texts, func(t facts.Text) bool { return len(t.Kinds) > 0 }); i >= 0 {
		err = fmt.Errorf("%w: %s was recognized as %s", errNone, f.Texts[i].Name, f.Texts[i].Kinds[0].Kind)
	}
	return complaint.Hinted(err, Takes, "gpudoctor texts lists what is recognized and how to produce it")
}
