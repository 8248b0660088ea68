package checks

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/checktest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

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
