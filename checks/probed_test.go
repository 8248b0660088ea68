package checks

import (
	"errors"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

func TestProbed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(*machine.Memory)
		want  probe.Mode
	}{
		{"not run", func(*machine.Memory) {}, probe.Off},
		{"quick", func(m *machine.Memory) { m.Answer("probe:quick", probe.Report{}) }, probe.Quick},
		{"both", func(m *machine.Memory) {
			m.Answer("probe:quick", probe.Report{})
			m.Answer("probe:full", probe.Report{})
		}, probe.Full},
		{"run, and it failed", func(m *machine.Memory) { m.AnswerError("probe:quick", errors.New("no driver")) }, probe.Quick},
	} {
		m := &machine.Memory{}
		tt.build(m)
		if got := NewHost(m).Probed(t.Context()); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
