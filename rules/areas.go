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

// areas reads custom.areas.
func (r *metadataReader) areas() []Area {
	var named []Area
	for _, name := range r.list("areas") {
		area, err := oneOf("area", Areas(), name)
		if err != nil {
			r.fault("", "custom.areas: %v", err)
		}
		named = append(named, area)
	}
	return named
}

// place gives a rule what its folder implies: an area, if it names none, and to those of launch files their profile and
// their need. The folders of --policy mean nothing.
func (r *Rule) place(own bool) {
	folder := path.Dir(r.File)
	if !own && folder == "launch" {
		r.Profiles, r.Needs = []Profile{Launch}, []Need{{"launches"}}
	}
	if len(r.Areas) > 0 {
		return
	}
	r.Areas = []Area{AreaPolicy}
	if area, ok := areaOf[folder]; ok && !own {
		r.Areas = []Area{area}
	}
}
