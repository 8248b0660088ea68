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

// GPUModelTable holds what Go reads of GPUs.
type GPUModelTable struct {
	// Models are the models. The first whose pattern matches a name counts.
	Models        []GPUModel
	AMDIntegrated []string `json:"amd_integrated"`
	// NVIDIA distinguishes GPUs from NVIDIA's other functions in a listing of PCI devices.
	NVIDIA struct {
		Names       string
		NVSwitchIDs []string `json:"nvswitch_ids"`
		FirstGPUID  string   `json:"first_gpu_id"`
	}
}

// GPUModel is a model, or a series whose models do not differ in these fields.
type GPUModel struct {
	Name, Like   string
	IDs          []string
	Form, NVLink string
	NVLinkGBps   float64 `json:"nvlink_gbps"`
	XGMIGBps     float64 `json:"xgmi_gbps"`
	XGMIMesh     bool    `json:"xgmi_mesh"`

	like *lazy.Regexp
}

// GPUModelOf returns the model for a name; an empty one if no model matches.
func GPUModelOf(name string) GPUModel {
	name = strings.ToLower(name)
	for _, m := range GPUModels().Models {
		if m.like.MatchString(name) {
			return m
		}
	}
	return GPUModel{}
}

// GPUModelByID returns the model with a PCI device id ("0x74a1"); an empty one if the table does not have it.
func GPUModelByID(id string) GPUModel {
	for _, m := range GPUModels().Models {
		if slices.Contains(m.IDs, id) {
			return m
		}
	}
	return GPUModel{}
}
