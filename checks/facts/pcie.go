package facts

import "math"

// PCIeGBps is the rate of a PCIe link in one direction after line encoding:
// 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, and 242 of the 256 bytes of
// each FLIT at 64 GT/s (PCI Express base specification 6.0, 4.2).
func PCIeGBps(speedGTs float64, width int) float64 {
	efficiency := 128.0 / 130
	switch {
	case speedGTs <= 5:
		efficiency = 8.0 / 10
	case speedGTs >= 64:
		efficiency = 242.0 / 256
	}
	return math.Round(1000*speedGTs*efficiency/8*float64(width)) / 1000
}

// pcieSpeeds are the speeds of the generations of PCIe in GT/s, the first at index 0.
var pcieSpeeds = [...]float64{2.5, 5, 8, 16, 32, 64}

// PCIeGeneration is the generation that runs at a speed; 0 for a speed that none has.
func PCIeGeneration(speedGTs float64) int {
	for i, s := range pcieSpeeds {
		if s == speedGTs {
			return i + 1
		}
	}
	return 0
}

// PCIeSpeedGTs is the speed of a generation; 0 where it is not known.
func PCIeSpeedGTs(generation int) float64 {
	if generation < 1 || generation > len(pcieSpeeds) {
		return 0
	}
	return pcieSpeeds[generation-1]
}
