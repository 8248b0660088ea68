package rules

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestPast checks, for all sets of lines that are past and all that a finding rests on, that it is lowered if and only
// if it rests on a line of trouble and on none that is not past.
func TestPast(t *testing.T) {
	const lines = 3
	for past := range 1 << lines {
		text := facts.Text{Name: "a.log"}
		for line := range lines {
			if past>>line&1 == 1 {
				text.Past = append(text.Past, facts.PastLine{Line: line, Shown: "b.log:7"})
			}
		}
		for rests := range 1 << lines {
			for _, severity := range severities {
				f := Finding{Severity: severity, Message: "a fault", Evidence: []Evidence{{Fact: "env.variables[NCCL_DEBUG]", Source: "a.log:9"}}}
				for line := range lines {
					if rests>>line&1 == 1 {
						fact := []string{"logs.messages[x]", "kernel_log.events[xid]"}[line%2]
						f.Evidence = append(f.Evidence, Evidence{Fact: fact, Source: fmt.Sprintf("a.log:%d", line)})
					}
				}
				f.lowerPast(pastLines([]facts.Text{{Name: "b.log"}, text}))
				lowered := rests != 0 && rests&^past == 0 && severity.Rank() < Low.Rank()
				want := map[bool]Severity{true: Low, false: severity}[lowered]
				expect.That(t, f.Severity == want && (f.Message != "a fault") == lowered, "past %b, rests on %b: %s is %s: %s", past, rests, severity, f.Severity, f.Message)
			}
		}
	}
}

// TestWithoutPast checks, for all sets of lines that are past, that what is past is left out if and only if there is
// other trouble, and nothing else ever.
func TestWithoutPast(t *testing.T) {
	const messages, deaths = 3, 2
	logs := &facts.LogFacts{}
	for line := range messages {
		logs.Messages = append(logs.Messages, facts.Message{Role: []string{"setting", "cause", "category"}[line], Source: "a.log", Line: line})
	}
	for line := range deaths {
		logs.Deaths = append(logs.Deaths, facts.Death{Source: "a.log", Line: messages + line})
	}
	const trouble = 0b11110 // All but the setting.
	for past := range 1 << (messages + deaths) {
		text := facts.Text{Name: "a.log"}
		for line := range messages + deaths {
			if past>>line&1 == 1 {
				text.Past = append(text.Past, facts.PastLine{Line: line, Shown: "b.log:7"})
			}
		}
		kept := 0
		left := withoutPast(logs, pastLines([]facts.Text{text}))
		for _, m := range left.Messages {
			kept |= 1 << m.Line
		}
		for _, d := range left.Deaths {
			kept |= 1 << d.Line
		}
		want := 1<<(messages+deaths) - 1
		if trouble&^past != 0 {
			want &^= past
		}
		expect.That(t, kept == want, "past %05b: kept %05b, want %05b", past, kept, want)
	}
}
