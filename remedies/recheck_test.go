package remedies

import "testing"

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"NCCL_P2P_DISABLE": "NCCL_P2P_DISABLE", "1": "1", "": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "it's": `'it'\''s'`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
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
		if got := (Recheck{Flags: tt.flags}).Command(tt.rules...); got != tt.want {
			t.Errorf("Command(%q, %q) = %s, want %s", tt.flags, tt.rules, got, tt.want)
		}
	}
}
