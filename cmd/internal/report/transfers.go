package report

import (
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

// TransferFormats are the names of the formats in which transfers or collectives alone are written, the default first:
// check -o FILE.md and FILE.html have them as well.
var TransferFormats = []string{"text", "json"}

// WriteTransfers writes what became of the transfers, and nothing else; as JSON the probe's own report.
func WriteTransfers(w io.Writer, format string, d *Document, s Style) error {
	if format == "json" {
		return lines.WriteJSON(w, d.Transfers)
	}
	t := newText(newView(d, s.ASCII), s)
	t.write("transfers", t.v)
	_, err := w.Write(t.B.Bytes())
	return err
}
