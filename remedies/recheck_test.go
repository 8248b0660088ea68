package remedies

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"NCCL_P2P_DISABLE": "NCCL_P2P_DISABLE", "1": "1", "": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "it's": `'it'\''s'`,
	} {
		expect.Equal(t, want, Quote(in), "Quote(%q)", in)
	}
}

func TestRecheck(t *testing.T) {
	for _, tt := range []struct {
		flags, rules []string
		want         string
	}{
		{nil, nil, "gpudoctor check"},
		{nil, []string{"a", "b"}, "gpudoctor check --only a,b"},
		{[]string{"--profile", "image"}, []string{"a"}, "gpudoctor check --profile image --only a"},
		{[]string{"--from", "my logs", "--strict"}, []string{"a"}, "gpudoctor check --from 'my logs' --strict --only a"},
	} {
		expect.Equal(t, tt.want, (Recheck{Flags: tt.flags}).Command(tt.rules...), "Command(%q, %q)", tt.flags, tt.rules)
	}
}
