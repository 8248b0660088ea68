package nvidia

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvfabricServiceKind is the state of the fabric manager's service:
//
//	● nvidia-fabricmanager.service - NVIDIA fabric manager service
//	     Active: failed (Result: exit-code) since ...
var nvfabricServiceKind = &parse.Kind{
	Name: "fabricmanager-service", Title: "the state of NVIDIA's fabric manager, from systemctl",
	Command: "systemctl status nvidia-fabricmanager", Gives: []string{"gpus"},
	Anchors: []string{"nvidia-fabricmanager.service - "},
	Begins:  parse.BeginsLike(lazy.New(`^\W{0,4}nvidia-fabricmanager\.service - `)),
	Read: func(s *parse.Sink, in *parse.Lines) {
		in.Next()
		for range 12 {
			l, ok := in.Peek()
			if !ok || !strings.HasPrefix(l.Text, "  ") {
				return
			}
			in.Next()
			if m := nvfabricState.FindStringSubmatch(l.Text); m != nil { // Not "activating" and the like.
				nvfabricManager(s).Running = new(m[1] == "active")
				s.Told("gpus.driver.fabric_manager.running", nvfabricManager(s).Running, l)
			}
		}
	},
}

var nvfabricState = lazy.New(`^\s+Active: (active|inactive|failed)\b`)

func nvfabricManager(s *parse.Sink) *facts.FabricManager {
	d := &s.GPUs().Driver
	d.FabricManager = cmp.Or(d.FabricManager, &facts.FabricManager{})
	return d.FabricManager
}

// nvfabricVersionKind is the fabric manager's version, by itself
// (nv-fabricmanager --version), or in the beginning of its log.
var nvfabricVersionKind = &parse.Kind{
	Name: "fabricmanager-version", Title: "the version of NVIDIA's fabric manager",
	Command: "nv-fabricmanager --version", Gives: []string{"gpus"},
	Anchors: []string{"abric Manager version", "abric manager version"},
	Line: parse.LineLike(nvfabricVersion, func(s *parse.Sink, l parse.Line, m []string) bool {
		nvfabricManager(s).Version = m[1]
		s.Told("gpus.driver.fabric_manager.version", m[1], l)
		return true
	}),
}

var nvfabricVersion = lazy.New(`[Ff]abric [Mm]anager version(?: is)?\s*:?\s+(\d{3}\.\d+(?:\.\d+)?)\b`)
