package storage

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestParseConfig(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want map[string]string
		err  string
	}{
		"comments": {
			"{\n\t// NOTE: \"use_pci_p2pdma\": true\n\t\"properties\": {\n\t\t/* block\n\t\t*/ \"allow_compat_mode\": true, // trailing\n\t\t\"use_pci_p2pdma\": false,\n\t\t\"posix_pool_slab_size_kb\" : [ 4, 1024, 16384],\n\t},\n}\n",
			map[string]string{"properties.use_pci_p2pdma": "false"},
			"",
		},
		"slashes in a string":    {`{"properties": {"force_compat_mode": true}, "logging": {"dir": "/var/log//x /* y"}}`, map[string]string{"properties.force_compat_mode": "true"}, ""},
		"none of the properties": {`{"logging": {"level": "ERROR"}}`, map[string]string{}, ""},
		"empty":                  {"", nil, "not JSON"},
		"comments alone":         {"// nothing", nil, "not JSON"},
		"truncated":              {`{"properties": {"use_pci_p2pdma": tr`, nil, "not JSON"},
		"truncated comment":      {`{"properties": {"use_pci_p2pdma": true}} /* and`, nil, "not JSON"},
		"a list":                 {`[]`, nil, "not JSON"},
		"another type":           {`{"properties": []}`, nil, "not JSON"},
		"a text for a boolean":   {`{"properties": {"use_pci_p2pdma": "true"}}`, nil, "properties.use_pci_p2pdma of type bool"},
		"null":                   {`{"properties": {"force_compat_mode": null}}`, map[string]string{}, ""},
		"deep":                   {strings.Repeat("[", 100_000), nil, "not JSON"},
		"large":                  {"{}" + strings.Repeat(" ", maxConfig), nil, "more than"},
	} {
		got, err := parseConfig([]byte(c.file))
		expect.That(t, (c.err != "" || err == nil) && (c.err == "" || err != nil && strings.Contains(err.Error(), c.err)), "%s: error %v, want %q", name, err, c.err)
		expect.That(t, maps.Equal(got, c.want), "%s: got %q, want %q", name, got, c.want)
	}
}

// settings reads the file of the variable, and without one that of the system; a file that a variable names
// has to exist.
func TestSettings(t *testing.T) {
	var m host.Memory
	m.AddFile("/job.json", []byte(`{"properties": {"use_pci_p2pdma": true}}`))
	h := host.New(&m)
	s, err := settings(h, "")
	expect.That(t, err == nil && s.Path == "", "without a file: %+v, %v", s, err)
	s, err = settings(h, "/job.json")
	expect.That(t, err == nil && s.Path == "/job.json" && s.Properties["properties.use_pci_p2pdma"] == "true", "named: %+v, %v", s, err)
	expect.Fails(settings(h, "/none.json"))(t, fs.ErrNotExist, "named and not there")
	expect.Fails(settings(h, "job.json"))(t, errRelative, "relative")
}

// A file of 100 MB is not read: what is beyond the bound is an error, on a live machine.
func TestLargeFile(t *testing.T) {
	at := filepath.Join(t.TempDir(), "cufile.json")
	expect.NoError(t, os.WriteFile(at, []byte("{}"), 0o600))
	expect.NoError(t, os.Truncate(at, 100<<20))
	expect.Fails(settings(host.Live(), at))(t, "more than 1048576 bytes", "it")
}

// FuzzConfig checks that a parsed file gives known properties with known values.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("{ // x\n\"properties\": {\"use_pci_p2pdma\": true, /* y */},}"))
	f.Add([]byte(`{"properties": {"allow_compat_mode": 1}}`))
	f.Add([]byte(`{"properties": /*`))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		got, err := parseConfig(b)
		expect.That(t, bytes.Equal(b, before), "the input was changed")
		expect.That(t, err == nil || got == nil, "got %q and %v", got, err)
		for name, value := range got {
			expect.That(t, (name == forceCompat || name == useP2PDMA) && (value == "true" || value == "false"), "%q: %q", name, value)
		}
	})
}

// FuzzModules checks that each known driver is either supported or not.
func FuzzModules(f *testing.F) {
	f.Add([]byte("nvme: 4.0\nlnet: 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := parseModules(b)
		expect.That(t, len(got) == len(gdsDrivers), "%d drivers", len(got))
		for name, value := range got {
			expect.That(t, value == "supported" || value == "unsupported", "%s: %q", name, value)
		}
	})
}
