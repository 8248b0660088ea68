package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

const (
	modules  = "/sys/module"
	nvidiaFS = "/proc/driver/nvidia-fs"
)

// AskSettings is answered with the Settings of cuFile. The file is not recorded: a variable can name any.
const AskSettings = "cufile"

var errRelative = errors.New("CUFILE_ENV_PATH_JSON is not an absolute path")

// Settings are what a cufile.json sets.
type Settings struct {
	// Path is the file, empty if there is none.
	Path string `json:"path"`
	// Properties are those that are known, by the names of gdscheck.
	Properties map[string]string `json:"properties"`
}

func (r *reader) readGDS(ctx context.Context) *facts.GDS {
	d := &facts.GDS{Source: nvidiaFS}
	names, err := r.Host.Dir(modules)
	if err != nil {
		r.Failed("gds.loaded", err)
	} else {
		d.Loaded = new(slices.Contains(names, "nvidia_fs"))
	}
	if d.Loaded != nil && *d.Loaded {
		r.readModule(d)
	}
	r.readSettings(ctx, d)
	if d.Properties[useP2PDMA] == "true" {
		r.readKernel(ctx, d)
	}
	return d
}

// readModule reads the version of the module, and the drivers that are registered with it.
func (r *reader) readModule(d *facts.GDS) {
	if text, err := r.Host.Text(nvidiaFS + "/version"); err != nil {
		r.Failed("gds.version", err)
	} else {
		d.Version = gdsVersion.First(text)
	}
	if b, err := r.Host.Read(nvidiaFS + "/modules"); err != nil {
		r.Failed("gds.drivers", err)
	} else {
		d.Drivers = parseModules(b)
	}
}

// readSettings reads the settings of cuFile: those of its file, then those of variables, which take
// precedence (GPUDirect Storage Troubleshooting Guide, environment variables).
func (r *reader) readSettings(ctx context.Context, d *facts.GDS) {
	variables, err := env.Environment(ctx, r.Host)
	if err != nil {
		r.Failed("gds.properties", err)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if name == fileVariable || variableProperties[name] != "" {
			d.Variables = append(d.Variables, name)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*deadline.File, host.ErrSlow)
	defer cancel()
	var s Settings
	named := variables[fileVariable]
	if err := r.Host.AskBy(ctx, AskSettings, func(context.Context) (any, error) { return settings(host.Live(), named) }, &s); err != nil {
		r.Failed("gds.properties", err)
		return
	}
	d.Config, d.Properties = escape.Printable(s.Path, gather.MaxShown), map[string]string{}
	for name, value := range s.Properties {
		if name == forceCompat || name == useP2PDMA {
			d.Properties[name] = escape.Printable(value, gather.MaxShown)
		}
	}
	for name, property := range variableProperties {
		if on, err := strconv.ParseBool(variables[name]); err == nil {
			d.Properties[property] = strconv.FormatBool(on)
		}
	}
}

// settings reads the file that cuFile reads: the one that a variable names, otherwise /etc/cufile.json.
func settings(h *host.Host, named string) (*Settings, error) {
	at := "/etc/cufile.json"
	switch {
	case path.IsAbs(named):
		at = path.Clean(named)
	case named != "":
		return nil, errRelative
	}
	b, err := h.ReadPart(at, maxConfig+1)
	if errors.Is(err, fs.ErrNotExist) && named == "" {
		return &Settings{}, nil
	}
	if err != nil {
		return nil, err
	}
	properties, err := parseConfig(b)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", at, err)
	}
	return &Settings{Path: at, Properties: properties}, nil
}

// readKernel reads whether the kernel can do what cuFile is set up for.
func (r *reader) readKernel(ctx context.Context, d *facts.GDS) {
	var config host.KernelConfig
	if err := r.Host.Ask(ctx, host.AskKernelConfig, &config); err != nil {
		r.Failed("gds.kernel_p2pdma", err)
	} else if value := config.Options["CONFIG_PCI_P2PDMA"]; value != "" {
		d.KernelP2PDMA = new(value == "y")
	}
}
