package pci

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// Sizes and places in configuration space (include/uapi/linux/pci_regs.h).
const (
	configHeader   = 64   // Standard header; all that the kernel shows without CAP_SYS_ADMIN.
	configLegacy   = 256  // PCI 3.0 configuration space.
	configExtended = 4096 // PCI Express configuration space.

	capPCIe = 0x10 // PCI_CAP_ID_EXP.

	extACS   = 0x000d // PCI_EXT_CAP_ID_ACS.
	extATS   = 0x000f // PCI_EXT_CAP_ID_ATS.
	extReBAR = 0x0015 // PCI_EXT_CAP_ID_REBAR.
)

// configSpace is the readable part of a function's configuration space.
type configSpace []byte

func (c configSpace) u8(at int) (v int, ok bool)     { return number[uint8, int](c, at) }
func (c configSpace) u16(at int) (v int, ok bool)    { return number[uint16, int](c, at) }
func (c configSpace) u32(at int) (v uint32, ok bool) { return number[uint32, uint32](c, at) }

func number[T, R uint8 | uint16 | uint32 | int](c configSpace, at int) (v R, ok bool) {
	var raw T
	_, err := binary.Decode(c[min(at, len(c)):], binary.LittleEndian, &raw)
	return R(raw), err == nil
}

type configState struct {
	// empty: the header is all zeros, so nothing is known.
	empty bool
	// whole: the list of capabilities was followed to its end.
	whole bool
	// express: there is a PCI Express capability.
	express bool
	// hidden: the list of extended capabilities holds null entries, by which VFIO masks capabilities.
	hidden bool
}

// readConfig sets the fields that configuration space shows.
func readConfig(d *facts.PCIDevice, config []byte) configState {
	c := configSpace(config[:min(len(config), configExtended)])
	all := func(part []byte, b byte) bool { return len(c) > 0 && bytes.Count(part, []byte{b}) == len(part) }
	state := configState{empty: all(c[:min(len(c), configHeader)], 0)}
	if d.OffBus = all(c, 0xff); d.OffBus || state.empty {
		return state
	}
	at := 0
	if at, state.whole = c.capability(capPCIe); at == 0 {
		return state
	}
	state.express = true
	readExpress(d, c, at)
	d.Extended, state.hidden = readExtended(d, c)
	return state
}

// capability returns where a capability begins, 0 for nowhere, and whether the whole list could be followed.
func (c configSpace) capability(id int) (at int, whole bool) {
	status, ok := c.u16(0x06)
	if !ok {
		return 0, false
	}
	if status&0x10 == 0 { // PCI_STATUS_CAP_LIST.
		return 0, true
	}
	next, ok := c.u8(0x34) // PCI_CAPABILITY_LIST; the same for header types 0 and 1.
	var seen [configLegacy]bool
	for ok {
		next &^= 3 // The lowest two bits are reserved.
		switch {
		case next == 0:
			return at, true
		case next < configHeader || seen[next]:
			return at, false // Into the header, or a loop.
		}
		seen[next] = true
		var this int
		if this, ok = c.u8(next); !ok {
			break
		}
		if this == id && at == 0 {
			at = next
		}
		next, ok = c.u8(next + 1)
	}
	return at, false
}

// The PCI Express port types, PCI_EXP_FLAGS_TYPE.
const (
	portEndpoint   = "endpoint"
	PortRoot       = "root-port"
	PortUpstream   = "upstream-port"
	PortDownstream = "downstream-port"
	PortIntegrated = "integrated-endpoint"
)

// portTypes are the words for the port types, and lspci's names of them (ls-caps.c, cap_express).
var portTypes = map[int]struct{ word, lspci string }{
	0x0: {portEndpoint, "Endpoint"},
	0x1: {"legacy-endpoint", "Legacy Endpoint"},
	0x4: {PortRoot, "Root Port"},
	0x5: {PortUpstream, "Upstream Port"},
	0x6: {PortDownstream, "Downstream Port"},
	0x7: {"pcie-to-pci", "PCI-Express to PCI/PCI-X Bridge"},
	0x8: {"pci-to-pcie", "PCI/PCI-X to PCI-Express Bridge"},
	0x9: {PortIntegrated, "Root Complex Integrated Endpoint"},
	0xa: {"event-collector", "Root Complex Event Collector"},
}

// PortType is the facts' word for lspci's name of a PCI Express port type.
func PortType(name string) string {
	for _, t := range portTypes {
		if t.lspci == name {
			return t.word
		}
	}
	return ""
}

// linkSpeeds are the speed codes of Link Capabilities and Link Status:
// PCI_EXP_LNKCAP_SLS_2_5GB to PCI_EXP_LNKCAP_SLS_64_0GB.
var linkSpeeds = map[int]float64{1: 2.5, 2: 5, 3: 8, 4: 16, 5: 32, 6: 64}

// maxLinkWidth is the widest link in the specification.
const maxLinkWidth = 32

func linkWidth(n int) int {
	if n < 1 || n > maxLinkWidth {
		return 0
	}
	return n
}

func readExpress(d *facts.PCIDevice, c configSpace, at int) {
	if flags, ok := c.u16(at + 0x02); ok { // PCI_EXP_FLAGS.
		d.PortType = portTypes[flags>>4&0xf].word
	}
	lnkcap, ok1 := c.u32(at + 0x0c) // PCI_EXP_LNKCAP.
	lnksta, ok2 := c.u16(at + 0x12) // PCI_EXP_LNKSTA.
	if !ok1 || !ok2 {
		return
	}
	link := facts.PCIeLink{
		SpeedGTs:    linkSpeeds[lnksta&0xf],
		Width:       linkWidth(lnksta >> 4 & 0x3f),
		MaxSpeedGTs: linkSpeeds[int(lnkcap&0xf)],
		MaxWidth:    linkWidth(int(lnkcap >> 4 & 0x3f)),
		Source:      "config",
	}
	if link != (facts.PCIeLink{Source: link.Source}) { // It says anything.
		d.Link = &link
	}
}

// readExtended reads the extended capabilities, and reports whether they are complete, and whether some are masked.
func readExtended(d *facts.PCIDevice, c configSpace) (complete, hidden bool) {
	var seen [configExtended / 4]bool
	for at := configLegacy; ; {
		header, ok := c.u32(at)
		// Real PCI Express functions have some extended capability; an emulated one shows zeros or ones.
		if !ok || header == 0 || header == 0xffffffff || seen[at/4] {
			return false, hidden
		}
		seen[at/4] = true
		switch header & 0xffff {
		case 0:
			hidden = true
		case extACS:
			if control, ok := c.u16(at + 0x06); ok { // PCI_ACS_CTRL.
				d.ACS = &facts.ACS{Control: acsWord(control)}
			}
		case extATS:
			if control, ok := c.u16(at + 0x06); ok { // PCI_ATS_CTRL.
				d.ATS = &facts.ATS{Enabled: control&0x8000 != 0}
			}
		case extReBAR:
			readResizableBARs(d, c, at)
		}
		next := int(header>>20) &^ 3 // The lowest two bits are reserved.
		switch {
		case next == 0:
			return !hidden, hidden
		case next < configLegacy:
			return false, hidden
		}
		at = next
	}
}

// ACSNames are the bits of the ACS control register from bit 0, PCI_ACS_SV to PCI_ACS_DT, as lspci names them.
var ACSNames = []string{"SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"}

// acsWord returns the ACS controls that a control word switches on; the list is never nil.
func acsWord(word int) []string {
	on := []string{}
	for bit, name := range ACSNames {
		if word&(1<<bit) != 0 {
			on = append(on, name)
		}
	}
	return on
}

func readResizableBARs(d *facts.PCIDevice, c configSpace, at int) {
	first, ok := c.u32(at + 0x08) // PCI_REBAR_CTRL of the first entry.
	if !ok {
		return
	}
	count := min(int(first>>5&7), 6) // PCI_REBAR_CTRL_NBAR_MASK; a header has six BARs.
	for i := range count {
		sizes, ok1 := c.u32(at + 0x04 + 8*i)
		control, ok2 := c.u32(at + 0x08 + 8*i)
		if !ok1 || !ok2 {
			return
		}
		size := rebarBytes(int(control >> 8 & 0x3f)) // PCI_REBAR_CTRL_BAR_SIZE.
		if size == 0 || control&7 > 5 {
			continue
		}
		largest := size // Bits 31:4 of the capability are 1 MiB and up (PCIe 5.0, 7.8.6).
		for bit := range 28 {
			if sizes&(1<<(bit+4)) != 0 {
				largest = max(largest, rebarBytes(bit))
			}
		}
		d.ResizableBARs = append(d.ResizableBARs, facts.ResizableBAR{Index: int(control & 7), SizeBytes: size, MaxBytes: largest})
	}
}

// rebarBytes is 2^n MiB, or 0 if that overflows an int64.
func rebarBytes(n int) int64 {
	if n > 42 {
		return 0
	}
	return 1 << (20 + n)
}

// Flags of a resource, include/linux/ioport.h.
const (
	resourceIO    = 0x00000100
	resourceMem   = 0x00000200
	resourceUnset = 0x20000000
)

// parseResource reads the file resource: one line "start end flags" for each
// resource, of which the first six are the BARs.
func parseResource(b []byte) []facts.BAR {
	bars := []facts.BAR{}
	lines := strings.SplitN(string(b), "\n", 7)
	for index, line := range lines[:min(len(lines), 6)] {
		var start, end, flags uint64
		if _, err := fmt.Sscan(line, &start, &end, &flags); err != nil || flags&(resourceIO|resourceMem) == 0 || end < start {
			continue
		}
		size := int64(end - start + 1)
		if size <= 0 { // More than any machine can map.
			continue
		}
		bars = append(bars, facts.BAR{
			Index:      index,
			SizeBytes:  size,
			Unassigned: flags&resourceUnset != 0,
			IO:         flags&resourceIO != 0,
		})
	}
	return bars
}

// LinkSpeed reads a link's speed in GT/s: "32GT/s", "16.0 GT/s PCIe", on older kernels "Unknown speed"; 0 is not known.
func LinkSpeed(s string) float64 {
	number, _, _ := strings.Cut(s, "GT/s")
	speed, err := facts.ParseFloat(strings.TrimSpace(number))
	if err != nil || !slices.Contains(slices.Collect(maps.Values(linkSpeeds)), speed) {
		return 0
	}
	return speed
}

// LinkWidth reads a link's width: "16", "x16". A device that is gone shows 255 or 63; 0 is not known.
func LinkWidth(s string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(s), "x"))
	if err != nil {
		return 0
	}
	return linkWidth(n)
}
