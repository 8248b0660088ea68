package death_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The forms of PyTorch 2.9: the timeout names the collective, the status the group.
const (
	timedOut = "[rank{r}]:[E1122 21:06:11.437315714 ProcessGroupNCCL.cpp:689] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=22, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600073 milliseconds before timing out.\n"
	status   = "[rank{r}]:[E1122 21:06:11.437470193 ProcessGroupNCCL.cpp:2303] [PG ID 0 PG GUID 0(default_pg) Rank {r}]  failure detected by watchdog at work sequence id: 22 PG status: last enqueued work: 81, last completed work: 21\n"
	dump     = "[rank{r}]:[E1122 21:06:12.667221745 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info. Last enqueued NCCL work: 24, last completed NCCL work: 21.This is most likely caused by incorrect usages of collectives\n"
	ended    = "[rank{r}]:[E1122 21:07:12.055483662 ProcessGroupNCCL.cpp:2119] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Process group watchdog thread terminated with exception: [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=22, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600073 milliseconds before timing out.\n"
	unnamed  = "[E ProcessGroupNCCL.cpp:1458] [Rank {r}] Timeout at NCCL work: 22, last enqueued NCCL work: 24, last completed NCCL work: 21.\n"
)

func of(rank string, lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, ""), "{r}", rank)
}

func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string
	}{
		{"timeout and status", of("1", timedOut, status, ended), `[{"group":"0(default_pg)","rank":1,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":81,"completed":21}]`},
		{"another rank's signal", of("0", dump), `[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21}]`},
		{"own timeout behind the signal", of("0", dump, timedOut), `[{"group":"0(default_pg)","rank":0,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":24,"completed":21}]`},
		{"more enqueued later", of("0", dump, status), `[{"group":"0(default_pg)","rank":0,"enqueued":81,"completed":21}]`},
		{"without a group", of("2", timedOut, unnamed), `[{"rank":2,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":24,"completed":21}]`},
		{"two ranks", of("1", timedOut, status) + of("0", dump), `[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21},{"group":"0(default_pg)","rank":1,"seq":22,"op":"ALLREDUCE","elements":1024,"enqueued":81,"completed":21}]`},
		{
			"another hang of the same rank", of("0", dump) + strings.ReplaceAll(of("0", dump), "completed NCCL work: 21", "completed NCCL work: 3"),
			`[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21},{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":3}]`,
		},
		{
			"a timeout of another group", of("0", dump) + strings.ReplaceAll(of("0", timedOut), "SeqNum=22", "SeqNum=99"),
			`[{"group":"0(default_pg)","rank":0,"enqueued":24,"completed":21},{"rank":0,"seq":99,"op":"ALLREDUCE","elements":1024}]`,
		},
		{"no rank", strings.TrimPrefix(strings.ReplaceAll(status, " Rank {r}]", "]"), "[rank{r}]:"), `null`},
	} {
		var list []facts.Progress
		if logs := texttest.Parse("job.log", tt.text).Logs; logs != nil {
			list = logs.Progress
		}
		for i := range list {
			expect.That(t, list[i].Text != "" && list[i].Line != 0 && list[i].Source == "job.log", "%s: got %+v", tt.name, list[i])
			list[i].Text, list[i].Line, list[i].Source = "", 0, ""
		}
		raw := expect.Value(json.Marshal(list))(t)
		expect.Equal(t, tt.want, strings.ReplaceAll(string(raw), `,"text":"","source":"","line":0`, ""), "%s", tt.name)
	}
}

func TestProgressByFileName(t *testing.T) {
	text := strings.TrimPrefix(strings.ReplaceAll(status, " Rank {r}]", "]"), "[rank{r}]:")
	if list := texttest.Parse("rank5.log", text).Logs.Progress; len(list) != 1 || list[0].Rank != 5 {
		t.Errorf("got %+v", list)
	}
}
