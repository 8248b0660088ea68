package nvidia

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiTableKind is the table that nvidia-smi prints without options, in the layouts of the drivers 331 to 610: three
// lines for each GPU since driver 450 (the third is MIG), two before; "KMD Version" and "CUDA UMD Version" since 610.
//
//	| NVIDIA-SMI 580.159.04    Driver Version: 580.159.04    CUDA Version: 13.0     |
//	|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |          0 |
//	| N/A   36C    P0            116W /  700W |       0MiB / 143771MiB |  0%  Default |
//	|                                         |                        |     Disabled |
var nvsmiTableKind = &parse.Kind{
	Name: "nvidia-smi", Title: "the table of NVIDIA GPUs, from nvidia-smi",
	Command: "nvidia-smi", Gives: []string{"gpus", "software"},
	Anchors: []string{"NVIDIA-SMI ", "Persistence-M", "| Bus-Id", ":00.0 Off |", ":00.0  On |", ".0 Off |", ".0 ERR! |", "MiB |  ", "Process name  ", "MIG M.", "MIG devices:"},
	Begins: parse.BeginsWith(func(text string) bool {
		return nvsmiTableHead.MatchString(text) || nvsmiTableBelongs(text) && (strings.Contains(text, "Persistence-M") ||
			strings.Contains(text, "MIG devices:") || nvsmiTableGPU.MatchString(text) || nvsmiTableProcess.MatchString(text) && strings.Count(text, "|") == 2)
	}),
	Read: nvsmiTableRead,
}

var (
	nvsmiTableHead = lazy.New(`NVIDIA-SMI\s+(\d[\d.]*)\s+(?:(?:Driver|KMD) Version:\s*(\S+))?(?:\s+CUDA (?:UMD )?Version:\s*(\S+))?`)
	// nvsmiTableGPU are the first two cells of a GPU's first line; the display column holds On, Off, N/A or ERR!.
	nvsmiTableGPU = lazy.New(`^\|\s*(\d{1,3})\s+(\S.*?)\s+(On|Off|N/A|ERR!|TCC|WDDM|MCDM)\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s+(?:On|Off|N/A|ERR!)\s*\|\s*(\S+)\s*\|`)
	// nvsmiTableUse is a GPU's second line: fan, temperature, state, power, memory, load, compute mode.
	nvsmiTableUse = lazy.New(`^\|(?:[^|]*?\s(P\d{1,2})\s)?[^|]*\|\s*(\S+|Unknown Error|GPU is lost)\s*/\s*(\S+)\s*\|\s*(\S+)\s+\S+(?: \S+)?\s*\|`)
	// nvsmiTableProcess is a line of the second table, with the columns GI and CI since driver 450.
	nvsmiTableProcess = lazy.New(`^\|\s+(\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(\d+)\s+([CGM+]+)\s+(\S.*?)\s+(?:\d+MiB|N/A)\s*\|`)
	nvsmiTableRule    = lazy.New(`^[+|][-=+| ]*[+|]\s*$`)
)

// nvsmiTableBelongs reports whether a line may be of the table.
func nvsmiTableBelongs(text string) bool {
	return strings.HasPrefix(text, "|") || strings.HasPrefix(text, "+-") || nvsmiTableHead.MatchString(text)
}

func nvsmiTableRead(s *parse.Sink, in *parse.Lines) {
	var gpu *facts.GPU
	var first parse.Line
	row, listed, closed := 0, 0, false
	narrow := nvsmiCommandIndex(in.Prompt().Command) >= 0
	for {
		lines := in.Ahead(2)
		if len(lines) == 0 {
			break
		}
		l, text := lines[0], strings.TrimRight(lines[0].Text, " \t")
		// Empty lines stand between the two tables.
		isBetween := text == "" && len(lines) > 1 && nvsmiTableBelongs(lines[1].Text) && !nvsmiTableHead.MatchString(lines[1].Text)
		if !isBetween && !nvsmiTableBelongs(text) || strings.Contains(text, "NVIDIA-SMI") && first.Number > 0 {
			break
		}
		in.Next()
		if first.Number == 0 {
			first = l
		}
		switch {
		case isBetween:
		case strings.Contains(text, "NVIDIA-SMI"):
			if m := nvsmiTableHead.FindStringSubmatch(text); m != nil {
				nvsmiDriver(s, m[2], m[3], l)
			}
		case nvsmiTableGPU.MatchString(text):
			m := nvsmiTableGPU.FindStringSubmatch(text)
			index := parse.Number(m[1])
			gpu, row = nvsmiGPU(s, m[4], index, l), 1
			if index == listed {
				listed++
			}
			nvsmiTableFirst(gpu, m)
		case gpu != nil && row == 1 && nvsmiTableUse.MatchString(text):
			s.Watch("gpus.devices["+gpu.Address+"]", gpu, l)
			nvsmiTableSecond(gpu, nvsmiTableUse.FindStringSubmatch(text))
			row = 2
		case gpu != nil && row == 2 && !nvsmiTableRule.MatchString(text):
			if cells := strings.Split(text, "|"); len(cells) >= 4 {
				s.Watch("gpus.devices["+gpu.Address+"]", gpu, l)
				// A star behind the mode says that the other one waits for a reset.
				gpu.MIG = cmp.Or(nvsmiValueOf(strings.TrimSuffix(strings.TrimSpace(cells[3]), "*")).on, gpu.MIG)
			}
			row = 0
		case strings.Contains(text, "Processes:") || strings.Contains(text, "MIG devices:"):
			closed, gpu = closed || strings.Contains(text, "Processes:"), nil
		case nvsmiTableProcess.MatchString(text):
			nvsmiTableUser(s, nvsmiTableProcess.FindStringSubmatch(text), l)
		}
	}
	// The table of processes follows that of the GPUs, which therefore is whole.
	if closed && listed > 0 && !narrow {
		nvsmiAnswered(s, first)
	}
}

// nvsmiTableFirst reads a GPU's first line. Long names are cut ("Tesla
// V100-SXM2..."), and a name from elsewhere is the better one.
func nvsmiTableFirst(g *facts.GPU, m []string) {
	if name := strings.TrimSpace(m[2]); name != "ERR!" && (g.Name == "" || !strings.HasSuffix(name, "...")) {
		g.Name = name
	}
	g.Persistence = cmp.Or(nvsmiValueOf(m[3]).on, g.Persistence)
	switch ecc := m[5]; ecc {
	case "N/A", "ERR!": // The catalogue has a row for a GPU whose state cannot be read.
	case "Off":
		g.ECC = cmp.Or(g.ECC, &facts.ECC{})
	default:
		if n, err := strconv.ParseInt(ecc, 10, 64); err == nil && n >= 0 {
			g.ECC = cmp.Or(g.ECC, &facts.ECC{})
			g.ECC.Enabled, g.ECC.VolatileUncorrected = true, &n
		}
	}
}

func nvsmiTableSecond(g *facts.GPU, m []string) {
	nvsmiPerformance(g, nvsmiValueOf(m[1]))
	if n, ok := nvsmiValueOf(m[2]).bytes(); ok {
		g.MemoryUsedBytes = &n
	}
	if n, ok := nvsmiValueOf(m[3]).bytes(); ok {
		g.MemoryBytes = n
	}
	if g.PCIe == nil || g.PCIe.Generation == 0 { // Else it would be of another moment: parse.MergeGPU.
		nvsmiUtilization(g, nvsmiValueOf(m[4]))
	}
}

// nvsmiTableUser reads a process that uses a GPU.
func nvsmiTableUser(s *parse.Sink, m []string, l parse.Line) {
	g := s.GPUAt(parse.Number(m[1]), l)
	g.Vendor, g.InNVML = "nvidia", true
	pid := parse.Number(m[2])
	if pid == 0 || len(g.Processes) >= parse.MaxEntries || slices.ContainsFunc(g.Processes, func(p facts.GPUProcess) bool { return p.PID == pid }) {
		return
	}
	g.Processes = append(g.Processes, facts.GPUProcess{PID: pid, Name: nvsmiProgram(m[4])})
}
