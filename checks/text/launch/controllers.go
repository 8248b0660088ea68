package launch

import (
	_ "embed"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

//go:embed controllers.yaml
var controllersYAML []byte

// controller completes the pods of the objects of an API group: supplies are the parts of a launch that it may set.
type controller struct {
	Group, Name, Source string
	Supplies            []string
}

var controllers = lazy.Table[[]controller](controllersYAML)

// complete notes what of a container the controller of its object may set that the file does not state.
func complete(l *facts.Launch, apiVersion, kind string, inPod bool) {
	supplies, by := []string{"shm_bytes", "mounts", "cap_add"}, "set by the controller of "+kind // Where nothing is known of it.
	group, _, _ := strings.Cut(apiVersion, "/")
	for _, c := range *controllers() {
		if c.Group == group {
			supplies, by = c.Supplies, "set by "+c.Name
		}
	}
	switch isNative := apiVersion == "" || ofKubernetes(apiVersion); {
	case apiVersion == "" && kind == "" && !inPod:
		supplies, by = append(supplies, "ipc", "network", "memlock_bytes", "runtime", "user"), "set by the chart of these values"
	case isNative && apiVersion != "" && l.Image == "" && l.Unknown["image"] == "":
		supplies, by = ruled, "set by what this patches"
	case isNative, kind == "InferenceService" && group == "serving.kserve.io" && inPod: // The runtime brings none of its containers.
		supplies = nil
	}
	for _, part := range supplies {
		isKnown := l.SHMMounted && (part == "shm_bytes" || part == "mounts") || l.Image != "" && part == "image"
		if !isKnown {
			leaveRestOpen(l, by, []string{part})
		}
	}
}

// ofKubernetes reports whether a kind is one of Kubernetes itself: of v1, apps/v1, batch/v1, resource.k8s.io/v1.
func ofKubernetes(apiVersion string) bool {
	group, _, grouped := strings.Cut(apiVersion, "/")
	return apiVersion != "" && (!grouped || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"))
}
