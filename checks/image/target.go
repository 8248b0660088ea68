package image

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// driverVersion is how versions of NVIDIA's driver look: 550.54, 550.54.15.
var driverVersion = lazy.New(`^[0-9]{3}(?:\.[0-9]{1,3}){0,2}$`)

// IsDriver reports whether a word is the version of an NVIDIA driver.
func IsDriver(version string) bool { return driverVersion.MatchString(version) }

// rdmaDevice is how RDMA devices are called: mlx5_0, rdmap0s6 is left to its PCI device.
var rdmaDevice = lazy.New(`^(mlx4|mlx5|efa|bnxt_re|irdma|ionic|hns|qedr|cxgb4)_`)

// Target reduces the facts of a machine to those that an image for it is judged by.
func Target(source string, f *facts.Facts) *facts.TargetFacts {
	t := &facts.TargetFacts{Source: source}
	if f.GPUs != nil {
		t.Driver, t.CUDA = cmp.Or(f.GPUs.Driver.KernelVersion, f.GPUs.Driver.Version), f.GPUs.Driver.CUDAVersion
	}
	for _, g := range f.GPUs.All() {
		if g.Name != "" {
			t.GPUs = append(t.GPUs, g.Name)
		}
	}
	for _, d := range f.PCI.All() {
		switch {
		case d.Vendor == "0x1d0f" && strings.HasPrefix(d.Device, "0xefa"):
			t.RDMA = append(t.RDMA, "efa")
		case d.Vendor == "0x15b3" && d.Kind == "nic":
			t.RDMA = append(t.RDMA, "mlx5")
		}
	}
	for _, p := range f.NICs.Ports() {
		if found := rdmaDevice.FindStringSubmatch(p.Device); found != nil {
			t.RDMA = append(t.RDMA, found[1])
		}
	}
	t.GPUs = slices.Compact(slices.Sorted(slices.Values(t.GPUs)))
	t.RDMA = slices.Compact(slices.Sorted(slices.Values(t.RDMA)))
	return t
}
