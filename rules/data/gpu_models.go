package data

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// GPUModels returns the table of GPU models.
var GPUModels = reader[GPUModelTable]("gpu_models")

// GPUModelTable says what GPUs are, by their names and ids.
type GPUModelTable struct {
	Sources []string `json:"sources"`
	// Models are the models. The first that a name is like decides.
	Models []GPUModel `json:"models"`
	// AMDInstinct are the architectures of AMD's accelerators, AMDIntegrated those found
	// only in processors.
	AMDInstinct   []string `json:"amd_instinct"`
	AMDIntegrated []string `json:"amd_integrated"`
	// NVIDIA tells GPUs from other functions of NVIDIA's in a listing of PCI devices.
	NVIDIA NVIDIAFunctions `json:"nvidia"`
	// AcceptedLanes are the fewest PCIe lanes that count as good for a model that is often
	// wired with fewer than it has, by PCI device id.
	AcceptedLanes map[string]int `json:"accepted_lanes"`
}

// GPUModel is a model, or a series whose models differ in nothing that is read.
type GPUModel struct {
	Name string `json:"name"`
	// IDs are PCI device ids.
	IDs []string `json:"ids,omitempty"`
	// Like is a pattern of names in lower case.
	Like string `json:"like"`
	// Architecture is "hopper" or "gfx942", empty where the name does not tell.
	Architecture string `json:"architecture,omitempty"`
	// ComputeCapability is CUDA's.
	ComputeCapability string `json:"compute_capability,omitempty"`
	// Form is "board" for a module, "card" for a card in a slot and "superchip" for a GPU
	// with its processor; empty where the name does not tell.
	Form string `json:"form,omitempty"`
	// NVLink is "board" where it joins a GPU with all others of its board or rack, "pair"
	// where it comes with a bridge, and "none" where there is no connector.
	NVLink string `json:"nvlink,omitempty"`
	// NVLinkGBps is what one GPU sends over its NVLinks at most: links times the usable
	// rate of a link.
	NVLinkGBps float64 `json:"nvlink_gbps,omitempty"`
	// NVSwitch is true where its boards have NVSwitches.
	NVSwitch bool `json:"nvswitch,omitempty"`
	// XGMIGBps is what one of its xGMI links carries in one direction, and XGMIMesh true
	// where each two GPUs of a hive are joined by one link.
	XGMIGBps float64 `json:"xgmi_gbps,omitempty"`
	XGMIMesh bool    `json:"xgmi_mesh,omitempty"`
	// XGMIBridge is true of a card that a bridge (Infinity Fabric Link) can join to others.
	XGMIBridge bool `json:"xgmi_bridge,omitempty"`
	GeForce    bool `json:"geforce,omitempty"`
	// ResizableBAR is true where firmware can make the BAR as large as the memory,
	// MostBAR1GiB what it offers at most where that is less than modified cards have.
	ResizableBAR bool `json:"resizable_bar,omitempty"`
	MostBAR1GiB  int  `json:"most_bar1_gib,omitempty"`
	// EFA is true of the GPUs of EC2 instances with EFA (p4, p5 and p6).
	EFA bool `json:"efa,omitempty"`
}

// NVIDIAFunctions maps a PCI function of NVIDIA to its kind.
type NVIDIAFunctions struct {
	// Names is a pattern of GPUs' names.
	Names string `json:"names"`
	// NVSwitchIDs are the ids of NVSwitches.
	NVSwitchIDs []string `json:"nvswitch_ids"`
	// FirstGPUID is the first id of a GPU, below which there are chipsets;
	// FirstResizableBARID the first of those whose BAR firmware can enlarge.
	FirstGPUID          string `json:"first_gpu_id"`
	FirstResizableBARID string `json:"first_resizable_bar_id"`
}

// gpuPatterns compile the patterns of the models when a name is first compared.
var gpuPatterns = sync.OnceValue(func() []func() *regexp.Regexp {
	models := GPUModels().Models
	list := make([]func() *regexp.Regexp, len(models))
	for i, m := range models {
		list[i] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(m.Like) })
	}
	return list
})

// GPUModelOf returns the model that a name tells; an empty one where it tells none.
func GPUModelOf(name string) GPUModel {
	name = strings.ToLower(name)
	for i, pattern := range gpuPatterns() {
		if pattern().MatchString(name) {
			return GPUModels().Models[i]
		}
	}
	return GPUModel{}
}

// GPUModelByID returns the model with a PCI device id ("0x74a1"); an empty one where the
// table has none.
func GPUModelByID(id string) GPUModel {
	for _, m := range GPUModels().Models {
		if slices.Contains(m.IDs, id) {
			return m
		}
	}
	return GPUModel{}
}
