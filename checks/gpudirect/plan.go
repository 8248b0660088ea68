package gpudirect

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// maxNICs bounds the RDMA devices that are tried: an adapter may have up to 127 virtual functions. The largest
// machines have 18. maxReads bounds the mounts.
const (
	maxNICs  = 32
	maxReads = 4
	// maxTried bounds what an answer holds: a control for each NIC, and two ways for each GPU and each NIC.
	maxTried = 1 << 10
)

// fileSystems are those of local drives that cuFile supports (GPUDirect Storage Release Notes).
var fileSystems = []string{"ext4", "xfs"}

// systemFolders are those in which no file is made: they are the system's, and no job reads its data there.
var systemFolders = []string{"/", "/boot", "/home", "/opt", "/root", "/srv", "/tmp", "/usr", "/var"}

// gpusOf are the NVIDIA GPUs that the probe could use.
func gpusOf(f *facts.Facts) []string {
	var list []string
	if f.Transfers != nil && f.Transfers.API == "cuda" {
		for _, d := range f.Transfers.Devices {
			if d.Outcome == probe.OK && d.Address != "" {
				list = append(list, d.Address)
			}
		}
	}
	return list
}

// nic is an RDMA device with an active port, and its PCI address.
type nic struct{ name, address string }

// nicsOf are the RDMA devices of this machine that have an active port.
func nicsOf(f *facts.Facts) []nic {
	var list []nic
	for _, p := range f.NICs.Ports() {
		n := nic{p.Device, p.Address}
		if p.Device != "" && p.Host == "" && p.State == "active" && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// distance is how far a device is from a GPU.
func distance(f *facts.Facts, gpu, address string) int {
	p := f.Links.Between(gpu, address)
	if p == nil {
		return data.PathRank("")
	}
	return data.PathRank(p.Path)
}

// pairs are the registrations to try: each GPU with its nearest NIC, of several the one with the fewest GPUs,
// and each NIC left over with its nearest GPU. So every GPU and every NIC takes part, and there are never
// more of them than GPUs and NICs together.
func pairs(f *facts.Facts, gpus []string, nics []nic) map[string][]string {
	with := make(map[string][]string, len(nics))
	for _, g := range gpus {
		n := slices.MinFunc(nics, func(a, b nic) int {
			return cmp.Or(
				cmp.Compare(distance(f, g, a.address), distance(f, g, b.address)),
				cmp.Compare(len(with[a.name]), len(with[b.name])),
			)
		})
		with[n.name] = append(with[n.name], g)
	}
	for _, n := range nics {
		if len(with[n.name]) == 0 {
			with[n.name] = []string{slices.MinFunc(gpus, func(a, b string) int {
				return cmp.Compare(distance(f, a, n.address), distance(f, b, n.address))
			})}
		}
	}
	return with
}

// tries are the registrations, NIC by NIC, the control first.
func tries(nics []nic, with map[string][]string) []Try {
	var list []Try
	for _, n := range nics {
		list = append(list, Try{Way: wayHost, Device: n.name})
		for _, g := range with[n.name] {
			list = append(list, Try{Way: wayDMABuf, Device: n.name, GPU: g}, Try{Way: wayPeermem, Device: n.name, GPU: g})
		}
	}
	return list
}

// isSetUp reports whether somebody set up GPUDirect Storage, and whether the compatibility mode is not forced:
// cuFile itself is a part of the CUDA toolkit.
func isSetUp(f *facts.Facts) bool {
	if f.Storage == nil || f.Storage.GDS == nil {
		return false
	}
	d := f.Storage.GDS
	return (d.Loaded != nil && *d.Loaded || d.Properties["properties.use_pci_p2pdma"] == "true") && d.Properties["properties.force_compat_mode"] != "true"
}

// mountsOf are the mounts from which cuFile is to read.
func mountsOf(f *facts.Facts) []facts.Mount {
	if !isSetUp(f) {
		return nil
	}
	var list []facts.Mount
	for _, m := range f.Storage.Mounts {
		system := slices.Contains(systemFolders, m.Path) || strings.HasPrefix(m.Path, "/var/") || strings.HasPrefix(m.Path, "/boot/")
		if len(m.Drives) > 0 && !m.ReadOnly && !system && slices.Contains(fileSystems, m.Type) && len(list) < maxReads {
			list = append(list, m)
		}
	}
	return list
}

// nearestGPU is the GPU nearest to a drive of a mount.
func nearestGPU(f *facts.Facts, gpus []string, m *facts.Mount) string {
	var addresses []string
	for _, d := range f.Storage.Drives {
		if d.Address != "" && slices.Contains(m.Drives, d.Name) {
			addresses = append(addresses, d.Address)
		}
	}
	return slices.MinFunc(gpus, func(a, b string) int {
		far := func(gpu string) int {
			least := data.PathRank("")
			for _, at := range addresses {
				least = min(least, distance(f, gpu, at))
			}
			return least
		}
		return cmp.Compare(far(a), far(b))
	})
}
