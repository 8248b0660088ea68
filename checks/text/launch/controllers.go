package launch

import (
	_ "embed"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

//go:embed controllers.yaml
var controllersYAML []byte

// controller completes the pods of the objects of an API group.
type controller struct {
	Group, Name, Source string
	// Supplies are the parts of a launch that it may set.
	Supplies []string
}

var controllers = sync.OnceValue(func() map[string]controller {
	var rows []controller
	if err := yaml.Unmarshal(controllersYAML, &rows); err != nil {
		panic(err) // It is part of the program, and a test reads it.
	}
	byGroup := make(map[string]controller, len(rows))
	for _, c := range rows {
		byGroup[c.Group] = c
	}
	return byGroup
})

// unknownController is what one may set of which nothing is known, and chart what the chart may set to which
// values belong.
var (
	unknownController = []string{"shm_bytes", "mounts", "cap_add"}
	chart             = []string{"shm_bytes", "mounts", "cap_add", "ipc", "network", "memlock_bytes", "runtime", "user"}
)

// complete notes what of a container the controller of its object may set that the file does not state.
func complete(l *facts.Launch, apiVersion, kind string, inPod bool) {
	supplies, by := unknownController, "set by the controller of "+kind
	group, _, _ := strings.Cut(apiVersion, "/")
	c, known := controllers()[group]
	switch {
	case known && kind == "InferenceService" && inPod: // The runtime brings none of its containers.
		supplies = nil
	case known:
		supplies, by = c.Supplies, "set by "+c.Name
	case apiVersion == "" && kind == "" && !inPod:
		supplies, by = chart, "set by the chart of these values"
	case apiVersion == "", ofKubernetes(apiVersion):
		supplies = nil
		if apiVersion != "" && l.Image == "" && l.Unknown["image"] == "" {
			supplies, by = ruled, "set by what this patches"
		}
	}
	for _, part := range supplies {
		if !l.SHMMounted || part != "shm_bytes" && part != "mounts" {
			leaveRestOpen(l, by, []string{part})
		}
	}
}

// ofKubernetes reports whether a kind is one of Kubernetes itself: of v1, apps/v1, batch/v1, resource.k8s.io/v1.
func ofKubernetes(apiVersion string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	return apiVersion != "" && (!grouped || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"))
}
