package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/remedies"
)

// settingsOf are what the machine-readable form of a remedy sets. The forms for Kubernetes,
// Slurm and the shell say the same as those that are read here.
func settingsOf(a remedies.Apply) []Setting {
	var all []Setting
	for _, name := range slices.Sorted(maps.Keys(a.Environment)) {
		all = append(all, Setting{Kind: Variable, Name: name, Value: a.Environment[name]})
	}
	for _, name := range a.Unset {
		all = append(all, Setting{Kind: Unset, Name: name})
	}
	for _, e := range a.Edits {
		if s := (Setting{Kind: Unset, Name: e.Variable()}); !slices.ContainsFunc(all, s.is) {
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

// ofFlag is what a flag of docker run sets.
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
