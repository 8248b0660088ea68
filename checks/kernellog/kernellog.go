// Package kernellog finds events that affect GPUs and PCIe in the lines of kernel logs.
package kernellog

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

const (
	// MaxEvents bounds the events that differ from each other.
	MaxEvents = 512
	// maxMessage bounds a message, in bytes, as KernelEvent promises.
	maxMessage = 300
	// maxLine bounds what is looked at of one line: the kernel's records have 1024 bytes and a prefix
	// (LOG_LINE_MAX, kernel/printk/printk.c).
	maxLine = 4 << 10
)

// counted is an event, with how often each of its forms came.
type counted struct {
	event facts.KernelEvent
	forms map[string]int
}

// Reader finds events in the lines of kernel logs: what dmesg, dmesg -T, journalctl -k or a syslog daemon writes, whole or cut.
type Reader struct {
	found map[string]*counted
	order []*counted
	whole bool
	// apei is the severity of the firmware's error report under way.
	apei string
	// pending is a message that goes on in the next line, and seconds its time.
	pending string
	seconds float64
	// host, source and number are those of the line under way, where it is from a text.
	host   string
	source string
	number int
	// seen counts the lines that reported an event.
	seen int
}

// NewReader returns a reader that has read nothing yet.
func NewReader() *Reader { return &Reader{found: make(map[string]*counted), whole: true} }

// Parse turns lines "seconds.micros message" into events, in order
// of time, equal ones counted. It is false when there were too many.
func Parse(text string) ([]facts.KernelEvent, bool) {
	r := NewReader()
	for line := range strings.Lines(text) {
		r.Line(line, "", 0)
	}
	return r.Events()
}

// Line reads a line, and reports whether it reports an event or belongs to one. source and number are where it stands.
func (l *Reader) Line(line, source string, number int) bool {
	seconds, host, message := Message(line)
	if source != l.source {
		l.flush()
	}
	before, seen := len(l.order), l.seen
	l.host, l.source, l.number = host, source, number
	l.message(message, seconds)
	return l.pending != "" || len(l.order) != before || l.seen != seen
}

// message reads one line without what stands before its message.
func (l *Reader) message(message string, at float64) {
	// /dev/kmsg writes a newline inside a record as an escape (kernel/printk/printk.c, msg_add_ext_text).
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
func (l *Reader) flush() {
	l.add(l.pending, l.seconds)
	l.pending = ""
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

// add counts a message if it reports an event.
func (l *Reader) add(message string, at float64) {
	if message == "" {
		return
	}
	l.apei = cmp.Or(severityForm.First(message), l.apei)
	if event, form, ok := classify(message); ok && l.completes(&event) {
		event.Seconds = at
		l.count(event, form, message)
		return
	}
	l.assigned(message)
}

// completes adds to an event what the lines before it tell, and reports whether it is
// one: some forms of message are worth an event in some cases only.
func (l *Reader) completes(event *facts.KernelEvent) bool {
	switch event.ID {
	case "kernel-aer-firmware":
		if l.apei != "" {
			event.Fatal = new(l.apei == "fatal")
		}
	case windowForm:
		return event.SizeBytes >= leastBridgeWindow
	case "kernel-acs-configured":
		control, err := strconv.ParseUint(event.Fields["acs"], 16, 16)
		return err == nil && control&redirects == 0
	}
	return true
}

// The forms of what found no room; what it is called once it has room is read by the code.
const (
	barForm    = "kernel-bar-no-room"
	windowForm = "kernel-bridge-window-no-room"
)

// redirects are the bits of ACS that redirect: request redirect, completion redirect and
// egress control (PCI_ACS_RR, PCI_ACS_CR, PCI_ACS_EC, include/uapi/linux/pci_regs.h).
const redirects = 0x04 | 0x08 | 0x20

// leastBridgeWindow is the least size at which a bridge's window without room is worth an event: a GPU's memory needs
// 256 MiB, and the kernel would like a few MiB for empty slots.
const leastBridgeWindow = 256 << 20

// room is how the kernel words that a BAR or the window of a bridge has room in the end,
// before and since Linux 6.8, as the rows for those without it.
var room = lazy.New(`^[\w-]+ ((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?): (?:BAR ([0-5])|BAR (?:9|15)|bridge window)` +
	`(?: \[mem ([^\]]*)\]: assigned|: assigned \[mem ([^\]]*)\])`)

// assigned drops the event of a BAR or window that found no room and is assigned in a
// later pass, at the same size: it is in order.
func (l *Reader) assigned(message string) {
	if !strings.Contains(message, ": assigned") {
		return
	}
	groups := room.FindStringSubmatch(message)
	if groups == nil {
		return
	}
	event := facts.KernelEvent{ID: windowForm, Address: facts.Address(groups[1]), SizeBytes: sizeOfWindow(cmp.Or(groups[3], groups[4]))}
	if bar, err := strconv.Atoi(groups[2]); err == nil {
		event.ID, event.BAR = barForm, &bar
	}
	key := l.key(event, event.ID)
	if c := l.found[key]; c != nil && event.SizeBytes >= c.event.SizeBytes {
		delete(l.found, key)
		l.order = slices.DeleteFunc(l.order, func(o *counted) bool { return o == c })
	}
}

// windowSize finds the size of a window: "size 0x800000000 64bit pref", or its first and last address.
var windowSize = lazy.New(`size 0x([0-9a-f]+)|0x([0-9a-f]+)-0x([0-9a-f]+)`)

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

// severityForm is the line in which the kernel passes on how severe an error is that the firmware
// handled first: it comes before that of the device (drivers/firmware/efi/cper.c).
var severityForm = lazy.New(`\[Hardware Error\]:.*event severity: ([^ ,;]+)`)

// isFatal says whether the words of a line call the event fatal; nil if they leave it open.
func isFatal(words string) *bool {
	switch isNot := strings.Contains(words, "Non-"); {
	case !isNot && strings.Contains(words, "Fatal"):
		return new(true)
	case isNot, strings.HasPrefix(words, "Correct"), words == "correctable":
		return new(false)
	}
	return nil
}

// count adds one to an event, or begins it. Events are equal when their form is, and all
// else that the form takes out of the line.
func (l *Reader) count(event facts.KernelEvent, form, message string) {
	event.Host, event.Source, event.Line = l.host, l.source, l.number
	l.seen++
	key := l.key(event, form)
	c := l.found[key]
	if c == nil {
		if len(l.order) == MaxEvents {
			l.whole = false
			return
		}
		event.Message = escape.Printable(message, maxMessage)
		c = &counted{event: event, forms: make(map[string]int, 1)}
		l.found[key] = c
		l.order = append(l.order, c)
	}
	c.forms[event.ID]++
}

// key distinguishes events: by their form, and by all else that it takes out of the line but the driver.
func (l *Reader) key(e facts.KernelEvent, form string) string {
	fields := maps.Clone(e.Fields)
	delete(fields, driverField)
	raw, _ := json.Marshal(facts.KernelEvent{ID: form, Code: e.Code, BAR: e.BAR, Fatal: e.Fatal, Address: e.Address, Fields: fields, Host: l.host}) // It has no value that fails.
	return string(raw)
}

// Events returns what was found in all lines so far, in order of the time since boot as far as lines tell it. Of two forms that
// come along with each other the more frequent one counts. It is false when there were more events than are kept.
func (l *Reader) Events() ([]facts.KernelEvent, bool) {
	l.flush()
	events := make([]facts.KernelEvent, 0, len(l.order))
	for _, c := range l.order {
		for _, n := range c.forms {
			c.event.Count = max(c.event.Count, n)
		}
		events = append(events, c.event)
	}
	slices.SortStableFunc(events, func(a, b facts.KernelEvent) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return events, l.whole
}
