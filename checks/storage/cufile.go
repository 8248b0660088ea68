package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/tidwall/jsonc"
)

// maxConfig bounds a cufile.json: the one that NVIDIA ships has 12 KiB, most of it comments.
const maxConfig = 1 << 20

// fileVariable names the file that cuFile reads, and variableProperties are the properties that other
// variables set.
const fileVariable = "CUFILE_ENV_PATH_JSON"

var variableProperties = map[string]string{
	"CUFILE_ALLOW_COMPAT_MODE": "properties.use_compat_mode",
	"CUFILE_FORCE_COMPAT_MODE": "properties.force_compat_mode",
	"CUFILE_USE_PCIP2PDMA":     "properties.use_pci_p2pdma",
}

type properties struct {
	AllowCompat *bool  `json:"allow_compat_mode"`
	ForceCompat *bool  `json:"force_compat_mode"`
	UseP2PDMA   *bool  `json:"use_pci_p2pdma"`
	Policy      string `json:"rdma_peer_affinity_policy"`
}

// propertyNames are what gdscheck calls them.
var propertyNames = []string{"properties.use_compat_mode", "properties.force_compat_mode", "properties.use_pci_p2pdma", "properties.rdma_peer_affinity_policy"}

// parseConfig reads a cufile.json: JSON with comments as C++ has them, and commas before closing
// brackets. It returns the settings by the names of gdscheck.
func parseConfig(b []byte) (map[string]string, error) {
	if len(b) > maxConfig {
		return nil, fmt.Errorf("more than %d bytes", maxConfig)
	}
	var file struct {
		Properties properties `json:"properties"`
	}
	if err := json.Unmarshal(jsonc.ToJSON(b), &file); err != nil {
		return nil, fmt.Errorf("not JSON, or a setting is of another type: %w", err)
	}
	p := file.Properties
	found := make(map[string]string)
	for i, on := range []*bool{p.AllowCompat, p.ForceCompat, p.UseP2PDMA} {
		if on != nil {
			found[propertyNames[i]] = strconv.FormatBool(*on)
		}
	}
	switch {
	case deviceName.MatchString(p.Policy):
		found[propertyNames[3]] = p.Policy
	case p.Policy != "":
		return nil, errors.New("rdma_peer_affinity_policy is not the name of a policy")
	}
	return found, nil
}
