package runs

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// finish puts the runs into the facts, where there are several to compare.
func (r *recorder) finish() {
	f := r.sink.Facts
	lines := map[string]int{}
	for _, t := range f.Texts {
		lines[t.Name] = t.Lines
	}
	var all []*run
	configured := map[string]bool{}
	for _, s := range r.sessions {
		s.takeBefore(math.MaxInt)
		s.close(lines[s.name])
		maps.Copy(configured, s.configured)
		if len(s.runs) == 0 && !slices.ContainsFunc(r.tabled, func(t *run) bool { return t.Source == s.name }) { // A manifest, a script: what it sets is set.
			maps.Copy(configured, s.set)
		}
		for _, r := range s.runs {
			t := tableIn(f, r.Source, r.Line, r.end)
			if r.By == "heading" && len(r.marks) == 0 && !t.begins && t.row == 0 {
				continue // A heading over a command, or over none.
			}
			r.settle(t)
			all = append(all, r)
		}
	}
	all = append(all, r.tabled...)
	ran := slices.Clone(all)
	all = append(all, r.tellings(f, all)...)
	all = slices.DeleteFunc(all, func(run *run) bool { return r.sink.Over(run.Source) })
	all = all[:min(len(all), maxRuns)]
	if len(all) < 2 || !slices.ContainsFunc(all, func(r *run) bool { return r.Outcome != unknown }) {
		return
	}
	f.Comparisons = compare(all)
	for _, r := range all {
		f.Runs = append(f.Runs, r.Run)
	}
	markTrials(f, ran, configured)
}

// maxComparisons bounds the comparisons of the facts.
const maxComparisons = 64

// compare finds the pairs of runs that differ in exactly one thing.
func compare(all []*run) []facts.Comparison {
	var list []facts.Comparison
	together := !slices.ContainsFunc(all, func(r *run) bool {
		v := r.variables()
		return v["NCCL_P2P_DISABLE"] != v["NCCL_SHM_DISABLE"]
	})
	for i, a := range all {
		for j, b := range all[i+1:] {
			if a.Outcome == unknown || b.Outcome == unknown || !alike(a, b) {
				continue
			}
			switch differs, ok := differences(a, b, together); {
			case !ok:
			case len(differs) == 0 && (a.By == "text" || a.By == "table") && a.GPUs+a.Nodes != b.GPUs+b.Nodes: // Of one it is not said how large it was.
			case len(differs) == 0 && (a.Outcome == good) != (b.Outcome == good):
				a.mixed, b.mixed = true, true
			case len(differs) == 1 && a.By == "text" && slices.Contains([]string{"variable", "version"}, differs[0].Kind) && !a.says(differs[0], b) && !b.says(differs[0], a):
			case len(differs) == 1 && (a.changes == b.changes || ofMachine(differs[0])):
				c := facts.Comparison{Kind: differs[0].Kind, Name: differs[0].Name, A: i, B: i + 1 + j}
				if a.By != "text" || c.Kind == "devices" || !slices.ContainsFunc(list, func(o facts.Comparison) bool { // Once is enough.
					return all[o.A].By == "text" && o.Kind == c.Kind && o.Name == c.Name && (all[o.A].Outcome == all[o.B].Outcome) == (a.Outcome == b.Outcome)
				}) {
					list = append(list, c)
				}
			}
		}
	}
	list = slices.DeleteFunc(list, func(c facts.Comparison) bool { return all[c.A].mixed || all[c.B].mixed })
	return list[:min(len(list), maxComparisons)]
}

// says reports whether a text says of a run what it has of a difference; of one that it does not say it of, that it is the
// failure without.
func (r *run) says(c facts.Comparison, other *run) bool {
	has := r.Variables[c.Name] != "" || c.Kind == "version" && r.Version != ""
	return has && (other.base || other.Variables[c.Name] != "" || c.Kind == "version" && other.Version != "")
}

// ofMachine reports whether a difference is one of the machine or of its software: it takes
// a reboot or an installation to make it.
func ofMachine(c facts.Comparison) bool {
	return c.Kind == "version" || c.Kind == "variable" && c.Name == strings.ToLower(c.Name)
}

// alike reports whether two runs are of one program on one machine. What no command
// shows is taken for the same within a text, and in files that are named after what differs.
func alike(a, b *run) bool {
	switch {
	case (a.By == "table") != (b.By == "table"), (a.By == "text") != (b.By == "text"):
		return false
	case a.Host != "" && b.Host != "" && a.Host != b.Host:
		return false
	case a.quoted != b.quoted:
		return false // Of others, and so of another machine.
	case a.By == "text":
		return true
	case a.identity != "" && b.identity != "":
		return a.identity == b.identity && (a.upto == b.upto || a.beyond(b) || b.beyond(a))
	case a.begun && b.stepped() || b.begun && a.stepped():
		return false
	case a.Source == b.Source:
		return true
	}
	return a.identity == b.identity && (a.named && b.named || (a.named || b.named) && a.begun && b.begun)
}

// beyond reports whether a run works and sent larger messages than one that does not.
func (r *run) beyond(bad *run) bool {
	mine, its := parse.ByteSize(r.upto), parse.ByteSize(bad.upto)
	return r.Outcome == good && bad.Outcome != good && mine != nil && its != nil && *mine > *its
}

// differences are the things in which two runs differ; it reports false if that is not known. Together is true where runs
// turn P2P and shared memory off together or not at all: NCCL takes the latter only where it does not take P2P
// (ncclTransports, src/transport.cc).
func differences(a, b *run, together bool) ([]facts.Comparison, bool) {
	var list []facts.Comparison
	ofA, ofB := a.variables(), b.variables()
	both := maps.Clone(ofA)
	maps.Copy(both, ofB)
	for name := range both {
		va, okA := ofA[name]
		vb, okB := ofB[name]
		switch {
		case slices.Contains(data.Experiments().Ignored, name), together && name == "NCCL_SHM_DISABLE":
		case !okA && !a.lacks(name, b) || !okB && !b.lacks(name, a):
			return nil, false
		case va != vb:
			list = append(list, facts.Comparison{Kind: "variable", Name: name})
		}
	}
	if len(list) > 1 { // Of variables that turn the same off, one stands for all.
		names, ofOne := make([]string, len(list)), true
		for i, c := range list {
			names[i] = c.Name
			ofOne = ofOne && (ofA[c.Name] == "") == (ofA[names[0]] == "")
		}
		if first, ok := data.Experiments().First(names); ok && ofOne {
			list = []facts.Comparison{{Kind: "variable", Name: first}}
		}
	}
	switch {
	case len(a.Devices) > 0 && len(b.Devices) > 0:
		if !slices.Equal(a.Devices, b.Devices) {
			list = append(list, facts.Comparison{Kind: "devices"})
		}
	case a.Nodes != b.Nodes && a.Nodes > 0 && b.Nodes > 0:
		list = append(list, facts.Comparison{Kind: "nodes"})
	case a.GPUs != b.GPUs && a.GPUs > 0 && b.GPUs > 0:
		list = append(list, facts.Comparison{Kind: "gpus"})
	case len(a.Devices) != len(b.Devices) && (a.GPUs == 0 || b.GPUs == 0):
		return nil, false
	}
	switch {
	case a.Version == "several" || b.Version == "several":
		return nil, false
	case a.Library == b.Library && a.Version != b.Version && a.Version != "" && b.Version != "":
		list = slices.DeleteFunc(list, func(c facts.Comparison) bool { return slices.Contains(loaders, c.Name) })
		list = append(list, facts.Comparison{Kind: "version", Name: a.Library})
	}
	return list, true
}

// loaders are variables by which another library is taken.
var loaders = []string{"LD_LIBRARY_PATH", "LD_PRELOAD", "VLLM_NCCL_SO_PATH"}

// variables are those that are set for a run, or that its log says it read.
func (r *run) variables() map[string]string {
	all := maps.Clone(r.logged)
	maps.Copy(all, r.Variables)
	return all
}

// lacks reports whether a variable that another run has is not set for this one. What that run's log alone says
// is not known of this one, unless its log came as far.
func (r *run) lacks(name string, other *run) bool {
	_, isSet := other.Variables[name]
	return isSet || r.made && len(r.logged) > 0 || r.made && other.made && r.named
}

// markTrials marks the variables that were set for some runs only, and takes them out of force.
func markTrials(f *facts.Facts, all []*run, configured map[string]bool) {
	if f.Env == nil {
		return
	}
	varied := map[string]bool{}
	for i, a := range all {
		for j, b := range all {
			if i == j || a.Outcome == unknown && b.Outcome == unknown || !alike(a, b) {
				continue
			}
			others := b.settings()
			for name, value := range a.settings() {
				varied[name+"="+value] = varied[name+"="+value] || others[name] != value
			}
		}
	}
	sources := map[string]bool{}
	for _, r := range all {
		sources[r.Source] = true
	}
	changed := map[string]bool{}
	for i := range f.Env.Variables {
		v := &f.Env.Variables[i]
		if key := v.Name + "=" + v.Value; varied[key] && !configured[key] && sources[v.Source] {
			v.Trial, changed[v.Name] = true, v.Effective || changed[v.Name]
			v.Effective = false
		}
	}
	for i := range f.Env.Variables {
		if v := &f.Env.Variables[i]; changed[v.Name] && !v.Trial {
			v.Effective = true
			delete(changed, v.Name)
		}
	}
}

// settings are the variables of a run, including those that choose GPUs.
func (r *run) settings() map[string]string {
	all := r.variables()
	for _, name := range data.Experiments().Devices {
		if len(r.Devices) > 0 {
			all[name] = strings.Join(r.Devices, ",")
		}
	}
	return all
}
