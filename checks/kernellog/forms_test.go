package kernellog

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestForms checks that each example of a form of kernel message gives one event of that
// form and kind, with a value for each group that some example fills; that a text of it is
// read likewise; and that the id and the fields are found again from the message alone.
func TestForms(t *testing.T) {
	t.Parallel()
	ids := make(map[string]bool)
	for _, row := range message.Statements() {
		ids[row.ID] = true
	}
	form := regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)
	for _, row := range message.KernelForms() {
		expect.That(t, !ids[row.ID] && form.MatchString(row.ID), "%s: the id is malformed or stands twice", row.ID)
		ids[row.ID] = true
		filled := make(map[string]bool)
		for _, example := range row.Examples {
			expect.That(t, slices.ContainsFunc(Anchors(), func(a string) bool { return strings.Contains(example, a) }), "%s: no anchor finds %q", row.ID, example)
			expect.That(t, host.KernelLogWanted(example), "%s: a live machine is not asked for %q", row.ID, example)
			events, _ := Parse("1.5 " + example)
			if len(events) != 1 || events[0].ID != row.ID || events[0].Kind != row.Kind {
				t.Errorf("%s: %q gives %+v", row.ID, example, events)
				continue
			}
			for name := range maps.Keys(events[0].Fields) {
				filled[name] = true
			}
			filled["code"], filled["bar"] = filled["code"] || events[0].Code != nil, filled["bar"] || events[0].BAR != nil
			filled["addr"], filled["size"] = filled["addr"] || events[0].Address != "", filled["size"] || events[0].SizeBytes > 0
			filled["fatal"] = true // A word may leave it open.
		}
		for _, name := range regexp.MustCompile(row.Like).SubexpNames() {
			expect.That(t, name == "" || filled[name], "%s: no example fills %s", row.ID, name)
		}
	}
}

// TestFields checks what forms take out of a line beside the typed fields.
func TestFields(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]map[string]string{
		"pci 0000:56:00.0: 31.504 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x2 link at 0000:55:00.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)": {
			"driver": "pci", "width": "2", "port": "0000:55:00.0", "best_width": "16",
			"gbps": "31.504", "best_gbps": "504.112",
		},
		"NVRM: Xid (PCI:0000:3b:00): 13, pid=1, Graphics Exception: SKEDCHECK06_REGISTER_COUNT failed":      {"check": "SKEDCHECK06_REGISTER_COUNT"},
		"NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name=python, Ch 00000008, caused by previous Xid 145":       {"previous": "145"},
		"[drm:amdgpu_device_init [amdgpu]] *ERROR* sw_init of IP block <gmc_v9_0> failed -19":               {"step": "sw_init", "block": "gmc_v9_0"},
		"nvidia 0000:3b:00.0: AER: can't recover (no error_detected callback)":                              {"driver": "nvidia"},
		"NVRM: GPU 0000:57:00.0: RmInitAdapter failed! (0x62:0xffff:1863)":                                  nil,
		"nvidia 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0012 address=0xf0 flags=0x0020]": {"driver": "nvidia"},
	} {
		events, _ := Parse("1.5 " + line)
		expect.That(t, len(events) == 1 && maps.Equal(events[0].Fields, want), "%q gives %+v, want the fields %v", line, events, want)
	}
}

// TestToldApart checks that forms, and what they take out of lines, keep events apart.
func TestToldApart(t *testing.T) {
	t.Parallel()
	events, _ := Parse(`
1.0 amdgpu 0000:05:00.0: amdgpu: GPU reset begin!
1.1 amdgpu 0000:05:00.0: amdgpu: GPU reset(3) failed
1.2 amdgpu 0000:05:00.0: amdgpu: GPU reset(4) failed
2.0 amdgpu 0000:05:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block
2.1 amdgpu 0000:05:00.0: amdgpu: 2 uncorrectable hardware errors detected in xgmi_wafl block
3.0 NVRM: Xid (PCI:0000:3b:00): 45, pid=1, Ch 00000008, caused by previous Xid 31
3.1 NVRM: Xid (PCI:0000:3b:00): 45, pid=1, Ch 00000009, caused by previous Xid 145
`)
	got := expect.Map(events, func(e facts.KernelEvent) string { return e.ID + " " + e.Fields["previous"] })
	want := []string{
		"amdgpu-reset-begun ", "amdgpu-reset-failed ", "amdgpu-errors-uncorrected ", "amdgpu-xgmi-errors-uncorrected ", "kernel-xid-after 31", "kernel-xid-after 145",
	}
	expect.NoDiff(t, want, got, "events")
	expect.Equal(t, 2, events[1].Count, "count")
}
