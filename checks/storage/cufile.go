package storage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// properties are the settings of "properties" that are read, as the file and as gdscheck call them.
var properties = map[string]string{
	"allow_compat_mode":         "properties.use_compat_mode",
	"force_compat_mode":         "properties.force_compat_mode",
	"use_pci_p2pdma":            "properties.use_pci_p2pdma",
	"rdma_peer_affinity_policy": "properties.rdma_peer_affinity_policy",
}

// isProperty reports whether a name is that of such a setting.
func isProperty(name string) bool {
	for _, known := range properties {
		if known == name {
			return true
		}
	}
	return false
}

// parseConfig reads a cufile.json: JSON with comments as C++ has them, and commas before closing
// brackets.
func parseConfig(b []byte) (map[string]string, error) {
	if len(b) > maxConfig {
		return nil, fmt.Errorf("more than %d bytes", maxConfig)
	}
	var file struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(jsonc.ToJSON(b), &file); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	found := make(map[string]string)
	for name, property := range properties {
		raw, ok := file.Properties[name]
		if !ok {
			continue
		}
		value, err := setting(name, raw)
		if err != nil {
			return nil, err
		}
		found[property] = value
	}
	return found, nil
}

// setting reads one value: a policy is a word, the others are true or false.
func setting(name string, raw json.RawMessage) (string, error) {
	if name == "rdma_peer_affinity_policy" {
		var policy string
		if err := json.Unmarshal(raw, &policy); err != nil || !deviceName.MatchString(policy) {
			return "", fmt.Errorf("properties.%s is not the name of a policy", name)
		}
		return policy, nil
	}
	var on *bool
	if err := json.Unmarshal(raw, &on); err != nil || on == nil {
		return "", fmt.Errorf("properties.%s is neither true nor false", name)
	}
	return strconv.FormatBool(*on), nil
}

// truth reads the value of a variable; empty if it is another word.
func truth(value string) string {
	value = strings.ToLower(value)
	switch {
	case slices.Contains([]string{"true", "1"}, value):
		return "true"
	case slices.Contains([]string{"false", "0"}, value):
		return "false"
	}
	return ""
}
