package settings

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// keys are some keys of every kind.
var keys = []Key{{Name: "fail-on"}, {Name: "strict", Bool: true}, {Name: "skip", List: true}, {Name: "deadline"}}

// inFolder gives each test a current directory.
func inFolder(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if text != "" {
		expect.NoError(t, os.WriteFile(Here, []byte(text), 0o600))
	}
}

func TestLoad(t *testing.T) {
	for name, tt := range map[string]struct {
		here string
		want []string // "KEY=VALUES LINE".
	}{
		"no file":       {"", nil},
		"an empty file": {"# nothing\n", nil},
		"one":           {"# why\nfail-on: low\nstrict: true\n", []string{"fail-on=[low] 2", "strict=[true] 3"}},
		"a list":        {"skip: [a, b]\n", []string{"skip=[a b] 1"}},
		"a list of one": {"skip: a\n", []string{"skip=[a] 1"}},
		"a number":      {"deadline: 30\n", []string{"deadline=[30] 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, tt.here)
			got := expect.Map(expect.Value(Load(keys))(t).All, func(one Setting) string { return fmt.Sprintf("%s=%v %d", one.Key, one.Values, one.Line) })
			expect.NoDiff(t, tt.want, got, "it")
		})
	}
}

// TestFaults checks that each fault is reported with its file and line.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct{ here, want, hint string }{
		"unknown key":    {"strict: true\nfial-on: low\n", `.gpudoctor.yaml:2: unknown key "fial-on"`, "did you mean fail-on?"},
		"no truth value": {"strict: maybe\n", `.gpudoctor.yaml:1: strict: "maybe" is neither true nor false`, ""},
		"a quoted one":   {"strict: \"true\"\n", `.gpudoctor.yaml:1: strict: "true" is neither true nor false`, ""},
		"twice":          {"strict: true\nstrict: false\n", ".gpudoctor.yaml:2: the key strict is given twice", ""},
		"a list for one": {"fail-on: [low]\n", ".gpudoctor.yaml:1: fail-on: not a single value", ""},
		"an object":      {"skip: {a: b}\n", ".gpudoctor.yaml:1: skip: not a value or a list of values", ""},
		"an empty value": {"deadline:\n", ".gpudoctor.yaml:1: deadline: the value is empty", ""},
		"an empty list":  {"skip: []\n", ".gpudoctor.yaml:1: skip: the list is empty", ""},
		"no keys":        {"- strict\n", ".gpudoctor.yaml:1: not a list of keys and values", ""},
		"two documents":  {"strict: true\n---\nstrict: true\n", ".gpudoctor.yaml: more than one YAML document", ""},
		"no YAML":        {"strict: [\n", ".gpudoctor.yaml: yaml: line", ""},
		"too large":      {strings.Repeat("#", maxBytes+1), ".gpudoctor.yaml: larger than 64 KiB", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, tt.here)
			_, err := Load(keys)
			at, ok := errors.AsType[complaint.Error](err)
			expect.Must(t, ok && strings.HasPrefix(err.Error(), tt.want), "got %v, want %q", err, tt.want)
			expect.That(t, strings.HasPrefix(strings.Join(at.Hints, "\n"), tt.hint), "got the hints %q, want %q", at.Hints, tt.hint)
		})
	}
}

// TestIgnored checks that a file in the current directory that another user may have
// written is not read, and that this is reported.
func TestIgnored(t *testing.T) {
	written := func(name string) error { return os.WriteFile(name, []byte("strict: true\n"), 0o600) }
	const nobody = 65534
	for name, make := range map[string]func() error{
		"a link":          func() error { return errors.Join(written("other.yaml"), os.Symlink("other.yaml", Here)) },
		"a FIFO":          func() error { return syscall.Mkfifo(Here, 0o600) },
		"a folder":        func() error { return os.Mkdir(Here, 0o700) },
		"writable by all": func() error { return errors.Join(written(Here), os.Chmod(Here, 0o602)) },
		"another user's":  func() error { return errors.Join(written(Here), os.Chown(Here, nobody, nobody)) },
	} {
		t.Run(name, func(t *testing.T) {
			inFolder(t, "")
			err := make()
			if errors.Is(err, os.ErrPermission) {
				t.Skip("only root can give a file to another user")
			}
			expect.NoError(t, err)
			s := expect.Value(Load(keys))(t)
			expect.That(t, s.All == nil && s.Ignored != "", "it was read, or nothing is said of it: %q", s.Ignored)
		})
	}
}

// FuzzParse checks that no text makes it panic, and that what it reads is a key.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "strict: true", "skip: [a, b]", "a: &x [*x]", "? [1]\n: 2", "<<: {strict: true}", "policy: x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, _, err := parse("f", []byte(text), keys)
		for _, s := range all {
			expect.That(t, err == nil && len(s.Values) > 0, "%q: %+v and %v", text, s, err)
		}
	})
}
