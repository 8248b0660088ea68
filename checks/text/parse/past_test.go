package parse

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestDates checks that each day is read in each form of a date, alone and in a line, and that no other number is one.
func TestDates(t *testing.T) {
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	forms := []string{
		"2006-01-02 15:04:05", "2006/01/02 15:04:05", "2006-01-02T15:04:05.123Z", "Mon, 02 Jan 2006 15:04:05 +0000", "Mon Jan _2 15:04:05 2006",
		"Mon Jan _2 15:04:05 UTC 2006", "2 January 2006", "Jan 2, 2006", "02-01 x", "W0102 15:04:05.123", "INFO 01-02 15:04:05 [a.py:1]", "Jan _2 15:04:05 node7 kernel:", "2. Jan",
		"02.01.2006 15:04", "2.1.2006, 15:04", "02-Jan-2006 15:04",
	}
	for day := time.Date(2024, 1, 1, 1, 2, 3, 0, time.UTC); day.Year() < 2026; day = day.AddDate(0, 0, 1) {
		for _, form := range forms {
			for _, line := range []string{"%s", "[%s] word", "History (%s, of last week)", "  - %s: 3 hosts"} {
				line = fmt.Sprintf(line, day.Format(form))
				d, ok := dateIn(line)
				headed := strings.HasPrefix(form, "W0") || strings.HasPrefix(form, "INFO")
				switch {
				case form == "02-01 x" || headed && !ok && !strings.HasPrefix(line, form[:1]):
					expect.Must(t, !ok, "%q is read as %s", line, d)
				case !ok || d.month != int(day.Month()) || d.day != day.Day() || d.year != 0 && d.year != day.Year() || d.year == 0 && strings.Contains(form, "2006"):
					t.Fatalf("%q is read as %s, %t", line, d, ok)
				case strings.Contains(form, "15:04"):
					expect.Must(t, d.minute == 60*day.Hour()+day.Minute(), "%q: the minute is %d", line, d.minute)
				}
			}
		}
	}
	for _, line := range []string{
		"", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024", "Linux version 6.8.0 (gcc) #1 SMP Fri Mar 1 10:00:00 UTC 2024",
		"$ journalctl -k --since 2024-08-01", "busbw 2021.44 GB/s", "may 12 ranks", "Marked 3 GPUs", "10.20.30.40", "2024-13-01", "2024-11-41",
	} {
		d, ok := dateIn(line)
		expect.That(t, !ok, "%q is read as %s", line, d)
	}
}

// TestDays checks that days between dates are counted in one direction, and none where a year is open and the dates are far apart.
func TestDays(t *testing.T) {
	at := func(year int, day time.Time) date { return date{year: year, month: int(day.Month()), day: day.Day()} }
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 365 {
		for j := range 365 {
			a, b := first.AddDate(0, 0, i), first.AddDate(0, 0, j)
			n := at(2025, a).days(at(2025, b))
			expect.Must(t, n == j-i, "%s to %s: %d days", a, b, n)
			open := at(2025, a).days(at(0, b))
			expect.Must(t, open == at(0, a).days(at(2025, b)) && (open == j-i || open == 0 && j-i > halfYear), "%s to %s without a year: %d days", a, b, open)
		}
	}
}

// TestOver checks which texts are of somebody who closes a case. Who solved something may tell by what.
func TestOver(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Subject: [CLOSED] gpu-17 dropped a GPU\n": true, "Subject: [hpc] gpu-n09 back in production\n": true, "Hello,\nto close the ticket of the 3rd:\n": true,
		"Closing note for the record.\n": true, "Subject: [SOLVED] all-reduce hangs\n": false, "socket closed\n": false, "to close the connection\n": false,
		"## fix(watch): reasons of link errors\n": true, "fix(xid): severity\n": true, "# fix the hang\n": false, "fix: reboot\n": false,
		"- [x] I have read the contributing guidelines\n": true, "- [ ] I have read the contributing guidelines\n": false, "Fixes #34049.\n": true, "It fixes #3\n": false,
	} {
		expect.That(t, datesOf(text).over == want, "%q: over %v, want %v", text, !want, want)
	}
}

// TestBygone checks which lines are quoted of what did not happen, or happened on purpose.
func TestBygone(t *testing.T) {
	t.Parallel()
	xid := `NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error`
	for text, want := range map[string][]int{
		"diff --git a/x b/x\n@@ -1 +1 @@\n+\t\"" + xid + "\",\nThen it came:\n" + xid + "\n": {1, 2, 3},
		"> diff --git a/x b/x\n> +" + xid + "\n> " + xid + "\n":                              {1, 2},
		"--- good.log\n+++ bad.log\n+" + xid + "\n":                                          nil,
		"rank 1: killed by the test\nrank 1: killed\n":                                       {1},
		"We have no report of a hang.\nWe have a report of a hang.\n":                        {1},
		"RuntimeError: Too many open files. Work is no longer possible.\n":                   nil,
		"What the old log says:\n```\n" + xid + "\n```\n" + xid + "\n":                       {1, 3},
	} {
		expect.NoDiff(t, fmt.Sprint(want), fmt.Sprint(datesOf(text).bygone), "%q", text)
	}
}
