package engine

import (
	"fmt"
	"math"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/drive"
)

// hostCopies copies between each GPU and pinned memory of each NUMA node, so
// that a GPU's near node can be told from its far one.
func (e *engine) hostCopies() {
	for _, node := range memoryNodes() {
		name := nodeName(node)
		b, free, err := nodeMemory(node, wakeBytes)
		if err != nil { // The kernel forbids to choose a node, or the node is full.
			e.unknownNode(name, err)
			continue
		}
		e.onNode(b, name)
		free()
		if e.broken != nil {
			return
		}
	}
}

// unknownNode records for every GPU that nothing could be tried with the memory of a node.
func (e *engine) unknownNode(name string, err error) {
	for _, g := range e.alive() {
		for _, t := range bothHostCopies(name, g) {
			t.Outcome, t.Reason, t.Cause = probe.Unknown, err.Error(), probe.CauseUnavailable
			e.report(t)
		}
	}
}

func bothHostCopies(name string, g *gpu) []*probe.Transfer {
	return []*probe.Transfer{
		{Test: probe.TestHostToDevice, Source: name, Destination: g.Address, Outcome: probe.OK},
		{Test: probe.TestDeviceToHost, Source: g.Address, Destination: name, Outcome: probe.OK},
	}
}

// nodeName is the name of a node's memory in reports; -1 is wherever the kernel puts it.
func nodeName(node int) string {
	if node < 0 {
		return "host"
	}
	return fmt.Sprintf("node%d", node)
}

// onNode copies between every GPU and one buffer of host memory.
func (e *engine) onNode(b []byte, name string) {
	alive := e.alive()
	if len(alive) == 0 || e.d.SetCurrent(alive[0].context) != nil {
		return
	}
	if err := e.d.RegisterHost(b); err != nil {
		e.unknownNode(name, err)
		return
	}
	for _, g := range alive {
		for _, t := range bothHostCopies(name, g) {
			if e.leaves(t) || e.broken != nil {
				continue
			}
			e.send(message{Begin: t})
			if err := e.hostCopy(t, g, b); err != nil {
				setError(t, err)
				e.broken = e.usable(err, g)
			}
			e.report(t)
		}
	}
	if e.broken == nil && e.d.SetCurrent(alive[0].context) == nil {
		_ = e.d.UnregisterHost(b) // The end of the process does it as well.
	}
}

// hostCopy copies one way, times it and compares every byte.
func (e *engine) hostCopy(t *probe.Transfer, g *gpu, b []byte) error {
	n := min(uint64(len(b)), g.size)
	if g.kernels == nil {
		n = min(n, hostBytes)
	}
	b = b[:n]
	t.Bytes = int64(n)
	s := e.seed(t.Test, e.index(g.Address), 0, 0)
	toDevice := t.Test == probe.TestHostToDevice
	if toDevice {
		drive.FillHost(b, s)
		if err := e.blank(g, g.in, n, guardBytes); err != nil {
			return err
		}
	} else {
		drive.FillHost(b, drive.Poison)
		if err := e.fill(g, g.in, n, s); err != nil {
			return err
		}
	}
	put := func() error {
		if toDevice {
			return e.d.CopyToDevice(g.in, b, g.Stream)
		}
		return e.d.CopyToHost(b, g.in, g.Stream)
	}
	if err := put(); err != nil {
		return err
	}
	seconds, err := e.quicker(g, put)
	if err != nil {
		return err
	}
	if toDevice {
		if err := e.verify(t, areaOf(g, g.in, n, s, guardBytes)); err != nil {
			return err
		}
	} else {
		t.Verified = "host"
		if c := drive.CompareHost(b, s); c.Bad > 0 {
			t.Outcome, t.BadBytes, t.FirstBad, t.GBps, t.Found = probe.Corrupt, int64(8*c.Bad), new(int64(8*c.First)), nil, drive.FoundOther
			t.Reason = fmt.Sprintf("%d of %d bytes in host memory differ from the GPU's memory", t.BadBytes, n)
		}
	}
	setRate(t, hostTimes*n, seconds, most(g))
	return nil
}

// quicker times copies twice and returns the quicker time: what else the machine does only makes them slower.
func (e *engine) quicker(g *gpu, put func() error) (float64, error) {
	best := math.Inf(1)
	for range 2 {
		seconds, err := e.timed(g, hostTimes, func(uint64, gpudriver.Stream) error { return put() })
		if err != nil || !drive.Usable(seconds) {
			return seconds, err
		}
		best = min(best, seconds)
	}
	return best, nil
}
