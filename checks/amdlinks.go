package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// The types of links between nodes (HSA_IOLINKTYPE in hsakmttypes.h,
// CRAT_IOLINK_TYPE_* in drivers/gpu/drm/amd/amdkfd/kfd_crat.h).
const (
	kfdLinkPCIe = 2
	kfdLinkXGMI = 11
)

// The values of Pair.LinkType.
const (
	linkXGMI = "xgmi"
	linkPCIe = "pcie"
)

// kfdLink has the properties of a link between two nodes; bandwidths are in MB/s, 0 if not known.
type kfdLink map[string]uint64

// amdLinks are the links between AMD GPUs, by the addresses of both ends.
type amdLinks struct {
	links map[[2]string]kfdLink
	// asked are the GPUs whose links were all read, with p2p_links (Linux 6.0, commit 0f28cca87e9a): between two of
	// them, no link means no access.
	asked map[string]bool
}

// readAMDLinks reads the links between the first nodes of GPUs. Those between further partitions say the same.
func readAMDLinks(ctx context.Context, g *gather.Gathering) *amdLinks {
	l := &amdLinks{links: make(map[[2]string]kfdLink), asked: make(map[string]bool)}
	if g.Facts.GPUs == nil || g.Facts.GPUs.AMD == nil {
		return l
	}
	nodes := make(map[uint64]string)
	for _, gpu := range g.Facts.GPUs.Devices {
		if gpu.KFD != nil {
			nodes[uint64(gpu.KFD.Node)] = gpu.Address
		}
	}
	if len(nodes) < 2 {
		return l
	}
	var unread []string
	for _, gpu := range g.Facts.GPUs.Devices {
		if gpu.KFD == nil {
			continue
		}
		whole := true
		for _, kind := range []string{"p2p_links", "io_links"} { // An io_link says more than a p2p_link, so it comes last.
			links, all, err := readKFDLinks(ctx, g.Host, gpu.KFD.Node, kind)
			whole = whole && all
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, host.ErrNotRecorded) {
				unread = append(unread, gpu.Address)
			}
			for _, link := range links {
				if to, is := nodes[link["node_to"]]; is && to != gpu.Address {
					l.links[[2]string{gpu.Address, to}] = link
				}
			}
		}
		l.asked[gpu.Address] = whole
	}
	if len(unread) > 0 {
		slices.Sort(unread)
		g.Unknown("links", "pairs.accessible", "cannot read all links that the compute driver lists: "+gather.SomeOf(slices.Compact(unread)), "run as root")
	}
	return l
}

// readKFDLinks reads a folder of links; all is true when there was one and all of it was read.
func readKFDLinks(ctx context.Context, h *host.Host, node int, kind string) (links []kfdLink, all bool, err error) {
	dir := fmt.Sprintf("%s/%d/%s", kfdNodes, node, kind)
	names, err := h.Dir(dir)
	if err != nil {
		return nil, false, err
	}
	all = true
	for _, number := range kfdNumbers(names) {
		if ctx.Err() != nil {
			return links, false, err
		}
		b, readErr := h.Read(fmt.Sprintf("%s/%d/properties", dir, number))
		if readErr != nil {
			all, err = false, readErr
			continue
		}
		link := kfdLink(parseKFDProperties(b))
		_, told := link["node_to"]
		_, typed := link["type"]
		if !told || !typed {
			all = false
			continue
		}
		links = append(links, link)
	}
	return links, all, err
}

// xgmiHopWeight is the weight of an xGMI link (KFD_CRAT_XGMI_WEIGHT in kfd_crat.h); a path through another GPU
// weighs twice as much.
const xgmiHopWeight = 15

func (l *amdLinks) joinAMD(t *topology, p *facts.Pair) {
	link, back := l.links[[2]string{p.A, p.B}], l.links[[2]string{p.B, p.A}]
	asked := l.asked[p.A] && l.asked[p.B]
	if link == nil && back == nil {
		if asked {
			p.LinkType, p.Accessible = linkPCIe, new(false)
		}
		return
	}
	switch {
	case link != nil && back != nil:
		p.Accessible = new(true)
	case asked:
		p.Accessible = new(false) // The driver lets one of the two reach the other only.
	}
	if link == nil {
		link = back
	}
	switch link["type"] {
	case kfdLinkXGMI:
		p.LinkType = linkXGMI
		p.Hops = new(1) // As amd-smi counts: no processor on the way (ROCm/rocm-systems#5763).
		p.XGMIGBps = t.xgmiGBps(p, link)
	case kfdLinkPCIe:
		p.LinkType = linkPCIe
	}
}

// xgmiGBps is what the links between two GPUs carry in one direction. The driver gives the rate of one link as the
// minimum and that of all as the maximum, in MB/s (kfd_fill_gpu_xgmi_link_to_gpu, kfd_crat.c). Until about Linux
// 6.15 it assumed 25 GT/s for each link (amdgpu_amdkfd_get_xgmi_bandwidth_mbytes), so a higher rate of the model
// counts. For a path through another GPU it reports 0.
func (t *topology) xgmiGBps(p *facts.Pair, link kfdLink) float64 {
	if link["weight"] > xgmiHopWeight {
		return 0
	}
	model := t.amdModel(p.A)
	if b := t.amdModel(p.B); b.XGMIGBps < model.XGMIGBps {
		model = b
	}
	const most = 10_000_000 // 10 TB/s is more than any hive carries.
	if one, all := link["min_bandwidth"], link["max_bandwidth"]; one > 0 && all >= one && all <= most {
		perLink := max(model.XGMIGBps, float64(one)/1000)
		return thousandths(perLink * float64(all/one))
	}
	if model.XGMIMesh {
		return model.XGMIGBps
	}
	return 0
}

func (t *topology) amdModel(address string) data.GPUModel {
	if d := t.devices[address]; d != nil {
		return data.GPUModelByID(d.Device)
	}
	return data.GPUModel{}
}
