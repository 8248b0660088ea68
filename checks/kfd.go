package checks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
)

// The values of AMDDriver.KFD.
const (
	kfdOK         = "ok"
	kfdAbsent     = "absent"
	kfdUnreadable = "unreadable"
	kfdPartial    = "partial"
)

// kfdNode is a node that is a GPU or a partition of one.
type kfdNode struct {
	number     int
	id         int64
	properties map[string]uint64
}

// kfdTopology is the readable part of the topology.
type kfdTopology struct {
	// state is a value of AMDDriver.KFD; empty if a recording does not show it.
	state string
	// nodes are those of GPUs, sorted by number.
	nodes []kfdNode
	// unread counts the nodes that may not be read, or cannot be identified.
	unread int
	err    error
}

// readKFD reads the nodes of the topology. In a container, those of GPUs that it was not given are EPERM
// (kfd_devcgroup_check_permission, kfd_topology.c).
func readKFD(ctx context.Context, h *host.Host) *kfdTopology {
	t := &kfdTopology{}
	names, err := h.Dir(kfdNodes)
	switch {
	case errors.Is(err, host.ErrNotRecorded):
		return t
	case errors.Is(err, fs.ErrNotExist):
		t.state, t.err = kfdAbsent, err
		return t
	case err != nil:
		t.state, t.err = kfdUnreadable, err
		return t
	}
	t.state = kfdOK
	numbers := kfdNumbers(names)
	if len(numbers) > maxKFDNodes {
		numbers = numbers[:maxKFDNodes]
		t.state = kfdPartial
	}
	for _, n := range numbers {
		if ctx.Err() != nil {
			t.state = kfdPartial
			break
		}
		dir := kfdNodes + "/" + strconv.Itoa(n)
		id, err := h.Int(dir + "/gpu_id")
		if err == nil && id == 0 {
			continue // A processor.
		}
		var b []byte
		if err == nil {
			b, err = h.Read(dir + "/properties")
		}
		properties := parseKFDProperties(b)
		_, located := properties["location_id"]
		if err != nil || id < 0 || !located {
			t.unread++
			t.state = kfdPartial
			continue
		}
		t.nodes = append(t.nodes, kfdNode{number: n, id: id, properties: properties})
	}
	return t
}

// kfdNumbers returns the names that are numbers, sorted.
func kfdNumbers(names []string) []int {
	var numbers []int
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 31); err == nil {
			numbers = append(numbers, int(n))
		}
	}
	slices.Sort(numbers)
	return numbers
}

// parseKFDProperties reads "name value" lines of decimal numbers (sysfs_show_32bit_prop, kfd_topology.c). A last
// line without its end was truncated and is left out.
func parseKFDProperties(b []byte) map[string]uint64 {
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	properties := make(map[string]uint64)
	for line := range bytes.Lines(b) {
		name, value, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			properties[name] = n
		}
	}
	return properties
}

// address is the PCI address that a node names. location_id is bus, device and function in its low 16 bits; the number
// of a partition is above them or, in some versions, instead of the function (kfd_topology_add_device, kfd_topology.c).
func (n *kfdNode) address() string {
	location := n.properties["location_id"]
	return fmt.Sprintf("%04x:%02x:%02x.%x", n.properties["domain"]&math.MaxUint32, location>>8&0xff, location>>3&0x1f, location&7)
}

// architecture is the name of the instruction set: gfx_target_version 90402 is gfx942, 90010 gfx90a.
func (n *kfdNode) architecture() string {
	v := n.properties["gfx_target_version"]
	major, minor, step := v/10000, v/100%100, v%100
	if major == 0 || major > 99 || minor > 15 || step > 15 {
		return ""
	}
	return fmt.Sprintf("gfx%d%x%x", major, minor, step)
}
