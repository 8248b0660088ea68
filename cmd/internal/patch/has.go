package patch

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// usesGPUs reports whether a launch asks for GPUs.
func usesGPUs(l *facts.Launch) bool {
	return l.GPUs != nil && *l.GPUs != 0 || l.GPUVendor != "" || slices.Contains(l.Devices, "/dev/kfd")
}

// alone reports whether a launch uses one GPU in one container: it exchanges data with no
// other, and needs only to reach it.
func alone(l *facts.Launch) bool {
	return l.GPUs != nil && *l.GPUs == 1 && (l.Nodes == nil || *l.Nodes == 1)
}

// concerns reports whether a want is for a launch that spans lines, counted from 1.
func (w *Want) concerns(l *facts.Launch, from, to int) bool {
	switch {
	case !w.within(from, to):
		return false
	case w.Kind == plan.Unset || w.Kind == plan.GPUs || len(w.Lines) > 0:
		return true
	case w.Kind == plan.Device && !strings.HasPrefix(w.Name, "/dev/infiniband") || w.Kind == plan.Group:
		return true
	}
	return !alone(l)
}

// has reports whether a launch has what a container's setting sets.
func has(l *facts.Launch, w *Want) bool {
	switch w.Kind {
	case plan.GPUs:
		return usesGPUs(l) || l.Privileged && l.Runtime != ""
	case plan.SharedMemory:
		wanted, ok := remedies.SizeBytes(w.Value)
		switch {
		case !ok || shares(l.IPC):
			return true
		case l.SHMBytes != nil && len(w.Cures) == 0: // Somebody chose it, and it is no fault.
			return *l.SHMBytes >= min(wanted, data.Thresholds().ShmRecommendedBytes)
		case l.SHMBytes != nil:
			return *l.SHMBytes >= wanted
		}
		return l.SHMMounted && !slices.Contains(l.Mounts, "emptyDir:/dev/shm")
	default:
		return remedies.Has(l, emit.Words(w.Setting))
	}
}

// shares reports whether a container has the host's /dev/shm, or another's.
func shares(ipc string) bool {
	return ipc == "host" || strings.HasPrefix(ipc, "container:") || strings.HasPrefix(ipc, "service:")
}

// same compares values of a variable.
func same(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// mayBe reports whether a group that is given may be that of a name, as a number may.
func mayBe(group, name string) bool {
	return group == name || strings.Trim(group, "0123456789") == "" || !stated(group)
}

// stated reports whether a value is what the file says, and no reference to a variable.
func stated(value string) bool { return !strings.ContainsAny(value, "$`") }

// ranksOf is how many GPUs a launch needs: those that its command starts ranks for, or all
// of the machine.
func (f *file) ranksOf(l *facts.Launch) int {
	for _, n := range []*int{l.Processes, l.TensorParallel} {
		if n != nil && (f.GPUs == 0 || *n <= f.GPUs) {
			return *n
		}
	}
	return max(f.GPUs, 1)
}
