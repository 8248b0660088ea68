package evidence

import (
	"reflect"
	"strconv"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// Sink takes what parsers read and builds the facts.
type Sink struct {
	// Facts is the document under construction. Parsers append to the
	// sections of texts (Launches, Software, Benchmarks) themselves; for
	// what several texts tell of, they use the methods of Sink.
	Facts *facts.Facts

	name   string
	prompt *Prompt

	devices map[string]*facts.PCIDevice
	gpus    map[string]*facts.GPU
	order   []string
	ledger  ledger
	// partialPCI is set until a text lists the whole PCI tree.
	partialPCI bool

	messages *messageLog
	// nccl is what lines of NCCL told so far; nil before the first one.
	nccl *ncclLog
	// kernel finds events in lines of kernel logs, and bridges are the PCI
	// bridges by the bus below them, of each text that shows some.
	kernel  *checks.KernelLogReader
	bridges map[string]string
	// wholeTree is set once a text shows the buses below every bridge.
	wholeTree  bool
	unnamedACS []facts.UnnamedACS
	// groupTypes are the types of IOMMU groups by number.
	groupTypes map[int]string
	// shell are the numbers that a script gives names.
	shell launchNumbers
	// block are the lines of the command that is being read, where it goes on over
	// several.
	block []Line
	// tensor is the last tensor that a text showed on a GPU.
	tensor pythonCopy
	// gpuBuffer is set while perftest's next table is of a GPU's memory.
	gpuBuffer bool
	// diagEvents are the events of kernel logs of which NCCL's diagnostics tell.
	diagEvents []facts.KernelEvent
	// access is who may open the device nodes that a text lists, and who asks.
	access nodesAccess
}

func newSink() *Sink {
	s := &Sink{
		Facts:      &facts.Facts{Schema: facts.FactsSchema},
		devices:    make(map[string]*facts.PCIDevice),
		gpus:       make(map[string]*facts.GPU),
		partialPCI: true,
		kernel:     checks.NewKernelLogReader(), bridges: make(map[string]string), groupTypes: make(map[int]string),
	}
	s.messages = newMessageLog(s)
	return s
}

// begin turns to another text.
func (s *Sink) begin(name string, prompt *Prompt) {
	s.ledger.close()
	s.name, s.prompt, s.gpuBuffer = name, prompt, false
}

// Source is the name of the text that is being read.
func (s *Sink) Source() string { return s.name }

// Host is the host that the last shell prompt named, or empty.
func (s *Sink) Host() string {
	if s.prompt == nil {
		return ""
	}
	return s.prompt.Host
}

// Told notes that a line tells a value of a fact. fact is its path as rules
// write it: "container.shm.size_bytes", "env.variables[NCCL_DEBUG]". Of a
// structure, to which value points, all parts that are set are told there.
func (s *Sink) Told(fact string, value any, l Line) {
	leaves(fact, reflect.Value{}, reflect.ValueOf(value), true, func(fact, value string, _ bool) {
		s.ledger.note(fact, value, s.name, l.Number)
	})
}

// Watch notes that what changes next in a structure of the facts, to which
// object points, is told by a line. It ends when the reader looks at another
// line, so that nothing is ever put down to a line that came before it.
func (s *Sink) Watch(fact string, object any, l Line) {
	s.ledger.watch(fact, object, s.name, l.Number)
}

// maxDevices bounds the PCI functions and the GPUs, maxEntries each list of
// the facts that texts fill.
const (
	maxDevices = 8192
	maxEntries = 4096
)

// Device returns the PCI function at an address ("0000:3b:00.0", in the form
// that facts.Address gives), new if need be.
func (s *Sink) Device(address string, l Line) *facts.PCIDevice {
	d := s.devices[address]
	if d == nil {
		d = &facts.PCIDevice{Address: address}
		if len(s.devices) < maxDevices {
			s.devices[address] = d
		}
	}
	s.Watch("pci.devices["+address+"]", d, l)
	return d
}

// WholePCI notes that a text lists every PCI function of the machine.
func (s *Sink) WholePCI() { s.partialPCI = false }

// GPU returns the GPU at a PCI address, new if need be.
func (s *Sink) GPU(address string, l Line) *facts.GPU {
	g := s.gpus[address]
	if g == nil {
		g = &facts.GPU{Address: address}
		if len(s.gpus) < maxDevices {
			s.gpus[address] = g
			s.order = append(s.order, address)
		}
	}
	s.Watch("gpus.devices["+address+"]", g, l)
	return g
}

// GPUAt returns the GPU of a management library's index, where the text tells
// no address. Once another text tells the addresses, the two become one;
// else the GPU is called "GPU3". Pairs of such GPUs are named likewise.
func (s *Sink) GPUAt(index int, l Line) *facts.GPU {
	name := GPUName(index)
	g := s.GPU(name, l)
	if g.Index == nil {
		g.Index = &index
	}
	return g
}

// GPUName is the name of a GPU of which only the index is known.
func GPUName(index int) string { return "GPU" + strconv.Itoa(index) }

// section returns a section of the facts, new if need be.
func section[T any](at **T) *T {
	if *at == nil {
		*at = new(T)
	}
	return *at
}

// GPUs returns the section of the GPUs, new if need be.
func (s *Sink) GPUs() *facts.GPUFacts { return section(&s.Facts.GPUs) }

// HostFacts returns the section of the host, new if need be; so do those below
// with theirs.
func (s *Sink) HostFacts() *facts.HostFacts { return section(&s.Facts.Host) }

// IOMMU returns its section.
func (s *Sink) IOMMU() *facts.IOMMUFacts { return section(&s.Facts.IOMMU) }

// NUMA returns its section.
func (s *Sink) NUMA() *facts.NUMAFacts { return section(&s.Facts.NUMA) }

// Container returns its section.
func (s *Sink) Container() *facts.ContainerFacts { return section(&s.Facts.Container) }

// Links returns its section.
func (s *Sink) Links() *facts.LinkFacts { return section(&s.Facts.Links) }

// NICs returns its section.
func (s *Sink) NICs() *facts.NICFacts { return section(&s.Facts.NICs) }

// Storage returns its section.
func (s *Sink) Storage() *facts.StorageFacts { return section(&s.Facts.Storage) }

// Logs returns its section.
func (s *Sink) Logs() *facts.LogFacts { return section(&s.Facts.Logs) }

// Variable notes a setting that is in force for the job. The first value of a
// name counts as effective; another one that differs is listed beside it.
func (s *Sink) Variable(name, value string, l Line) {
	if !checks.SteersCommunication(name) {
		return
	}
	if s.Facts.Env == nil {
		s.Facts.Env = &facts.EnvFacts{}
	}
	effective := true
	for _, v := range s.Facts.Env.Variables {
		if v.Name == name {
			if v.Value == value {
				return
			}
			effective = false
		}
	}
	if len(s.Facts.Env.Variables) >= maxEntries {
		return
	}
	s.Facts.Env.Variables = append(s.Facts.Env.Variables, facts.Variable{
		Name: name, Value: value, Source: s.name, Line: l.Number, Effective: effective,
	})
	s.Told("env.variables["+name+"]", value, l)
}

// Package notes a version of a piece of software. The host is that of the
// shell prompt when host is empty.
func (s *Sink) Package(name, version, host, manager string, l Line) {
	if host == "" {
		host = s.Host()
	}
	for _, p := range s.Facts.Software {
		if p.Name == name && p.Version == version && p.Host == host && p.Manager == manager {
			return
		}
	}
	if len(s.Facts.Software) >= maxEntries {
		return
	}
	s.Facts.Software = append(s.Facts.Software, facts.Package{
		Name: name, Version: version, Host: host, Manager: manager, Source: s.name, Line: l.Number,
	})
}

// Message notes a statement that a parser found by other means than the
// catalogue's patterns. id is a row of the catalogue.
func (s *Sink) Message(id string, fields map[string]string, l Line) {
	s.messages.add(id, fields, l)
}

// Unknown notes what could not be told.
func (s *Sink) Unknown(section, fact, reason, hint string) {
	for _, u := range s.Facts.Unknown {
		if u.Section == section && u.Fact == fact {
			return
		}
	}
	s.Facts.Unknown = append(s.Facts.Unknown, facts.Unknown{Section: section, Fact: fact, Reason: reason, Hint: hint})
}
