package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

type story struct {
	Title string // It counts the processes and the hosts.
	Parts []part
}

// part is processes of which the texts tell the same, and the place that shows it of the first of them.
type part struct{ Label, Who, What, Place string }

// labels are the parts of processes in one word, in the order of the story.
var labels = []string{"first", "alike", "gone", "waits", "ended", "said", "quiet"}

// labelOf is the part of a process in one word.
func labelOf(m *facts.Member) string {
	if m.Role == facts.RoleAfter && m.End != nil {
		return "ended"
	}
	of := map[facts.Role]string{facts.RoleFirst: "first", facts.RoleAlike: "alike", facts.RoleLost: "gone", facts.RoleWaits: "waits", facts.RoleAfter: "said"}
	return cmp.Or(of[m.Role], "quiet")
}

// newStory tells of a job; nil where fewer than two of its processes are known.
func newStory(j *facts.Job) *story {
	if j == nil || max(j.Size, len(j.Members)) < 2 || len(j.Members) == 0 {
		return nil
	}
	s := &story{Title: fmt.Sprintf("The job: %d processes", max(j.Size, len(j.Members)))}
	hosts := lines.Unique(lines.NonEmpty(lines.Map(j.Members, func(m facts.Member) string { return m.Host })...))
	if len(hosts) > 0 {
		s.Title += " on " + lines.Count(len(hosts), "host")
	}
	for _, label := range labels {
		ours := lines.Filter(j.Members, func(m facts.Member) bool { return labelOf(&m) == label })
		for _, alike := range lines.Grouped(ours, func(m facts.Member) string { return did(&m) }) {
			s.Parts = append(s.Parts, part{label, who(alike), did(&alike[0]), placeIn(&alike[0])})
		}
	}
	if unseen := unseenRanks(j); len(unseen) > 0 {
		s.Parts = append(s.Parts, part{Label: "quiet", Who: ranks(unseen), What: "in none of the texts"})
	}
	return s
}

// unseenRanks are those that the job has by its size, and of which no text tells.
func unseenRanks(j *facts.Job) (unseen []int) {
	known := map[int]bool{}
	for _, m := range j.Members {
		if m.Rank == nil {
			return nil
		}
		known[*m.Rank] = true
	}
	for rank := range j.Size {
		if !known[rank] {
			unseen = append(unseen, rank)
		}
	}
	return unseen
}

func who(all []facts.Member) string {
	ranked := lines.Filter(all, func(m facts.Member) bool { return m.Rank != nil })
	name := "a process"
	if len(ranked) > 0 {
		name = ranks(lines.Map(ranked, func(m facts.Member) int { return *m.Rank }))
	} else if len(all) > 1 {
		name = fmt.Sprintf("%d processes", len(all))
	}
	if len(all) > 1 {
		return name
	}
	name += lines.Behind(" on ", all[0].Host)
	if pid := all[0].PID; pid != 0 {
		name += fmt.Sprintf(" (process %d)", pid)
	}
	return name
}

func ranks(numbers []int) string {
	if len(numbers) == 1 {
		return fmt.Sprintf("rank %d", numbers[0])
	}
	return "ranks " + lines.Ranges(numbers)
}

func did(m *facts.Member) string {
	switch {
	case m.Role == facts.RoleLost:
		return "others lost the connection to it"
	case m.Waits != nil && m.Role == facts.RoleWaits:
		return "in " + collective(m.Waits)
	case m.End != nil:
		return ended(m.End)
	case m.Said != "":
		return message.Says(m.Said)
	case m.Step > 0:
		return "its last sign is a step of its work"
	case m.Ready:
		return "its last sign is that it completed its start"
	case m.Ranks > 0:
		return "it began its start and did not complete it"
	}
	return "no sign of a fault"
}

func collective(p *facts.Progress) string {
	op := cmp.Or(p.Op, "the collective")
	switch {
	case p.Seq != nil:
		return fmt.Sprintf("%s number %d", op, *p.Seq)
	case p.Completed != nil:
		return fmt.Sprintf("%s number %d", op, *p.Completed+1)
	}
	return op
}

func ended(d *facts.Death) string {
	switch {
	case d.What == "exception":
		return lines.Cut(maxSaid, strings.TrimSuffix(d.Class+": "+d.Said, ": "))
	case d.What == "assertion":
		return "failed assertion: " + lines.Cut(maxSaid, d.Said)
	case d.Class != "":
		return "ended by " + d.Class
	case d.Code != nil:
		return fmt.Sprintf("exited with code %d", *d.Code)
	}
	return "ended"
}

// maxSaid bounds the characters of a program's words.
const maxSaid = 120

func placeIn(m *facts.Member) string {
	source, line := m.Source, m.Line
	switch {
	case m.Role == facts.RoleWaits && m.Waits != nil:
		source, line = m.Waits.Source, m.Waits.Line
	case m.End != nil:
		source, line = m.End.Source, m.End.Line
	case m.Said == "":
		line = m.Step
	}
	if source == "" || line == 0 {
		return ""
	}
	return lineAt(source, line)
}
