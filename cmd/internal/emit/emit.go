// Package emit writes a plan in the form that a launcher, a container runtime or a part of the system takes. Every
// setting stands beside its reason; what a form cannot set is reported at its end.
package emit

import (
	"cmp"
	"embed"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// Target is a form in which a plan is written.
type Target struct {
	Name       string      // What --for takes.
	Usage      string      // What is written, for lists.
	Executable bool        // It is a program for a shell.
	container  bool        // It starts a container in which the job runs.
	sets       []plan.Kind // The kinds of settings that it can write.
	bare       string      // The character that its comments must not contain.
}

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
		{Name: "torchrun", Usage: "a script that starts torchrun", Executable: true, sets: ofRanks},
		{Name: "vllm", Usage: "a script that starts vllm serve", Executable: true, sets: ofRanks},
		{Name: "sglang", Usage: "a script that starts SGLang's server", Executable: true, sets: ofRanks},
		{Name: "deepspeed", Usage: "a script that starts deepspeed", Executable: true, sets: ofRanks},
		{Name: "mpi", Usage: "a script that starts Open MPI's mpirun", Executable: true, sets: ofRanks},
		{Name: "slurm", Usage: "a batch script for sbatch", Executable: true, sets: ofRanks},
		{Name: "docker", Usage: "a script that starts docker run", Executable: true, container: true, sets: ofContainer},
		{Name: "compose", Usage: "a Compose file", container: true, sets: ofContainer},
		{Name: "kubernetes", Usage: "a pod", container: true, sets: ofPod},
		{Name: "nccl.conf", Usage: "NCCL's configuration file", sets: []plan.Kind{plan.Variable}, bare: "="},
		{Name: "env", Usage: "variables for a shell to read", Executable: true, sets: []plan.Kind{plan.Variable, plan.Unset}},
		{Name: "grub", Usage: "kernel parameters for GRUB", Executable: true, sets: []plan.Kind{plan.KernelParameter}},
		{Name: "systemd", Usage: "a drop-in for the unit of a service", sets: []plan.Kind{plan.Variable, plan.Unset, plan.Limit}},
		{Name: "sysctl", Usage: "kernel settings for /etc/sysctl.d", sets: []plan.Kind{plan.Sysctl}},
		{Name: "modprobe", Usage: "module options for /etc/modprobe.d", sets: []plan.Kind{plan.ModuleOption}},
	}
}

// Names are the names of all targets.
func Names() []string { return lines.Map(Targets(), func(t Target) string { return t.Name }) }

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
	i := slices.IndexFunc(Targets(), func(t Target) bool { return t.Name == name })
	if i < 0 {
		return Target{}, false
	}
	return Targets()[i], true
}

// Sets reports whether the target writes a setting.
func (t *Target) Sets(s plan.Setting) bool {
	switch {
	case len(s.For) > 0 && !slices.Contains(s.For, t.Name), !slices.Contains(t.sets, s.Kind):
		return false
	case s.Kind == plan.Argument:
		return s.Name == t.Name
	case t.Name == "nccl.conf":
		return strings.HasPrefix(s.Name, "NCCL_") || strings.HasPrefix(s.Name, "RCCL_")
	}
	return true
}

//go:embed templates
var sources embed.FS

// templates are those of the targets, by name with ".tmpl".
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"quote": remedies.Quote, "flag": flag, "why": why, "grub": quotedForGRUB,
		"quantity": strings.NewReplacer("k", "Ki", "m", "Mi", "g", "Gi").Replace, // A size of docker run as a quantity of Kubernetes: "16Gi".
		"replace":  func(old, by, s string) string { return strings.ReplaceAll(s, old, by) },
		"pair": func(s string) []string { // "a:b"; nothing for other values.
			if before, after, both := strings.Cut(s, ":"); both {
				return []string{before, after}
			}
			return nil
		},
	}).ParseFS(sources, "templates/*.tmpl"))
})

// file is what the template of a target sees.
type file struct {
	Target
	*plan.Plan
	File     string         // Its name.
	Settings []plan.Setting // Those of the plan that it sets.
}

// width is that of comments, in columns.
const width = 92

// Write is a plan in the form of a target, for a file of that name; empty for one without a name.
func (t *Target) Write(p *plan.Plan, name string) string {
	f := &file{Target: *t, Plan: p, File: "FILE", Settings: lines.Filter(p.Settings, t.Sets)}
	if name != "" {
		f.File = remedies.Quote(filepath.Base(name))
	}
	var b strings.Builder
	if f.starts() {
		b.WriteString("#!/usr/bin/env bash\n")
	}
	b.WriteString(f.Comment("Written by gpudoctor "+p.Version+" for: "+p.Machine) + "\n")
	if err := templates().ExecuteTemplate(&b, t.Name+".tmpl", f); err != nil {
		panic(err) // A fault of the template, which the tests run with every kind of setting.
	}
	if f.starts() || f.container {
		b.WriteString(f.elsewhere())
	}
	if len(p.Unknown) > 0 {
		b.WriteString("\n" + f.Comment("Settings may be missing, because these are not known: "+strings.Join(p.Unknown, ", ")+".") + "\n")
	}
	return b.String()
}

// Comment is a text as comments.
func (f *file) Comment(text string) string {
	if f.bare != "" {
		text = strings.ReplaceAll(text, f.bare, " ")
	}
	broken := lines.Paragraphs(text, width-2)
	return strings.Join(lines.Map(broken, func(l string) string { return strings.TrimRight("# "+l, " ") }), "\n")
}

// Usage says how a script is called, and has it stop at the first error.
func (f *file) Usage(arguments string) string {
	return f.Comment("usage: ./"+f.File+" "+arguments) + "\nset -euo pipefail"
}

// Near says that ranks run near their GPUs, and by what.
func (f *file) Near(by string) string {
	return f.Comment(by + ": each rank runs on the NUMA node of its GPU (" + f.Nodes(", ") + ").")
}

func (f *file) Of(kinds ...plan.Kind) []plan.Setting { return of(f.Settings, kinds...) }

func of(settings []plan.Setting, kinds ...plan.Kind) []plan.Setting {
	return lines.Filter(settings, func(s plan.Setting) bool { return slices.Contains(kinds, s.Kind) })
}

// Limits are the limits of processes, without that on their number, or with it alone.
func (f *file) Limits(isNumber bool) []plan.Setting {
	return slices.DeleteFunc(f.Of(plan.Limit), func(s plan.Setting) bool { return (s.Name == "pids") != isNumber })
}

func sameReason(settings []plan.Setting) [][]plan.Setting { return lines.Grouped(settings, why) }

// Exports are the variables for a shell; those that stand together have one reason.
func (f *file) Exports() [][]plan.Setting { return sameReason(f.Of(plan.Variable, plan.Unset)) }

// Reasons say why the settings are made, those with the same reason together.
func (f *file) Reasons() (all []string) {
	for _, same := range sameReason(f.Settings) {
		if names := lines.NonEmpty(lines.Map(same, f.called)...); len(names) > 0 {
			all = append(all, strings.Join(names, ", ")+": "+why(same[0]))
		}
	}
	return all
}

// why is the reason of a setting, with what proves it and how long it is needed.
func why(s plan.Setting) string {
	said := strings.TrimSuffix(s.Reason, ".") + "."
	if s.Proof != nil && s.Proof.Outcome == "proven" {
		said += " Proven here: " + s.Proof.Detail + "."
	}
	said += lines.After(lines.Behind(" A workaround, until this is done: ", s.Until), ".")
	said += lines.After(lines.Behind(" Caution: ", strings.TrimSuffix(s.Caution, ".")), ".")
	if s.Remedy != "" && len(s.Cures) > 0 {
		said += " (gpudoctor explain " + s.Remedy + ")"
	}
	return said
}

// elsewhere tells what is needed and stands in another file, or in none.
func (f *file) elsewhere() (text string) {
	var others []string
	inContainer := false
	for _, s := range f.Plan.Settings {
		switch {
		case f.Sets(s):
		case len(s.Cures) > 0:
			if to := kinds[s.Kind].home; to != "" {
				what := Words(s)
				if s.Kind == plan.KernelParameter {
					what = "kernel parameter " + s.Name // Its value may be long.
				}
				others = append(others, fmt.Sprintf("- %s: gpudoctor advise --for %s", what, to))
			}
		case slices.Contains(ofContainer, s.Kind) && s.Kind != plan.Variable:
			inContainer = true
		}
	}
	for _, s := range f.Steps {
		others = append(others, fmt.Sprintf("- %s: gpudoctor explain %s", s.Title, s.Remedy))
	}
	if len(others) > 0 {
		text = "\n" + f.Comment("This file does not do the following, which the machine also needs:") + "\n"
	}
	for _, o := range others {
		text += f.Comment(o) + "\n"
	}
	if inContainer && !f.container {
		text += "\n" + f.Comment("If this runs in a container, gpudoctor advise --for docker writes what the container needs.") + "\n"
	}
	return text
}

func (f *file) starts() bool { return f.Executable && f.Name != "env" && f.Name != "grub" }

// kinds are, of each kind of setting, the target that sets it by itself, how people write it, and how docker run takes
// it; empty where nothing does. {n} is the name, {v} the value.
var kinds = map[plan.Kind]struct{ home, words, flag string }{
	plan.Variable:        {"env", "{n}={v}", "--env={n}={v}"},
	plan.Unset:           {"env", "unset {n}", "--env={n}"},
	plan.Argument:        {"", "{n} {v}", ""},
	plan.KernelParameter: {"grub", "kernel parameter ", ""},
	plan.Sysctl:          {"sysctl", "{n} = {v}", ""},
	plan.ModuleOption:    {"modprobe", "options {n} {v}", ""},
	plan.GPUs:            {"docker", "", "--gpus={v}"},
	plan.SharedMemory:    {"docker", "", "--shm-size={v}"},
	plan.Limit:           {"docker", "", "--ulimit={n}={v}"},
	plan.Capability:      {"docker", "", "--cap-add={n}"},
	plan.Device:          {"docker", "", "--device={n}"},
	plan.Group:           {"docker", "", "--group-add={n}"},
	plan.Namespace:       {"docker", "", "--{n}={v}"},
	plan.Mount:           {"docker", "", "--volume={n}:{v}"},
}

func filled(form string, s plan.Setting) string {
	return strings.NewReplacer("{n}", s.Name, "{v}", s.Value).Replace(form)
}

// Words is a setting as people write it.
func Words(s plan.Setting) string {
	switch form := kinds[s.Kind].words; {
	case form == "":
		return flag(s)
	case s.Kind == plan.KernelParameter:
		return form + parameter(s)
	default:
		return filled(form, s)
	}
}

// parameter is a parameter of the kernel as the kernel command line has it.
func parameter(s plan.Setting) string { return s.Name + lines.Behind("=", s.Value) }

// flag is a setting as docker run takes it; empty where it does not.
func flag(s plan.Setting) string {
	if s.Kind == plan.Limit && s.Name == "pids" {
		return "--pids-limit=" + s.Value
	}
	return filled(kinds[s.Kind].flag, s)
}

// called is what a setting is called in the file; empty where its reason stands beside it.
func (f *file) called(s plan.Setting) string {
	switch {
	case f.Name == "docker":
		return flag(s)
	case f.Name == "grub":
		return parameter(s)
	case s.Kind == plan.Argument:
		return s.Value
	case !f.container:
		return ""
	case s.Kind == plan.Namespace:
		return s.Name + ": " + s.Value
	}
	return cmp.Or(s.Name, string(s.Kind))
}

// plainForGRUB is what needs no quotes.
var plainForGRUB = lazy.New(`^[A-Za-z0-9=,.:_+@/-]*$`)

// quotedForGRUB is a parameter inside a double-quoted string of a shell, from which grub-mkconfig
// makes a line of GRUB's own language: there, a semicolon ends a command outside of quotes.
func quotedForGRUB(s plan.Setting) string {
	p := parameter(s)
	if plainForGRUB.MatchString(p) {
		return p
	}
	escaped := strings.NewReplacer(`\`, `\\\\`, `"`, `\\\"`, "$", `\\\$`, "`", "\\`").Replace(p)
	return `\"` + escaped + `\"`
}

func (f *file) Parameters() string { return strings.Join(lines.Map(f.Settings, parameter), " ") }

// GPUs counts the GPUs of the plan, at least one.
func (f *file) GPUs() int { return max(len(f.Ranks), 1) }

// Nodes are the NUMA nodes of the ranks, and CPUs their processors.
func (f *file) Nodes(separator string) string {
	return strings.Join(lines.Map(f.Ranks, func(r plan.Rank) string { return strconv.Itoa(*r.Node) }), separator)
}

func (f *file) CPUs() string {
	return strings.Join(lines.Map(f.Ranks, func(r plan.Rank) string { return remedies.Quote(r.CPUs) }), " ")
}

// Rank is the variable that has the number of a rank on its node.
func (f *file) Rank() string {
	return map[string]string{"deepspeed": "LOCAL_RANK", "mpi": "OMPI_COMM_WORLD_LOCAL_RANK"}[f.Name]
}
