package kernellog

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// Anchors are literals of which each line holds one that can tell of an event, or that belongs to one.
func Anchors() []string {
	anchors := []string{"NVRM: BAR", ": assigned", "[Hardware Error]:"}
	for _, form := range message.KernelForms() {
		anchors = append(anchors, form.Anchors...)
	}
	slices.Sort(anchors)
	return slices.Compact(anchors)
}

// prefix is what may stand before a kernel message: facility and level of
// dmesg -x ("kern  :err   :"), the time of a syslog daemon or of journalctl with
// the host ("Aug 19 10:21:07 node7 kernel:", "2025-08-19T10:21:07+0200 node7
// kernel:") or dmesg's own ISO time, the level of a raw log ("<4>"), the time
// since boot ("[   12.803392]", or bare), that of dmesg -T ("[Tue Aug 19 10:21:07
// 2025]") and of dmesg -e ("[Jan21 10:15]", "[  +0.000844]" after the line
// before), the processor ("[    C12]"), and "kernel:" again.
var prefix = lazy.New(`^\s*(?:[a-z]+ *:[a-z]+ *: )?(?:(?:\p{L}{3,5}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*)\s+(?:(?P<host>[A-Za-z0-9][\w.-]*)\s+kernel(?:\[\d*\])?:\s*)?)?` +
	`(?:kern\s*:\s*\w+\s*:\s*)?(?:<\d{1,3}>)?\s*(?:\[\s*(?P<seconds>\d{1,9}\.\d{1,9})\s*\]|(?P<bare>\d{1,9}\.\d{1,9})\s|\[[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}\]|\[[A-Z][a-z]{2} {0,2}\d{1,2} \d\d:\d\d\]|\[\s*\+\d{1,9}\.\d{1,9}\])?` +
	`\s*(?:\[\s*[CT]\d+\]\s*)?(?:kernel:\s*)?`)

// Message splits a line of a kernel log into its time since boot, the
// host and the message. Of what is missing there is nothing.
func Message(line string) (seconds float64, host, message string) {
	line = line[:min(len(line), maxLine)]
	m := prefix.FindStringSubmatch(line)
	if m == nil {
		return 0, "", line
	}
	if at, err := facts.ParseFloat(m[prefix.Get().SubexpIndex("seconds")] + m[prefix.Get().SubexpIndex("bare")]); err == nil {
		seconds = at
	}
	return seconds, m[prefix.Get().SubexpIndex("host")], strings.TrimSpace(line[len(m[0]):])
}
