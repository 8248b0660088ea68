//go:build linux && cgo

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/fixtures/restricted"
)

// sysWithNICs writes a /sys with two GPUs and two adapters of NVIDIA, one below a switch with each GPU, whose ports are
// active, and these kernel modules.
func sysWithNICs(t *testing.T, modules ...string) string {
	t.Helper()
	sys := t.TempDir()
	file := func(name, text string) {
		at := filepath.Join(sys, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		expect.NoError(t, os.WriteFile(at, []byte(text+"\n"), 0o644))
	}
	link := func(target, name string) {
		at := filepath.Join(sys, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		expect.NoError(t, os.Symlink(target, at))
	}
	for i := range 2 {
		address := fmt.Sprintf("0000:%02x:00.0", 0x1c+i)
		device := "devices/pci0000:10/" + address
		file(device+"/vendor", "0x15b3")
		file(device+"/device", "0x1021")
		file(device+"/class", "0x020700")
		file(device+"/numa_node", "0")
		link("../../../"+device, "bus/pci/devices/"+address)
		name := fmt.Sprintf("mlx5_%d", i)
		port := device + "/infiniband/" + name + "/ports/1"
		file(port+"/state", "4: ACTIVE")
		file(port+"/phys_state", "5: LinkUp")
		file(port+"/link_layer", "InfiniBand")
		file(port+"/rate", "400 Gb/sec (4X NDR)")
		file(port+"/lid", "0x5")
		file(port+"/sm_lid", "0x1")
		link("../../"+device+"/infiniband/"+name, "class/infiniband/"+name)
	}
	file("class/net/lo/mtu", "65536") // Without the folder, no network is visible.
	for _, m := range append(modules, "ib_core", "mlx5_ib") {
		file("module/"+m+"/refcnt", "1")
	}
	return sys
}

// registered is what the whole program makes of NICs that behave in some way.
type registered struct {
	finding  string   // That of gdr-module-missing or memlock-limit.
	unknown  []string // The facts of the section gpudirect that are unknown.
	unproven bool     // Whether gdr-module-missing has no verdict.
}

// TestRegistrations runs the whole program on a machine with NICs, whose libibverbs and driver do what was ordered. A
// way that works is healthy, one that is unknown is neither a finding nor taken for healthy where another is refused,
// and a recording gives the same.
func TestRegistrations(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	const refused = "gdr-module-missing medium confirmed GPUDirect RDMA"
	fault, unsupported := "error-peermem=14", "error-dmabuf-mr=95"
	for name, tt := range map[string]struct {
		verbs, cuda string
		modules     []string
		want        registered
	}{
		"healthy":                   {"", "", []string{"nvidia_peermem"}, registered{}},
		"only DMA-BUF":              {fault, "", nil, registered{}},
		"only peermem":              {unsupported, "no-dmabuf", []string{"nvidia_peermem"}, registered{}},
		"neither":                   {fault + "," + unsupported, "", nil, registered{finding: refused}},
		"neither, no DMA-BUF":       {fault, "no-dmabuf", nil, registered{finding: refused}},
		"peermem does not register": {fault + "," + unsupported, "", []string{"nvidia_peermem"}, registered{finding: refused}},
		"one NIC":                   {"error-peermem=14@*>1,error-dmabuf-mr=95@*>1", "", nil, registered{finding: "gdr-module-missing low confirmed GPUDirect RDMA"}},
		"locked memory":             {"error-host=12", "", []string{"nvidia_peermem"}, registered{finding: "memlock-limit medium likely RLIMIT_MEMLOCK"}},
		"DMA-BUF crashes":           {fault + ",crash-dmabuf-mr", "", nil, registered{unknown: []string{"nics.dmabuf"}, unproven: true}},
		"both crash":                {"crash-peermem,crash-dmabuf-mr", "", []string{"nvidia_peermem"}, registered{unknown: []string{"nics.dmabuf", "nics.peermem"}}},
		"no access":                 {"error-open=13", "", []string{"nvidia_peermem"}, registered{unknown: []string{"nics.dmabuf", "nics.peermem"}}},
		"the list crashes":          {"crash-list", "", []string{"nvidia_peermem"}, registered{unknown: []string{"nics.dmabuf", "nics.host", "nics.peermem"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if night.Few() && name != "healthy" && name != "neither" {
				t.Skip("not by day")
			}
			to := restricted.To{Sys: sysWithNICs(t, tt.modules...)}
			env := append(simulated{libraries: []string{"cuda", "nvml", "verbs"}, cuda: tt.cuda}.environment(t), "GPUDOCTOR_SIM_NICS=2", "GPUDOCTOR_SIM_VERBS_FAULT="+tt.verbs)
			snapshot := filepath.Join(t.TempDir(), "host.txtar")
			code, _, said := restrictedTo(t, to, env, "snapshot", "--probe", "full", "-o", snapshot)
			expect.Must(t, code == exitOK, "exit code %d: %s", code, said)
			out, _ := exec.Command("gpudoctor", "check", "--from", snapshot, "--format", "json").Output() // Its exit code is that of the findings.
			var replayed report.Document
			expect.NoError(t, json.Unmarshal(out, &replayed))
			if diff := cmp.Diff(tt.want, verdictOf(&replayed), cmp.AllowUnexported(registered{})); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			_, checked, _ := restrictedTo(t, to, env, "check", "--probe", "full", "--format", "json")
			var live report.Document
			expect.NoError(t, json.Unmarshal([]byte(checked), &live))
			if diff := cmp.Diff(verdictOf(&live), verdictOf(&replayed), cmp.AllowUnexported(registered{})); diff != "" {
				t.Errorf("the recording differs: %s", diff)
			}
		})
	}
}

// verdictOf is what a report says of registrations.
func verdictOf(d *report.Document) registered {
	var r registered
	for _, f := range d.Findings {
		if f.Rule == "gdr-module-missing" || f.Rule == "memlock-limit" && strings.Contains(f.Message, "mlx5_") {
			r.finding = strings.Join([]string{f.Rule, string(f.Severity), string(f.Confidence), f.Subject}, " ")
		}
	}
	unknown := map[string]bool{}
	for _, u := range d.Unknown {
		if u.Section == "gpudirect" {
			unknown[u.Fact] = true
		}
	}
	r.unknown = slices.Sorted(maps.Keys(unknown))
	for _, s := range d.Skipped {
		r.unproven = r.unproven || s.Rule == "gdr-module-missing"
	}
	return r
}

// TestRegistrationHangs checks that a NIC that hangs costs its own outcome, in time, and leaves no process.
func TestRegistrationHangs(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	if testing.Short() {
		t.Skip("not with -short")
	}
	to := restricted.To{Sys: sysWithNICs(t, "nvidia_peermem")}
	marker := runMarker + "=" + t.Name()
	env := append(simulated{libraries: []string{"cuda", "nvml", "verbs"}}.environment(t), marker, "GPUDOCTOR_SIM_NICS=2", "GPUDOCTOR_SIM_VERBS_FAULT=hang-peermem@*>1")
	_, out, _ := restrictedTo(t, to, env, "check", "--probe", "full", "--probe-timeout", hangTimeout.String(), "--format", "json")
	var d report.Document
	expect.NoError(t, json.Unmarshal([]byte(out), &d))
	got, want := verdictOf(&d), (registered{unknown: []string{"nics.peermem"}})
	expect.That(t, cmp.Equal(got, want, cmp.AllowUnexported(registered{})), "got %+v, want %+v", got, want)
	expect.Len(t, 0, processes(marker), "processes are left")
}
