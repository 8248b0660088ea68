package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// TransfersExitCode is what a command that makes transfers and nothing else
// ends with: 0 when every path that the driver offers carries data correctly at
// the speed of its links or the machine has no two GPUs, 1 when some path does
// not, 3 when some or all could not be tried.
func TransfersExitCode(d *Document) int {
	all := newPaths(d)
	switch t := d.Transfers; {
	case t != nil && (t.Outcome == probe.Hang || t.Outcome == probe.Error || t.Outcome == probe.Corrupt), all.wrong(), len(all.with(probe.Slow)) > 0:
		return 1
	case d.noPath(all):
		return 0
	case len(all.with(probe.OK)) == 0, len(all.with(probe.Unknown)) > 0:
		return 3
	}
	return 0
}

// noPath reports whether it is known that the machine has no two GPUs, and so
// no path between them.
func (d *Document) noPath(all paths) bool {
	if d.textsOnly || !d.Host.looked || d.unseen() != "" || len(all) > 0 {
		return false // What was sent may show a part of the machine.
	}
	return len(d.Host.GPUs) < 2 && (d.Transfers == nil || len(d.Transfers.Devices) <= len(d.Host.GPUs))
}

// WriteTransfers writes what became of the transfers, and nothing else; as
// JSON the probe's own report.
func (f Format) WriteTransfers(w io.Writer, d *Document, s Style) error {
	var b bytes.Buffer
	switch f.Name {
	case "json":
		raw, err := Marshal(d.Transfers)
		if err != nil {
			return fmt.Errorf("encode transfers: %w", err)
		}
		b.Write(raw)
	case "markdown":
		m := &markdown{b: &b, d: d}
		_, said := transfersLine(d, newPaths(d))
		m.put("%s\n", inline(said))
		m.matrix()
	default:
		t := newText(&b, d, s)
		t.head()
		if s.Verbose {
			t.times()
		}
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write transfers: %w", err)
	}
	return nil
}
