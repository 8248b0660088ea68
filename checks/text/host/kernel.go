package host

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/kernellog"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// kernelKind are the lines of a kernel log that report an event, or of the
// IOMMU. Which they are is checks' business: the live check reads the same.
func kernelKind(r *kernellog.Reader) *parse.Kind {
	return &parse.Kind{
		Name: "kernel-log", Title: "kernel log, from dmesg or journalctl -k", Command: "sudo dmesg", Gives: []string{"kernel_log", "iommu"},
		Anchors: append(kernellog.Anchors(), kernelIOMMUAnchors...),
		Line:    func(s *parse.Sink, l parse.Line) bool { return kernelLine(s, r, l) },
	}
}

func kernelLine(s *parse.Sink, r *kernellog.Reader, l parse.Line) bool {
	text := kernelText(l.Text)
	event := r.Line(text, s.Source(), l.Number)
	if event {
		s.Happened(l)
	}
	_, host, message := kernellog.Message(text)
	if host != "" && s.Facts.KernelLog == nil {
		s.Facts.KernelLog = &facts.KernelLogFacts{Source: s.Source(), Events: []facts.KernelEvent{}}
	}
	return kernelIOMMU(s, l, message) || event
}

// kernelText is a line from where the head of the kernel's message begins, where it has one.
func kernelText(line string) string {
	text, ok := line, true
	for i := 0; i < 8 && ok; i++ {
		if seconds, host, _ := kernellog.Message(text); seconds > 0 || host != "" {
			return text
		}
		text, ok = parse.StripPrefix(text)
	}
	return line
}

// joinKernelLog takes over the events of all texts.
func joinKernelLog(s *parse.Sink, r *kernellog.Reader) {
	events, whole := r.Events()
	if len(events) > 0 {
		f := s.KernelLog()
		f.Source, f.Events = events[0].Source, events
	}
	if !whole {
		s.Unknown("kernel_log", "events", "more different events than the limit", "read the full kernel log")
	}
}

// kernelIOMMUAnchors are literals of the lines by which the kernel tells of its IOMMU.
var kernelIOMMUAnchors = []string{"iommu: Default domain type:", "DMAR: ", "AMD-Vi: ", "o iommu group ", "arm-smmu"}

// The forms of drivers/iommu: iommu.c (the default type and the groups, of which the wording before Linux 5.3 was
// "Adding device ... to group"), intel/dmar.c and iommu.c, amd/init.c.
var (
	kernelDomain = lazy.New(`^iommu: Default domain type: (Translated|Passthrough)`)
	kernelGroup  = lazy.New(`^(?:\S+ ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): Adding to iommu group (\d{1,6})|iommu: Adding device ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) to group (\d{1,6}))`)
	kernelIntel  = lazy.New(`^DMAR: (?:IOMMU enabled|Intel\(R\) Virtualization Technology for Directed I/O|Using Queued invalidation|Hardware identity mapping|\[[^\]]*\] Request device|DRHD: handling fault)`)
	kernelAMD    = lazy.New(`^(?:\S+ )?(?:\S+: )?AMD-Vi: (?:Interrupt remapping enabled|Found IOMMU|IOMMU performance counters supported|Extended features|Lazy IO/TLB flushing|Virtual APIC enabled|X2APIC enabled|Event logged|Initialized for Passthrough Mode|AMD IOMMUv2|Using global IVHD)`)
	kernelPass   = lazy.New(`Hardware identity mapping for device|Initialized for Passthrough Mode|Using passthrough domain for device`)
)

// kernelIOMMU reads what a message says about the IOMMU.
func kernelIOMMU(s *parse.Sink, l parse.Line, message string) bool {
	if domain := strings.ToLower(kernelDomain.First(message)); domain != "" {
		parse.Note(s, &s.IOMMU().DefaultDomain, "iommu.default_domain", domain, l)
		return true
	}
	if m := kernelGroup.FindStringSubmatch(message); m != nil {
		address, group := facts.Address(m[1]+m[3]), parse.Optional(m[2]+m[4])
		if address == "" || group == nil {
			return false
		}
		d := s.Device(address, l)
		d.IOMMUGroup = cmp.Or(d.IOMMUGroup, group)
		return true
	}
	vendor := ""
	switch {
	case kernelIntel.MatchString(message):
		vendor = "intel"
	case kernelAMD.MatchString(message):
		vendor = "amd"
	default:
		return false
	}
	parse.Note(s, &s.IOMMU().Vendor, "iommu.vendor", vendor, l)
	if kernelPass.MatchString(message) { // Kernels before 5.3 do not name the default.
		parse.Note(s, &s.IOMMU().DefaultDomain, "iommu.default_domain", "passthrough", l)
	}
	return true
}

// kernelConfigKind takes single options of the kernel's configuration, as a search in /proc/config.gz or /boot/config-*
// prints them. An option that the text does not name stays unknown: it may have been left out by the search.
var kernelConfigKind = &parse.Kind{
	Name: "kernel-config", Title: "Options of the kernel's configuration",
	Command: "zgrep -E 'HSA_AMD|P2PDMA|MOVE_NOTIFY' /proc/config.gz /boot/config-$(uname -r)",
	Gives:   []string{"gpus"},
	Anchors: []string{"CONFIG_HSA_AMD", "CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"},
	Line: func(s *parse.Sink, l parse.Line) bool {
		name, value, ok := host.KernelOption(kernelConfigFile.ReplaceAllString(l.Text, ""))
		if !ok {
			return false
		}
		gpus := s.GPUs()
		gpus.AMD = cmp.Or(gpus.AMD, &facts.AMDDriver{})
		s.Told("gpus.amd.kernel_config["+name+"]", value, l)
		if _, known := gpus.AMD.KernelConfig[name]; !known {
			facts.Put(&gpus.AMD.KernelConfig, name, value)
		}
		return true
	},
}

// kernelConfigFile is the file's name, which stands before a line where several were searched.
var kernelConfigFile = lazy.New(`^[\w./-]+:`)
