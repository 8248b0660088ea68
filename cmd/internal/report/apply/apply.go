// Package apply puts the machine-readable form of a remedy into lines.
package apply

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
)

// Instruction is one way, or a part of one, to apply a remedy.
type Instruction struct {
	Where    string // What the lines are for; empty for a shell.
	Language string // That of a fenced block of Markdown; empty for steps for a person.
	Lines    []string
}

// IsByHand reports whether it is for a person.
func (i Instruction) IsByHand() bool { return i.Language == "" }

// IsShort reports whether it is one line to type.
func (i Instruction) IsShort() bool { return !i.IsByHand() && len(i.Lines) == 1 }

// ByHand is the instruction for a person, UntilBoot that for a shell beside what lasts.
const (
	ByHand    = "by hand"
	UntilBoot = "until the next boot"
)

// Instructions turns a remedy's machine-readable form into lines. Those of primary are to be carried out; those of
// others say the same, or what is left to do, for a container runtime or a scheduler. runs is the one of these by
// which the job is known to be started, and comes first.
func Instructions(a remedies.Apply, runs string) (primary, others []Instruction) {
	set := lines.Map(slices.Sorted(maps.Keys(a.Environment)), func(name string) string {
		return "export " + remedies.Quote(name) + "=" + remedies.Quote(a.Environment[name])
	})
	shell := slices.Concat(set, lines.Map(a.Unset, func(name string) string { return "unset " + remedies.Quote(name) }))
	var arguments, kernel []string
	for _, program := range slices.Sorted(maps.Keys(a.Arguments)) {
		for _, argument := range a.Arguments[program] {
			arguments = append(arguments, argument+" ("+program+")")
		}
	}
	edits := lines.Map(a.Edits, func(e remedies.Edit) string {
		if e.Line > 0 {
			return fmt.Sprintf("remove %s from %s, line %d", e.Remove, e.File, e.Line)
		}
		return fmt.Sprintf("remove %s from %s", e.Remove, e.File)
	})
	commands := eachLine(a.Commands)
	for _, name := range slices.Sorted(maps.Keys(a.Sysctl)) {
		commands = append(commands, "sysctl -w "+remedies.Quote(name+"="+a.Sysctl[name]))
		kernel = append(kernel, name+" = "+a.Sysctl[name])
	}
	if len(a.KernelCommandLine)+len(a.Sysctl) == 0 {
		shell, commands = append(shell, commands...), nil
	}
	all := []Instruction{
		{Language: "sh", Lines: shell},
		{Where: "program's arguments", Language: "text", Lines: arguments},
		{Where: UntilBoot, Language: "sh", Lines: commands},
		{Where: "sysctl.d", Language: "text", Lines: kernel},
		{Where: "edit", Language: "text", Lines: edits},
		{Where: "kernel command line", Language: "text", Lines: join(bootParameters(a.KernelCommandLine))},
		{Where: "modprobe.d", Language: "text", Lines: eachLine(a.Modprobe)},
		ofContainer(a, runs),
		{Where: slurm, Language: "text", Lines: eachLine(a.Slurm)},
		{Where: kubernetes, Language: "yaml", Lines: eachLine(lines.NonEmpty(a.Kubernetes))},
		{Where: ByHand, Lines: eachLine(a.Steps)},
	}
	all = slices.DeleteFunc(all, func(i Instruction) bool { return len(i.Lines) == 0 })
	if own := slices.IndexFunc(all, func(i Instruction) bool { return i.Where != "" && i.Where == runs }); own >= 0 {
		first := slices.IndexFunc(all, Instruction.isElsewhere)
		i := all[own]
		all = slices.Insert(slices.Delete(all, own, own+1), first, i)
	}
	for _, i := range all {
		if len(primary) == 0 || !i.isElsewhere() {
			primary = append(primary, i)
		} else {
			others = append(others, i)
		}
	}
	return primary, others
}

// The ways to start a job that have instructions of their own.
const (
	docker     = "docker run"
	slurm      = "Slurm"
	kubernetes = "Kubernetes"
)

// runtimes are the names of the other ones, by that in the facts. Those that have Docker's flags are commands.
var runtimes = map[string]string{
	"docker": docker, "podman": "podman run", "containerd": "nerdctl run", "kubernetes": kubernetes, "crio": kubernetes,
	"apptainer": "apptainer", "enroot": "enroot", "lxc": "LXC", "systemd-nspawn": "systemd-nspawn",
}

// isElsewhere reports whether instructions say the same as another one.
func (i Instruction) isElsewhere() bool {
	return i.Where == slurm || slices.Contains(slices.Collect(maps.Values(runtimes)), i.Where)
}

// ofContainer are the flags of the container runtime that starts the job, or else those of Docker.
func ofContainer(a remedies.Apply, runs string) Instruction {
	for _, name := range slices.Sorted(maps.Keys(a.Runtimes)) {
		if runtimes[name] == runs {
			return Instruction{Where: runs, Language: "text", Lines: join(a.Runtimes[name])}
		}
	}
	if !strings.HasSuffix(runs, " run") {
		runs = docker
	}
	return Instruction{Where: runs, Language: "text", Lines: join(a.Docker)}
}

// RunsBy is how the job is started, as instructions names it; empty where neither a text nor the container around this process tells.
func RunsBy(f *facts.Facts) string {
	for _, l := range f.Launches {
		switch l.Kind {
		case "kubernetes":
			return kubernetes
		case "docker-run", "compose", "docker-inspect":
			return docker
		case "slurm":
			return slurm
		}
	}
	if f.Container != nil {
		return runtimes[f.Container.Runtime]
	}
	return ""
}

// bootParameters are parameters as a boot loader takes them: GRUB ends a command at a semicolon that is not quoted.
func bootParameters(all []string) []string {
	return lines.Map(all, func(p string) string {
		if strings.Contains(p, ";") {
			return `"` + p + `"`
		}
		return p
	})
}

func join(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	return []string{strings.Join(words, " ")}
}

// eachLine parts what the author of a remedy wrote in several lines. What comes from the machine stays on its line.
func eachLine(texts []string) []string {
	return slices.Concat(lines.Map(texts, func(t string) []string { return strings.Split(strings.TrimRight(t, "\n"), "\n") })...)
}

// Lines are the lines by which a remedy is applied, each way of it.
func Lines(a remedies.Apply) []string {
	primary, others := Instructions(a, "")
	all := slices.Concat(primary, others)
	for _, name := range slices.Sorted(maps.Keys(a.Runtimes)) {
		all = append(all, Instruction{Where: cmp.Or(runtimes[name], name), Language: "text", Lines: join(a.Runtimes[name])})
	}
	var said []string
	for _, i := range all {
		where := lines.After(i.Where, ": ")
		for _, l := range i.Lines {
			said = append(said, where+l)
			if i.Language == "yaml" {
				where = strings.Repeat(" ", len(where))
			}
		}
	}
	return said
}

// Proof says in words what was measured here of a remedy.
func Proof(p *remedies.Proof) string {
	if p == nil {
		return ""
	}
	return map[bool]string{true: "proven", false: "does not help"}[p.Outcome == "proven"] + " here (" + p.Detail + ")"
}
