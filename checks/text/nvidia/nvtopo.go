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

// nvtopoKind is the matrix of nvidia-smi topo -m, in all its layouts: with NICs by their names or numbered, with one,
// two or three columns of affinity, with tabs or what an editor made of them, with a header or without.
//
//		GPU0	GPU1	NIC0	CPU Affinity	NUMA Affinity	GPU NUMA ID
//	GPU0	 X 	NV18	PIX	0-31	0		N/A
//	GPU1	NV18	 X 	SYS	0-31	0		N/A
//	NIC0	PIX	SYS	 X
//
//	NIC Legend:
//
//	  NIC0: mlx5_0
var nvtopoKind = &parse.Kind{
	Name: "nvidia-smi-topo", Title: "how GPUs and NICs are connected, from nvidia-smi topo -m",
	Command: "nvidia-smi topo -m", Gives: []string{"links", "numa"},
	Anchors: []string{"GPU0\t", "GPU0 "},
	Begins:  func(in *parse.Lines) bool { return nvtopoBegins(in, nvtopoRow) },
	Read:    nvtopoRead,
}

var (
	nvtopoGPU  = lazy.New(`^GPU(\d{1,3})$`)
	nvtopoName = lazy.New(`^[A-Za-z][\w.-]*$`)
	nvtopoCell = lazy.New(`^(?:X|NV(\d{1,2})|PIX|PXB|PHB|NODE|SYS)$`)
	// nvtopoNIC is a line of the legend of NICs.
	nvtopoNIC = lazy.New(`^\s+(NIC\d+): (\S+)\s*$`)
)

// nvtopoMost bounds the rows of a matrix. The largest machines have 16 GPUs and 20 NICs.
const nvtopoMost = 128

// nvtopoHeader returns the devices that a header names: what stands before the columns of affinity.
func nvtopoHeader(text string) []string {
	var names []string
	for f := range strings.FieldsSeq(text) {
		if f == "CPU" || f == "NUMA" || f == "GPU" {
			break
		}
		if !nvtopoName.MatchString(f) || len(names) > 2*nvtopoMost {
			return nil
		}
		names = append(names, f)
	}
	if len(names) == 0 || names[0] != "GPU0" {
		return nil
	}
	return names
}

// nvtopoRow returns the fields of a row: a device and the words for its paths.
func nvtopoRow(text string) []string {
	fields := strings.Fields(text)
	if len(fields) < 2 || len(fields) > 2*nvtopoMost || !nvtopoName.MatchString(fields[0]) || !nvtopoCell.MatchString(fields[1]) || !slices.Contains(fields[1:], "X") {
		return nil
	}
	return fields
}

// nvtopoBegins reports whether a matrix begins at the next line, with a header or without one. row
// returns the fields of a row.
func nvtopoBegins(in *parse.Lines, row func(text string) []string) bool {
	lines := in.Ahead(2)
	return row(lines[0].Text) != nil || nvtopoHeader(lines[0].Text) != nil && len(lines) > 1 && row(lines[1].Text) != nil
}

// nvtopoMatrix takes a matrix: its columns, which its rows name where it has no header, for it is square; and its rows.
func nvtopoMatrix(in *parse.Lines, row func(text string) []string) (columns []string, rows [][]string, lines []parse.Line) {
	if columns = nvtopoHeader(in.First().Text); columns != nil {
		in.Next()
	}
	lines = in.While(func(l parse.Line) bool {
		fields := row(l.Text)
		if fields == nil || len(rows) >= nvtopoMost {
			return false
		}
		rows = append(rows, fields)
		return true
	})
	if columns == nil {
		for _, r := range rows {
			columns = append(columns, r[0])
		}
	}
	return columns, rows, lines
}

func nvtopoRead(s *parse.Sink, in *parse.Lines) {
	columns, rows, lines := nvtopoMatrix(in, nvtopoRow)
	nvtopoEnter(s, columns, rows, lines, nvtopoLegend(in))
}

// nvtopoLegend takes the legends below the matrix and returns the names of the NICs.
func nvtopoLegend(in *parse.Lines) map[string]string {
	names := make(map[string]string)
	in.While(func(l parse.Line) bool {
		m := nvtopoNIC.FindStringSubmatch(l.Text)
		switch lines := in.Ahead(2); {
		case m != nil && len(names) < 2*nvtopoMost:
			names[m[1]] = m[2]
		case strings.TrimSpace(l.Text) == "":
			return len(lines) > 1 && (nvtopoWord.MatchString(lines[1].Text) || nvtopoNIC.MatchString(lines[1].Text))
		default:
			return nvtopoWord.MatchString(l.Text)
		}
		return true
	})
	return names
}

// nvtopoWord is the head of a legend, or a line that explains a word of the matrix.
var nvtopoWord = lazy.New(`^(?:(?:NIC )?Legend:\s*$|\s+(?:X|NV#|PIX|PXB|PHB|NODE|SYS|OK|CNS|GNS|TNS|NS|DR|U|N/A)\s+= )`)

// nvtopoLinks is the most NVLinks that a GPU has (NVML_NVLINK_MAX_LINKS up to Blackwell). A GPU whose row adds up to
// more shares its links between its peers, through NVSwitches.
const nvtopoLinks = 18

func nvtopoEnter(s *parse.Sink, columns []string, rows [][]string, lines []parse.Line, nics map[string]string) {
	gpus := make(map[string]int)
	for _, c := range columns {
		if m := nvtopoGPU.FindStringSubmatch(c); m != nil {
			gpus[c] = parse.Number(m[1])
		}
	}
	switched := false
	for _, r := range rows {
		sum := 0
		for _, cell := range r[1:] {
			sum += parse.Number(nvtopoCell.First(cell))
		}
		switched = switched || sum > nvtopoLinks
	}
	for i, r := range rows {
		m := nvtopoGPU.FindStringSubmatch(r[0])
		if m == nil {
			continue
		}
		a := s.GPUAt(parse.Number(m[1]), lines[i])
		a.Vendor = cmp.Or(a.Vendor, "nvidia")
		a.InNVML = true
		for j, cell := range r[1:min(len(r), len(columns)+1)] {
			c := nvtopoCell.FindStringSubmatch(cell)
			if c == nil {
				break // The columns of affinity.
			}
			if cell == "X" {
				continue
			}
			if b, ok := gpus[columns[j]]; !ok {
				nvtopoPath(s, parse.GPUName(*a.Index), cmp.Or(nics[columns[j]], columns[j]), "gpu-nic", c, false, lines[i])
			} else if b > *a.Index {
				nvtopoPath(s, parse.GPUName(*a.Index), parse.GPUName(b), "gpu-gpu", c, switched, lines[i])
			}
		}
		nvtopoNUMA(s, *a.Index, r, len(columns), lines[i])
	}
}

// nvtopoPath enters a cell of the matrix.
func nvtopoPath(s *parse.Sink, a, b, kind string, cell []string, switched bool, l parse.Line) {
	p := s.Pair(a, b, kind, l)
	if p == nil {
		return
	}
	if n, err := strconv.Atoi(cell[1]); err == nil {
		p.NVLinks, p.NVSwitch = &n, switched
		return
	}
	p.Path = cell[0]
	if kind == "gpu-gpu" {
		p.NVLinks = new(int) // The matrix would show them.
	}
}

// nvtopoNUMA enters the NUMA node of a GPU and the CPUs of that node. The
// columns of affinity are the CPUs, then the node; a list of nodes says nothing.
func nvtopoNUMA(s *parse.Sink, index int, row []string, devices int, l parse.Line) {
	if len(row) < devices+3 {
		return
	}
	node, err := strconv.Atoi(row[devices+2])
	if err != nil || node < 0 || node > 4096 {
		return
	}
	if cpus := row[devices+1]; parse.CPUList.MatchString(cpus) {
		s.NUMANode(node, cpus, l)
	}
	g := s.GPUAt(index, l)
	g.NUMANode = cmp.Or(g.NUMANode, &node)
	if address := s.AddressOf(index, ""); address != "" {
		d := s.Device(address, l)
		d.NUMANode = cmp.Or(d.NUMANode, &node)
	}
}

// nvtopoPeerKind is the matrix of nvidia-smi topo -p2p: whether the driver
// offers reads, writes, NVLink or atomics between two GPUs.
//
//		GPU0	GPU1
//	GPU0	X	OK
//	GPU1	OK	X
var nvtopoPeerKind = &parse.Kind{
	Name: "nvidia-smi-p2p", Title: "peer access between GPUs, from nvidia-smi topo -p2p",
	Command: "nvidia-smi topo -p2p r", Gives: []string{"gpus", "links"},
	Anchors: []string{"GPU0\t", "GPU0 "},
	Begins:  func(in *parse.Lines) bool { return nvtopoBegins(in, nvtopoPeerRow) },
	Read:    nvtopoPeerRead,
}

// nvtopoPeerWords are nvidia-smi's words for NVML's status.
var nvtopoPeerWords = map[string]string{
	"OK": "ok", "CNS": "chipset-not-supported", "GNS": "gpu-not-supported", "TNS": "topology-not-supported",
	"DR": "disabled-by-regkey", "NS": "not-supported", "U": "unknown",
}

// nvtopoPeerRow returns the fields of a row: a GPU, and X and words of status.
func nvtopoPeerRow(text string) []string {
	fields := strings.Fields(text)
	if len(fields) < 3 || len(fields) > 2*nvtopoMost || !nvtopoGPU.MatchString(fields[0]) {
		return nil
	}
	isOther := func(f string) bool { return f != "X" && nvtopoPeerWords[f] == "" }
	if !slices.Contains(fields[1:], "X") || slices.ContainsFunc(fields[1:], isOther) {
		return nil
	}
	return fields
}

var nvtopoPeerOption = lazy.New(`-p2p[= ]+([rwnap])`)

func nvtopoPeerRead(s *parse.Sink, in *parse.Lines) {
	what := nvtopoPeerOption.First(in.Prompt().Command)
	columns, rows, lines := nvtopoMatrix(in, nvtopoPeerRow)
	nvtopoLegend(in)
	// When no command tells what a matrix is of, it can be taken for that of reads, but for one that says NS (not supported): those of
	// atomics and PCI atomics do on healthy machines, and that of NVLink on machines without NVLink.
	if what == "" && slices.ContainsFunc(rows, func(r []string) bool { return slices.Contains(r[1:], "NS") }) {
		return
	}
	for i, r := range rows {
		a := parse.Number(strings.TrimPrefix(r[0], "GPU"))
		for j, word := range r[1:min(len(r), len(columns)+1)] {
			m := nvtopoGPU.FindStringSubmatch(columns[j])
			if m == nil {
				break
			}
			b := parse.Number(m[1])
			for _, index := range []int{a, b} {
				g := s.GPUAt(index, lines[i])
				g.Vendor, g.InNVML = "nvidia", true
			}
			if word != "X" {
				nvtopoStatus(s, min(a, b), max(a, b), what, nvtopoPeerWords[word], lines[i])
			}
		}
	}
}

// nvtopoStatus enters a cell of a matrix of peer access.
func nvtopoStatus(s *parse.Sink, a, b int, what, word string, l parse.Line) {
	p := s.Pair(parse.GPUName(a), parse.GPUName(b), "gpu-gpu", l)
	if p == nil {
		return
	}
	p.P2P = cmp.Or(p.P2P, &facts.P2PStatus{})
	field := &p.P2P.Read
	switch what {
	case "w":
		field = &p.P2P.Write
	case "n":
		field = &p.P2P.NVLink
	case "a", "p": // Atomics, and those over PCIe; the facts have no place for them.
		return
	}
	// One direction that is refused refuses the pair.
	if *field == "" || *field == "ok" {
		*field = word
	}
}
