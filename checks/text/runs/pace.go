package runs

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// pace is how long the parts of its steps take a process, as its own lines tell.
type pace struct {
	of    facts.Late // Whose it is, and in which line it is told first.
	parts map[string][]float64
}

const (
	// fewPaces is how many steps must be told, maxPaces how many are kept of each part, maxParts how many parts there are,
	// and maxPaced how many processes.
	fewPaces, maxPaces, maxParts, maxPaced = 3, 64, 16, 1024
	// A late rank spends lateShare of its step in something that takes the others lateTimes less; they spend as
	// large a share of theirs waiting, and the late rank waitTimes less.
	lateShare, lateTimes, waitTimes = 0.4, 3, 2
)

var (
	// partForm is a part of a step with its time: "data 16.8 ms", "allreduce: 2.1 s", "input_time=0.31s".
	partForm = lazy.New(`([A-Za-z][\w/+-]*)[ :=]{1,12}(\d{1,7}(?:\.\d{1,9})?) ?(ms|s|sec)\b`)
	// wholeParts are names of all of a step, waitParts those of parts in which a rank waits for the others.
	wholeParts = lazy.New(`(?i)^(?:total|step|iter|iteration|batch|elapsed|time)(?:[_-]?time)?$`)
	waitParts  = lazy.New(`(?i)reduce|gather|scatter|comm|sync|wait|barrier|nccl|bcast|broadcast|grad`)
)

// notePace takes the times that a line tells of the parts of a step; it reports false where the line tells none.
func (t *tracebacks) notePace(s *parse.Sink, l parse.Line) bool {
	told := partForm.Get().FindAllStringSubmatch(l.Text, maxParts)
	if len(told) < 2 || len(t.paces) > maxPaced {
		return false
	}
	rank := s.RankOf(l)
	i := slices.IndexFunc(t.paces, func(p pace) bool {
		return p.of.Source == s.Source() && (rank == nil) == (p.of.Rank == nil) && (rank == nil || *rank == *p.of.Rank)
	})
	if i < 0 {
		i = len(t.paces)
		t.paces = append(t.paces, pace{of: facts.Late{Rank: rank, Source: s.Source(), Line: l.Number, Text: escape.Printable(strings.TrimSpace(l.Text), 300)}, parts: map[string][]float64{}})
	}
	for _, m := range told {
		seconds, err := facts.ParseFloat(m[2])
		list := t.paces[i].parts[m[1]]
		if err != nil || wholeParts.MatchString(m[1]) || len(list) >= maxPaces || list == nil && len(t.paces[i].parts) >= maxParts {
			continue
		}
		if m[3] == "ms" {
			seconds /= 1000
		}
		t.paces[i].parts[m[1]] = append(list, seconds)
	}
	return true
}

// late is the process that all others wait for, by the times that they print; nil if there is none.
func late(paces []pace) *facts.Late {
	for i, p := range paces {
		others := slices.DeleteFunc(slices.Delete(slices.Clone(paces), i, i+1), func(o pace) bool { return !o.like(p) })
		busy := p.most(false, func(part string, took float64) bool {
			return !slices.ContainsFunc(others, func(o pace) bool { return !(o.median(part)*lateTimes <= took) })
		})
		if busy == "" || len(others) == 0 {
			continue
		}
		wait := others[0].most(true, func(part string, _ float64) bool {
			return !slices.ContainsFunc(others, func(o pace) bool {
				return !(o.median(part) >= waitTimes*p.median(part) && o.median(part) >= lateShare*o.sum())
			})
		})
		if wait != "" {
			l := p.of
			l.Part, l.OwnSeconds, l.OthersSeconds, l.Wait, l.WaitSeconds = busy, p.median(busy), others[0].median(busy), wait, others[0].median(wait)
			return &l
		}
	}
	return nil
}

// like reports whether two processes tell the times of the same parts, often enough.
func (p pace) like(o pace) bool {
	return maps.EqualFunc(p.parts, o.parts, func(a, b []float64) bool { return min(len(a), len(b)) >= fewPaces })
}

// most is the part, one of waiting or another one, that takes the largest share of a step and fits; empty if none takes lateShare.
func (p pace) most(waits bool, fits func(part string, took float64) bool) string {
	best, sum := "", p.sum()
	for _, part := range slices.SortedFunc(maps.Keys(p.parts), func(a, b string) int { return cmp.Or(cmp.Compare(p.median(a), p.median(b)), cmp.Compare(b, a)) }) {
		took := p.median(part)
		if took >= lateShare*sum && waits == waitParts.MatchString(part) && fits(part, took) {
			best = part
		}
	}
	return best
}

// median is that of a part; of one that is not told it is not a number, with which each comparison fails.
func (p pace) median(part string) float64 {
	list := slices.Sorted(slices.Values(p.parts[part]))
	if len(list) == 0 {
		return math.NaN()
	}
	return list[len(list)/2]
}

func (p pace) sum() (sum float64) {
	for part := range p.parts {
		sum += p.median(part)
	}
	return sum
}
