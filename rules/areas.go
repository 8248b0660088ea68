package rules

import "path"

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

// areaOf is the area of the built-in rules in a folder. A rule that belongs to another,
// or to several, names them in its metadata.
var areaOf = map[string]Area{
	"app":       AreaJob,
	"container": AreaContainer,
	"driver":    AreaLibraries,
	"env":       AreaEnvironment,
	"fleet":     AreaJob,
	"gpu":       AreaGPUs,
	"host":      AreaContainer,
	"launch":    AreaContainer,
	"library":   AreaLibraries,
	"network":   AreaNetwork,
	"nvlink":    AreaPaths,
	"pcie":      AreaPCIe,
	"storage":   AreaStorage,
	"transfer":  AreaPaths,
}

// shared are the keys of custom that the built-in rules of a folder have in common, unless they say otherwise.
var shared = map[string]map[string]any{
	"fleet":  {"profiles": []any{"fleet"}, "needs": []any{"fleet.traits"}},
	"gpu":    {"profiles": []any{"training"}},
	"host":   {"profiles": []any{"training"}},
	"launch": {"profiles": []any{"launch"}, "needs": []any{"launches"}, "confidence": "likely"},
	"nvlink": {"profiles": []any{"training"}},
	"pcie":   {"profiles": []any{"training"}},
}

// place gives a rule that names no area that of its folder. The folders of --policy mean
// nothing.
func (r *Rule) place(own bool) {
	if len(r.Areas) > 0 {
		return
	}
	r.Areas = []Area{AreaPolicy}
	if area, ok := areaOf[path.Dir(r.File)]; ok && !own {
		r.Areas = []Area{area}
	}
}
