// Package ownlog has what rules need of the log of the probe's own library. Where collectives fail as
// the environment is configured, its messages mean the same as in the log of a job. What other arms
// provoke, and warnings of what works, accuse nothing.
package ownlog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Join returns logs with the messages of the probe's own library, where these count.
func Join(logs *facts.LogFacts, c *probe.Collectives) *facts.LogFacts {
	if c == nil || len(c.Arms) == 0 || !c.Arms[0].Outcome.Failed() || len(c.Arms[0].Messages) == 0 {
		return logs
	}
	var all facts.LogFacts
	if logs != nil {
		all = *logs
	}
	all.Messages = slices.Concat(all.Messages, c.Arms[0].Messages)
	for i := len(all.Messages) - len(c.Arms[0].Messages); i < len(all.Messages); i++ {
		all.Messages[i].Order = i
	}
	return &all
}

// States reports whether a piece of evidence, by its source and value, is a message of that library
// that states a cause.
func States(c *probe.Collectives, source string, value any) bool {
	return c != nil && len(c.Arms) > 0 && strings.HasPrefix(source, probe.LogSource) && slices.ContainsFunc(c.Arms[0].Messages, func(m facts.Message) bool {
		return m.Role == "cause" && value == m.Text
	})
}

// Holds reports whether a message is from the log of the probe's own library.
func Holds(m *facts.Message) bool { return strings.HasPrefix(m.Source, probe.LogSource) }

// Section is where in the facts the log of a message is.
func Section(m *facts.Message) string {
	if arm, own := strings.CutPrefix(m.Source, probe.LogSource); own {
		return fmt.Sprintf("collectives.arms[%s]", arm)
	}
	return "logs"
}
