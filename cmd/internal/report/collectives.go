package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// CollectivesExitCode is what a command that runs collectives and nothing else ends with: 0 when they
// are correct as the environment is configured, not slower than the links allow, and no arm
// delivered wrong data; 1 when they are not; 3 when they could not be tried.
func CollectivesExitCode(d *Document) int {
	switch c := d.Collectives; {
	case c == nil:
		return 3
	case c.Outcome.Failed(), c.Outcome == probe.Slow, slices.ContainsFunc(c.Arms, func(a probe.Arm) bool { return a.Outcome == probe.Corrupt || a.Outcome == probe.Hang }):
		return 1
	case c.Outcome != probe.OK || len(c.Untried) > 0 || len(c.Arms) == 0:
		return 3
	}
	return 0
}

// WriteCollectives writes what collectives did, and nothing else; as JSON the probe's own report. With all, each operation
// of each arm is told, not only those of the first.
func WriteCollectives(w io.Writer, format string, c *probe.Collectives, all bool) error {
	if format == "json" {
		return lines.WriteJSON(w, lines.Filled(c))
	}
	t := newText(&view{}, Style{Verbose: all})
	t.write("collectives", lines.Clean(c, false))
	_, err := w.Write(t.B.Bytes())
	return err
}

// inColumns are rows as lines of a table.
func inColumns(rows [][]string) []string {
	return strings.Split(strings.TrimSuffix(lines.Table(rows), "\n"), "\n")
}

func armSettings(a *probe.Arm) string {
	all := lines.Map(slices.Sorted(maps.Keys(a.Set)), func(name string) string { return name + "=" + a.Set[name] })
	if len(a.Unset) > 0 {
		all = append(all, "without "+strings.Join(a.Unset, ", "))
	}
	return strings.Join(all, " ")
}

// transports sums the transports up: "p2p-cumem 8 channels, shm 2 channels".
func transports(a *probe.Arm) string {
	count := map[string]int{}
	for _, t := range a.Transports {
		count[strings.TrimSpace(t.Kind+" "+t.Network)] += t.Channels
	}
	all := lines.Map(slices.Sorted(maps.Keys(count)), func(kind string) string { return fmt.Sprintf("%s %d", kind, count[kind]) })
	if a.NVLS != nil && *a.NVLS {
		all = append(all, "nvls")
	}
	return strings.Join(all, ", ")
}

func armRows(c *probe.Collectives) []string {
	rows := [][]string{{"arm", "outcome", "all-reduce GB/s", "channels by transport", "seconds", "settings"}}
	for i := range c.Arms {
		a := &c.Arms[i]
		most, rate := 0.0, ""
		for _, op := range a.Operations {
			if op.Name == probe.AllReduce && op.BusGBps != nil && *op.BusGBps > most {
				most = *op.BusGBps
				rate = lines.Rate(most)
			}
		}
		rows = append(rows, []string{a.Name, string(a.Outcome), rate, transports(a), fmt.Sprintf("%.1f", a.Milliseconds/1e3), armSettings(a)})
	}
	return inColumns(rows)
}

func operationRows(a probe.Arm) []string {
	rows := [][]string{{"collective", "bytes", "outcome", "µs", "bus GB/s"}}
	for _, op := range a.Operations {
		row := []string{op.Name, fmt.Sprint(op.Bytes), string(op.Outcome), "", ""}
		if op.Microseconds != nil {
			row[3] = lines.Microseconds(*op.Microseconds)
		}
		if op.BusGBps != nil {
			row[4] = lines.Rate(*op.BusGBps)
		}
		rows = append(rows, row)
	}
	return inColumns(rows)
}

// failedArms are the arms that failed, those that failed alike together.
func failedArms(c *probe.Collectives) [][]probe.Arm {
	bad := lines.Filter(c.Arms, func(a probe.Arm) bool { return a.Outcome != probe.OK })
	return lines.Grouped(bad, func(a probe.Arm) string { return a.Reason })
}

// TransfersExitCode is what a command that makes transfers and nothing else ends with: 0 when every path that the
// driver offers carries data correctly at the speed of its links, or there is no pair of GPUs; 1 when some transfer
// fails or is slow; 3 when some or all could not be tried.
func TransfersExitCode(d *Document) int {
	switch v := &d.Verdict; {
	case d.failures(d.Transfers) > 0, countTransfers(d.Transfers, isSlow) > 0:
		return 1
	case v.has(ReasonProbe), v.has(ReasonUntried), v.has(ReasonTexts), v.has(ReasonUnread), !d.Host.looked:
		return 3
	}
	return 0
}

// TransferFormats are the names of the formats in which transfers, collectives or settings alone are written, the default first.
var TransferFormats = []string{"text", "json"}

// WriteTransfers writes what became of the transfers, and nothing else; as JSON the probe's own report.
func WriteTransfers(w io.Writer, format string, d *Document, s Style) error {
	if format == "json" {
		return lines.WriteJSON(w, lines.Filled(d.Transfers))
	}
	t := newText(newView(d, s.ASCII), s)
	t.write("transfers", t.v)
	_, err := w.Write(t.B.Bytes())
	return err
}
