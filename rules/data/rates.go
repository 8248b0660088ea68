package data

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Rates returns the table of what links carry and what part of it counts as good.
var Rates = reader[RateTable]("rates")

// RateTable holds rates in 10^9 bytes per second, unless a name says bits, and fractions of
// them. The YAML file says for each where it comes from.
type RateTable struct {
	Sources []string `json:"sources"`
	// PCIe are the generations, the first at index 0.
	PCIe []PCIeRate `json:"pcie"`
	// NVLinkGBps is what one link carries in one direction, by generation, the first at
	// index 0. NVLinkRaw is the most by which the rate that NVML reports exceeds it.
	NVLinkGBps []float64 `json:"nvlink_gbps"`
	NVLinkRaw  float64   `json:"nvlink_raw"`
	// InfiniBand are names by the port's rate in Gb/s, Ethernet the rates that have one.
	InfiniBand map[string]string `json:"infiniband"`
	Ethernet   []float64         `json:"ethernet"`
	// EFA are rates in Gb/s by PCI device id.
	EFA map[string]float64 `json:"efa"`
	// Paths are the types of PCIe paths, the nearest first; GDRPath is the farthest at which
	// NCCL uses GPUDirect RDMA unless it is told otherwise.
	Paths   []string `json:"paths"`
	GDRPath string   `json:"gdr_path"`
	// Shares are the minimum good fractions of a path's rate, by test of the probe; Collective
	// those of the rate of one GPU's links, CollectiveNetwork that of its NICs, and CollectiveError
	// how many times as much as its links carry is a wrong measurement; Network is that
	// of a port's rate, GPUNetwork the same from a GPU's memory, by path.
	Shares            map[string]Share   `json:"shares"`
	Collective        Share              `json:"collective"`
	CollectiveNetwork float64            `json:"collective_network"`
	CollectiveError   float64            `json:"collective_error"`
	Network           float64            `json:"network"`
	GPUNetwork        map[string]float64 `json:"gpu_network"`
	// CollectiveBytes, NetworkBytes and HostBytes are the minimum sizes at which bandwidth is
	// meaningful.
	CollectiveBytes int64 `json:"collective_bytes"`
	NetworkBytes    int64 `json:"network_bytes"`
	HostBytes       int64 `json:"host_bytes"`
	// HostFloor is a link below whose rate host copies are wrong on any machine.
	HostFloor LinkRate `json:"host_floor"`
	// EmulatedVendors are those of bridges that a hypervisor makes up.
	EmulatedVendors []string `json:"emulated_vendors"`
}

// PCIeRate is a generation of PCIe: Data of Of units on the line are data.
type PCIeRate struct {
	GTs  float64 `json:"gts"`
	Data float64 `json:"data"`
	Of   float64 `json:"of"`
}

// LinkRate is a PCIe link.
type LinkRate struct {
	GTs   float64 `json:"gts"`
	Lanes int     `json:"lanes"`
}

// GBps is the rate of the link in one direction.
func (l LinkRate) GBps() float64 { return PCIeGBps(l.GTs, l.Lanes) }

// Share says what fraction of a path's rate counts as good: for pairs that NVLinks or xGMI
// connect, for pairs below one root complex (PCIe), for pairs on different NUMA nodes (Far),
// and for pairs whose path is hidden, as in a virtual machine (Unknown).
type Share struct {
	NVLink  float64 `json:"nvlink,omitempty"`
	PCIe    float64 `json:"pcie,omitempty"`
	Far     float64 `json:"far,omitempty"`
	Unknown float64 `json:"unknown,omitempty"`
	XGMI    float64 `json:"xgmi,omitempty"`
}

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

// PathRank is the place of a path's type from the nearest, and behind all for one that is not
// known.
func PathRank(path string) int {
	if i := slices.Index(Rates().Paths, path); i >= 0 {
		return i
	}
	return len(Rates().Paths)
}

// PortName names the rate of a network port by its link layer: "NDR", "100 GbE"; empty where it
// has no name.
func PortName(linkLayer string, gbps float64) string {
	switch {
	case linkLayer == "InfiniBand":
		return Rates().InfiniBand[strconv.FormatFloat(gbps, 'f', -1, 64)]
	case linkLayer == "Ethernet" && slices.Contains(Rates().Ethernet, gbps):
		return strconv.FormatFloat(gbps, 'f', -1, 64) + " GbE"
	}
	return ""
}
