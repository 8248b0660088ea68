package parse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Sink takes what parsers read and builds the facts.
type Sink struct {
	// Facts is the document under construction. Parsers append to Launches and Benchmarks themselves; for what
	// several texts describe, they use the methods of Sink.
	Facts *facts.Facts

	name  string
	whole string
	// personal is true of a text that a person may have written.
	personal bool
	source   Source
	prompt   *Prompt
	// typed is the last command of the lines that were looked at, which are ahead of those of the blocks.
	typed string
	// started is the line of the last command that starts a job, and typed was there.
	started int
	// sections are those of the present text.
	sections []headed
	// texts are the places of the first of all texts in the facts, by name, and indexed is how many these are.
	texts   map[string]int
	indexed int

	devices map[string]*facts.PCIDevice
	gpus    map[string]*facts.GPU
	order   []string
	// pairs are the places of pairs of devices in the facts, by their names in order; those of the first
	// listed are known.
	pairs  map[[2]string]int
	listed int
	ledger ledger
	// partialPCI is set until a text lists the whole PCI tree.
	partialPCI bool

	messages  messageLog
	deaths    []noted
	processes processLog
	// dates are those of the texts that tell of trouble or of work, by name, telling is set where the present one does,
	// and lastEvent is the last event of a kernel log.
	dates     map[string]dates
	telling   bool
	lastEvent line
	// listeners hear of each event.
	listeners []func(Event)
}

// NewSink returns a sink that holds nothing.
func NewSink() *Sink {
	return &Sink{
		Facts:      &facts.Facts{Schema: facts.FactsSchema},
		devices:    make(map[string]*facts.PCIDevice),
		gpus:       make(map[string]*facts.GPU),
		pairs:      make(map[[2]string]int),
		messages:   messageLog{found: map[string]int{}, first: map[string]int{}, variants: map[string]int{}},
		partialPCI: true,
	}
}

// begin turns to another text.
func (s *Sink) begin(name, whole string, prompt *Prompt) {
	s.ledger.close()
	s.name, s.whole, s.prompt = name, whole, prompt
	s.source, s.telling = SourceOf(name, whole), false
	s.personal = personal(whole, s.source)
	s.sections, s.typed, s.started = nil, "", 0
}

// TextUnderWay is the text that is being read.
func (s *Sink) TextUnderWay() *facts.Text {
	if len(s.Facts.Texts) == 0 { // The log of a probe's own job is no text.
		return &facts.Text{}
	}
	return &s.Facts.Texts[len(s.Facts.Texts)-1]
}

// textOf is the text of a name.
func (s *Sink) textOf(name string) *facts.Text {
	for ; s.indexed < len(s.Facts.Texts); s.indexed++ {
		facts.Put(&s.texts, s.Facts.Texts[s.indexed].Name, s.indexed)
	}
	if i, known := s.texts[name]; known {
		return &s.Facts.Texts[i]
	}
	return &facts.Text{}
}

// Text is the whole text that is being read, for what no line says by itself; empty if it
// is longer than MaxWhole bytes.
func (s *Sink) Text() string { return s.whole }

// Personal reports whether the text that is being read may be one that a person wrote.
func (s *Sink) Personal() bool { return s.personal }

// Form says whether the text that is being read is a source.
func (s *Sink) Form() Source { return s.source }

// Source is the name of the text that is being read.
func (s *Sink) Source() string { return s.name }

// Prompt is the last shell prompt of the text.
func (s *Sink) Prompt() Prompt {
	if s.prompt == nil {
		return Prompt{}
	}
	return *s.prompt
}

// Host is the host that the last shell prompt named, or empty.
func (s *Sink) Host() string { return s.Prompt().Host }

// Told notes that a line tells a value of a fact, by its path as rules write it: "env.variables[NCCL_DEBUG]". Of a
// structure, to which value points, these are all parts that are set.
func (s *Sink) Told(fact string, value any, l Line) {
	valuesIn(fact, value, func(fact string, told said) { s.ledger.note(fact, told.value, s.name, l.Number) })
}

// Note gives a fact a value, unless it has one, and notes the line that tells it.
func Note[T comparable](s *Sink, fact *T, path string, value T, l Line) {
	*fact = cmp.Or(*fact, value)
	s.Told(path, value, l)
}

// Watch notes that what changes next in a structure of the facts, to which object points, is told by a line. It ends
// when the reader looks at another line: nothing is put down to a line that came before it.
func (s *Sink) Watch(fact string, object any, l Line) { s.ledger.watch(fact, object, s.name, l.Number) }

// Settle ends the watching of all objects: what changed is reported by their lines.
func (s *Sink) Settle() { s.ledger.close() }

// Unwatch ends the watching of an object whose change no one line tells: a sum.
func (s *Sink) Unwatch(object any) {
	s.ledger.open = slices.DeleteFunc(s.ledger.open, func(w watched) bool { return w.object == object })
}

// MaxDevices bounds the PCI functions and the GPUs, maxPairs the pairs of devices, and MaxEntries
// each other list of the facts that texts fill.
const (
	MaxDevices = 8192
	MaxEntries = 4096
	maxPairs   = 2 * MaxEntries
)

// Device returns the PCI function at an address ("0000:3b:00.0", in the form that facts.Address gives), new if need be.
func (s *Sink) Device(address string, l Line) *facts.PCIDevice {
	d := s.devices[address]
	if d == nil {
		d = &facts.PCIDevice{Address: address}
		if len(s.devices) < MaxDevices {
			s.devices[address] = d
		}
	}
	s.Watch("pci.devices["+address+"]", d, l)
	return d
}

// KnownDevice returns the PCI function at an address; nil if no text mentioned it.
func (s *Sink) KnownDevice(address string) *facts.PCIDevice { return s.devices[address] }

// Addresses are those of all PCI functions, in order.
func (s *Sink) Addresses() []string { return slices.Sorted(maps.Keys(s.devices)) }

// WholePCI notes that a text lists every PCI function of the machine.
func (s *Sink) WholePCI() { s.partialPCI = false }

// GPU returns the GPU at a PCI address, new if need be.
func (s *Sink) GPU(address string, l Line) *facts.GPU {
	g := s.gpus[address]
	if g == nil {
		g = &facts.GPU{Address: address}
		if len(s.gpus) < MaxDevices {
			s.gpus[address] = g
			s.order = append(s.order, address)
		}
	}
	s.Watch("gpus.devices["+address+"]", g, l)
	return g
}

// KnownGPU returns the GPU at an address; nil if no text mentioned it.
func (s *Sink) KnownGPU(address string) *facts.GPU { return s.gpus[address] }

// Indexed reports whether a GPU whose address is known has an index.
func (s *Sink) Indexed(index int) bool {
	for name, g := range s.gpus {
		if g.Index != nil && *g.Index == index && name != GPUName(index) {
			return true
		}
	}
	return false
}

// GPUAt returns the GPU of a management library's index, where the text tells no address. It is called "GPU3", also in
// pairs, unless another text tells the addresses.
func (s *Sink) GPUAt(index int, l Line) *facts.GPU {
	g := s.GPU(GPUName(index), l)
	g.Index = cmp.Or(g.Index, &index)
	return g
}

// Pair returns the pair of two devices, whichever comes first, new if need be; nil when there
// are too many pairs, or the two are one.
func (s *Sink) Pair(a, b, kind string, l Line) *facts.Pair {
	if a == b || a == "" || b == "" {
		return nil
	}
	links, key := s.Links(), [2]string{min(a, b), max(a, b)}
	for ; s.listed < len(links.Pairs); s.listed++ {
		p := &links.Pairs[s.listed]
		s.pairs[[2]string{min(p.A, p.B), max(p.A, p.B)}] = s.listed
	}
	i, known := s.pairs[key]
	if !known {
		if len(links.Pairs) >= maxPairs {
			return nil
		}
		i = len(links.Pairs)
		links.Pairs = append(links.Pairs, facts.Pair{A: a, B: b, Kind: kind})
	}
	p := &links.Pairs[i]
	s.Watch("links.pairs["+p.A+" -> "+p.B+"]", p, l)
	return p
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

// The functions of PCI and the GPUs are put into their sections when all texts are read.

// GPUs returns the section of the GPUs, new if need be; so do those below with theirs.
func (s *Sink) GPUs() *facts.GPUFacts { return section(&s.Facts.GPUs) }

// HostFacts returns its section.
func (s *Sink) HostFacts() *facts.HostFacts { return section(&s.Facts.Host) }

// PCI returns its section.
func (s *Sink) PCI() *facts.PCIFacts { return section(&s.Facts.PCI) }

// KernelLog returns its section.
func (s *Sink) KernelLog() *facts.KernelLogFacts { return section(&s.Facts.KernelLog) }

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

// CPUList is a list of CPUs as the kernel writes it: "0-15,64-79".
var CPUList = lazy.New(`^\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*$`)

// NUMANode notes the CPUs of a NUMA node.
func (s *Sink) NUMANode(id int, cpus string, l Line) *facts.NUMANode {
	f := s.NUMA()
	i, found := slices.BinarySearchFunc(f.Nodes, id, func(n facts.NUMANode, id int) int { return cmp.Compare(n.ID, id) })
	if !found {
		if len(f.Nodes) >= 1024 {
			return &facts.NUMANode{}
		}
		f.Nodes = slices.Insert(f.Nodes, i, facts.NUMANode{ID: id})
	}
	n := &f.Nodes[i]
	s.Watch(fmt.Sprintf("numa.nodes[%d]", id), n, l)
	n.CPUs = cmp.Or(n.CPUs, cpus)
	return n
}

// ellipsis is what people write instead of a value.
var ellipsis = lazy.New(`^["'<]*(?:\.{2,}|\x{2026})[>"']*$`)

// Variable notes a setting that is in force for the job. The first value of a
// name counts as effective; another one that differs is listed beside it.
func (s *Sink) Variable(name, value string, l Line) {
	if !env.SteersCommunication(name) || ellipsis.MatchString(value) {
		return
	}
	s.Tell(Event{Kind: VariableSet, Name: name, Value: value, Line: l})
	f, effective := section(&s.Facts.Env), true
	for _, v := range f.Variables {
		if v.Name == name && v.Value == value {
			return
		}
		effective = effective && v.Name != name
	}
	if len(f.Variables) >= MaxEntries {
		return
	}
	f.Variables = append(f.Variables, facts.Variable{Name: name, Value: value, Source: s.name, Line: l.Number, Effective: effective})
	s.Told("env.variables["+name+"]", value, l)
}

// Package notes a version of a piece of software. The host is that of the shell prompt when host is empty.
func (s *Sink) Package(name, version, host, manager string, l Line) {
	host = cmp.Or(host, s.Host())
	s.Tell(Event{Kind: VersionTold, Name: name, Value: version, Line: l})
	known := slices.ContainsFunc(s.Facts.Software, func(p facts.Package) bool {
		return p.Name == name && p.Version == version && p.Host == host && p.Manager == manager
	})
	if !known && len(s.Facts.Software) < MaxEntries {
		s.Facts.Software = append(s.Facts.Software, facts.Package{Name: name, Version: version, Host: host, Manager: manager, Source: s.name, Line: l.Number})
	}
}

// Tells notes that the text under way tells of trouble, or of work.
func (s *Sink) Tells() { s.telling = true }

// Happened notes that a line of a kernel log reports an event.
func (s *Sink) Happened(l Line) { s.lastEvent, s.telling = line{source: s.name, line: l.Number}, true }

// Unknown notes what could not be told.
func (s *Sink) Unknown(section, fact, reason, hint string) {
	if !slices.ContainsFunc(s.Facts.Unknown, func(u facts.Unknown) bool { return u.Section == section && u.Fact == fact }) {
		s.Facts.Unknown = append(s.Facts.Unknown, facts.Unknown{Section: section, Fact: fact, Reason: reason, Hint: hint})
	}
}
