package job

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
)

// withRanks returns the facts with the rank of each message and death that names only the number of its process, where
// the same text, or another one of the same host, tells which rank that is.
func withRanks(f *facts.Facts) *facts.Facts {
	type process struct {
		where string
		pid   int
	}
	ranks := map[process]*int{}
	note := func(rank *int, pid int, places ...string) {
		for _, place := range places {
			if rank != nil && pid != 0 && place != "" {
				ranks[process{place, pid}] = rank
			}
		}
	}
	for _, p := range f.Logs.Processes {
		note(p.Rank, p.PID, p.Source, p.Host)
	}
	for _, d := range f.Logs.Deaths {
		note(d.Rank, d.PID, d.Source, d.Host)
	}
	if len(ranks) == 0 {
		return f
	}
	find := func(rank *int, pid int, source, host string) *int {
		if rank != nil || pid == 0 {
			return rank
		}
		return cmp.Or(ranks[process{source, pid}], ranks[process{host, pid}])
	}
	told, logs := *f, *f.Logs
	logs.Deaths, logs.Messages = slices.Clone(logs.Deaths), slices.Clone(logs.Messages)
	for i := range logs.Deaths {
		d := &logs.Deaths[i]
		d.Rank = find(d.Rank, d.PID, d.Source, d.Host)
	}
	for i := range logs.Messages {
		m := &logs.Messages[i]
		m.Rank = find(m.Rank, m.PID, m.Source, m.Host)
	}
	told.Logs = &logs
	return &told
}

// maxSize is more ranks than any job has: what a text says beyond it is no size.
const maxSize = 1 << 20

// members lists the processes of the job that the first death, or else the first complaint, is of. Texts of the same
// job that was run again are left out.
func (s *story) members(j *facts.Job) {
	of := s.sources(j)
	for _, m := range s.facts.Logs.Messages {
		if world, err := strconv.Atoi(m.Fields["world"]); err == nil && of[m.Source] && world <= maxSize {
			j.Size = max(j.Size, world)
		}
	}
	for _, p := range s.facts.Logs.Processes {
		if of[p.Source] {
			j.Size = max(j.Size, p.Ranks)
			s.join(j, p)
		}
	}
	for i := range s.facts.Logs.Deaths {
		if d := &s.facts.Logs.Deaths[i]; of[d.Source] && !d.Ignored && (d.What != "exception" || s.cameThrough(d)) {
			m := s.join(j, facts.Process{Rank: d.Rank, Host: d.Host, PID: d.PID, Source: d.Source})
			if m != nil && (m.End == nil || m.End.What == "exit" && d.What != "exit") {
				m.End = d
			}
		}
	}
	for i := range s.facts.Logs.Progress {
		if p := &s.facts.Logs.Progress[i]; of[p.Source] && (p.Seq != nil || p.Enqueued != nil) {
			s.join(j, facts.Process{Rank: &p.Rank, Source: p.Source}).Waits = p
		}
	}
	ranked := slices.ContainsFunc(j.Members, func(m facts.Member) bool { return m.Rank != nil })
	j.Members = slices.DeleteFunc(j.Members, func(m facts.Member) bool { return m.Rank == nil && ranked && !isOf(&m, j.First) })
	for i := range j.Members {
		m := &j.Members[i]
		m.Role = role(j, m)
		if m.Rank != nil && len(j.Members) > 1 && *m.Rank < maxSize { // Ranks count from 0.
			j.Size = max(j.Size, *m.Rank+1)
		}
	}
	slices.SortStableFunc(j.Members, func(a, b facts.Member) int {
		if a.Rank == nil || b.Rank == nil {
			return cmp.Compare(a.PID, b.PID)
		}
		return *a.Rank - *b.Rank
	})
}

// sources are the texts of one run of the job: that of the first death, or of the first complaint, and the others that
// show no two of its ranks again, and none of them with another process number.
func (s *story) sources(j *facts.Job) map[string]bool {
	bySource := map[string]map[int]int{}
	order := []string{}
	enter := func(source string, rank *int, pid int) {
		if bySource[source] == nil {
			bySource[source] = map[int]int{}
			order = append(order, source)
		}
		if rank != nil {
			bySource[source][*rank] = max(bySource[source][*rank], pid)
		}
	}
	switch {
	case j.First != nil:
		enter(j.First.Source, nil, 0)
	case len(s.complaints) > 0:
		enter(s.complaints[0].Source, nil, 0)
	}
	for _, p := range s.facts.Logs.Processes {
		enter(p.Source, p.Rank, p.PID)
	}
	for _, d := range s.facts.Logs.Deaths {
		enter(d.Source, d.Rank, d.PID)
	}
	for _, p := range s.facts.Logs.Progress {
		enter(p.Source, &p.Rank, 0)
	}
	of, ranks := map[string]bool{}, map[int]int{}
	for _, source := range order {
		again, same := 0, 0
		for rank, pid := range bySource[source] {
			known, common := ranks[rank]
			switch {
			case !common:
			case pid != 0 && pid == known:
				same++
			case pid != 0 && known != 0:
				again += 2
			default:
				again++
			}
		}
		if again > 1 && same == 0 {
			continue
		}
		of[source] = true
		for rank, pid := range bySource[source] {
			ranks[rank] = max(ranks[rank], pid)
		}
	}
	return of
}

// join adds a process to the members, or what a text shows of it to the member that it is; nil if it has no name.
func (s *story) join(j *facts.Job, p facts.Process) *facts.Member {
	if p.Rank == nil && p.PID == 0 {
		return nil
	}
	m := facts.Find(j.Members, func(m *facts.Member) bool {
		if p.Rank != nil && m.Rank != nil {
			return *p.Rank == *m.Rank
		}
		return p.PID != 0 && p.PID == m.PID && (p.Host == m.Host || p.Host == "" || m.Host == "")
	})
	if m == nil {
		j.Members = append(j.Members, facts.Member{Process: p})
		return &j.Members[len(j.Members)-1]
	}
	m.Rank, m.Device = cmp.Or(m.Rank, p.Rank), cmp.Or(m.Device, p.Device)
	m.Host, m.PID, m.Ranks = cmp.Or(m.Host, p.Host), cmp.Or(m.PID, p.PID), max(m.Ranks, p.Ranks)
	m.Ready, m.Step = m.Ready || p.Ready, max(m.Step, p.Step)
	if p.Said != "" && (m.Said == "" || p.Source != m.Source || p.Line > m.Line) {
		m.Said, m.Line, m.Source = p.Said, p.Line, p.Source
	}
	return m
}

// isOf reports whether a death is that of a member.
func isOf(m *facts.Member, d *facts.Death) bool {
	return d != nil && (d.Rank != nil && m.Rank != nil && *d.Rank == *m.Rank || d.Rank == nil && d.PID != 0 && d.PID == m.PID)
}

// role is the part of a member in what happened.
func role(j *facts.Job, m *facts.Member) facts.Role {
	switch {
	case isOf(m, j.First):
		m.End = j.First
		return facts.RoleFirst
	case m.Rank != nil && slices.Contains(j.Alike, *m.Rank):
		return facts.RoleAlike
	case m.Rank != nil && j.Lost != nil && j.Lost.Rank == strconv.Itoa(*m.Rank):
		return facts.RoleLost
	case m.Waits != nil, message.Waits(m.Said):
		return facts.RoleWaits
	case m.End != nil, m.Said != "":
		return facts.RoleAfter
	}
	return facts.RoleSilent
}
