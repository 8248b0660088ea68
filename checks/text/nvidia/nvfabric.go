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
//
// or a bare word after systemctl is-active.
var nvfabricServiceKind = &parse.Kind{
	Name: "fabricmanager-service", Title: "the state of NVIDIA's fabric manager, from systemctl",
	Command: "systemctl status nvidia-fabricmanager", Gives: []string{"gpus"},
	Anchors:  []string{"nvidia-fabricmanager.service - "},
	Commands: []string{"systemctl is-active nvidia-fabricmanager"},
	Begins: func(in *parse.Lines) bool {
		return nvfabricUnit.MatchString(in.First().Text) || in.After("systemctl is-active nvidia-fabricmanager") && nvfabricRunning(strings.TrimSpace(in.First().Text)) != nil
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		l, _ := in.Next()
		if !nvfabricUnit.MatchString(l.Text) {
			nvfabricEnter(s, nvfabricRunning(strings.TrimSpace(l.Text)), l)
			return
		}
		for range 12 {
			l, ok := in.Peek()
			if !ok || !strings.HasPrefix(l.Text, "  ") {
				return
			}
			in.Next()
			if state, ok := strings.CutPrefix(strings.TrimSpace(l.Text), "Active: "); ok {
				word, _, _ := strings.Cut(state, " ")
				nvfabricEnter(s, nvfabricRunning(word), l)
			}
		}
	},
}

var nvfabricUnit = lazy.New(`^\W{0,4}nvidia-fabricmanager\.service - `)

// nvfabricRunning is what systemd's word for a unit's state means.
func nvfabricRunning(word string) *bool {
	switch word {
	case "active":
		return new(true)
	case "inactive", "failed", "unknown":
		return new(false)
	}
	return nil // "activating" and the like.
}

func nvfabricEnter(s *parse.Sink, running *bool, l parse.Line) {
	if running == nil {
		return
	}
	nvfabricManager(s).Running = running
	s.Told("gpus.driver.fabric_manager.running", running, l)
}

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
