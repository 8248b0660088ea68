package kernellog

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// index finds the forms of which a message holds an anchor.
type index struct {
	// begun has a bit for each hash of the first bytes of an anchor.
	begun [1 << 10]uint64
	// anchors are those of all forms by their first bytes.
	anchors map[uint32][]anchor
}

// anchor is a literal of a form, which has a number.
type anchor struct {
	text string
	form int
}

// firstBytes of an anchor are looked up; no anchor is as short.
const firstBytes = 4

// slot is where the bit of four bytes is: Knuth's multiplicative hash, of which the upper
// half is taken.
func slot(b uint32) (word, bit uint32) {
	h := b * 2654435761 >> 16
	return h >> 6, h & 63
}

var forms = sync.OnceValue(func() *index {
	x := &index{anchors: make(map[uint32][]anchor)}
	for i, form := range message.KernelForms() {
		for _, text := range form.Anchors {
			begin := binary.LittleEndian.Uint32([]byte(text))
			word, bit := slot(begin)
			x.begun[word] |= 1 << bit
			x.anchors[begin] = append(x.anchors[begin], anchor{text, i})
		}
	}
	return x
})

// in appends the numbers of the forms of which a message holds an anchor, in their order.
func (x *index) in(message string, found []int) []int {
	for i := 0; i+firstBytes <= len(message); i++ {
		begin := uint32(message[i]) | uint32(message[i+1])<<8 | uint32(message[i+2])<<16 | uint32(message[i+3])<<24
		if word, bit := slot(begin); x.begun[word]&(1<<bit) == 0 {
			continue
		}
		for _, a := range x.anchors[begin] {
			if strings.HasPrefix(message[i:], a.text) && !slices.Contains(found, a.form) {
				found = append(found, a.form)
			}
		}
	}
	slices.Sort(found)
	return found
}

// driverField is the field that holds what stands before a leading address.
const driverField = "driver"

// leading finds the device that a message begins with, and its driver: "nvidia
// 0000:3b:00.0:", "NVRM: GPU 0000:3b:00.0:".
var leading = lazy.New(`^(?:NVRM: )?(?:GPU(?: at PCI:)? ?)?(?:([\w-]+) )?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\b`)

// device returns the address that a message begins with, and the driver before it.
func device(text string) (driver, address string) {
	// Few messages have an address there, and most of them are seen by a look.
	if head, _, _ := strings.Cut(text[:min(len(text), 64)], "("); strings.Count(head, ":") < 2 {
		return "", ""
	}
	groups := leading.FindStringSubmatch(text)
	if groups == nil {
		return "", ""
	}
	return groups[1], facts.Address(groups[2])
}

// classify finds the form of a message, of those of a kind where one is given, and makes
// an event of what it says. form is its id, or what it shares with its twins.
func classify(text, kind string) (event facts.KernelEvent, form string, ok bool) {
	var few [8]int
	for _, i := range forms().in(text, few[:0]) {
		row := message.KernelForms()[i]
		if kind != "" && row.Kind != kind {
			continue
		}
		event = facts.KernelEvent{ID: row.ID, Kind: row.Kind}
		sound := true
		if !row.Each(text, func(name, value string) { sound = set(&event, name, value) && sound }) || !sound {
			continue
		}
		driver, address := device(text)
		event.Address = cmp.Or(event.Address, address)
		if driver != "" {
			set(&event, driverField, driver)
		}
		return event, cmp.Or(row.Twin, row.ID), true
	}
	return facts.KernelEvent{}, "", false
}

// set gives an event what a group of its form matched. It is false for a number that is
// too large.
func set(event *facts.KernelEvent, name, value string) bool {
	number := func(to **int) bool {
		n, err := strconv.ParseUint(value, 10, 31)
		if err == nil {
			*to = new(int(n))
		}
		return err == nil
	}
	switch name {
	case "addr":
		event.Address = facts.Address(value)
	case "code":
		return number(&event.Code)
	case "bar":
		return number(&event.BAR)
	case "fatal":
		event.Fatal = isFatal(value)
	case "size":
		event.SizeBytes = sizeOfWindow(value)
	default:
		if event.Fields == nil {
			event.Fields = make(map[string]string)
		}
		event.Fields[name] = value
	}
	return true
}

// Identify classifies events that have no id, as those in facts of an older gpudoctor. It
// changes no event in place; where each has its id it returns what it was given.
func Identify(log *facts.KernelLogFacts) *facts.KernelLogFacts {
	lacksID := func(e facts.KernelEvent) bool { return e.ID == "" }
	if log == nil || !slices.ContainsFunc(log.Events, lacksID) {
		return log
	}
	identified := *log
	identified.Events = slices.Clone(log.Events)
	for i := range identified.Events {
		e := &identified.Events[i]
		if !lacksID(*e) {
			continue
		}
		if found, _, ok := classify(e.Message, e.Kind); ok {
			e.ID, e.Fields = found.ID, found.Fields
		}
	}
	return &identified
}
