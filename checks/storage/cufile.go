package storage

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tidwall/jsonc"
)

// maxConfig bounds a cufile.json: the one that NVIDIA ships has 12 KiB, most of it comments.
const maxConfig = 1 << 20

// fileVariable names the file that cuFile reads, and variableProperties are what other variables set.
const fileVariable = "CUFILE_ENV_PATH_JSON"

var variableProperties = map[string]string{"CUFILE_FORCE_COMPAT_MODE": forceCompat, "CUFILE_USE_PCIP2PDMA": useP2PDMA}

// The settings of a cufile.json that are read, as gdscheck calls them.
const (
	forceCompat = "properties.force_compat_mode"
	useP2PDMA   = "properties.use_pci_p2pdma"
)

// parseConfig reads a cufile.json, JSON with comments, and returns the settings by the names of gdscheck.
func parseConfig(b []byte) (map[string]string, error) {
	if len(b) > maxConfig {
		return nil, fmt.Errorf("more than %d bytes", maxConfig)
	}
	var file struct {
		Properties struct {
			ForceCompat *bool `json:"force_compat_mode"`
			UseP2PDMA   *bool `json:"use_pci_p2pdma"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(jsonc.ToJSON(b), &file); err != nil {
		return nil, fmt.Errorf("not JSON, or a setting is of another type: %w", err)
	}
	found := make(map[string]string)
	for name, on := range map[string]*bool{forceCompat: file.Properties.ForceCompat, useP2PDMA: file.Properties.UseP2PDMA} {
		if on != nil {
			found[name] = strconv.FormatBool(*on)
		}
	}
	return found, nil
}
