package death_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

func TestTorchrun(t *testing.T) {
	f := texttest.Parse("job.log", `Failures:
[1]:
  time      : 2025-11-21_14:24:49
  host      : node7
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 3326)
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-11-21_14:24:49
  host      : node7
  rank      : 13 (local_rank: 5)
  exitcode  : -7 (pid: 3327)
  error_file: <N/A>
  traceback : Signal 7 (SIGBUS) received by PID 3327
============================================================
`)
	for _, m := range f.Logs.Messages {
		if m.ID == "torch-first-failure" {
			want := map[string]string{"time": "2025-11-21_14:24:49", "host": "node7", "rank": "13", "exitcode": "-7", "signal": "SIGBUS"}
			if diff := cmp.Diff(want, m.Fields); diff != "" || m.Line != 8 {
				t.Errorf("line %d (-want +got):\n%s", m.Line, diff)
			}
			return
		}
	}
	t.Errorf("got %+v", f.Logs.Messages)
}
