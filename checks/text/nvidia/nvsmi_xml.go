package nvidia

import (
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiXMLKind is the long listing as XML (nvidia-smi -q -x), of the document
// types nvsmi_device_v4 to v13.
var nvsmiXMLKind = &parse.Kind{
	Name:    "nvidia-smi-xml",
	Title:   "all attributes of NVIDIA GPUs, from nvidia-smi -q -x",
	Command: "nvidia-smi -q -x",
	Gives:   []string{"gpus"},
	Anchors: []string{"<!DOCTYPE nvidia_smi_log", "<nvidia_smi_log>"},
	Begins: func(in *parse.Lines) bool {
		l, _ := in.Peek()
		return strings.Contains(l.Text, "nvidia_smi_log")
	},
	Read: nvsmiXMLRead,
}

// nvsmiXMLNames are the attributes by the path of their elements below <gpu>.
var nvsmiXMLNames = map[string]string{
	"product_name": "name", "product_architecture": "architecture", "uuid": "uuid", "persistence_mode": "persistence",
	"mig_mode/current_mig": "mig.current", "mig_mode/pending_mig": "mig.pending",
	"gpu_virtualization_mode/virtualization_mode": "virtualization", "gpu_recovery_action": "recovery",
	"compute_mode": "compute_mode", "performance_state": "performance", "utilization/gpu_util": "utilization",
	"fb_memory_usage/total": "memory.total", "fb_memory_usage/used": "memory.used", "bar1_memory_usage/total": "bar1.total",

	"pci/pci_gpu_link_info/pcie_gen/max_link_gen":          "pcie.generation.max",
	"pci/pci_gpu_link_info/pcie_gen/current_link_gen":      "pcie.generation.current",
	"pci/pci_gpu_link_info/pcie_gen/max_device_link_gen":   "pcie.generation.device_max",
	"pci/pci_gpu_link_info/link_widths/max_link_width":     "pcie.width.max",
	"pci/pci_gpu_link_info/link_widths/current_link_width": "pcie.width.current",

	"pci/replay_counter":                             "pcie.replays",
	"fabric/state":                                   "fabric.state",
	"fabric/status":                                  "fabric.status",
	"fabric/cliqueId":                                "fabric.clique",
	"fabric/clusterUuid":                             "fabric.cluster",
	"fabric/health/bandwidth":                        "fabric.health.bandwidth",
	"fabric/health/route_recovery_in_progress":       "fabric.health.route-recovery",
	"fabric/health/route_unhealthy":                  "fabric.health.route-unhealthy",
	"fabric/health/access_timeout_recovery":          "fabric.health.access-timeout-recovery",
	"fabric/health/incorrect_configuration":          "fabric.health.incorrect-configuration",
	"ecc_mode/current_ecc":                           "ecc.mode",
	"ecc_errors/volatile/sram_correctable":           "ecc.volatile.corrected",
	"ecc_errors/volatile/dram_correctable":           "ecc.volatile.corrected",
	"ecc_errors/volatile/sram_uncorrectable":         "ecc.volatile.uncorrected",
	"ecc_errors/volatile/sram_uncorrectable_parity":  "ecc.volatile.uncorrected",
	"ecc_errors/volatile/sram_uncorrectable_secded":  "ecc.volatile.uncorrected",
	"ecc_errors/volatile/dram_uncorrectable":         "ecc.volatile.uncorrected",
	"ecc_errors/volatile/single_bit/total":           "ecc.volatile.corrected",
	"ecc_errors/volatile/double_bit/total":           "ecc.volatile.uncorrected",
	"ecc_errors/aggregate/sram_correctable":          "ecc.aggregate.corrected",
	"ecc_errors/aggregate/dram_correctable":          "ecc.aggregate.corrected",
	"ecc_errors/aggregate/sram_uncorrectable":        "ecc.aggregate.uncorrected",
	"ecc_errors/aggregate/sram_uncorrectable_parity": "ecc.aggregate.uncorrected",
	"ecc_errors/aggregate/sram_uncorrectable_secded": "ecc.aggregate.uncorrected",
	"ecc_errors/aggregate/dram_uncorrectable":        "ecc.aggregate.uncorrected",
	"ecc_errors/aggregate/single_bit/total":          "ecc.aggregate.corrected",
	"ecc_errors/aggregate/double_bit/total":          "ecc.aggregate.uncorrected",
	"ecc_errors/aggregate/sram_threshold_exceeded":   "ecc.sram_threshold",
	"ecc_errors/channel_repair_pending":              "ecc.channel_repair",
	"ecc_errors/unrepairable_memory":                 "ecc.unrepairable",
	"retired_pages/pending_retirement":               "ecc.retirement_pending",
	"remapped_rows/remapped_row_corr":                "remapped.corrected",
	"remapped_rows/remapped_row_unc":                 "remapped.uncorrected",
	"remapped_rows/remapped_row_pending":             "remapped.pending",
	"remapped_rows/remapped_row_failure":             "remapped.failed",
}

// nvsmiXMLReader is the reading of one document. It sees the document line by
// line, and hands the whole of it to the decoder.
type nvsmiXMLReader struct {
	sink *parse.Sink
	// gpu is what the document says about the GPU under way, known the GPU itself.
	gpu, known *facts.GPU
	// path are the open elements as far as they are of use, depth counts them.
	path     []string
	depth    int
	text     strings.Builder
	attached int
	found    []*facts.GPU
	process  *facts.GPUProcess
}

// nvsmiXMLDepth is as deep as an element is of use.
const nvsmiXMLDepth = 12

// nvsmiXMLMost bounds the document; 72 GPUs take 2 MB.
const nvsmiXMLMost = 32 << 20

func nvsmiXMLRead(s *parse.Sink, in *parse.Lines) {
	first, _ := in.Peek()
	var document strings.Builder
	// offsets are where each line begins, to tell a fact's line.
	var offsets []int64
	var lines []parse.Line
	whole := false
	for document.Len() < nvsmiXMLMost {
		l, ok := in.Next()
		if !ok {
			break
		}
		offsets, lines = append(offsets, int64(document.Len())), append(lines, l)
		document.WriteString(l.Text)
		document.WriteByte('\n')
		if whole = strings.Contains(l.Text, "</nvidia_smi_log>"); whole {
			break
		}
	}
	d := xml.NewDecoder(strings.NewReader(document.String()))
	d.Strict = false
	r := &nvsmiXMLReader{sink: s, attached: -1}
	at := 0
	for {
		token, err := d.Token()
		if err != nil {
			break // The end, or a document that breaks off.
		}
		for at+1 < len(offsets) && offsets[at+1] <= d.InputOffset() {
			at++
		}
		switch t := token.(type) {
		case xml.StartElement:
			r.start(t, lines[at])
		case xml.CharData:
			if r.text.Len()+len(t) < 4096 {
				r.text.Write(t)
			}
		case xml.EndElement:
			r.end(lines[at])
		}
	}
	r.commit() // Where the document breaks off.
	if whole && r.attached > 0 && len(r.found) == r.attached {
		for i, g := range r.found {
			if g.Index == nil {
				g.Index = &i
			}
		}
		nvsmiAnswered(s, first)
	}
}

// commit enters what was read of a GPU.
func (r *nvsmiXMLReader) commit() {
	nvsmiReplace(r.known, r.gpu)
	r.gpu, r.known, r.process = nil, nil, nil
}

func (r *nvsmiXMLReader) start(t xml.StartElement, l parse.Line) {
	r.text.Reset()
	r.depth++
	if r.depth > nvsmiXMLDepth {
		return
	}
	r.path = append(r.path, t.Name.Local)
	if t.Name.Local != "gpu" || len(r.path) != 2 || len(r.found) >= parse.MaxEntries {
		return
	}
	for _, a := range t.Attr {
		if a.Name.Local == "id" && facts.Address(a.Value) != "" {
			r.commit()
			r.gpu, r.known = &facts.GPU{}, nvsmiGPU(r.sink, a.Value, -1, l)
			r.found = append(r.found, r.known)
		}
	}
}

func (r *nvsmiXMLReader) end(l parse.Line) {
	text := strings.TrimSpace(r.text.String())
	r.text.Reset()
	if r.depth == 0 {
		return
	}
	if r.depth--; r.depth >= nvsmiXMLDepth {
		return
	}
	switch path := strings.Join(r.path[1:], "/"); path {
	case "driver_version", "kmd_version":
		nvsmiDriver(r.sink, text, "", l)
	case "cuda_version", "cuda_umd_version":
		nvsmiDriver(r.sink, "", text, l)
	case "attached_gpus":
		if n, err := strconv.Atoi(text); err == nil {
			r.attached = n
		}
	case "gpu":
		r.commit()
	default:
		if below, ok := strings.CutPrefix(path, "gpu/"); ok && r.gpu != nil {
			r.attribute(below, text, l)
		}
	}
	r.path = r.path[:len(r.path)-1]
}

func (r *nvsmiXMLReader) attribute(path, text string, l parse.Line) {
	switch path {
	case "processes/process_info/pid":
		if pid, err := strconv.Atoi(text); err == nil && len(r.gpu.Processes) < parse.MaxEntries {
			r.gpu.Processes = append(r.gpu.Processes, facts.GPUProcess{PID: pid})
			r.process = &r.gpu.Processes[len(r.gpu.Processes)-1]
		}
	case "processes/process_info/process_name":
		if r.process != nil {
			r.process.Name = nvsmiProgram(text)
		}
	case "processes/process_info/used_memory":
		if n, ok := nvsmiMemory(text); ok && r.process != nil {
			r.process.UsedBytes = &n
		}
	default:
		if name := nvsmiXMLNames[path]; name != "" {
			nvsmiTold(r.sink, r.known, r.gpu, name, text, l)
		}
	}
}
