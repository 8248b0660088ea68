package benchmark

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// perftest is what the lines before a table say about it.
type perftest struct {
	source string
	// onGPU is set where the next table is of a GPU's memory.
	onGPU bool
	// listed are the PCI addresses of the GPUs by number, and picked is the one that it takes.
	listed map[string]string
	picked string
}

// begin forgets what another text said.
func (p *perftest) begin(source string) {
	if p.source != source {
		*p = perftest{source: source}
	}
}

// perftestKind reads ib_write_bw and the other programs of linux-rdma/perftest
// (src/perftest_parameters.h: RESULT_FMT and similar).
func perftestKind(p *perftest) *parse.Kind {
	return &parse.Kind{
		Name:    "perftest",
		Title:   "RDMA bandwidth, from ib_write_bw and similar tools",
		Command: "ib_write_bw -d mlx5_0 -a --report_gbits <host>",
		Gives:   []string{"benchmarks", "nics"},
		Anchors: []string{"BW Test", "BW peak[", "BW average["},
		Begins: parse.BeginsWith(func(text string) bool {
			return perftestTitle.MatchString(text) || strings.Contains(text, "#bytes") && strings.Contains(text, "BW average[")
		}),
		Read: func(s *parse.Sink, in *parse.Lines) { perftestRead(s, p, in) },
	}
}

var (
	perftestTitle   = lazy.New(`^\s*((?:Send|RDMA_Write|RDMA_Read)(?:_imm)?|(?:Atomic|Raw) \w+)( Bidirectional)?(?: Post List)? BW (?:forwarding )?(?:Multicast )?Test`)
	perftestSetting = lazy.New(`(Device|Link type|Mtu|Transport type|GID index|Number of qps)\s*:\s*(\S+)`)
)

func perftestRead(s *parse.Sink, p *perftest, in *parse.Lines) {
	b := facts.Benchmark{Tool: "perftest", Test: "ib_bw", What: "network", Memory: "host", Source: s.Source(), Line: in.First().Number}
	if m := perftestTitle.FindStringSubmatch(in.First().Text); m != nil {
		b.Test = strings.TrimSpace(m[1]) + m[2] + " BW"
	}
	p.begin(s.Source())
	gpu := ""
	if p.onGPU {
		b.Memory, gpu = "gpu", p.picked
	}
	*p = perftest{}
	port := facts.RDMAPort{Port: 1}
	unit := binary // perftest's default.
	in.While(func(l parse.Line) bool {
		text := strings.TrimSpace(l.Text)
		p, isRow := sizedRow(strings.Fields(text), 3, unit, l) // "#bytes #iterations BW peak BW average MsgRate"
		switch {
		case l.Number > in.First().Number+500 || b.Complete:
			return false
		case strings.Contains(text, "BW average["):
			if unit = binary; strings.Contains(text, "Gb/sec") {
				unit = 1.0 / 8
			}
		case isRow:
			p.A, p.B = port.Device, gpu
			AddPoint(&b, p)
		case len(b.Points) > 0 && text != "":
			b.Complete = strings.HasPrefix(text, "---")
			return b.Complete
		}
		for _, m := range perftestSetting.FindAllStringSubmatch(text, -1) {
			switch m[1] {
			case "Device":
				port.Device = m[2]
			case "Link type":
				port.LinkLayer = map[string]string{"IB": "InfiniBand", "Ethernet": "Ethernet"}[m[2]]
			case "Number of qps":
				b.QueuePairs = parse.Number(m[2])
			case "Mtu":
				port.MTU = parse.Number(strings.TrimSuffix(m[2], "[B]"))
			}
		}
		return true
	})
	Add(s, b)
	if port.Device != "" {
		network.Merge(s, port, in.First())
	}
}

// perftestGPUKind are the lines by which perftest tells, before its table, that the buffer lies in a GPU
// (src/cuda_memory.c, src/rocm_memory.c; older ones say "cuMemAlloc() of a 131072 bytes GPU buffer").
func perftestGPUKind(p *perftest) *parse.Kind {
	return &parse.Kind{
		Name:    "perftest-gpu",
		Title:   "RDMA bandwidth from a GPU's memory, from ib_write_bw --use_cuda",
		Command: "ib_write_bw -d mlx5_0 --use_cuda=0 <host>",
		Gives:   []string{"benchmarks"},
		Anchors: []string{
			"allocated GPU buffer", " bytes GPU buffer", "using DMA-BUF for GPU buffer", "Using ROCm Device with ID: ",
			"CUDA device ", "Picking device No. ", "Picking GPU number ",
		},
		Line: func(s *parse.Sink, l parse.Line) bool {
			p.begin(s.Source())
			listed, picked := perftestListed.FindStringSubmatch(l.Text), perftestPicked.First(l.Text)
			switch {
			case listed != nil:
				facts.Put(&p.listed, listed[1], "0000:"+strings.ToLower(listed[2])+".0")
			case picked != "":
				p.picked = cmp.Or(p.listed[picked], "GPU"+picked)
			case strings.Contains(l.Text, "CUDA device "), strings.Contains(l.Text, "Picking "):
				return false // Of another program.
			default:
				p.onGPU = true
			}
			return true
		},
	}
}

// perftestListed is a GPU, without the PCI domain, and perftestPicked which of them the next table is of (src/cuda_memory.c).
var (
	perftestListed = lazy.New(`^\s*CUDA device (\d{1,3}): PCIe address is ([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})\s*$`)
	perftestPicked = lazy.New(`^\s*Picking (?:device No\.|GPU number) (\d{1,3})\s*$`)
)
