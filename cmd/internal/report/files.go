package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// LaunchesSection is the section of the facts that holds descriptions of jobs.
const LaunchesSection = "launches"

// unreadFiles says which files describe no job that was understood, and which are templates;
// with open, also where they refer to values that they do not show.
func unreadFiles(f *facts.Facts, open bool) []Reason {
	var all []Reason
	add := func(text string) { all = append(all, Reason{Code: ReasonCut, Text: text}) }
	unknown := func(name string) bool { // It is a template, for example.
		return slices.ContainsFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section == LaunchesSection && u.Fact == "["+name+"]" })
	}
	for _, t := range f.Texts {
		switch {
		case isBroken(t):
			all = append(all, Reason{Code: ReasonBroken, Text: t.Name + " (" + t.Problem + ")"})
		case t.Problem != "" || t.More > 1:
		case len(t.Kinds) == 0:
			add(t.Name + " (not recognized)")
		case !slices.ContainsFunc(t.Kinds, func(k facts.TextKind) bool { return k.Kind != facts.KindObject }):
			// A service or a config map beside the pods.
		case !slices.ContainsFunc(f.Launches, func(l facts.Launch) bool { return l.Source == t.Name }) && !unknown(t.Name):
			add(t.Name + " (recognized as " + t.Kinds[0].Kind + ", which describes no job)")
		}
	}
	for _, u := range f.Unknown {
		if u.Section == LaunchesSection {
			add(u.Reason)
		}
	}
	if !open {
		return all
	}
	for i := range f.Launches {
		l := &f.Launches[i]
		for _, part := range slices.Sorted(maps.Keys(l.Unknown)) {
			add(fmt.Sprintf("%s (line %d of %s does not show it)", l.Unknown[part], cmp.Or(l.Lines[part], l.Line), l.Source))
		}
	}
	return all
}

// isBroken reports whether a text is not valid, or cannot be read.
func isBroken(t facts.Text) bool {
	return t.Unread == facts.UnreadBroken || t.Unread == facts.UnreadError
}
