package gpudirect

import (
	"cmp"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

const (
	// maxNICs bounds the RDMA devices that are tried. The largest machines have 18, an adapter up to 127 virtual functions.
	maxNICs = 32
	// maxTried bounds what an answer holds: a control for each NIC, and two ways for each GPU and each NIC.
	maxTried = 1 << 10
)

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

func distance(f *facts.Facts, gpu, address string) int {
	return data.PathRank(cmp.Or(f.Links.Between(gpu, address), &facts.Pair{}).Path)
}

// pairs are the registrations to try: each GPU with its nearest NIC, of several the one with the fewest GPUs, and each NIC
// left over with its nearest GPU: never more than GPUs and NICs together.
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
