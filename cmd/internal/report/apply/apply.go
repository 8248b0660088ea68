// Package apply puts the machine-readable form of a remedy into lines: what to do, what it
// takes, and what shows that it works.
package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/remedies"
)

// Instruction is one way, or a part of one, to apply a remedy.
type Instruction struct {
	// Where says what the lines are for; empty for a shell.
	Where string
	// Language names them for a fenced block of Markdown.
	Language string
	Lines    []string
}

// ByHand is the instruction for a person, and UntilBoot that for a shell where
// what lasts stands beside it.
const (
	ByHand    = "by hand"
	UntilBoot = "until the next boot"
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

// Instructions turns a remedy's machine-readable form into lines. Those of
// primary are to be carried out; those of others say the same, or what is
// left to do, for a container runtime or a scheduler. runs is the one of these
// by which the job is known to be started, and comes first.
func Instructions(a remedies.Apply, runs string) (primary, others []Instruction) {
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
	all := []Instruction{
		{"", "sh", shell},
		{UntilBoot, "sh", commands},
		{"sysctl.d", "text", kernel},
		{"edit", "text", edits(a.Edits)},
		{"kernel command line", "text", join(a.KernelCommandLine)},
		{"modprobe.d", "text", eachLine(a.Modprobe)},
		{"docker run", "text", join(a.Docker)},
		{"Slurm", "text", eachLine(a.Slurm)},
		{"Kubernetes", "yaml", Block(a.Kubernetes)},
		{ByHand, "", eachLine(a.Steps)},
	}
	all = slices.DeleteFunc(all, func(i Instruction) bool { return len(i.Lines) == 0 })
	const elsewhere = "docker run Slurm Kubernetes"
	if own := slices.IndexFunc(all, func(i Instruction) bool { return i.Where != "" && i.Where == runs }); own >= 0 {
		first := slices.IndexFunc(all, func(i Instruction) bool { return i.Where != "" && strings.Contains(elsewhere, i.Where) })
		i := all[own]
		all = slices.Insert(slices.Delete(all, own, own+1), first, i)
	}
	for _, i := range all {
		if len(primary) == 0 || i.Where == "" || !strings.Contains(elsewhere, i.Where) {
			primary = append(primary, i)
		} else {
			others = append(others, i)
		}
	}
	return primary, others
}

// RunsBy is how the job is started, as instructions names it: by what a text
// describes, or by the container around this process. It is empty where neither
// tells.
func RunsBy(f *facts.Facts) string {
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

// Block splits a text into its lines.
func Block(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// Lines are the lines by which a remedy is applied, each way of it.
func Lines(a remedies.Apply) []string {
	primary, others := Instructions(a, "")
	var lines []string
	for _, i := range append(primary, others...) {
		where := ""
		if i.Where != "" {
			where = i.Where + ": "
		}
		for _, l := range i.Lines {
			lines = append(lines, where+l)
			if i.Language == "yaml" {
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
		remedies.NeedContainerRestart: "a new container",
		remedies.NeedImageRebuild:     "a new image",
		remedies.NeedRoot:             "root",
		remedies.NeedDriverReload:     "reload of the driver",
		remedies.NeedReboot:           "reboot",
		remedies.NeedBIOS:             "BIOS setup",
		remedies.NeedHands:            "physical access to the machine",
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
		parts = append(parts, "persistent")
	}
	return strings.Join(parts, ", ")
}

// Efforts are what each of the instructions of a remedy takes, in their order, where one of
// them holds until the next boot only: that one takes effect at once, without a reboot.
// Those for a person have none of their own. It is nil where all take the same.
func Efforts(all []Instruction, needs []remedies.Need, lasts string) []string {
	if !slices.ContainsFunc(all, func(i Instruction) bool { return i.Where == UntilBoot }) {
		return nil
	}
	efforts := make([]string, len(all))
	for i, one := range all {
		switch one.Where {
		case ByHand:
		case UntilBoot:
			atOnce := slices.DeleteFunc(slices.Clone(needs), func(n remedies.Need) bool { return n == remedies.NeedReboot })
			efforts[i] = Effort(atOnce, "") + ", takes effect at once"
		default:
			efforts[i] = Effort(needs, lasts)
		}
	}
	return efforts
}

// Proof says in words what was measured here of a remedy.
func Proof(p *remedies.Proof) string {
	switch {
	case p == nil:
		return ""
	case p.Outcome == "proven":
		return "proven here (" + p.Detail + ")"
	default:
		return "does not help here (" + p.Detail + ")"
	}
}
