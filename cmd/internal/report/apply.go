package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/remedies"
)

// instruction is one way, or a part of one, to apply a remedy.
type instruction struct {
	// where says what the lines are for; empty for a shell.
	where string
	// language names them for a fenced block of Markdown.
	language string
	lines    []string
}

// byHand is the instruction for a person, and untilBoot that for a shell where
// what lasts stands beside it.
const (
	byHand    = "by hand"
	untilBoot = "until the next boot"
)

// edits says what to take out of which file.
func edits(all []remedies.Edit) []string {
	var lines []string
	for _, e := range all {
		place := e.File
		if e.Line > 0 {
			place = fmt.Sprintf("%s, line %d", e.File, e.Line)
		}
		lines = append(lines, fmt.Sprintf("remove %s from %s", e.Remove, place))
	}
	return lines
}

// instructions turns a remedy's machine-readable form into lines. Those of
// primary are to be carried out; those of others say the same, or what is
// left to do, for a container runtime or a scheduler. runs is the one of these
// by which the job is known to be started, and comes first.
func instructions(a remedies.Apply, runs string) (primary, others []instruction) {
	var shell, kernel []string
	for _, name := range slices.Sorted(maps.Keys(a.Environment)) {
		shell = append(shell, "export "+remedies.Quote(name)+"="+remedies.Quote(a.Environment[name]))
	}
	for _, name := range a.Unset {
		shell = append(shell, "unset "+remedies.Quote(name))
	}
	commands := eachLine(a.Commands)
	for _, name := range slices.Sorted(maps.Keys(a.Sysctl)) {
		commands = append(commands, "sysctl -w "+remedies.Quote(name+"="+a.Sysctl[name]))
		kernel = append(kernel, name+" = "+a.Sysctl[name])
	}
	if len(a.KernelCommandLine)+len(a.Sysctl) == 0 {
		shell, commands = append(shell, commands...), nil
	}
	all := []instruction{
		{"", "sh", shell},
		{untilBoot, "sh", commands},
		{"sysctl.d", "text", kernel},
		{"edit", "text", edits(a.Edits)},
		{"kernel command line", "text", join(a.KernelCommandLine)},
		{"modprobe.d", "text", eachLine(a.Modprobe)},
		{"docker run", "text", join(a.Docker)},
		{"Slurm", "text", eachLine(a.Slurm)},
		{"Kubernetes", "yaml", block(a.Kubernetes)},
		{byHand, "", eachLine(a.Steps)},
	}
	all = slices.DeleteFunc(all, func(i instruction) bool { return len(i.lines) == 0 })
	const elsewhere = "docker run Slurm Kubernetes"
	if own := slices.IndexFunc(all, func(i instruction) bool { return i.where != "" && i.where == runs }); own >= 0 {
		first := slices.IndexFunc(all, func(i instruction) bool { return i.where != "" && strings.Contains(elsewhere, i.where) })
		i := all[own]
		all = slices.Insert(slices.Delete(all, own, own+1), first, i)
	}
	for _, i := range all {
		if len(primary) == 0 || i.where == "" || !strings.Contains(elsewhere, i.where) {
			primary = append(primary, i)
		} else {
			others = append(others, i)
		}
	}
	return primary, others
}

// runsBy is how the job is started, as instructions names it: by what a text
// describes, or by the container around this process. It is empty where neither
// tells.
func runsBy(f *facts.Facts) string {
	for _, l := range f.Launches {
		switch l.Kind {
		case "kubernetes":
			return "Kubernetes"
		case "docker-run", "compose", "docker-inspect":
			return "docker run"
		case "slurm":
			return "Slurm"
		}
	}
	if f.Container != nil {
		return map[string]string{"kubernetes": "Kubernetes", "docker": "docker run", "podman": "docker run"}[f.Container.Runtime]
	}
	return ""
}

// join puts words that belong on one line there.
func join(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	return []string{strings.Join(words, " ")}
}

// eachLine parts what the author of a remedy wrote in several lines, such as a
// here-document. The name or the value of a variable is no such text: it comes
// from the machine, and stays on its line.
func eachLine(texts []string) []string {
	var lines []string
	for _, t := range texts {
		lines = append(lines, strings.Split(strings.TrimRight(t, "\n"), "\n")...)
	}
	return lines
}

// block splits a text into its lines.
func block(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// ApplyLines are the lines by which a remedy is applied, each way of it.
func ApplyLines(a remedies.Apply) []string {
	primary, others := instructions(a, "")
	var lines []string
	for _, i := range append(primary, others...) {
		where := ""
		if i.where != "" {
			where = i.where + ": "
		}
		for _, l := range i.lines {
			lines = append(lines, where+l)
			if i.language == "yaml" {
				where = strings.Repeat(" ", len(where))
			}
		}
	}
	return lines
}

// Effort says in words what applying a remedy takes and how long it lasts.
func Effort(needs []remedies.Need, lasts string) string {
	words := map[remedies.Need]string{
		remedies.NeedJobRestart:       "restart of the job",
		remedies.NeedContainerRestart: "restart of the container",
		remedies.NeedImageRebuild:     "a new image",
		remedies.NeedRoot:             "root",
		remedies.NeedDriverReload:     "reload of the driver",
		remedies.NeedReboot:           "reboot",
		remedies.NeedBIOS:             "BIOS setup",
		remedies.NeedHands:            "hands on the machine",
	}
	var parts []string
	if !slices.Contains(needs, remedies.NeedRoot) {
		parts = append(parts, "no root")
	}
	for _, n := range needs {
		if n == remedies.NeedJobRestart && lasts == "job" {
			continue // It says the same twice.
		}
		if w := words[n]; w != "" {
			parts = append(parts, w)
		} else {
			parts = append(parts, string(n))
		}
	}
	switch lasts {
	case "job":
		parts = append(parts, "this job only")
	case "boot":
		parts = append(parts, "until the next boot")
	case "forever":
		parts = append(parts, "lasting")
	}
	return strings.Join(parts, ", ")
}

// proof says in words what was measured here of a remedy.
func proof(p *remedies.Proof) string {
	switch {
	case p == nil:
		return ""
	case p.Outcome == "proven":
		return "proven here (" + p.Detail + ")"
	default:
		return "does not help here (" + p.Detail + ")"
	}
}
