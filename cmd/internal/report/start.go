package report

import (
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// slowStartMS is the time beyond which starting the driver is worth a remark.
// It is generous: a GPU that was let go takes a second or two to come up again
// (docs.nvidia.com/deploy/driver-persistence), and there may be eight of them.
const slowStartMS = 10_000

// slowStart remarks on a driver that takes long to start. Where no client holds
// the GPUs, each start initialises them and each end takes that back, unless
// persistence mode is on.
func slowStart(d *Document) string {
	if d.Transfers == nil {
		return ""
	}
	whole := 0.0
	var parts []string
	for _, s := range d.Transfers.Stages {
		if s.Name == "cuInit" || s.Name == "hipInit" || s.Name == "contexts" {
			whole += s.Milliseconds
			parts = append(parts, s.Name+" "+took(s.Milliseconds))
		}
	}
	if whole <= slowStartMS {
		return ""
	}
	said := fmt.Sprintf("the driver took %s to start (%s)", took(whole), strings.Join(parts, ", "))
	switch on := d.persistent; {
	case on == nil:
		return said + "; the usual reason is that persistence mode is off (nvidia-persistenced keeps the GPUs ready)"
	case *on:
		return said + ", although persistence mode is on"
	}
	return said + ": persistence mode is off (nvidia-persistenced keeps the GPUs ready)"
}

// persistent reports whether persistence mode is on for all GPUs; nil where
// that is not known.
func persistent(f *facts.GPUFacts) *bool {
	if f == nil || len(f.Devices) == 0 {
		return nil
	}
	all := true
	for _, g := range f.Devices {
		if g.Persistence == nil {
			return nil
		}
		all = all && *g.Persistence
	}
	return &all
}
