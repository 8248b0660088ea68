// Package emit writes a plan in the form that a launcher, a container runtime or a part of the
// system takes. Every setting stands beside its reason; what a form cannot set is reported at its
// end.
package emit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// Target is a form in which a plan is written.
type Target struct {
	// Name is what --for takes.
	Name string
	// Usage says what is written, for lists.
	Usage string
	// script is true if it is a program for a shell.
	script bool
	// container is true if the job runs in a container that this starts.
	container bool
	// sets are the kinds of settings that it can write.
	sets []plan.Kind
	// bare are the characters that its comments must not contain.
	bare string
	// write writes what follows the heading.
	write func(*file)
}

// Executable reports whether what is written is a program.
func (t *Target) Executable() bool { return t.script }

// The kinds that several targets set.
var (
	ofRanks     = []plan.Kind{plan.Variable, plan.Unset, plan.Argument}
	ofContainer = []plan.Kind{
		plan.Variable, plan.Unset, plan.GPUs, plan.SharedMemory, plan.Limit, plan.Capability, plan.Device, plan.Group, plan.Namespace, plan.Mount,
	}
	// A pod gets devices from plugins, and its limits from the runtime.
	ofPod = []plan.Kind{plan.Variable, plan.GPUs, plan.SharedMemory, plan.Capability, plan.Namespace, plan.Mount}
)

// Targets are all forms, those that start a program first.
func Targets() []Target {
	return []Target{
		{Name: "torchrun", Usage: "a script that starts torchrun", script: true, sets: ofRanks, write: writeTorchrun},
		{Name: "vllm", Usage: "a script that starts vllm serve", script: true, sets: ofRanks, write: writeVLLM},
		{Name: "sglang", Usage: "a script that starts SGLang's server", script: true, sets: ofRanks, write: writeSGLang},
		{Name: "deepspeed", Usage: "a script that starts deepspeed", script: true, sets: ofRanks, write: writeDeepSpeed},
		{Name: "mpi", Usage: "a script that starts Open MPI's mpirun", script: true, sets: ofRanks, write: writeMPI},
		{Name: "slurm", Usage: "a batch script for sbatch", script: true, sets: ofRanks, write: writeSlurm},
		{Name: "docker", Usage: "a script that starts docker run", script: true, container: true, sets: ofContainer, write: writeDocker},
		{Name: "compose", Usage: "a Compose file", container: true, sets: ofContainer, write: writeCompose},
		{Name: "kubernetes", Usage: "a pod", container: true, sets: ofPod, write: writePod},
		{Name: "nccl.conf", Usage: "NCCL's configuration file", sets: []plan.Kind{plan.Variable}, bare: "=", write: writeConf},
		{Name: "env", Usage: "variables for a shell to read", script: true, sets: []plan.Kind{plan.Variable, plan.Unset}, write: writeEnv},
		{Name: "grub", Usage: "kernel parameters for GRUB", script: true, sets: []plan.Kind{plan.KernelParameter}, write: writeGRUB},
		{Name: "systemd", Usage: "a drop-in for the unit of a service", sets: []plan.Kind{plan.Variable, plan.Unset, plan.Limit}, write: writeUnit},
		{Name: "sysctl", Usage: "kernel settings for /etc/sysctl.d", sets: []plan.Kind{plan.Sysctl}, write: writeSysctl},
		{Name: "modprobe", Usage: "module options for /etc/modprobe.d", sets: []plan.Kind{plan.ModuleOption}, write: writeModprobe},
	}
}

// Formats are the formats in which a plan is written as such, the default first.
func Formats() []string { return []string{"text", "json"} }

// Names are the names of all targets.
func Names() []string {
	var names []string
	for _, t := range Targets() {
		names = append(names, t.Name)
	}
	return names
}

// List are the targets with what is written, a line each, for a help text.
func List() string {
	var b strings.Builder
	for _, t := range Targets() {
		fmt.Fprintf(&b, "  %-11s %s\n", t.Name, t.Usage)
	}
	return b.String()
}

// Named finds a target by its name.
func Named(name string) (Target, bool) {
	all := Targets()
	i := slices.IndexFunc(all, func(t Target) bool { return t.Name == name })
	if i < 0 {
		return Target{}, false
	}
	return all[i], true
}

// Sets reports whether the target writes a setting.
func (t *Target) Sets(s plan.Setting) bool {
	switch {
	case !s.IsFor(t.Name) || !slices.Contains(t.sets, s.Kind):
		return false
	case s.Kind == plan.Argument:
		return s.Name == t.Name
	case t.Name == "nccl.conf":
		return strings.HasPrefix(s.Name, "NCCL_") || strings.HasPrefix(s.Name, "RCCL_")
	}
	return true
}

// file is a file while it is written.
type file struct {
	Target
	plan *plan.Plan
	// name is its name.
	name string
	// settings are those of the plan that it sets.
	settings []plan.Setting
	b        strings.Builder
}

// width is that of comments, in columns.
const width = 92

// Write is a plan in the form of a target.
// name is the file that it is written to, for its own text; empty for one without a name.
func (t *Target) Write(p *plan.Plan, name string) string {
	f := &file{Target: *t, plan: p, name: "FILE"}
	if name != "" {
		f.name = remedies.Quote(filepath.Base(name))
	}
	for _, s := range p.Settings {
		if t.Sets(s) {
			f.settings = append(f.settings, s)
		}
	}
	if t.script && t.Name != "env" && t.Name != "grub" {
		f.line("#!/usr/bin/env bash")
	}
	f.comment("", "Written by gpudoctor "+p.Version+" for: "+p.Machine)
	t.write(f)
	if f.starts() || f.container {
		f.elsewhere()
	}
	f.unknown()
	return f.b.String()
}

// line writes a line.
func (f *file) line(format string, args ...any) {
	f.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// comment writes a text as comments.
func (f *file) comment(margin, text string) {
	if strings.ContainsAny(text, f.bare) {
		text = strings.Map(func(r rune) rune {
			if strings.ContainsRune(f.bare, r) {
				return ' '
			}
			return r
		}, text)
	}
	for _, l := range lines.Paragraphs(text, width-len(margin)-2) {
		f.line("%s# %s", margin, lines.Printable(l, false))
	}
}

// of are the settings of some kinds, in order.
func (f *file) of(kinds ...plan.Kind) []plan.Setting {
	var all []plan.Setting
	for _, s := range f.settings {
		if slices.Contains(kinds, s.Kind) {
			all = append(all, s)
		}
	}
	return all
}

// first is the value of the first setting of a kind; empty where there is none.
func (f *file) first(kind plan.Kind, name string) string {
	for _, s := range f.settings {
		if s.Kind == kind && s.Name == name {
			return s.Value
		}
	}
	return ""
}

// reasons writes why the settings are made, those with the same reason together. Words says how
// the form writes a setting.
func (f *file) reasons(settings []plan.Setting, words func(plan.Setting) string) {
	for i, s := range settings {
		same := func(o plan.Setting) bool { return o.Reason == s.Reason && o.Remedy == s.Remedy }
		if slices.ContainsFunc(settings[:i], same) {
			continue
		}
		var all []string
		for _, o := range settings[i:] {
			if w := words(o); same(o) && w != "" {
				all = append(all, w)
			}
		}
		if len(all) > 0 {
			f.comment("", strings.Join(all, ", ")+": "+Why(s))
		}
	}
}

// Why is the reason of a setting, with what proves it and how long it is needed.
func Why(s plan.Setting) string {
	said := s.Reason
	if !strings.HasSuffix(said, ".") {
		said += "."
	}
	if s.Proof != nil && s.Proof.Outcome == "proven" {
		said += " Proven here: " + s.Proof.Detail + "."
	}
	if s.Until != "" {
		said += " A workaround, until this is done: " + s.Until + "."
	}
	if s.Caution != "" {
		said += " Caution: " + strings.TrimSuffix(s.Caution, ".") + "."
	}
	if s.Remedy != "" && len(s.Cures) > 0 {
		said += " (gpudoctor explain " + s.Remedy + ")"
	}
	return said
}

// elsewhere tells what is needed and stands in another file, or in none.
func (f *file) elsewhere() {
	var others []string
	inContainer := false
	for _, s := range f.plan.Settings {
		switch {
		case f.Sets(s):
		case len(s.Cures) > 0:
			if to := homeOf(s); to != "" && s.Kind != plan.Argument {
				what := Words(s)
				if s.Kind == plan.KernelParameter {
					what = "kernel parameter " + s.Name // Its value may be long.
				}
				others = append(others, fmt.Sprintf("%s: gpudoctor advise --for %s", what, to))
			}
		case slices.Contains(ofContainer, s.Kind) && s.Kind != plan.Variable:
			inContainer = true
		}
	}
	for _, s := range f.plan.Steps {
		others = append(others, fmt.Sprintf("%s: gpudoctor explain %s", s.Title, s.Remedy))
	}
	if len(others) > 0 {
		f.line("")
		f.comment("", "This file does not do the following, which the machine also needs:")
		for _, o := range others {
			f.comment("", "- "+o)
		}
	}
	if inContainer && !f.container {
		f.line("")
		f.comment("", "If this runs in a container, gpudoctor advise --for docker writes what the container needs.")
	}
}

// unknown tells what was not known.
func (f *file) unknown() {
	if len(f.plan.Unknown) > 0 {
		f.line("")
		f.comment("", "Settings may be missing, because these are not known: "+strings.Join(f.plan.Unknown, ", ")+".")
	}
}

// starts reports whether the form starts a program.
func (f *file) starts() bool { return f.script && f.Name != "env" && f.Name != "grub" }

// homeOf is the target that sets a setting by itself.
func homeOf(s plan.Setting) string {
	switch s.Kind {
	case plan.Variable, plan.Unset:
		return "env"
	case plan.KernelParameter:
		return "grub"
	case plan.Sysctl:
		return "sysctl"
	case plan.ModuleOption:
		return "modprobe"
	default:
	}
	if slices.Contains(ofContainer, s.Kind) {
		return "docker"
	}
	return ""
}

// Words is a setting as people write it.
func Words(s plan.Setting) string {
	switch s.Kind {
	case plan.Variable:
		return s.Name + "=" + s.Value
	case plan.Unset:
		return "unset " + s.Name
	case plan.Argument:
		return s.Name + " " + s.Value
	case plan.KernelParameter:
		return "kernel parameter " + parameter(s)
	case plan.Sysctl:
		return s.Name + " = " + s.Value
	case plan.ModuleOption:
		return "options " + s.Name + " " + s.Value
	default:
		return flag(s)
	}
}

// parameter is a parameter of the kernel as the kernel command line has it.
func parameter(s plan.Setting) string {
	if s.Value == "" {
		return s.Name
	}
	return s.Name + "=" + s.Value
}

// flag is a setting as docker run takes it.
func flag(s plan.Setting) string {
	switch s.Kind {
	case plan.Variable:
		return "--env=" + s.Name + "=" + s.Value
	case plan.Unset:
		return "--env=" + s.Name
	case plan.GPUs:
		return "--gpus=" + s.Value
	case plan.SharedMemory:
		return "--shm-size=" + s.Value
	case plan.Limit:
		if s.Name == "pids" {
			return "--pids-limit=" + s.Value
		}
		return "--ulimit=" + s.Name + "=" + s.Value
	case plan.Capability:
		return "--cap-add=" + s.Name
	case plan.Device:
		return "--device=" + s.Name
	case plan.Group:
		return "--group-add=" + s.Name
	case plan.Namespace:
		return "--" + s.Name + "=" + s.Value
	case plan.Mount:
		return "--volume=" + s.Name + ":" + s.Value
	default: // docker run does not set it.
		return ""
	}
}

// gpus counts the GPUs of the plan, at least one.
func (f *file) gpus() int { return max(len(f.plan.Ranks), 1) }

// nodes are the NUMA nodes of the ranks, joined.
func (f *file) nodes(separator string) string {
	var all []string
	for _, r := range f.plan.Ranks {
		all = append(all, strconv.Itoa(*r.Node))
	}
	return strings.Join(all, separator)
}
