package rules

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// requirements are the conditions of table required, by name. What failed was examined, so
// it is not missing: findings report it.
var requirements = map[string]condition{
	"gpu-found": {is: "there is a GPU", holds: func(f *facts.Facts) bool { return f.GPUs == nil || len(f.GPUs.Devices) > 0 || probed(f) }},
	"nvidia-found": {
		is: "there is an NVIDIA GPU, or CUDA offers one",
		holds: func(f *facts.Facts) bool {
			return probed(f) && f.Transfers.API != "hip" || len(gpusOf(f, "nvidia")) > 0
		},
	},
	"image-given":   {is: "an image is examined", holds: func(f *facts.Facts) bool { return f.Image != nil }},
	"nvml-answered": {is: "NVML reports each", isNot: "NVIDIA's management library did not report each GPU", holds: managed},
	"gpus-linked":   {is: "known for each two GPUs", isNot: "the paths between the GPUs are not known", holds: linked},
	"probe-ended": {
		is: "the probe finished", isNot: "the probe did not finish",
		holds: func(f *facts.Facts) bool { return f.Transfers != nil && examined(f.Transfers.Outcome) },
	},
	"kernels-ran": {
		is: "no reason is given there", isNot: "no kernel could be run",
		holds: func(f *facts.Facts) bool { return f.Transfers != nil && f.Transfers.SMTests == "" },
	},
	"gpus-tested": {
		is: "known for each GPU", isNot: "not every GPU was tested",
		holds: func(f *facts.Facts) bool {
			return probed(f) && !slices.ContainsFunc(f.Transfers.Devices, func(d probe.Device) bool { return !examined(d.Outcome) })
		},
	},
	"paths-verified": {
		is: "known of a copy between each two GPUs, in both directions", isNot: "not every path between the GPUs was tried and its data verified",
		holds: verified,
	},
}

// Lacking lists what the verdict "healthy" requires in a profile and the facts lack.
func Lacking(profile Profile, f *facts.Facts) []Missing {
	var all []Missing
	input, err := valueOf(f)
	if err != nil {
		all = append(all, Missing{Words: err.Error()})
	}
	for _, r := range data.Required().Required {
		condition, named := requirements[r.Holds]
		switch {
		case !slices.Contains(r.Profiles, string(profile)) || r.If != "" && !requirements[r.If].holds(f):
		case named && !condition.holds(f) || !named && !known(input, keysOf(r.Fact)):
			all = append(all, Missing{Fact: r.Fact, Words: condition.isNot})
		}
	}
	return withReasons(all, f.Unknown)
}

// examined reports whether an outcome says that something was tried.
func examined(o probe.Outcome) bool { return o.Failed() || o.Correct() || o == probe.Unsupported }

// probed reports whether the driver offered a GPU to the probe.
func probed(f *facts.Facts) bool { return f.Transfers != nil && len(f.Transfers.Devices) > 0 }

// gpusOf are the addresses of a vendor's GPUs that the PCI tree or NVML shows.
func gpusOf(f *facts.Facts, vendor string) []string {
	var all []string
	for _, g := range f.GPUs.All() {
		if g.Vendor == vendor && (g.InPCI || g.InNVML) {
			all = append(all, g.Address)
		}
	}
	return all
}

// managed reports whether NVML answered, and reports each GPU that CUDA offers.
func managed(f *facts.Facts) bool {
	if f.GPUs == nil || f.GPUs.NVML != "ok" {
		return false
	}
	return !probed(f) || f.Transfers.API == "hip" || !slices.ContainsFunc(f.Transfers.Devices, func(d probe.Device) bool {
		return !slices.ContainsFunc(f.GPUs.Devices, func(g facts.GPU) bool { return g.Address == d.Address && g.InNVML })
	})
}

// linked reports whether the links have each pair of one vendor's GPUs.
func linked(f *facts.Facts) bool {
	if f.Links == nil || f.Links.Pairs == nil {
		return false
	}
	for _, gpus := range [][]string{gpusOf(f, "nvidia"), gpusOf(f, "amd")} {
		for i, a := range gpus {
			for _, b := range gpus[i+1:] {
				if f.Links.Between(a, b) == nil {
					return false
				}
			}
		}
	}
	return true
}

// verified reports whether each ordered pair of the GPUs that the driver offers was tried,
// and what arrived was compared with the data.
func verified(f *facts.Facts) bool {
	if f.Transfers == nil {
		return false
	}
	type pair struct{ from, to string }
	tried := map[pair]bool{}
	for _, t := range f.Transfers.Transfers {
		if t.Test == probe.TestCopy {
			tried[pair{t.Source, t.Destination}] = examined(t.Outcome) && (t.Verified != "" || !t.Outcome.Correct())
		}
	}
	for _, a := range f.Transfers.Devices {
		for _, b := range f.Transfers.Devices {
			if a.Address != b.Address && !tried[pair{a.Address, b.Address}] {
				return false
			}
		}
	}
	return true
}
