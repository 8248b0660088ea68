package data

import (
	"fmt"
	"math"
	"slices"
)

// Rates returns the table of what links carry and what part of it counts as good.
var Rates = reader[RateTable]("rates")

// RateTable holds rates in 10^9 bytes per second, unless a name says bits, and fractions of
// them. The YAML file says for each what it is and where it comes from.
type RateTable struct {
	// PCIe are the generations and NVLinkGBps those of NVLink, the first at index 0.
	PCIe       []PCIeRate
	NVLinkGBps []float64 `json:"nvlink_gbps"`
	NVLinkRaw  float64   `json:"nvlink_raw"`
	EFA        map[string]float64
	// Paths are the types of PCIe paths, the nearest first.
	Paths             []string
	Shares            map[string]Share
	Collective        Share
	CollectiveNetwork float64 `json:"collective_network"`
	CollectiveError   float64 `json:"collective_error"`
	Network           float64
	GPUNetwork        map[string]float64 `json:"gpu_network"`
	CollectiveBytes   int64              `json:"collective_bytes"`
	NetworkBytes      int64              `json:"network_bytes"`
	HostBytes         int64              `json:"host_bytes"`
	HostFloor         LinkRate           `json:"host_floor"`
	EmulatedVendors   []string           `json:"emulated_vendors"`
}

// PCIeRate is a generation of PCIe: Data of Of units on the line are data.
type PCIeRate struct{ GTs, Data, Of float64 }

// LinkRate is a PCIe link.
type LinkRate struct {
	GTs   float64
	Lanes int
}

// GBps is the rate of the link in one direction.
func (l LinkRate) GBps() float64 { return PCIeGBps(l.GTs, l.Lanes) }

// Share says what fraction of a path's rate counts as good: for pairs that NVLinks or xGMI
// connect, for pairs below one root complex (PCIe), for pairs on different NUMA nodes (Far),
// and for pairs whose path is hidden, as in a virtual machine (Unknown).
type Share struct{ NVLink, PCIe, Far, Unknown, XGMI float64 }

// PCIeGBps is the rate of a PCIe link in one direction after line encoding. A speed that no
// generation has is encoded like the generation below it.
func PCIeGBps(speedGTs float64, width int) float64 {
	generations := Rates().PCIe
	encoding := generations[0]
	for _, g := range generations {
		if g.GTs <= speedGTs {
			encoding = g
		}
	}
	return math.Round(1000*speedGTs*encoding.Data/encoding.Of/8*float64(width)) / 1000
}

// PCIeGeneration is the generation that runs at a speed; 0 for a speed that none has.
func PCIeGeneration(speedGTs float64) int {
	return 1 + slices.IndexFunc(Rates().PCIe, func(g PCIeRate) bool { return g.GTs == speedGTs })
}

// PCIeSpeedGTs is the speed of a generation; 0 where it is not known.
func PCIeSpeedGTs(generation int) float64 {
	if generation < 1 || generation > len(Rates().PCIe) {
		return 0
	}
	return Rates().PCIe[generation-1].GTs
}

// PCIeName names a link: "PCIe 4.0 x8".
func PCIeName(speedGTs float64, width int) string {
	if g := PCIeGeneration(speedGTs); g > 0 {
		return fmt.Sprintf("PCIe %d.0 x%d", g, width)
	}
	return fmt.Sprintf("PCIe %g GT/s x%d", speedGTs, width)
}

// PathRank is the place of a path's type from the nearest, and behind all for one that is not known.
func PathRank(path string) int {
	if i := slices.Index(Rates().Paths, path); i >= 0 {
		return i
	}
	return len(Rates().Paths)
}
