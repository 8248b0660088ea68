package rules

// Area is a part of the machine, or of what texts tell of a job, that rules judge.
type Area string

// The areas, in the order in which a report lists them.
const (
	AreaGPUs        Area = "gpus"
	AreaPaths       Area = "paths"
	AreaPCIe        Area = "pcie"
	AreaIOMMU       Area = "iommu"
	AreaNUMA        Area = "numa"
	AreaContainer   Area = "container"
	AreaLibraries   Area = "libraries"
	AreaEnvironment Area = "environment"
	AreaNetwork     Area = "network"
	AreaStorage     Area = "storage"
	AreaKernelLog   Area = "kernel-log"
	// AreaJob is what the logs of a job say of the application.
	AreaJob Area = "job"
	// AreaPolicy is what rules of --policy judge that name no area.
	AreaPolicy Area = "policy"
)

// Areas are all areas, in the order in which a report lists them.
func Areas() []Area {
	return []Area{
		AreaGPUs, AreaPaths, AreaPCIe, AreaIOMMU, AreaNUMA, AreaContainer, AreaLibraries, AreaEnvironment, AreaNetwork, AreaStorage,
		AreaKernelLog, AreaJob, AreaPolicy,
	}
}

// shared are the keys of custom that the built-in rules of a folder have in common, unless they say otherwise.
var shared = map[string]map[string]any{
	"app":       {"areas": []Area{AreaJob}},
	"container": {"areas": []Area{AreaContainer}},
	"driver":    {"areas": []Area{AreaLibraries}},
	"env":       {"areas": []Area{AreaEnvironment}},
	"fleet":     {"areas": []Area{AreaJob}, "profiles": []Profile{Fleet}, "needs": []any{"fleet.traits"}},
	"gpu":       {"areas": []Area{AreaGPUs}, "profiles": []Profile{Training}},
	"host":      {"areas": []Area{AreaContainer}, "profiles": []Profile{Training}},
	"launch":    {"areas": []Area{AreaContainer}, "profiles": []Profile{Launch}, "needs": []any{"launches"}, "confidence": Likely},
	"library":   {"areas": []Area{AreaLibraries}},
	"network":   {"areas": []Area{AreaNetwork}},
	"nvlink":    {"areas": []Area{AreaPaths}, "profiles": []Profile{Training}},
	"pcie":      {"areas": []Area{AreaPCIe}, "profiles": []Profile{Training}},
	"storage":   {"areas": []Area{AreaStorage}},
	"transfer":  {"areas": []Area{AreaPaths}},
}
