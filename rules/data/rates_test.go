package data

import (
	"reflect"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestRates checks that no value was forgotten, and that fractions are fractions.
func TestRates(t *testing.T) {
	table := Rates()
	v := reflect.ValueOf(table).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set", v.Type().Field(i).Name)
		}
	}
	for test, s := range table.Shares {
		for _, share := range []float64{s.NVLink, s.PCIe, s.Far, s.Unknown, s.XGMI} {
			expect.That(t, share >= 0 && share < 1, "%s: the share %v is not between 0 and 1", test, share)
		}
		expect.That(t, s.PCIe != 0 && s.Far != 0 && s.Far <= s.PCIe && s.Unknown <= s.PCIe, "%s: a longer way counts as good only where a shorter one does, %+v", test, s)
	}
	for name, share := range map[string]float64{
		"collective": table.Collective.NVLink, "collective over PCIe": table.Collective.PCIe, "collective_network": table.CollectiveNetwork, "network": table.Network,
	} {
		expect.That(t, share > 0 && share < 1, "%s is %v", name, share)
	}
	checkSources(t, "rates", table.Sources...)
}

// TestPaths checks that each type of path has its share, and that a farther one has no larger one.
func TestPaths(t *testing.T) {
	table := Rates()
	last := table.Network
	for i, path := range table.Paths {
		share := table.GPUNetwork[path]
		expect.That(t, share > 0 && share <= last, "%s: a share of %v behind one of %v", path, share, last)
		last = share
		expect.Equal(t, i, PathRank(path), "%s has the rank", path)
	}
	if len(table.GPUNetwork) != len(table.Paths) || PathRank(table.GDRPath) == len(table.Paths) || PathRank("") != len(table.Paths) {
		t.Errorf("paths %v, shares %v, GPUDirect RDMA up to %s", table.Paths, table.GPUNetwork, table.GDRPath)
	}
}

// TestPCIe checks the rates that the specification and data sheets give.
func TestPCIe(t *testing.T) {
	for _, tt := range []struct {
		gts   float64
		width int
		want  float64
	}{
		{2.5, 16, 4}, {5, 16, 8}, {8, 1, 0.985}, {8, 16, 15.754}, {16, 8, 15.754}, {16, 16, 31.508}, {32, 16, 63.015}, {64, 16, 121}, {20, 4, 9.846}, {1, 1, 0.1},
	} {
		expect.Equal(t, tt.want, PCIeGBps(tt.gts, tt.width), "%v GT/s x%d", tt.gts, tt.width)
	}
	for generation := 1; generation <= len(Rates().PCIe); generation++ {
		expect.Equal(t, generation, PCIeGeneration(PCIeSpeedGTs(generation)), "generation %d", generation)
		expect.That(t, PCIeSpeedGTs(generation) > PCIeSpeedGTs(generation-1), "generation %d is not faster than the one before", generation)
	}
	expect.That(t, PCIeGeneration(20) == 0 && PCIeSpeedGTs(0) == 0 && PCIeSpeedGTs(99) == 0, "a speed or a generation that there is not")
	floor := Rates().HostFloor.GBps()
	expect.That(t, floor >= 0.76 && floor <= 1, "host copies are wrong below %v GB/s", floor)
}

func TestPortName(t *testing.T) {
	for _, tt := range []struct {
		layer string
		gbps  float64
		want  string
	}{
		{"InfiniBand", 400, "NDR"}, {"InfiniBand", 123, ""}, {"Ethernet", 25, "25 GbE"}, {"Ethernet", 26, ""}, {"", 100, ""},
	} {
		expect.Equal(t, tt.want, PortName(tt.layer, tt.gbps), "%s at %v Gb/s", tt.layer, tt.gbps)
	}
}
