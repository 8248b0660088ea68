package kernellog

import (
	"cmp"
	"strconv"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// forms finds the forms of which a message holds an anchor.
var forms = sync.OnceValue(func() *message.AnchorSet {
	var all [][]string
	for _, form := range message.KernelForms() {
		all = append(all, form.Anchors)
	}
	return message.NewAnchorSet(all)
})

// driverField is the field that holds what stands before a leading address.
const driverField = "driver"

// leading finds the device that a message begins with, and its driver: "nvidia
// 0000:3b:00.0:", "NVRM: GPU 0000:3b:00.0:".
var leading = lazy.New(`^(?:NVRM: )?(?:GPU(?: at PCI:)? ?)?(?:([\w-]+) )?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\b`)

// classify finds the form of a message, and makes
// an event of what it says. form is its id, or what it shares with its twins.
func classify(text string) (event facts.KernelEvent, form string, ok bool) {
	var few [8]uint16
	for _, i := range forms().In([]byte(text), few[:0]) {
		row := message.KernelForms()[i]
		event = facts.KernelEvent{ID: row.ID, Kind: row.Kind}
		fields, ok := row.Match(text)
		for name, value := range fields {
			ok = set(&event, name, value) && ok
		}
		if !ok {
			continue
		}
		if m := leading.FindStringSubmatch(text); m != nil {
			event.Address = cmp.Or(event.Address, facts.Address(m[2]))
			if m[1] != "" {
				set(&event, driverField, m[1])
			}
		}
		return event, cmp.Or(row.Twin, row.ID), true
	}
	return facts.KernelEvent{}, "", false
}

// set gives an event what a group of its form matched. It is false for a number that is too large.
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
		facts.Put(&event.Fields, name, value)
	}
	return true
}
