package rules

import (
	"io/fs"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestWho checks that a rule names the process that said a message as a verdict of the
// catalogue does, whatever the line tells of it.
func TestWho(t *testing.T) {
	text := expect.Value(fs.ReadFile(Files, "lib/logs.rego"))(t)
	query := expect.Value(rego.New(rego.Query("name := data.gpudoctor.lib.logs.who(input)"), rego.Module("logs.rego", string(text))).PrepareForEval(t.Context()))(t)
	numbers := []*int{nil, new(0), new(3)}
	for _, host := range []string{"", "node7"} {
		for _, pid := range []int{0, 12} {
			for _, rank := range numbers {
				for _, device := range numbers {
					m := &facts.Message{Host: host, PID: pid, Rank: rank, Device: device}
					input := expect.Value(valueOf(m))(t)
					answer, err := query.Eval(t.Context(), rego.EvalParsedInput(input))
					expect.Must(t, err == nil && len(answer) == 1, "%v is named %v: %v", input, answer, err)
					got, want := answer[0].Bindings["name"], message.Fill("{who}", m, &message.Said{})
					expect.That(t, got == want, "%v is %q in Rego and %q in Go", input, got, want)
				}
			}
		}
	}
}
