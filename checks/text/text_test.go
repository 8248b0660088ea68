package text_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestParseFindsMessages(t *testing.T) {
	f := texttest.Parse("app.log", "hello\n[rank1]: ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n")
	expect.Must(t, f.Logs != nil && len(f.Logs.Messages) == 1, "got %+v", f.Logs)
	m := f.Logs.Messages[0]
	expect.That(t, m.ID == "dataloader-bus-error" && m.Line == 2 && m.Source == "app.log" && m.Rank != nil && *m.Rank == 1, "got %+v", m)
}
