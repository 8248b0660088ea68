package remedies

import (
	"cmp"
	"maps"
	"slices"

	"github.com/gpudoctor/gpudoctor/rules"
)

// edit replaces "unset" with the edit of the file that sets a variable, where one is known to do so.
func (c *candidate) edit(here Situation) {
	var unset []string
	wanted := map[Need]bool{}
	for _, name := range c.apply.Unset {
		edits := here.editable(name)
		for _, e := range edits {
			c.apply.Edits = appendNew(c.apply.Edits, e)
			wanted[e.needsOf()] = true
		}
		if len(edits) == 0 || here.inEnvironment(name) {
			unset = append(unset, name)
		}
	}
	c.apply.Unset = unset
	if len(c.apply.Edits) == 0 {
		return
	}
	slices.SortStableFunc(c.apply.Edits, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Remove, b.Remove))
	})
	for _, n := range c.remedy.Needs {
		wanted[n] = true
	}
	c.remedy.Needs = slices.SortedFunc(maps.Keys(wanted), func(a, b Need) int { return slices.Index(needs, a) - slices.Index(needs, b) })
	if len(unset) == 0 {
		c.remedy.Lasts = "forever"
	}
}

// fit removes from the candidates, which are in order of rank, what is in force here already, what a finding needs as
// it is, and what is the opposite of what a higher-ranking candidate does. A candidate with nothing left is dropped.
func (s *Set) fit(list []*candidate, findings []rules.Finding, here Situation) (kept []*candidate, withheld []Withheld) {
	needed := s.needed(findings)
	set, unset := map[string]bool{}, map[string]bool{} // What is advised so far.
	for _, c := range list {
		f := fitting{candidate: c, here: here}
		f.environment(unset)
		f.unset(set, needed)
		f.kernel()
		f.containers()
		withheld = append(withheld, f.withheld...)
		if f.emptied() {
			continue
		}
		kept = append(kept, c)
		for name := range c.apply.Environment {
			set[name] = true
		}
		for _, name := range c.apply.Removed() {
			unset[name] = true
		}
	}
	return kept, withheld
}

// Removed are the variables to remove, in whatever way.
func (a Apply) Removed() []string {
	all := slices.Clone(a.Unset)
	for _, e := range a.Edits {
		all = append(all, e.Variable())
	}
	return all
}

// needed returns, by variable, the finding of medium severity or above that names a setting of it as its cure. A
// finding that prefers to remove it does not need it.
func (s *Set) needed(findings []rules.Finding) map[string]Cure {
	all := map[string]Cure{}
	for _, f := range findings {
		if isSlight(f) {
			continue
		}
		fill := newFiller([]rules.Finding{f}, Recheck{})
		removed := map[string]bool{}
		for _, id := range f.Remedies {
			r, _ := s.form(id)
			for _, name := range fill.list(r.Apply.Unset) {
				removed[name] = true
			}
			for name := range fill.table(r.Apply.Environment) {
				if _, taken := all[name]; !taken && !removed[name] {
					all[name] = CureOf(f)
				}
			}
		}
	}
	return all
}

// fitting is a candidate while it is fitted to the machine.
type fitting struct {
	*candidate
	here     Situation
	withheld []Withheld
	// settings is true if something other than a container's flag was removed.
	settings bool
}

func (f *fitting) hold(w Withheld) {
	w.Remedy = f.remedy.ID
	w.Cures = f.curesOf()
	f.withheld = append(f.withheld, w)
}

// environment removes the variables that already have their values, or that an advice before removes.
func (f *fitting) environment(unset map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(f.apply.Environment)) {
		value := f.apply.Environment[name]
		place, has := f.here.hasVariable(name, value)
		switch {
		case has:
			f.hold(Withheld{Setting: name + "=" + value, Reason: InForce, Where: &place, MeasuredCost: costOf(f.here.Facts, map[string]string{name: value})})
		case unset[name]:
			f.hold(Withheld{Setting: name + "=" + value, Reason: Opposed})
		default:
			continue
		}
		f.settings = true
		delete(f.apply.Environment, name)
	}
}

// unset removes the variables that a finding needs, or that an earlier advice sets.
func (f *fitting) unset(set map[string]bool, needed map[string]Cure) {
	kept := map[string]bool{}
	keeps := func(name string) bool {
		by, isNeeded := needed[name]
		switch {
		case kept[name] || !isNeeded && !set[name]:
			return kept[name]
		case isNeeded:
			f.hold(Withheld{Setting: name, Reason: Needed, By: &by})
		default:
			f.hold(Withheld{Setting: name, Reason: Opposed})
		}
		f.settings, kept[name] = true, true
		return true
	}
	f.apply.Unset = slices.DeleteFunc(f.apply.Unset, keeps)
	f.apply.Edits = slices.DeleteFunc(f.apply.Edits, func(e Edit) bool { return keeps(e.Variable()) })
}

// kernel removes the parameters of the kernel and its modules that are already in force.
func (f *fitting) kernel() {
	inForce := func(setting string, has bool) bool {
		if has {
			f.hold(Withheld{Setting: setting, Reason: InForce})
			f.settings = true
		}
		return has
	}
	f.apply.KernelCommandLine = slices.DeleteFunc(f.apply.KernelCommandLine, func(p string) bool {
		return inForce(p, f.here.hasKernelParameter(p))
	})
	f.apply.Modprobe = slices.DeleteFunc(f.apply.Modprobe, func(line string) bool {
		return inForce(line, f.here.hasModuleOption(line))
	})
}

// containers removes the flags that every described container already has.
func (f *fitting) containers() {
	flags := len(f.apply.Docker)
	f.apply.Docker = slices.DeleteFunc(f.apply.Docker, func(flag string) bool {
		if !f.here.hasContainerFlag(flag) {
			return false
		}
		f.hold(Withheld{Setting: flag, Reason: InForce})
		return true
	})
	if flags > 0 && len(f.apply.Docker) == 0 {
		f.apply.Kubernetes, f.apply.Runtimes = "", nil // They say the same.
	}
}

// emptied reports whether nothing is left of an apply from which something was removed. Steps are remarks on the
// settings, except for a container's flags, for which they name alternatives.
func (f *fitting) emptied() bool {
	a := f.apply
	a.Steps = nil
	left := len(a.Edits)
	a.walk(func(string) { left++ })
	return left == 0 && len(f.withheld) > 0 && (f.settings || len(f.apply.Steps) == 0)
}
