// Package kernellog finds events that bear on GPUs and PCIe in the lines of kernel logs.
package kernellog

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/finite"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

const (
	// MaxEvents bounds the events that differ from each other.
	MaxEvents = 512
	// maxMessage bounds a message, in bytes, as KernelEvent promises.
	maxMessage = 300
	// maxLine bounds what is looked at of one line: the kernel's own bound
	// of a record is 1024 bytes and a prefix (LOG_LINE_MAX,
	// kernel/printk/printk.c).
	maxLine = 4 << 10
)

// signature is one form of message that tells of an event.
type signature struct {
	kind string
	// contains must stand in the message; it spares the pattern.
	contains string
	// pattern's groups are named "addr", "code" and "fatal"; nil where
	// contains says all. An address that it does not name is taken from the
	// beginning of the message.
	pattern *lazy.Regexp
	// twin is the form that comes along with this one for the same event:
	// the two are not counted twice.
	twin string
}

// address is a PCI address as logs write it: with or without a domain or a
// function.
const address = `(?P<addr>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)`

// severity is how the kernel words it, before and since its renaming of
// "Corrected" to "Correctable" (drivers/pci/pcie/aer.c).
const severity = `(?P<fatal>(?:Corrected|Correctable|Uncorrected|Uncorrectable)(?: \((?:Non-)?Fatal\))?)`

// leading finds the device that a message begins with: "nvidia 0000:3b:00.0:",
// "NVRM: GPU 0000:3b:00.0:".
var leading = lazy.New(`^(?:NVRM: )?(?:GPU(?: at PCI:)? ?)?(?:[\w-]+ )?(?P<addr>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\b`)

// signatures are tried in order; the first that fits decides. The forms are
// those of the kernel and driver sources, which KernelEvent's kinds name.
var signatures = []signature{
	{kind: "sxid", contains: "SXid (", pattern: lazy.New(`SXid \(PCI:` + address + `\): (?P<code>\d+)(?:, (?P<fatal>Fatal|Non-fatal))?`)},
	{kind: "xid", contains: "NVRM: Xid (", pattern: lazy.New(`NVRM: Xid \((?:PCI:)?` + address + `[^)]*\): (?P<code>\d+)`)},
	{kind: "aer", contains: "AER: ", twin: "aer", pattern: lazy.New(`AER: (?:Multiple )?` + severity + ` error (?:message )?received(?:(?: from|:) ` + address + `)?`)},
	{kind: "aer", contains: "PCIe Bus Error: ", twin: "aer", pattern: lazy.New(`PCIe Bus Error: severity=` + severity)},
	{kind: "aer", contains: "DPC: containment event"},
	// drivers/pci/pcie/err.c, report_error_detected: only errors that are not
	// corrected get so far as to ask the device's driver.
	{kind: "aer", contains: "device has no AER-aware driver"},
	{kind: "aer", contains: "can't recover (no error_detected callback)"},
	{kind: "pcie-link", contains: "available PCIe bandwidth, limited by"},
	{kind: "pcie-link", contains: "pciehp", pattern: lazy.New(`Slot\([^)]*\): (?:Link Down|Card not present)`)},
	{kind: "dmar-fault", contains: "Request device", pattern: lazy.New(`DMAR: ?\[[^\]]*\] Request device \[?(?:0x)?` + address)},
	{kind: "amd-vi-fault", contains: "AMD-Vi: Event logged [", pattern: lazy.New(`AMD-Vi: Event logged \[\w+(?: device=` + address + `)?`)},
	{kind: "iommu-mode", contains: "iommu: Default domain type:"},
	{kind: "acs-disabled", contains: "disabled ACS redirect"},
	{kind: "bar", contains: "assigned to your NVIDIA device is invalid", pattern: lazy.New(`is invalid(?:.*\(PCI:` + address + `\))?`)},
	// amdgpu_device.c, amdgpu_device_resize_fb_bar: the BAR over the memory keeps
	// the size that the firmware gave it.
	{kind: "bar", contains: "Problem resizing BAR0 (-"},
	{kind: "bar", contains: "Not enough PCI address space for a large BAR"},
	{kind: "nvrm", contains: "RmInitAdapter failed"},
	{kind: "nvrm", contains: "NVRM: API mismatch: the client"},
	{kind: "nvrm", contains: "GPU has fallen off the bus"},
	{kind: "nvrm", contains: "requires use of the NVIDIA open kernel modules"},
	{kind: "nvrm", contains: "nvidia", pattern: lazy.New(`^nvidia(?:: probe of ` + address + `| \S+: probe with driver nvidia) failed`)},
	{kind: "nvrm", contains: "NVRM: The NVIDIA probe routine failed"},
	{kind: "amdgpu", contains: "hardware errors detected in", pattern: lazy.New(`[1-9]\d* (?:new )?(?P<fatal>correctable|uncorrectable|deferred) hardware errors detected`)},
	// amdgpu_xgmi.c and amdgpu_psp.c: the hive did not form.
	{kind: "amdgpu", contains: "XGMI: ", pattern: lazy.New(`XGMI: (?:[SG]et topology failure|[Ff]ailed to |node 0x[0-9a-f]+, can not match hive)`)},
	// kfd_device.c: the slot offers no atomic operations, so that ROCm does
	// without this GPU.
	{kind: "amdgpu", contains: "PCI rejects atomics"},
	// amdgpu_ras.c, amdgpu_ras_global_ras_isr: the interrupt of an error beyond
	// repair, whichever part of the GPU met it.
	{kind: "amdgpu", contains: "uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected"},
	{kind: "amdgpu", contains: "RAS Intr triggered, device disabled"},
	{kind: "amdgpu", contains: "device lost from bus"},
	{kind: "amdgpu", contains: "Poison is created"},
	{kind: "amdgpu", contains: "poison is consumed"},
	{kind: "amdgpu", contains: "reaches threshold value"},
	{kind: "amdgpu", contains: "Accelerator Check Architecture events logged"},
	{kind: "amdgpu", contains: "amdgpu", pattern: lazy.New(`GPU reset begin|GPU reset\(\d+\) failed|Mode[12] reset failed`)},
	{kind: "amdgpu", contains: "timeout, signaled seq="},
	{kind: "amdgpu", contains: "page fault (src_id:"},
	{kind: "amdgpu", contains: "amdgpu", pattern: lazy.New(`[hs]w_init of IP block <[^>]*> failed|Fatal error during GPU init|MES failed to respond to msg=|SMU: I'm not done`)},
	// drivers/base/dd.c: what the driver's start came to, as an errno. 12 is
	// ENOMEM, with which amdgpu_device_init answers where it cannot map the BAR of
	// the registers.
	{kind: "amdgpu", contains: "amdgpu", pattern: lazy.New(`^amdgpu(?:: probe of ` + address + `| \S+: probe with driver amdgpu) failed with error -(?P<code>\d+)`)},
	{kind: "amdgpu", contains: "qcm fence wait loop timeout"},
	{kind: "amdgpu", contains: "PCIe P2P access from peer device"},
	{kind: "oom", contains: "ut of memory", pattern: lazy.New(`[Oo]ut of memory.*: Kill(?:ed)? process \d+`)},
}

// launchCheck is what Xid 13 names where the GPU's scheduler refuses a kernel.
var launchCheck = lazy.New(`SKEDCHECK\d+`)

// counted is an event, with how often each of its forms came.
type counted struct {
	event facts.KernelEvent
	forms map[int]int
}

// log collects events from lines.
type log struct {
	found map[string]*counted
	order []*counted
	whole bool
	// apei is the severity of the firmware's error report under way.
	apei string
	// pending is a message that goes on in the next line, and seconds its time.
	pending string
	seconds float64
	// host, source and number are those of the line under way, where it is
	// from a text.
	host   string
	source string
	number int
	// seen counts the lines that told of an event.
	seen int
}

func newLog() *log {
	return &log{found: make(map[string]*counted), whole: true}
}

// Parse turns lines "seconds.micros message" into events, in order
// of time, equal ones counted. It is false when there were too many.
func Parse(text string) ([]facts.KernelEvent, bool) {
	log := newLog()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line[:min(len(line), maxLine)], "\r\n")
		at, message := splitTime(line, log.seconds)
		log.line(message, at)
	}
	log.flush()
	return log.events(), log.whole
}

// line reads one line without its time.
func (l *log) line(message string, at float64) {
	// /dev/kmsg writes a newline inside a record as an escape
	// (kernel/printk/printk.c, msg_add_ext_text).
	for part := range strings.SplitSeq(message, `\x0a`) {
		part = strings.TrimSpace(part)
		if l.pending != "" {
			if rest, ok := continuation(part); ok {
				part, at = l.pending+" "+rest, l.seconds
			} else {
				l.add(l.pending, l.seconds)
			}
		}
		l.pending, l.seconds = "", at
		if goesOn(part) {
			l.pending = part
		} else {
			l.add(part, at)
		}
	}
}

// flush takes a message that would go on, and does not.
func (l *log) flush() {
	l.add(l.pending, l.seconds)
	l.pending = ""
}

// splitTime takes the time off a line. A line without one goes on with the
// time of the line before.
func splitTime(line string, before float64) (float64, string) {
	head, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
	at, err := finite.Parse(head)
	if !ok || err != nil || !(at >= 0 && at < 1e10) || strings.Trim(head, "0123456789.") != "" {
		return before, line
	}
	return at, rest
}

// goesOn reports whether the NVIDIA driver goes on with this message in its
// next line (kernel-open/nvidia/nv-pci.c and the client version check).
func goesOn(message string) bool {
	return strings.HasSuffix(message, "assigned to your NVIDIA device is invalid:") ||
		strings.Contains(message, "NVRM: API mismatch: the client") && !strings.Contains(message, "kernel module has the version")
}

// continuation returns the part that a line adds to the message before it.
func continuation(message string) (string, bool) {
	rest, ok := strings.CutPrefix(message, "NVRM: ")
	return rest, ok && (strings.HasPrefix(rest, "BAR") || strings.Contains(rest, "this kernel module has the version"))
}

// add counts a message if it tells of an event.
func (l *log) add(message string, at float64) {
	if message == "" {
		return
	}
	if l.addFirmware(message, at) || l.addWindow(message, at) {
		return
	}
	for i, s := range signatures {
		if !strings.Contains(message, s.contains) {
			continue
		}
		event, ok := s.match(message)
		if !ok {
			continue
		}
		event.Kind, event.Seconds = s.kind, at
		form := s.twin
		if form == "" {
			form = strconv.Itoa(i)
		}
		// The checks of a kernel's descriptor (Xid 13) are told apart: many at
		// once mean something else than one.
		l.count(event, form+launchCheck.FindString(message), i, message)
		return
	}
	if word, ok := strings.CutPrefix(trailing(message, "Configured ACS to "), "0x"); ok {
		l.addACS(word, message, at)
	}
}

// addACS counts the newer form of "disabled ACS redirect". Bits 2, 3 and 5
// are request redirect, completion redirect and egress control (PCI_ACS_RR,
// PCI_ACS_CR, PCI_ACS_EC, include/uapi/linux/pci_regs.h).
func (l *log) addACS(word, message string, at float64) {
	const redirects = 0x04 | 0x08 | 0x20
	if control, err := strconv.ParseUint(word, 16, 16); err == nil && control&redirects == 0 {
		l.count(facts.KernelEvent{Kind: "acs-disabled", Address: leadingAddress(message), Seconds: at}, "acs", 0, message)
	}
}

// window is how the kernel words that a memory BAR (0 to 5) or the prefetchable
// window of a bridge (15, or 9 on kernels without SR-IOV) finds room or none:
// drivers/pci/setup-res.c and setup-bus.c, "BAR 1: no space for [mem size 0x...
// 64bit pref]" up to Linux 6.8, "BAR 1 [mem size 0x...]: can't assign; no space"
// and "bridge window [mem size 0x... 64bit pref]: ..." since (pci_resource_name).
// I/O ports, virtual functions and windows that are not prefetchable find no
// room on many a healthy machine.
var window = lazy.New(`^[\w-]+ ` + address + `: (?:BAR (?P<bar>[0-5]|9|15)|(?P<bridge>bridge window))(?: (?P<new>\[mem[^\]]*\]))?: ` +
	`(?P<what>can't assign; no space|failed to assign|no space for|assigned)(?: (?P<old>\[mem[^\]]*\]))?`)

// windowSize finds the size of a window: "[mem size 0x800000000 64bit pref]",
// or its first and last address.
var windowSize = lazy.New(`size 0x([0-9a-f]+)|0x([0-9a-f]+)-0x([0-9a-f]+)`)

// leastBridgeWindow is the least size at which a bridge's window without room
// is worth an event. Windows of a few MiB are what the kernel would like for
// empty slots; a GPU's memory needs 256 MiB at the least.
const leastBridgeWindow = 256 << 20

// addWindow follows the search for room in the address space. A window that
// found none and is assigned in a later pass, at the same size, is in order.
func (l *log) addWindow(message string, at float64) bool {
	if !strings.Contains(message, "BAR ") && !strings.Contains(message, "bridge window") {
		return false
	}
	groups := window.FindStringSubmatch(message)
	if groups == nil {
		return false
	}
	group := func(name string) string { return groups[window.SubexpIndex(name)] }
	resource := cmp.Or(group("new"), group("old"))
	if resource == "" {
		return false
	}
	event := facts.KernelEvent{Kind: "bar", Address: facts.Address(group("addr")), Seconds: at, SizeBytes: sizeOfWindow(resource)}
	part := cmp.Or(group("bar"), group("bridge"))
	switch n, err := strconv.Atoi(part); {
	case err != nil || n > 5:
		event.Kind, part = "bridge-window", "bridge window"
		if event.SizeBytes < leastBridgeWindow || !strings.Contains(resource, "pref") {
			return false
		}
	default:
		event.BAR = &n
	}
	form := "window " + part
	if group("what") == "assigned" {
		l.drop(event, form)
		return false
	}
	l.count(event, form, 0, message)
	return true
}

func sizeOfWindow(resource string) int64 {
	m := windowSize.FindStringSubmatch(resource)
	if m == nil {
		return 0
	}
	if m[1] != "" {
		size, err := strconv.ParseInt(m[1], 16, 64)
		if err != nil {
			return 0
		}
		return size
	}
	first, err1 := strconv.ParseUint(m[2], 16, 63)
	last, err2 := strconv.ParseUint(m[3], 16, 63)
	if err1 != nil || err2 != nil || last < first {
		return 0
	}
	return int64(last-first) + 1
}

// drop forgets a window without room that has found as much in the end.
func (l *log) drop(assigned facts.KernelEvent, form string) {
	key := eventKey(assigned, form)
	if c := l.found[key]; c != nil && assigned.SizeBytes >= c.event.SizeBytes {
		delete(l.found, key)
		l.order = slices.DeleteFunc(l.order, func(o *counted) bool { return o == c })
	}
}

// addFirmware follows the lines in which the kernel passes on a PCIe error
// that the firmware handled first: the severity comes before the device
// (drivers/firmware/efi/cper.c).
func (l *log) addFirmware(message string, at float64) bool {
	if !strings.Contains(message, "[Hardware Error]:") {
		return false
	}
	if s := trailing(message, "event severity: "); s != "" {
		l.apei = s
	}
	// The other line of this name, of vendor and device, holds no address.
	device := facts.Address(trailing(message, " device_id: "))
	if device == "" {
		return false
	}
	event := facts.KernelEvent{Kind: "aer", Address: device, Seconds: at}
	if l.apei != "" {
		fatal := l.apei == "fatal"
		event.Fatal = &fatal
	}
	l.count(event, "apei", 0, message)
	return true
}

// trailing returns what follows the marker, up to the next blank.
func trailing(message, marker string) string {
	_, rest, _ := strings.Cut(message, marker)
	word, _, _ := strings.Cut(rest, " ")
	return strings.TrimRight(word, ",;")
}

// match reads an event out of a message.
func (s signature) match(message string) (facts.KernelEvent, bool) {
	var event facts.KernelEvent
	if s.pattern != nil {
		groups := s.pattern.FindStringSubmatch(message)
		if groups == nil {
			return event, false
		}
		for i, name := range s.pattern.SubexpNames() {
			switch {
			case i >= len(groups) || groups[i] == "":
			case name == "addr":
				event.Address = facts.Address(groups[i])
			case name == "code":
				code, err := strconv.ParseUint(groups[i], 10, 31)
				if err != nil {
					return event, false
				}
				n := int(code)
				event.Code = &n
			case name == "fatal":
				event.Fatal = isFatal(groups[i])
			}
		}
	}
	if event.Address == "" {
		event.Address = leadingAddress(message)
	}
	return event, true
}

// isFatal says whether the words of a line call the event fatal; nil where
// they leave it open.
func isFatal(words string) *bool {
	var fatal bool
	switch {
	case strings.Contains(words, "Non-"):
	case strings.Contains(words, "Fatal"):
		fatal = true
	case strings.HasPrefix(words, "Correct"), words == "correctable":
	default:
		return nil
	}
	return &fatal
}

func leadingAddress(message string) string {
	if groups := leading.FindStringSubmatch(message); groups != nil {
		return facts.Address(groups[1])
	}
	return ""
}

// count adds one to an event, or begins it. Events are equal when kind, code,
// address, severity and form are.
func (l *log) count(event facts.KernelEvent, form string, line int, message string) {
	event.Host, event.Source, event.Line = l.host, l.source, l.number
	l.seen++
	key := eventKey(event, form)
	c := l.found[key]
	if c == nil {
		if len(l.order) == MaxEvents {
			l.whole = false
			return
		}
		event.Message = escape.Printable(message, maxMessage)
		c = &counted{event: event, forms: make(map[int]int, 1)}
		l.found[key] = c
		l.order = append(l.order, c)
	}
	c.forms[line]++
}

func eventKey(event facts.KernelEvent, form string) string {
	code, fatal := "", ""
	if event.Code != nil {
		code = strconv.Itoa(*event.Code)
	}
	if event.Fatal != nil {
		fatal = strconv.FormatBool(*event.Fatal)
	}
	return strings.Join([]string{event.Kind, code, event.Address, fatal, form, event.Host}, " ")
}

// events returns what was found. Of two forms that come along with each other
// the more frequent one counts.
func (l *log) events() []facts.KernelEvent {
	events := make([]facts.KernelEvent, 0, len(l.order))
	for _, c := range l.order {
		for _, n := range c.forms {
			c.event.Count = max(c.event.Count, n)
		}
		events = append(events, c.event)
	}
	slices.SortStableFunc(events, func(a, b facts.KernelEvent) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return events
}
