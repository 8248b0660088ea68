//go:build linux

package child

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func init() {
	Register("inside", func(_ context.Context, args json.RawMessage, _ func(any) error) error {
		var number int
		_ = json.Unmarshal(args, &number)
		CallOf("libReturned").Do(func() {})
		CallOf("libDies").Do(func() {
			if number == 0 {
				os.Exit(7)
			}
			_ = syscall.Kill(os.Getpid(), syscall.Signal(number))
			select {}
		})
		return nil
	})
	Register("backlog", func(_ context.Context, args json.RawMessage, send func(any) error) error {
		var n int
		_ = json.Unmarshal(args, &n)
		for i := range n {
			if err := send(i); err != nil {
				return err
			}
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return err
		}
		select {}
	})
}

// TestBlame checks, for every end of a child, what is known of it and every call under way, that a library is blamed
// only for what happened inside one of its calls or in a thread of its own, and never for a signal from outside.
func TestBlame(t *testing.T) {
	ends := []Result{{Exited: true}, {Exited: true, Code: 1}, {Exited: true, Code: 2}, {}}
	for _, name := range append(slices.Clone(crashSignals), "SIGKILL", "SIGTERM", "SIGHUP", "SIGINT", "SIGXCPU", "SIGPIPE", "SIGQUIT") {
		ends = append(ends, Result{Signal: name})
	}
	reports := []string{
		"", "panic: a bug\n", "\nruntime stack:\nruntime.throw\n",
		"SIGABRT: abort\nPC=0x1 m=5 sigcode=18446744073709551610\n\ngoroutine 0 [idle]:\n",
	}
	for _, name := range crashSignals {
		for _, code := range []int{0, 1, 2} {
			for _, where := range []string{"", strings.TrimPrefix(inCode, "\n")} {
				reports = append(reports, fmt.Sprintf("%s: x\nPC=0x46 m=0 sigcode=%d addr=0x0\n%s\ngoroutine 1\n", name, code, where))
			}
		}
	}
	stderrs := []string{
		"", "noise\n", "runtime/cgo: pthread_create failed: Resource temporarily unavailable\n", "SIGSEGV: the library says\n",
		"runtime: failed to create new OS thread (have 11 already; errno=11)\nfatal error: newosproc\n", "fatal error: out of memory\n",
	}
	blamed := 0
	for _, end := range ends {
		for _, report := range reports {
			if report != "" && end.Code != 2 {
				continue // The runtime exits with 2.
			}
			for _, stderr := range stderrs {
				for state := range 9 {
					r := end
					r.Stderr = stderr
					var rec record
					if state < 8 {
						rec = record{known: true, started: state&1 > 0, called: state&2 > 0, report: report}
						if state&4 > 0 {
							rec.inside = []string{"cuInit"}
						}
					} else { // There is no record.
						r.Stderr += report
					}
					r.judge(rec)
					switch outside := slices.Contains(crashSignals, r.Signal); {
					case r.Death == "":
						t.Errorf("%+v, %+v: no verdict", end, rec)
					case r.Death != DeathByLibrary:
						continue
					case end.Signal != "" && !outside, strings.Contains(report, "sigcode=0 "):
						t.Errorf("%+v, %+v: blamed for a signal from outside", end, rec)
					case len(rec.inside) == 0 && (!rec.called || !outside) && (rec.known || !strings.Contains(report, inCode)):
						t.Errorf("%+v, %+v: blamed without a call", end, rec)
					case strings.HasPrefix(report, "panic") || strings.HasPrefix(report, "\n"):
						t.Errorf("%+v, %+v: blamed for the runtime's death", end, rec)
					}
					blamed++
				}
			}
		}
	}
	expect.That(t, blamed != 0, "no library is ever blamed")
}

// TestInside checks that the calls under way survive the child's death.
func TestInside(t *testing.T) {
	for signal, want := range map[syscall.Signal]Result{
		0:               {Exited: true, Code: 7, Death: DeathByLibrary},
		syscall.SIGKILL: {Signal: "SIGKILL", Death: DeathByOther, Why: "such as by the kernel's OOM killer"},
		syscall.SIGTERM: {Signal: "SIGTERM", Death: DeathByOther, Why: "sent by another process, or because of a limit"},
		syscall.SIGSEGV: {Exited: true, Code: 2, Signal: "SIGSEGV", Death: DeathByOther, Why: "sent by another process, or because of a limit"},
	} {
		r := expect.Value(Run(t.Context(), Spec{Task: "inside", Args: int(signal), Deadline: 2 * time.Minute}))(t)
		want.Inside, want.Recorded = []string{"libDies"}, true
		r.Stdout, r.Stderr = "", ""
		expect.NoDiff(t, want, r, "signal %d", signal)
	}
}

// TestNothingIsLost checks that whatever a child wrote before it died is received,
// however slow the receiver is and however many there are at once.
func TestNothingIsLost(t *testing.T) {
	const messages = 2000
	count := 12
	if testing.Short() {
		count = 4
	}
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			got := 0
			r, err := Run(t.Context(), Spec{Task: "backlog", Args: messages, Receive: func(json.RawMessage) {
				if got++; got%(messages/4) == 0 {
					time.Sleep(400 * time.Millisecond) // Four of them are longer than any drain of a second.
				}
			}})
			expect.That(t, err == nil && r.Signal == "SIGKILL" && got == messages && r.Malformed == 0, "received %d of %d messages, %d malformed (%+v, %v)", got, messages, r.Malformed, r, err)
		})
	}
	all.Wait()
}

// FuzzReadRecord checks that no record crashes the parent, or is larger than what it may be.
func FuzzReadRecord(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0}, 0)
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255}, slotsAt)
	f.Add([]byte("SIGSEGV: x\nPC=0x1 m=1 sigcode=1\n"), recordBytes)
	f.Add([]byte("\xff\xfe"), namesAt)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		page := make([]byte, recordBytes+reportBytes)
		copy(page[min(max(at, 0), len(page)):], b)
		rec := readRecord(bytes.NewReader(page))
		expect.That(t, rec.known && len(rec.inside) <= slots && len(rec.report) <= reportBytes, "%+v", rec)
		for _, name := range rec.inside {
			expect.That(t, len(name) <= nameBytes, "%q", name)
		}
	})
}
