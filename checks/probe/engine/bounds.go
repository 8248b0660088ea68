package engine

import (
	"cmp"
	"math"
	"strings"
)

// mostGBps is what all links of one GPU carry together in one direction, in 10^9 bytes per second, by the major number
// of the compute capability. It is the raw rate of the fastest product of that architecture, so that no transfer can be
// faster, on whatever board.
//
// Sources: NVIDIA's pages and white papers of the architectures: P100 4 NVLinks
// of 20; V100 6 of 25; A100 12 of 25; H100, H200 and GH200's C2C 18 of 25; B200
// 18 of 50. Compute capability 12 has no NVLink, and PCIe 6.0 x16 would carry 121.
var mostGBps = map[string]float64{"6": 80, "7": 150, "8": 300, "9": 450, "10": 900, "12": 128}

// mostGBpsHIP is the same for AMD's GPUs, of whatever model: MI355X has the
// most, 7 xGMI links of 76.8 (AMD's data sheet).
const mostGBpsHIP = 538

// timerSeconds is by how much a time between two events may be too short: the
// resolution of the timer is about 0.5 µs (cuEventElapsedTime, cuEventRecord).
const timerSeconds = 1e-6

// most is the rate that no transfer of these GPUs can exceed; infinite if the kind of a GPU is not known here.
func most(gpus ...*gpu) float64 {
	least := math.Inf(1)
	for _, g := range gpus {
		major, _, _ := strings.Cut(g.ComputeCapability, ".")
		bound := cmp.Or(mostGBps[major], math.Inf(1))
		if major == "" {
			bound = mostGBpsHIP
		}
		least = min(least, bound)
	}
	return least
}
