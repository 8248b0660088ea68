package data

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// GPUModels returns the table of GPU models.
var GPUModels = reader("gpu_models", func(t *GPUModelTable) {
	for i := range t.Models {
		t.Models[i].like = lazy.New(t.Models[i].Like)
	}
})

// GPUModelTable describes GPUs by their names and ids.
type GPUModelTable struct {
	Sources []string `json:"sources"`
	// Models are the models. The first whose pattern matches a name counts.
	Models []GPUModel `json:"models"`
	// AMDInstinct are the architectures of AMD's accelerators, AMDIntegrated those found
	// only in processors.
	AMDInstinct   []string `json:"amd_instinct"`
	AMDIntegrated []string `json:"amd_integrated"`
	// NVIDIA distinguishes GPUs from NVIDIA's other functions in a listing of PCI devices.
	NVIDIA NVIDIAFunctions `json:"nvidia"`
	// AcceptedLanes is the minimum number of PCIe lanes that counts as good for a model that is often
	// wired with fewer than it has, by PCI device id.
	AcceptedLanes map[string]int `json:"accepted_lanes"`
}

// GPUModel is a model, or a series whose models do not differ in these fields.
type GPUModel struct {
	Name string `json:"name"`
	// IDs are PCI device ids.
	IDs []string `json:"ids,omitempty"`
	// Like is a pattern of names in lower case.
	Like string `json:"like"`
	// Architecture is "hopper" or "gfx942"; empty if the name does not determine it.
	Architecture string `json:"architecture,omitempty"`
	// ComputeCapability is CUDA's.
	ComputeCapability string `json:"compute_capability,omitempty"`
	// Form is "board" for a module, "card" for a card in a slot and "superchip" for a GPU
	// with its processor; empty if the name does not determine it.
	Form string `json:"form,omitempty"`
	// NVLink is "board" if it connects a GPU with all others of its board or rack, "pair"
	// if it requires a bridge, and "none" if there is no connector.
	NVLink string `json:"nvlink,omitempty"`
	// NVLinkGBps is the maximum that one GPU sends over its NVLinks: links times the usable
	// rate of a link.
	NVLinkGBps float64 `json:"nvlink_gbps,omitempty"`
	// NVSwitch is true if its boards have NVSwitches.
	NVSwitch bool `json:"nvswitch,omitempty"`
	// XGMIGBps is what one of its xGMI links carries in one direction. XGMIMesh is true
	// if every two GPUs of a hive are connected by one link.
	XGMIGBps float64 `json:"xgmi_gbps,omitempty"`
	XGMIMesh bool    `json:"xgmi_mesh,omitempty"`
	GeForce  bool    `json:"geforce,omitempty"`
	// ResizableBAR is true if firmware can make the BAR as large as the memory.
	// MostBAR1GiB is the most that it offers, if modified cards have more memory.
	ResizableBAR bool `json:"resizable_bar,omitempty"`
	MostBAR1GiB  int  `json:"most_bar1_gib,omitempty"`
	// EFA is true for the GPUs of EC2 instances with EFA (p4, p5 and p6).
	EFA bool `json:"efa,omitempty"`

	like *lazy.Regexp
}

// NVIDIAFunctions maps a PCI function of NVIDIA to its kind.
type NVIDIAFunctions struct {
	// Names is a pattern for the names of GPUs.
	Names string `json:"names"`
	// NVSwitchIDs are the ids of NVSwitches.
	NVSwitchIDs []string `json:"nvswitch_ids"`
	// FirstGPUID is the first id of a GPU, below which there are chipsets.
	FirstGPUID string `json:"first_gpu_id"`
}

// GPUModelOf returns the model for a name; an empty one if no model matches.
func GPUModelOf(name string) GPUModel {
	name = strings.ToLower(name)
	models := GPUModels().Models
	for i := range models {
		if models[i].like.MatchString(name) {
			return models[i]
		}
	}
	return GPUModel{}
}

// GPUModelByID returns the model with a PCI device id ("0x74a1"); an empty one if the
// table does not have it.
func GPUModelByID(id string) GPUModel {
	for _, m := range GPUModels().Models {
		if slices.Contains(m.IDs, id) {
			return m
		}
	}
	return GPUModel{}
}
