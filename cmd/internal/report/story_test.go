package report

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestStory checks the words for what became of the processes of a job: those that did the same stand together, in the
// order of the story, and what the job has by its size is not forgotten.
func TestStory(t *testing.T) {
	t.Parallel()
	of := func(rank int, role facts.Role, change func(*facts.Member)) facts.Member {
		m := facts.Member{Process: facts.Process{Rank: &rank, Source: "job.log"}, Role: role}
		if change != nil {
			change(&m)
		}
		return m
	}
	death := func(d facts.Death) func(*facts.Member) { return func(m *facts.Member) { m.End = &d } }
	waits := func(m *facts.Member) {
		m.Waits = &facts.Progress{Op: "ALLREDUCE", Seq: new(7), Source: "job.log", Line: 9}
	}
	for name, c := range map[string]struct {
		job  *facts.Job
		want string
	}{
		"no job":      {nil, ""},
		"one process": {&facts.Job{Members: []facts.Member{of(0, facts.RoleFirst, nil)}}, ""},
		"one that died": {
			&facts.Job{Size: 4, Members: []facts.Member{
				of(0, facts.RoleWaits, waits), of(1, facts.RoleWaits, waits), of(2, facts.RoleWaits, waits),
				of(3, facts.RoleFirst, func(m *facts.Member) {
					m.Host, m.PID, m.End = "node7", 12, &facts.Death{What: "exit", Code: new(9), Source: "job.log", Line: 4}
				}),
			}},
			`The job: 4 processes on 1 host
first rank 3 on node7 (process 12): exited with code 9 job.log:4
waits ranks 0 to 2: in ALLREDUCE number 7 job.log:9`,
		},
		"without ranks": {
			&facts.Job{Members: []facts.Member{{Role: facts.RoleSilent}, {Role: facts.RoleSilent}}},
			`The job: 2 processes
quiet 2 processes: no sign of a fault`,
		},
		"every kind of end": {
			&facts.Job{Members: []facts.Member{
				of(0, facts.RoleAfter, death(facts.Death{What: "signal", Class: "SIGABRT"})), of(1, facts.RoleAfter, death(facts.Death{What: "exception", Class: "KeyError", Said: "'x'"})),
				of(2, facts.RoleAfter, death(facts.Death{What: "assertion", Said: "n > 0"})), of(3, facts.RoleAlike, death(facts.Death{What: "exit"})), of(4, facts.RoleLost, nil),
			}},
			`The job: 5 processes
alike rank 3: ended
gone rank 4: others lost the connection to it
ended rank 0: ended by SIGABRT
ended rank 1: KeyError: 'x'
ended rank 2: failed assertion: n > 0`,
		},
		"signs of life": {
			&facts.Job{Size: 8, Members: []facts.Member{
				of(0, facts.RoleSilent, func(m *facts.Member) { m.Step = 30 }), of(1, facts.RoleSilent, func(m *facts.Member) { m.Ready = true }),
				of(2, facts.RoleSilent, func(m *facts.Member) { m.Ranks = 8 }), of(3, facts.RoleSilent, nil),
				of(4, facts.RoleAfter, func(m *facts.Member) { m.Said, m.Line = "torch-store-clients-missing", 2 }),
				of(5, facts.RoleWaits, func(m *facts.Member) { m.Waits = &facts.Progress{Completed: new(4)} }),
			}},
			`The job: 8 processes
waits rank 5: in the collective number 5
said rank 4: Some ranks did not connect to the store in time job.log:2
quiet rank 0: its last sign is a step of its work job.log:30
quiet rank 1: its last sign is that it completed its start
quiet rank 2: it began its start and did not complete it
quiet rank 3: no sign of a fault
quiet ranks 6 to 7: in none of the texts`,
		},
	} {
		var got []string
		if s := newStory(c.job); s != nil {
			got = []string{s.Title}
			for _, p := range s.Parts {
				got = append(got, strings.TrimSpace(p.Label+" "+p.Who+": "+p.What+" "+p.Place))
			}
		}
		expect.Equal(t, c.want, strings.Join(got, "\n"), "%s", name)
	}
}
