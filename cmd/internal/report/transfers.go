package report

import (
	"bytes"
	"fmt"
	"io"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// TransfersExitCode is what a command that makes transfers and nothing else
// ends with: 0 when every path that the driver offers carries data correctly at
// the speed of its links, or there is no pair of GPUs; 1 when some transfer fails
// or is slow; 3 when some or all could not be tried.
func TransfersExitCode(d *Document) int {
	switch v := &d.Verdict; {
	case d.Transfers != nil && failures(d) > 0, slowTransfers(d.Transfers) > 0:
		return 1
	case v.has(ReasonProbe), v.has(ReasonUntried), v.has(ReasonTexts), v.has(ReasonUnread), !d.Host.looked:
		return 3
	}
	return 0
}

// WriteTransfers writes what became of the transfers, and nothing else; as
// JSON the probe's own report.
func (f Format) WriteTransfers(w io.Writer, d *Document, s Style) error {
	var b bytes.Buffer
	switch f.Name {
	case "json":
		raw, err := lines.JSON(d.Transfers)
		if err != nil {
			return fmt.Errorf("encode transfers: %w", err)
		}
		b.Write(raw)
	case "markdown":
		(&markdown{view: newView(d, false), extent: extents[0]}).write(&b, "transfers")
	case "html":
		writeTransfersHTML(&b, d)
	default:
		t := newText(&b, newView(d, s.ASCII), s)
		t.machine()
		t.transfers()
		if s.Verbose {
			t.times()
		}
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write transfers: %w", err)
	}
	return nil
}
