// Package plan says what a job on a machine needs: settings and the reason for each, whatever
// file they are written to, and how its ranks are placed.
package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Kind is what a setting sets.
type Kind string

// The kinds.
const (
	// Variable is a variable of the environment of every rank, and Unset one to remove.
	Variable Kind = "variable"
	Unset    Kind = "unset"
	// Argument is an argument of the program Name, "vllm" or "sglang".
	Argument Kind = "argument"
	// GPUs is how many GPUs a container gets, or "all", by NVIDIA's container toolkit.
	GPUs Kind = "gpus"
	// SharedMemory is the size of /dev/shm as docker run takes it, "16g".
	SharedMemory Kind = "shm"
	// Limit is a limit of the process: "memlock" in bytes, "nofile" or "pids"; -1 means no limit.
	Limit Kind = "limit"
	// Capability is a capability without CAP_, Device a device node or a folder of them,
	// Group a group that the process belongs to.
	Capability Kind = "capability"
	Device     Kind = "device"
	Group      Kind = "group"
	// Namespace is a namespace of the host that a container shares: "ipc", "pid" or "network".
	Namespace Kind = "namespace"
	// Mount is a folder of the host, Name, and where it is mounted, Value: "/sys:ro".
	Mount Kind = "mount"
	// KernelParameter is on the kernel command line, Sysctl in sysctl.d and ModuleOption,
	// an option of the module Name, in modprobe.d.
	KernelParameter Kind = "kernel-parameter"
	Sysctl          Kind = "sysctl"
	ModuleOption    Kind = "module-option"
)

// Setting is one thing to set.
type Setting struct {
	Kind Kind `json:"kind"`
	// Name is what is set, where the kind does not say it: the variable, the capability.
	Name string `json:"name,omitempty"`
	// Value is what it is set to.
	Value string `json:"value,omitempty"`
	// Reason says why, in a sentence or two.
	Reason string `json:"reason"`
	// Remedy is the remedy that sets it, for gpudoctor explain; Cures are the findings that
	// it cures here, none where the job needs it on every machine like this one.
	Remedy string          `json:"remedy,omitempty"`
	Cures  []remedies.Cure `json:"cures,omitempty"`
	// Proof is what was measured here about it.
	Proof *remedies.Proof `json:"proof,omitempty"`
	// Until is the title of what makes it superfluous, where it avoids a fault and does not remove it.
	Until string `json:"until,omitempty"`

	// Caution says when not to set it.
	Caution string `json:"caution,omitempty"`
	// For are the targets that need it; empty for all that can set it.
	For []string `json:"for,omitempty"`
}

// is reports whether two settings set the same thing.
func (s Setting) is(other Setting) bool {
	return s.Kind == other.Kind && s.Name == other.Name && (s.Kind != Argument || s.Value == other.Value)
}

// Step is something to do that no file sets.
type Step struct {
	Remedy string          `json:"remedy"`
	Title  string          `json:"title"`
	Cures  []remedies.Cure `json:"cures"`
	Needs  []remedies.Need `json:"needs"`
	// Caution says when not to do it.
	Caution string `json:"caution,omitempty"`
}

// Rank is a GPU, and where the process that uses it is to run.
type Rank struct {
	// GPU is the address of the GPU, Index its number among those of the machine.
	GPU   string `json:"gpu"`
	Index int    `json:"index"`
	// Node is its NUMA node and CPUs are those of the node; nil and empty if not known.
	Node *int   `json:"numa_node,omitempty"`
	CPUs string `json:"cpus,omitempty"`
	// NICs are the nearest RDMA devices that are active.
	NICs []string `json:"nics,omitempty"`
}

// Schema is the version of a plan as JSON. It changes when a field changes its meaning or goes
// away; a new optional field does not change it.
const Schema = "gpudoctor.plan/v1"

// Plan is what a job on a machine needs.
type Plan struct {
	// Schema is always "gpudoctor.plan/v1".
	Schema string `json:"schema" jsonschema:"enum=gpudoctor.plan/v1"`
	// Version is gpudoctor's own.
	Version string `json:"version"`
	// Machine describes the machine in one line.
	Machine string `json:"machine"`
	// Vendor is "nvidia" or "amd", empty where it is not known or there are both.
	Vendor string `json:"vendor,omitempty"`
	// Ranks are the GPUs in the order in which a job numbers them.
	Ranks []Rank `json:"ranks"`
	// Bind is true if each rank is to run on the NUMA node of its GPU: there are several
	// nodes, and those of all GPUs are known.
	Bind bool `json:"bind"`
	// Settings are what to set, Steps what else to do, in order of importance.
	Settings []Setting `json:"settings"`
	Steps    []Step    `json:"steps,omitempty"`
	// Unknown are conditions of which it is not known whether they hold, so that a setting
	// may be missing, each with what would tell.
	Unknown []string `json:"unknown,omitempty"`
}

// IsEmpty reports whether there is no GPU and nothing to do.
func (p *Plan) IsEmpty() bool { return len(p.Ranks)+len(p.Settings)+len(p.Steps) == 0 }

// Input is what a plan is made of.
type Input struct {
	// Version is gpudoctor's own.
	Version string
	// Machine describes the machine in one line.
	Machine string
	// Facts are those of the machine.
	Facts *facts.Facts
	// Findings are its faults, and Advice what is advised about them.
	Findings []rules.Finding
	Advice   []remedies.Advice
	// Remedies are all remedies.
	Remedies *remedies.Set
}

// New makes the plan for a machine.
func New(in Input) *Plan {
	m := study(in.Facts)
	p := &Plan{
		Schema: Schema, Version: in.Version, Machine: in.Machine, Vendor: m.vendor, Ranks: m.ranks, Bind: m.conditions[severalNodes].holds && m.placed(), Settings: []Setting{},
	}
	p.advised(in)
	p.needed(m, in.Remedies)
	slices.SortStableFunc(p.Settings, func(a, b Setting) int { return cmp.Compare(places[a.Kind], places[b.Kind]) })
	return p
}

// places order settings by where they are set, from the rank to the machine.
var places = map[Kind]int{
	Variable: 0, Unset: 0, Argument: 0,
	GPUs: 1, SharedMemory: 1, Limit: 1, Capability: 1, Device: 1, Group: 1, Namespace: 1, Mount: 1,
	KernelParameter: 2, Sysctl: 2, ModuleOption: 2,
}

// add adds a setting unless the plan sets or removes the same thing already.
func (p *Plan) add(s Setting) {
	if !slices.ContainsFunc(p.Settings, func(o Setting) bool { return o.is(s) && slices.Equal(o.For, s.For) || o.is(opposite(s)) }) {
		p.Settings = append(p.Settings, s)
	}
}

// opposite is the setting that removes what one sets, and the other way round.
func opposite(s Setting) Setting {
	switch s.Kind {
	case Variable:
		return Setting{Kind: Unset, Name: s.Name}
	case Unset:
		return Setting{Kind: Variable, Name: s.Name}
	default:
		return Setting{}
	}
}

// advised adds what leads the advice for each fault of medium severity or above. A
// workaround is added where the fix is nothing that a job's own files set.
func (p *Plan) advised(in Input) {
	var taken []*remedies.Advice
	for _, group := range rules.Groups(in.Findings) {
		if group[0].Severity.Rank() > rules.Medium.Rank() {
			continue
		}
		leads := remedies.LeadsOf(in.Advice, group)
		fix, now := leads.Fix, leads.Now
		until := ""
		if fix != nil {
			p.take(fix, "", group[0], &taken)
			until = fix.Title
		}
		if now != nil && (fix == nil || !ofJob(fix)) {
			p.take(now, until, group[0], &taken)
		}
	}
}

// take adds what one advice sets, or the step that it is.
func (p *Plan) take(a *remedies.Advice, until string, cured rules.Finding, taken *[]*remedies.Advice) {
	if slices.Contains(*taken, a) {
		return
	}
	*taken = append(*taken, a)
	settings := settingsOf(a.Apply)
	if len(settings) == 0 {
		p.Steps = append(p.Steps, Step{Remedy: a.Remedy, Title: a.Title, Cures: a.Cures, Needs: a.Needs, Caution: a.Caution})
		return
	}
	for _, s := range settings {
		s.Reason, s.Remedy, s.Cures, s.Proof, s.Until, s.Caution = cured.Message, a.Remedy, a.Cures, a.Proof, until, a.Caution
		p.add(s)
	}
}

// ofJob reports whether an advice is carried out by the files of a job alone.
func ofJob(a *remedies.Advice) bool {
	settings := settingsOf(a.Apply)
	return len(settings) > 0 && !slices.ContainsFunc(settings, func(s Setting) bool { return places[s.Kind] == places[KernelParameter] })
}

// settingsOf are what the machine-readable form of a remedy sets. The forms for Kubernetes,
// Slurm and the shell say the same as those that are read here.
func settingsOf(a remedies.Apply) []Setting {
	var all []Setting
	for _, name := range slices.Sorted(maps.Keys(a.Environment)) {
		all = append(all, Setting{Kind: Variable, Name: name, Value: a.Environment[name]})
	}
	for _, name := range a.Removed() {
		if s := (Setting{Kind: Unset, Name: name}); !slices.ContainsFunc(all, s.is) {
			all = append(all, s)
		}
	}
	for _, flag := range a.Docker {
		if s, ok := ofFlag(flag); ok && !slices.ContainsFunc(all, s.is) {
			all = append(all, s)
		}
	}
	for _, program := range slices.Sorted(maps.Keys(a.Arguments)) {
		for _, argument := range a.Arguments[program] {
			all = append(all, Setting{Kind: Argument, Name: program, Value: argument})
		}
	}
	for _, parameter := range a.KernelCommandLine {
		name, value, _ := strings.Cut(parameter, "=")
		all = append(all, Setting{Kind: KernelParameter, Name: name, Value: value})
	}
	for _, name := range slices.Sorted(maps.Keys(a.Sysctl)) {
		all = append(all, Setting{Kind: Sysctl, Name: name, Value: a.Sysctl[name]})
	}
	for _, line := range a.Modprobe {
		if parts := strings.Fields(line); len(parts) == 3 && parts[0] == "options" {
			all = append(all, Setting{Kind: ModuleOption, Name: parts[1], Value: parts[2]})
		}
	}
	return all
}

func ofFlag(flag string) (Setting, bool) {
	key, value, _ := strings.Cut(strings.Replace(flag, " ", "=", 1), "=")
	switch key {
	case "-e":
		name, value, set := strings.Cut(value, "=")
		return Setting{Kind: Variable, Name: name, Value: value}, set
	case "--gpus":
		return Setting{Kind: GPUs, Value: value}, true
	case "--shm-size":
		return Setting{Kind: SharedMemory, Value: value}, true
	case "--ulimit":
		name, value, set := strings.Cut(value, "=")
		return Setting{Kind: Limit, Name: name, Value: value}, set
	case "--pids-limit":
		return Setting{Kind: Limit, Name: "pids", Value: value}, true
	case "--cap-add":
		return Setting{Kind: Capability, Name: value}, true
	case "--device":
		return Setting{Kind: Device, Name: value}, true
	case "--group-add":
		return Setting{Kind: Group, Name: value}, true
	case "--ipc", "--pid", "--network":
		return Setting{Kind: Namespace, Name: strings.TrimPrefix(key, "--"), Value: value}, true
	case "-v":
		source, target, set := strings.Cut(value, ":")
		return Setting{Kind: Mount, Name: source, Value: target}, set
	}
	return Setting{}, false
}
