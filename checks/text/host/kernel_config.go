package host

import (
	"cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// kernelConfigKind takes single options of the kernel's configuration, as a search
// in /proc/config.gz or /boot/config-* prints them. An option that the text does not
// name stays unknown: it may have been left out by the search.
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
			parse.Put(&gpus.AMD.KernelConfig, name, value)
		}
		return true
	},
}

// kernelConfigFile is the file's name, which stands before a line where several were searched.
var kernelConfigFile = lazy.New(`^[\w./-]+:`)
