package network

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// gdscheckKind is the report of gdscheck -p on GPUDirect Storage
// (https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/).
var gdscheckKind = &parse.Kind{
	Name: "gdscheck", Title: "GPUDirect Storage, from gdscheck",
	Command: "/usr/local/cuda/gds/tools/gdscheck -p", Gives: []string{"storage"},
	Anchors: []string{"GDS release version", "nvidia_fs version", "DRIVER CONFIGURATION:", "CUFILE CONFIGURATION:", "properties.use_compat_mode", "properties.allow_compat_mode"},
	Begins:  parse.BeginsWith(gdscheckBelongs),
	Read:    gdscheckRead,
}

var (
	gdscheckRule     = lazy.New(`^\s*=+\s*$`)
	gdscheckTitle    = lazy.New(`^\s*(ENVIRONMENT|DRIVER CONFIGURATION|CUFILE CONFIGURATION|GPU INFO|PLATFORM INFO):\s*$`)
	gdscheckDriver   = lazy.New(`^\s*\**(--)?([A-Za-z][\w /+-]*?)\s*:\s*(Supported|Unsupported|Enabled|Disabled|Loaded|Not Loaded|Configured|Not configured|Up: \d+ Down: \d+)\b.*$`)
	gdscheckProperty = lazy.New(`^\s*((?:properties|fs|execution|profile|logging|denylist|blacklist|miscellaneous)\.[\w.]+)\s*:\s*(.*?)\s*$`)
	gdscheckGPU      = lazy.New(`^\s*GPU index \d+ .*(?:supports GDS|does not support GDS)`)
	gdscheckVersion  = lazy.New(`^\s*(?:GDS release version: .* )?nvidia_fs version:\s*(\d{1,5}\.\d{1,5})\b`)
	gdscheckOther    = lazy.New(`^\s*(?:GDS release version|nvidia_fs version|libcufile version|Platform|Nvidia Driver Info Status|Cuda Driver Version Installed|Platform verification|CUFILE_ENV_\w+|CUFILE_\w+|IOMMU|use pci p2pdma|pci_p2pdma)\b.*$`)
)

func gdscheckBelongs(line string) bool {
	return slices.ContainsFunc([]*lazy.Regexp{gdscheckRule, gdscheckTitle, gdscheckDriver, gdscheckProperty, gdscheckGPU, gdscheckOther},
		func(form *lazy.Regexp) bool { return form.MatchString(line) })
}

func gdscheckRead(s *parse.Sink, in *parse.Lines) {
	g := cmp.Or(s.Storage().GDS, &facts.GDS{Source: s.Source()})
	s.Storage().GDS = g
	in.While(func(l parse.Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return ahead(in, gdscheckBelongs)
		}
		if !gdscheckBelongs(l.Text) {
			return false
		}
		g.Line = cmp.Or(g.Line, l.Number)
		s.Watch("storage.gds", g, l)
		if m := gdscheckDriver.FindStringSubmatch(l.Text); m != nil {
			gdscheckSet(&g.Drivers, strings.TrimSpace(m[2]), strings.ToLower(m[3]))
		} else if m := gdscheckProperty.FindStringSubmatch(l.Text); m != nil {
			gdscheckSet(&g.Properties, m[1], escape.Printable(m[2], 200))
		} else {
			g.Version = cmp.Or(g.Version, gdscheckVersion.First(l.Text))
		}
		return true
	})
}

// gdscheckSet notes a value once; a report has some sixty of them.
func gdscheckSet(to *map[string]string, name, value string) {
	if _, ok := (*to)[name]; !ok && len(*to) < 500 {
		facts.Put(to, name, value)
	}
}
