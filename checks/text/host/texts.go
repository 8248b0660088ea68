package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// cmdlineKind is the kernel command line, from /proc/cmdline or from the kernel log.
func cmdlineKind() *parse.Kind {
	first := "" // The text whose command line it is.
	return &parse.Kind{
		Name: "kernel-command-line", Title: "kernel command line", Command: "cat /proc/cmdline", Gives: []string{"host", "iommu"},
		Anchors: []string{"BOOT_IMAGE="}, Commands: []string{"cat /proc/cmdline"},
		Begins: func(in *parse.Lines) bool {
			return in.After("cat /proc/cmdline") && strings.Contains(in.First().Text, "=") || cmdlineForm.MatchString(in.First().Text)
		},
		Read: func(s *parse.Sink, in *parse.Lines) { cmdlineRead(s, in, &first) },
	}
}

// cmdlineForm finds the command line in a line of its own or of a kernel log:
// "Command line: ...", "Kernel command line: ...", "/proc/cmdline: ...".
var cmdlineForm = lazy.New(`(?:^|[Cc]ommand line:|cmdline[:=]?|\]) *BOOT_IMAGE=`)

func cmdlineRead(s *parse.Sink, in *parse.Lines, first *string) {
	l, _ := in.Next()
	text := l.Text
	if i := strings.Index(text, "BOOT_IMAGE="); i > 0 {
		text = text[i:]
	}
	var words []string
	for word := range strings.FieldsSeq(text) {
		if word == "--" || len(words) == 256 {
			break // What follows is for init, not for the kernel (admin-guide/kernel-parameters).
		}
		words = append(words, escape.Printable(word, 256))
	}
	host, iommu := s.HostFacts(), s.IOMMU()
	switch {
	case host.CommandLine == nil:
		host.CommandLine, iommu.CommandLine, *first = words, checks.IOMMUParameters(text), s.Source()
	case *first == s.Source():
		// One text of two hosts, or of two boots: what both have holds wherever the job runs.
		lacking := func(word string) bool { return !slices.Contains(words, word) }
		host.CommandLine = slices.DeleteFunc(host.CommandLine, lacking)
		iommu.CommandLine = slices.DeleteFunc(iommu.CommandLine, lacking)
	default:
		return
	}
	s.Told("host.command_line", host.CommandLine, l)
	s.Told("iommu.command_line", iommu.CommandLine, l)
}

// lscpuKind are lines of lscpu, which stand in reports of other tools as well
// (torch.utils.collect_env), and are often picked by grep.
var lscpuKind = &parse.Kind{
	Name: "lscpu", Title: "processors, from lscpu", Command: "lscpu", Gives: []string{"host", "numa"},
	Anchors: []string{"Model name:", "Vendor ID:", "Hypervisor vendor:", "NUMA node", "Socket(s):", "Flags:"},
	Line:    parse.LineLike(lscpuField, lscpuLine),
}

var lscpuField = lazy.New(`^\s*(Vendor ID|Model name|Socket\(s\)|Hypervisor vendor|Flags|NUMA node(\d{1,4}) CPU\(s\)):\s+(.*?)\s*$`)

func lscpuLine(s *parse.Sink, l parse.Line, m []string) bool {
	if m[3] == "" || m[3] == "-" {
		return false
	}
	words := strings.Fields(m[3])
	if m[1] == "Flags" && !slices.Contains(words, "fpu") {
		return false // lspci's flags of a device, or an Arm processor's features.
	}
	value := escape.Printable(m[3], 256)
	host := s.HostFacts()
	host.CPU = cmp.Or(host.CPU, &facts.CPU{})
	cpu := host.CPU
	s.Watch("host.cpu", cpu, l)
	switch m[1] {
	case "Vendor ID":
		cpu.Vendor = cmp.Or(cpu.Vendor, value)
	case "Model name":
		cpu.Model = cmp.Or(cpu.Model, value)
	case "Socket(s)":
		cpu.Sockets = cmp.Or(cpu.Sockets, parse.Number(value))
	case "Hypervisor vendor":
		noteGuest(s, lscpuHypervisors[strings.ToLower(value)], true, l)
	case "Flags":
		// The flag is the hypervisor's own word (CPUID 1, ECX bit 31).
		noteGuest(s, "", slices.Contains(words, "hypervisor"), l)
	default:
		if !parse.CPUList.MatchString(value) {
			return false
		}
		s.NUMANode(parse.Number(m[2]), value, l)
	}
	return true
}

// lscpuHypervisors are lscpu's names in the terms of gpudoctor.
var lscpuHypervisors = map[string]string{"kvm": "kvm", "vmware": "vmware", "microsoft": "hyperv", "windows subsystem for linux": "wsl", "xen": "xen"}

// noteGuest notes what the kernel of the texts runs on. The first word counts, but
// one that names the hypervisor is better.
func noteGuest(s *parse.Sink, kind string, guest bool, l parse.Line) {
	host := s.HostFacts()
	if v := host.Virtualization; v != nil {
		if guest && v.Guest && v.Kind == "other" && kind != "" {
			v.Kind = kind
		}
		return
	}
	if !guest {
		kind = "none"
	}
	host.Virtualization = &facts.Virtualization{
		Kind: cmp.Or(kind, "other"), Guest: guest, Source: fmt.Sprintf("%s:%d", s.Source(), l.Number),
	}
	s.Told("host.virtualization", host.Virtualization, l)
}

// numactlKind is numactl --hardware.
var numactlKind = &parse.Kind{
	Name: "numactl", Title: "NUMA nodes, from numactl", Command: "numactl --hardware", Gives: []string{"numa"},
	Anchors: []string{"available: "}, Commands: []string{"numactl"},
	Begins: parse.BeginsLike(numactlFirst),
	Read:   numactlRead,
}

var (
	numactlFirst    = lazy.New(`^available: \d{1,4} nodes? \(`)
	numactlNode     = lazy.New(`^node +(\d{1,4}) (cpus|size|free): ?(.*)$`)
	numactlDistance = lazy.New(`^(?:node distances:|node  .*|node 0 .*| *\d{1,4}: +\d[\d ]*)$`)
)

func numactlRead(s *parse.Sink, in *parse.Lines) {
	in.Next()
	in.While(func(l parse.Line) bool {
		m := numactlNode.FindStringSubmatch(l.Text)
		switch {
		case m == nil:
			return numactlDistance.MatchString(l.Text)
		case m[2] == "cpus":
			s.NUMANode(parse.Number(m[1]), spacedCPUs(m[3]), l)
		case m[2] == "size":
			n := s.NUMANode(parse.Number(m[1]), "", l)
			n.MemoryBytes = cmp.Or(n.MemoryBytes, int64(parse.Number(strings.TrimSuffix(m[3], " MB")))<<20)
		}
		return true
	})
}

// spacedCPUs is a list of CPUs that stand one by one, "0 1 2 3 8", as the kernel writes it; empty for anything else.
func spacedCPUs(text string) string {
	set, err := affinity.ParseCPUList(strings.Join(strings.Fields(text), ","))
	if err != nil {
		return ""
	}
	return affinity.CPUList(set)
}

// unameKind is uname -a.
var unameKind = &parse.Kind{
	Name: "uname", Title: "kernel version, from uname", Command: "uname -a", Gives: []string{"host"},
	Anchors: []string{"GNU/Linux"},
	Line: parse.LineLike(unameForm, func(s *parse.Sink, l parse.Line, m []string) bool {
		host := s.HostFacts()
		if host.Kernel == "" {
			host.Hostname, host.Kernel = escape.Printable(m[1], 256), escape.Printable(m[2], 256)
			host.Arch = cmp.Or(unameArch[m[3]], m[3])
			s.Told("host.kernel", host.Kernel, l)
		}
		return true
	}),
}

var (
	unameForm = lazy.New(`\bLinux (\S+) (\d+\.\d+\S*) .*\b(x86_64|aarch64|ppc64le)(?: \S+)* GNU/Linux`)
	unameArch = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}
)

// balancingKind is whether the kernel moves memory between NUMA nodes, as sysctl or grep prints it.
var balancingKind = &parse.Kind{
	Name: "numa-balancing", Title: "automatic NUMA balancing, from sysctl", Command: "sysctl kernel.numa_balancing", Gives: []string{"numa"},
	Anchors: []string{"numa_balancing"},
	Line: parse.LineLike(balancingForm, func(s *parse.Sink, l parse.Line, m []string) bool {
		s.NUMA().Balancing = parse.Optional(m[1])
		s.Told("numa.balancing", s.NUMA().Balancing, l)
		return true
	}),
}

var balancingForm = lazy.New(`^(?:/proc/sys/kernel/|kernel\.)numa_balancing(?::| = |=) ?(\d)\s*$`)
