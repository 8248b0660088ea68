package collective

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

type arm struct {
	name string
	// set are the variables that it sets.
	set map[string]string
	// cleans is true if it removes the library's variables.
	cleans bool
	// inProcess is true if all ranks are in one process.
	inProcess bool
	// needsNVLS is true if it says something only where the first arm failed or used NVLS.
	needsNVLS bool
	// searches is true if it stands for several runs that look for the variables at fault.
	searches bool
	// unset are the variables that a run removes, and todo what it runs; nil for armPlan.
	unset []string
	todo  plan
}

// arms are all of them, in the order in which they are run: the first is the environment as
// it is. None of them turns NVLS on where the environment has turned it off.
var arms = []arm{
	{name: probe.ArmConfigured},
	{name: probe.ArmCleaned, cleans: true},
	{name: probe.ArmWithout, searches: true},
	{name: probe.ArmP2POff, set: map[string]string{"NCCL_P2P_DISABLE": "1"}},
	{name: probe.ArmSHMOff, set: map[string]string{"NCCL_SHM_DISABLE": "1"}},
	{name: probe.ArmP2PSHMOff, set: map[string]string{"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"}},
	{name: probe.ArmCuMemOff, set: map[string]string{"NCCL_CUMEM_ENABLE": "0"}},
	{name: probe.ArmNVLSOff, set: map[string]string{"NCCL_NVLS_ENABLE": "0"}, needsNVLS: true},
	{name: probe.ArmInProcess, inProcess: true},
}

// Names are the names of all arms, in the order in which they are run.
func Names() []string {
	var all []string
	for _, a := range arms {
		all = append(all, a.name)
	}
	return all
}

// neverPassed are variables that ranks never get: the library would write files, or meet
// where the environment says instead of where its ranks are.
var neverPassed = []string{"NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_COMM_ID", "RCCL_TOPO_DUMP_FILE", "NCCL_DEBUG_TIMESTAMP_FORMAT", "NCCL_DEBUG_TIMESTAMP_LEVELS"}

// shaping reports whether a variable shapes what the library does, other than its log.
func shaping(name string) bool {
	return (strings.HasPrefix(name, "NCCL_") || strings.HasPrefix(name, "RCCL_")) && !slices.Contains(neverPassed, name) && !data.Variables().IsBeside(name)
}

// Shaped reports whether settings, by name, shape how the library communicates. Those that
// only keep NVLS off do not count: no arm goes without them, and they break nothing.
func Shaped(settings map[string]string) bool {
	for name, value := range settings {
		if value != "" && shaping(name) && (value != "0" || !kept(name, value)) {
			return true
		}
	}
	return false
}

// kept reports whether cleaning leaves a variable that keeps NVLS off, or may. What an operator switched off is not switched
// on unasked: on shared hosts NVLS of one program can put GPUs out of service.
func kept(name, value string) bool {
	switch name {
	case "NCCL_NVLS_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_MNNVL_ENABLE":
		return value == "0"
	case "NCCL_CONF_FILE", "NCCL_ALGO":
		return true
	}
	return false
}

// The choice of algorithms, which may exclude NVLS, and the switch of NVLS itself.
const (
	algorithms = "NCCL_ALGO"
	nvlsSwitch = "NCCL_NVLS_ENABLE"
)

// leftovers are the variables of an environment that cleaning removes. Where the collectives failed,
// the choice of algorithms is one: withoutAlgorithms then keeps NVLS off instead.
func leftovers(env map[string]string, failed bool) []string {
	chosen := failed && env[algorithms] != ""
	return slices.DeleteFunc(slices.Sorted(maps.Keys(env)), func(name string) bool {
		switch {
		case !shaping(name) || env[name] == "":
			return true
		case chosen && (name == algorithms || name == nvlsSwitch):
			return name == nvlsSwitch
		}
		return kept(name, env[name])
	})
}

// withoutAlgorithms is an arm that sets NCCL_NVLS_ENABLE=0 if it removes the choice of algorithms, which
// may be what keeps NVLS off: what the environment has takes precedence over the library's files.
func (a arm) withoutAlgorithms(env map[string]string) arm {
	if slices.Contains(a.unset, algorithms) && env[nvlsSwitch] != "0" {
		a.set = map[string]string{nvlsSwitch: "0"}
	}
	return a
}

func (a arm) changes(env map[string]string, failed bool) bool {
	if a.cleans {
		return len(leftovers(env, failed)) > 0
	}
	if len(a.set) == 0 {
		return true
	}
	for name, value := range a.set {
		if env[name] != value {
			return true
		}
	}
	return false
}

func (a arm) applies(env map[string]string, ranks int, first *probe.Arm) bool {
	switch {
	case !a.changes(env, first.Outcome.Failed()):
		return false
	case ranks < 2: // There is no transport to do without.
		return a.cleans && first.Outcome != probe.OK
	case a.needsNVLS:
		if first.NVLS == nil {
			return first.Outcome != probe.OK
		}
		return *first.NVLS
	}
	return true
}

// plan are the collectives of an arm, in their order: by name, the sizes. A larger one is left
// out if the time of the smaller says that it would take too long.
type plan []struct {
	name  string
	bytes []int64
}

const (
	kib int64 = 1 << 10
	mib int64 = 1 << 20
)

// The plans: from what one rank sends in one packet to what shows the bandwidth. 8 B to 1 MiB are
// NCCL's protocols LL and LL128, larger ones the protocol Simple.
var (
	quickPlan = plan{
		{probe.AllReduce, []int64{8, mib, 64 * mib}},
		{probe.SendReceive, []int64{mib}},
		{probe.AllToAll, []int64{mib}},
	}
	fullPlan = plan{
		{probe.AllReduce, []int64{8, 64 * kib, mib, 64 * mib, 1024 * mib}}, // 64 MiB: as armPlan, which is compared with it.
		{probe.SendReceive, []int64{8, mib, 32 * mib, 1024 * mib}},
		{probe.AllToAll, []int64{8, mib, 32 * mib, 1024 * mib}},
	}
	armPlan = plan{
		{probe.AllReduce, []int64{8, mib, 64 * mib}},
		{probe.SendReceive, []int64{mib, 64 * mib}},
		{probe.AllToAll, []int64{mib}},
	}
)

func (p plan) largest() int64 {
	most := int64(0)
	for _, step := range p {
		most = max(most, slices.Max(step.bytes))
	}
	return most
}

// fit is a size as a collective of so many ranks takes it: whole words, for each peer.
func fit(name string, bytes int64, ranks int) int64 {
	if name != probe.AllToAll {
		return bytes
	}
	unit := 8 * int64(ranks)
	return max(unit, bytes/unit*unit)
}

// times is how often a collective is run for its time: together some milliseconds on a fast path.
func times(bytes int64) int {
	switch {
	case bytes <= mib:
		return 20
	case bytes <= 64*mib:
		return 8
	}
	return 3
}

// busFactor is by what the rate of a collective, its bytes by its time, is multiplied to get
// the rate of the links: nccl-tests, doc/PERFORMANCE.md.
func busFactor(name string, ranks int) float64 {
	n := float64(ranks)
	switch name {
	case probe.AllReduce:
		return 2 * (n - 1) / n
	case probe.AllToAll:
		return (n - 1) / n
	}
	return 1
}
