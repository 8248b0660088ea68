package kernellog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestKernelLogEvents(t *testing.T) {
	no, yes := new(false), new(true)
	for _, tt := range []struct {
		name, log string
		want      []facts.KernelEvent
	}{
		{"nothing", "", []facts.KernelEvent{}},
		{"a healthy machine", `
0.000000 Linux version 6.8.0
0.812345 DMAR: IOMMU enabled
1.200000 pci 0000:17:00.0: BAR 7: no space for [mem size 0x00800000 64bit pref]
1.210000 pci 0000:3a:00.0: BAR 13: no space for [io  size 0x1000]
1.220000 pci 0000:3a:02.0: bridge window [io  size 0x1000]: can't assign; no space
9.100000 nvidia 0000:17:00.0: enabling device (0140 -> 0142)
9.300000 NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05
9.400000 NVRM: GPU at PCI:0000:17:00: GPU-00000000-0000-0000-0000-000000000000
9.500000 amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0
`, []facts.KernelEvent{}},
		{"Xid, old and new, with a MIG instance", `
81.000001 NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
81.000002 NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.
82.500000 NVRM: Xid (PCI:0000:3B:00 GPU-I:05): 31, pid=12, name=python
83.000000 NVRM: Xid (PCI:0000:3b:00): 31, pid=13, name=python
84.000000 NVRM: Xid (0000:03:00): 13, 0003
`, []facts.KernelEvent{
			{Kind: "xid", Code: new(79), Address: "0000:01:00.0", Message: "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", Seconds: 81.000001, Count: 1},
			{Kind: "nvrm", Address: "0000:01:00.0", Message: "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.", Seconds: 81.000002, Count: 1},
			{Kind: "xid", Code: new(31), Address: "0000:3b:00.0", Message: "NVRM: Xid (PCI:0000:3B:00 GPU-I:05): 31, pid=12, name=python", Seconds: 82.5, Count: 2},
			{Kind: "xid", Code: new(13), Address: "0000:03:00.0", Message: "NVRM: Xid (0000:03:00): 13, 0003", Seconds: 84, Count: 1},
		}},
		{"SXid", `
5.0 nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up
6.0 nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)
7.0 nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Data {0x00000000}
`, []facts.KernelEvent{
			{Kind: "sxid", Code: new(20034), Address: "0000:c1:00.0", Fatal: yes, Message: "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", Seconds: 5, Count: 1},
			{Kind: "sxid", Code: new(12028), Address: "0000:c1:00.0", Fatal: no, Message: "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)", Seconds: 6, Count: 1},
			{Kind: "sxid", Code: new(12028), Address: "0000:c1:00.0", Message: "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Data {0x00000000}", Seconds: 7, Count: 1},
		}},
		{"AER in both wordings, a pair of lines counted once", `
54.1 pcieport 0000:00:07.0: AER: Multiple Corrected error received: 0000:2b:00.0
54.2 nvidia 0000:2b:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)
54.3 nvidia 0000:2b:00.0:   device [10de:2330] error status/mask=00001100/00002000
55.1 pcieport 0000:00:07.0: AER: Corrected error received: 0000:2b:00.0
55.2 nvidia 0000:2b:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)
60.0 pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:01:00.0
61.0 pcieport 0000:00:01.0: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected
62.0 pcieport 0000:00:02.0: AER: Uncorrected (Non-Fatal) error received: id=0010
`, []facts.KernelEvent{
			{Kind: "aer", Address: "0000:2b:00.0", Fatal: no, Message: "pcieport 0000:00:07.0: AER: Multiple Corrected error received: 0000:2b:00.0", Seconds: 54.1, Count: 2},
			{Kind: "aer", Address: "0000:01:00.0", Fatal: yes, Message: "pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message received from 0000:01:00.0", Seconds: 60, Count: 1},
			{Kind: "aer", Address: "0000:00:01.0", Message: "pcieport 0000:00:01.0: DPC: containment event, status:0x1f01: unmasked uncorrectable error detected", Seconds: 61, Count: 1},
			{Kind: "aer", Address: "0000:00:02.0", Fatal: no, Message: "pcieport 0000:00:02.0: AER: Uncorrected (Non-Fatal) error received: id=0010", Seconds: 62, Count: 1},
		}},
		{"an error that the firmware handled first", `
3.1 {1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1
3.2 {1}[Hardware Error]: event severity: fatal
3.3 {1}[Hardware Error]:   section_type: PCIe error
3.4 {1}[Hardware Error]:   device_id: 0000:11:01.0
3.5 {1}[Hardware Error]:   vendor_id: 0x1002, device_id: 0x74a1
`, []facts.KernelEvent{{Kind: "aer", Address: "0000:11:01.0", Fatal: yes, Message: "{1}[Hardware Error]:   device_id: 0000:11:01.0", Seconds: 3.4, Count: 1}}},
		{"IOMMU", `
0.5 iommu: Default domain type: Passthrough (set via kernel command line)
0.6 pci 0000:40:01.1: disabled ACS redirect
0.7 pci 0000:40:03.1: Configured ACS to 0x11
0.8 pci 0000:40:05.1: Configured ACS to 0x1d
9.0 DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0xd0000000 [fault reason 0x05] PTE Write access is not set
9.1 DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0xd0001000 [fault reason 0x05] PTE Write access is not set
9.2 DMAR:[DMA Read] Request device [5e:00.1] fault addr 0
9.3 AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x0000 address=0xf0 flags=0x0010]
9.4 nvidia 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0012 address=0xf0 flags=0x0020]
`, []facts.KernelEvent{
			{Kind: "iommu-mode", Message: "iommu: Default domain type: Passthrough (set via kernel command line)", Seconds: 0.5, Count: 1},
			{Kind: "acs-disabled", Address: "0000:40:01.1", Message: "pci 0000:40:01.1: disabled ACS redirect", Seconds: 0.6, Count: 1},
			{Kind: "acs-disabled", Address: "0000:40:03.1", Message: "pci 0000:40:03.1: Configured ACS to 0x11", Seconds: 0.7, Count: 1},
			{Kind: "dmar-fault", Address: "0000:3b:00.0", Message: "DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0xd0000000 [fault reason 0x05] PTE Write access is not set", Seconds: 9, Count: 2},
			{Kind: "dmar-fault", Address: "0000:5e:00.1", Message: "DMAR:[DMA Read] Request device [5e:00.1] fault addr 0", Seconds: 9.2, Count: 1},
			{Kind: "amd-vi-fault", Address: "0000:41:00.0", Message: "AMD-Vi: Event logged [IO_PAGE_FAULT device=41:00.0 domain=0x0000 address=0xf0 flags=0x0010]", Seconds: 9.3, Count: 1},
			{Kind: "amd-vi-fault", Address: "0000:c1:00.0", Message: "nvidia 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0012 address=0xf0 flags=0x0020]", Seconds: 9.4, Count: 1},
		}},
		{"messages of several lines", `
37.1 NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:
37.1 NVRM: BAR1 is 0M @ 0x0 (PCI:0000:56:00.0)
40.0 NVRM: API mismatch: the client has the version 550.54.14, but\x0aNVRM: this kernel module has the version 545.23.08.  Please\x0aNVRM: make sure that this kernel module and all NVIDIA driver
41.0 NVRM: API mismatch: the client 'python' has the version 550.54.14,
41.1 NVRM: Xid (PCI:0000:56:00): 48, pid=1
`, []facts.KernelEvent{
			{Kind: "bar", Address: "0000:56:00.0", Message: "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: BAR1 is 0M @ 0x0 (PCI:0000:56:00.0)", Seconds: 37.1, Count: 1},
			{Kind: "nvrm", Message: "NVRM: API mismatch: the client has the version 550.54.14, but this kernel module has the version 545.23.08.  Please", Seconds: 40, Count: 2},
			{Kind: "xid", Code: new(48), Address: "0000:56:00.0", Message: "NVRM: Xid (PCI:0000:56:00): 48, pid=1", Seconds: 41.1, Count: 1},
		}},
	} {
		events, whole := Parse(tt.log)
		for i := range events { // TestForms holds these.
			events[i].ID, events[i].Fields = "", nil
		}
		expect.That(t, whole, "%s: the log is cut", tt.name)
		expect.NoDiff(t, tt.want, events, "%s", tt.name)
	}
}

func TestKernelLogBound(t *testing.T) {
	var log strings.Builder
	for i := range MaxEvents + 10 {
		fmt.Fprintf(&log, "%d.5 NVRM: Xid (PCI:0000:01:00): %d, pid=1%s\n", i, i, strings.Repeat("x", 1000))
	}
	events, whole := Parse(log.String())
	expect.That(t, len(events) == MaxEvents && !whole, "got %d events, whole %t, want %d and false", len(events), whole, MaxEvents)
	expect.Equal(t, maxMessage, len(events[0].Message), "message of")
}

func FuzzKernelLog(f *testing.F) {
	f.Add("81.000001 NVRM: Xid (PCI:0000:01:00): 79, pid=1\n")
	f.Add("1.0 pcieport 0000:00:07.0: AER: Corrected error received: 0000:2b:00.0\nNVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\\x0aNVRM: BAR1")
	f.Add("1e309 x\n-1 DMAR: [a] Request device [3b:00.0]\nNaN {1}[Hardware Error]: device_id: 0000:11:01.0")
	f.Fuzz(func(t *testing.T, log string) {
		events, _ := Parse(log)
		expect.That(t, len(events) <= MaxEvents, "%d events", len(events))
		for _, e := range events {
			expect.That(t, e.Kind != "" && e.Count >= 1 && len(e.Message) <= maxMessage && e.Seconds >= 0, "bad event %+v", e)
			expect.That(t, e.Address == "" || facts.Address(e.Address) == e.Address, "address %q is not canonical", e.Address)
		}
	})
}

func TestKernelMessage(t *testing.T) {
	const message = "pcieport 0000:00:03.0: AER: device recovery failed"
	for _, tt := range []struct{ line, host string }{
		{"[   12.803392] " + message, ""},
		{"[Tue Aug 19 10:21:07 2025] " + message, ""},
		{"[Jan21 10:15] " + message, ""},
		{"[  +0.000844] " + message, ""},
		{"Aug 19 10:21:07 node7 kernel: [   12.803392] " + message, "node7"},
		{"febr 08 12:57:43 node7 kernel: " + message, "node7"},
	} {
		_, host, got := Message(tt.line)
		expect.That(t, host == tt.host && got == message, "KernelMessage(%q): got host %q, message %q; want %q, %q", tt.line, host, got, tt.host, message)
	}
}
