package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/job"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// withJob returns the logs with the story of the job that they tell, without the messages that need no cause of their own.
func withJob(f *facts.Facts) *facts.LogFacts {
	if f.Logs == nil {
		return nil
	}
	told := *f.Logs
	told.Job = job.Of(f)
	told.Messages = slices.DeleteFunc(slices.Clone(told.Messages), func(m facts.Message) bool { return slices.Contains(told.Job.Settled, m.Order) })
	return &told
}

// withOwnLog returns logs with the messages of the probe's own library, where these count.
func withOwnLog(logs *facts.LogFacts, c *probe.Collectives) *facts.LogFacts {
	if c == nil || len(c.Arms) == 0 || !c.Arms[0].Outcome.Failed() || len(c.Arms[0].Messages) == 0 {
		return logs
	}
	all := *cmp.Or(logs, &facts.LogFacts{})
	all.Messages = slices.Concat(all.Messages, c.Arms[0].Messages)
	for i := len(all.Messages) - len(c.Arms[0].Messages); i < len(all.Messages); i++ {
		all.Messages[i].Order = i
	}
	return &all
}

// ownLogStates reports whether a piece of evidence, by its source and value, is a message of that library
// that states a cause.
func ownLogStates(c *probe.Collectives, source string, value any) bool {
	return c != nil && len(c.Arms) > 0 && strings.HasPrefix(source, probe.LogSource) && slices.ContainsFunc(c.Arms[0].Messages, func(m facts.Message) bool {
		return m.Role == "cause" && value == m.Text
	})
}

// ownLogSection is where in the facts the log of a message is.
func ownLogSection(m *facts.Message) string {
	if arm, own := strings.CutPrefix(m.Source, probe.LogSource); own {
		return fmt.Sprintf("collectives.arms[%s]", arm)
	}
	return "logs"
}
