package nvidia

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiListing is the reading of one long listing, as text or XML.
type nvsmiListing struct {
	sink  *parse.Sink
	first parse.Line
	// gpu is what the listing says about the GPU under way, known the GPU itself:
	// what one listing tells replaces what another told, it does not add to it.
	gpu, known *facts.GPU
	// attached is how many GPUs there are by its own words, found those that were listed.
	attached int
	found    []*facts.GPU
}

// begin begins a GPU.
func (r *nvsmiListing) begin(busID string, l parse.Line) {
	r.commit()
	if len(r.found) < parse.MaxEntries {
		r.gpu, r.known = &facts.GPU{}, nvsmiGPU(r.sink, busID, -1, l)
		r.found = append(r.found, r.known)
	}
}

// commit enters what was read of a GPU.
func (r *nvsmiListing) commit() {
	nvsmiReplace(r.known, r.gpu)
	r.gpu, r.known = nil, nil
}

// nvsmiReplace enters what one listing says about a GPU: it replaces what was known, and what it does not tell stays.
func nvsmiReplace(known, told *facts.GPU) {
	if known == nil || told == nil {
		return
	}
	parse.MergeGPU(told, known)
	*known = *told
}

// version reads what stands above the GPUs.
func (r *nvsmiListing) version(name, value string, l parse.Line) {
	switch nvsmiPath(name) {
	case "driverversion", "kmdversion":
		nvsmiDriver(r.sink, value, "", l)
	case "cudaversion", "cudaumdversion":
		nvsmiDriver(r.sink, "", value, l)
	case "attachedgpus":
		r.attached = parse.Number(strings.TrimSpace(value))
	}
}

// attribute reads an attribute of the GPU under way.
func (r *nvsmiListing) attribute(path, text string, l parse.Line) {
	if r.gpu == nil {
		return
	}
	path = nvsmiPath(path)
	a := nvsmiByPath[path]
	if a == nil {
		r.process(path, text)
		return
	}
	r.sink.Watch("gpus.devices["+r.known.Address+"]", r.gpu, l)
	v := nvsmiValueOf(text)
	a.set(r.gpu, v)
	if v.added { // A sum has no line of its own.
		r.sink.Unwatch(r.gpu)
	}
	r.sink.Settle()
}

// process reads an attribute of a process: its number comes first.
func (r *nvsmiListing) process(path, text string) {
	last := len(r.gpu.Processes) - 1
	switch path {
	case "processes/processid", "processes/processinfo/pid":
		if pid, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && last+1 < parse.MaxEntries {
			r.gpu.Processes = append(r.gpu.Processes, facts.GPUProcess{PID: pid})
		}
	case "processes/name", "processes/processinfo/processname":
		if last >= 0 {
			r.gpu.Processes[last].Name = nvsmiProgram(text)
		}
	}
}

// nvsmiProgram is a program's name without its path.
func nvsmiProgram(text string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return escape.Printable(name[strings.LastIndexByte(name, '/')+1:], 64)
}

// finish gives the GPUs their indexes where all of them are listed: nvidia-smi
// lists them in NVML's order. whole is false where the listing breaks off.
func (r *nvsmiListing) finish(whole bool) {
	r.commit()
	if !whole || r.attached <= 0 || len(r.found) != r.attached {
		return
	}
	for i, g := range r.found {
		g.Index = cmp.Or(g.Index, &i)
	}
	nvsmiAnswered(r.sink, r.first)
}
