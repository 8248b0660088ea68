package text_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

func TestParseFindsMessages(t *testing.T) {
	f := texttest.Parse("app.log", "hello\n[rank1]: ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n")
	if f.Logs == nil || len(f.Logs.Messages) != 1 {
		t.Fatalf("got %+v", f.Logs)
	}
	m := f.Logs.Messages[0]
	if m.ID != "dataloader-bus-error" || m.Line != 2 || m.Source != "app.log" || m.Rank == nil || *m.Rank != 1 {
		t.Errorf("got %+v", m)
	}
}
