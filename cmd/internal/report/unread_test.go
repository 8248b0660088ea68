package report

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestUnreadIsNeverHealth checks that a machine is not called healthy where a part of
// the texts was not read, for whatever reason, and that what holds no text is no
// such reason.
func TestUnreadIsNeverHealth(t *testing.T) {
	whole := facts.Text{Name: "job.log", Lines: 1, Bytes: 80, Kinds: []facts.TextKind{{Kind: "nccl-log", Line: 1, Lines: 1}}}
	for _, tt := range []struct {
		text  facts.Text
		state State
	}{
		{facts.Text{Name: "none", Kinds: []facts.TextKind{}}, Healthy},
		{facts.Text{Name: "x", Problem: "binary data", Kinds: []facts.TextKind{}}, Healthy},
		{facts.Text{Name: "x", Problem: "no answer", Unread: facts.UnreadError}, Inconclusive},
		{facts.Text{Name: "x", Problem: "encrypted", Unread: facts.UnreadForm}, Inconclusive},
		{facts.Text{Name: "x", Problem: "long", Unread: facts.UnreadLines, Lines: 1, Kinds: whole.Kinds}, Inconclusive},
		{facts.Text{Name: "x", Problem: "limit", Unread: facts.UnreadSize, Lines: 1}, Inconclusive},
		{facts.Text{Name: "x", Problem: "deadline", Unread: facts.UnreadTime}, Inconclusive},
		{facts.Text{Name: "and 3 more", Problem: "more than 4096 texts", Unread: facts.UnreadCount, More: 3}, Inconclusive},
	} {
		in := healthy(4)
		in.Facts.Texts = []facts.Text{whole, tt.text}
		d := New(in)
		expect.That(t, d.Verdict.State == tt.state, "%+v: the verdict is %s, want %s: %+v", tt.text, d.Verdict.State, tt.state, d.Verdict.Reasons)
		named := false
		for _, r := range d.Verdict.Reasons {
			named = named || r.Code == ReasonCut && strings.Contains(r.Text, tt.text.Name)
		}
		expect.That(t, named == (tt.state != Healthy), "%+v: the reasons are %+v", tt.text, d.Verdict.Reasons)
	}
}
