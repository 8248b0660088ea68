package checks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// gatheringOn is a gathering of facts about a host with the doors of one.
func gatheringOn(h *host.Host, f *facts.Facts) *gather.Gathering {
	opts := gather.Options{Deadline: deadline.Check, Progress: func(string) {}}
	g := gather.New(h, f, opts)
	newDoors(h, opts).open(context.Background(), g)
	return g
}

// sectionsOf are the sections of a document, as JSON, by name.
func sectionsOf(t *testing.T, f *facts.Facts) map[string]string {
	t.Helper()
	text := expect.Value(json.Marshal(f))(t)
	var raw map[string]json.RawMessage
	expect.NoError(t, json.Unmarshal(text, &raw))
	sections := make(map[string]string, len(raw))
	for name, text := range raw {
		sections[name] = string(text)
	}
	return sections
}

// withSections is a document with those sections of another one that keep says, and nothing that the two share.
func withSections(t *testing.T, f *facts.Facts, keep func(section string) bool) *facts.Facts {
	t.Helper()
	text := expect.Value(json.Marshal(f))(t)
	var own facts.Facts
	expect.NoError(t, json.Unmarshal(text, &own))
	v := reflect.ValueOf(&own).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if isCheck(name) && !keep(name) {
			v.Field(i).SetZero()
		}
	}
	return &own
}

func isCheck(section string) bool {
	return slices.ContainsFunc(All, func(c *gather.Check) bool { return c.Name == section })
}

// TestSectionsApart runs each check on the facts of each recorded machine. It must
// leave the sections of all other checks as they were, also where these know less than
// it does, and must find the same where it is given only those that it comes after.
func TestSectionsApart(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "nothing in it runs side by side")
	for _, name := range fixtures.Examples() {
		h := expect.Value(host.ParseSnapshot(name, expect.Value(fixtures.Example(name))(t)))(t)
		whole, _ := Gather(t.Context(), h, gather.Options{})
		for _, c := range All {
			gather := func(f *facts.Facts) string {
				g := gatheringOn(h, f)
				before := sectionsOf(t, f)
				if err := c.Run(t.Context(), g); err != nil {
					return "error: " + err.Error()
				}
				after := sectionsOf(t, f)
				for section := range after {
					expect.That(t, section == c.Name || after[section] == before[section], "%s: the check %s writes into %s", name, c.Name, section)
				}
				return after[c.Name]
			}
			all := gather(withSections(t, whole, func(section string) bool { return section != c.Name }))
			declared := gather(withSections(t, whole, func(section string) bool { return slices.Contains(c.After, section) }))
			expect.That(t, all == declared, "%s: the check %s reads sections that After does not name:\nwith all:  %.300s\nwith those: %.300s", name, c.Name, all, declared)
			poor := withSections(t, whole, func(section string) bool { return section != c.Name })
			if poor.GPUs != nil {
				poor.GPUs.Devices = []facts.GPU{}
			}
			if poor.PCI != nil {
				poor.PCI.Devices = poor.PCI.Devices[:0]
			}
			gather(poor)
		}
	}
}

// TestReplayOfThisMachine checks that what is gathered from a recording of the machine that runs the test is what was
// gathered from the machine itself, what could not be read included.
func TestReplayOfThisMachine(t *testing.T) {
	document := func(h *host.Host) string {
		f, _ := Gather(t.Context(), h, gather.Options{Probe: probe.Off, Deadline: time.Minute})
		// Why there is no probe differs: here it was not asked for, there it is not in the recording.
		f.Unknown = slices.DeleteFunc(f.Unknown, func(u facts.Unknown) bool { return u.Section == "transfers" })
		var b bytes.Buffer
		expect.NoError(t, host.WriteFacts(&b, f))
		return b.String()
	}
	h, recording := host.Live().Record()
	want := document(h)
	var snapshot bytes.Buffer
	expect.NoError(t, recording.Write(&snapshot, host.RecordOptions{KeepNames: true}))
	t.Logf("the snapshot has %d bytes", snapshot.Len())
	expect.NoDiff(t, want, document(expect.Value(host.ParseSnapshot("snapshot", snapshot.Bytes()))(t)), "it")
}

func TestKernelLogUnreadable(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want facts.Unknown
	}{
		{
			&fs.PathError{Op: "open", Path: "/dev/kmsg", Err: fs.ErrPermission},
			facts.Unknown{Section: "kernel_log", Reason: "this user is not allowed to read the kernel log", Hint: "run as root, or allow it with sysctl kernel.dmesg_restrict=0"},
		},
		{errors.New("no such device"), facts.Unknown{Section: "kernel_log", Reason: "read the kernel log: no such device"}},
	} {
		var m host.Memory
		m.AnswerError(host.AskKernelLog, tt.err)
		got := checktest.One(t, kernelLogCheck, &m)
		expect.That(t, got.KernelLog == nil, "%v: got a section, want none", tt.err)
		expect.NoDiff(t, []facts.Unknown{tt.want}, got.Unknown, "%v: unknown", tt.err)
	}
}

func TestKernelLog(t *testing.T) {
	var m host.Memory
	m.Answer(host.AskKernelLog, "84.000000 NVRM: Xid (0000:03:00): 13, 0003\n")
	got := checktest.One(t, kernelLogCheck, &m)
	want := &facts.KernelLogFacts{Source: "/dev/kmsg", Events: []facts.KernelEvent{
		{ID: "kernel-xid", Kind: "xid", Code: new(13), Address: "0000:03:00.0", Message: "NVRM: Xid (0000:03:00): 13, 0003", Seconds: 84, Count: 1},
	}}
	expect.NoDiff(t, want, got.KernelLog, "kernel log")
	expect.Len(t, 0, got.Unknown, "unknown")
}
