package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// keys are some keys of every kind.
var keys = []Key{{Name: "fail-on"}, {Name: "strict", Bool: true}, {Name: "skip", List: true}, {Name: "policy", Own: true}, {Name: "deadline"}}

// inFolders gives each test a current directory and a folder of configuration.
func inFolders(t *testing.T, here, own string) {
	t.Helper()
	t.Chdir(t.TempDir())
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	for file, text := range map[string]string{Here: here, filepath.Join(config, "gpudoctor", "config.yaml"): own} {
		if text == "" {
			continue
		}
		expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

func TestLoad(t *testing.T) {
	for name, tt := range map[string]struct {
		here, own string
		want      []string // "KEY=VALUES LINE".
	}{
		"no file":               {want: nil},
		"an empty file":         {here: "# nothing\n", own: "---\n", want: nil},
		"one":                   {here: "# why\nfail-on: low\nstrict: true\n", want: []string{"fail-on=[low] here:2", "strict=[true] here:3"}},
		"a list":                {here: "skip: [a, b]\n", want: []string{"skip=[a b] here:1"}},
		"a list of one":         {here: "skip: a\n", want: []string{"skip=[a] here:1"}},
		"both, the nearer wins": {here: "fail-on: low\n", own: "fail-on: high\nstrict: true\n", want: []string{"fail-on=[low] here:1", "strict=[true] own:2"}},
		"the user's own policy": {own: "policy: /etc/rules\n", want: []string{"policy=[/etc/rules] own:1"}},
		"a number":              {here: "deadline: 30\n", want: []string{"deadline=[30] here:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			inFolders(t, tt.here, tt.own)
			s := expect.Value(Load(keys))(t)
			var got []string
			for _, one := range s.all {
				file := "own"
				if one.File == Here {
					file = "here"
				}
				got = append(got, fmt.Sprintf("%s=%v %s:%d", one.Key, one.Values, file, one.Line))
			}
			expect.NoDiff(t, tt.want, got, "it")
		})
	}
}

// TestFaults checks that each fault is reported with its file and line.
func TestFaults(t *testing.T) {
	for name, tt := range map[string]struct{ here, want, hint string }{
		"unknown key":      {"strict: true\nfial-on: low\n", `.gpudoctor.yaml:2: unknown key "fial-on"`, "did you mean fail-on?"},
		"no truth value":   {"strict: maybe\n", `.gpudoctor.yaml:1: strict: "maybe" is neither true nor false`, ""},
		"a quoted one":     {"strict: \"true\"\n", `.gpudoctor.yaml:1: strict: "true" is neither true nor false`, ""},
		"twice":            {"strict: true\nstrict: false\n", ".gpudoctor.yaml:2: the key strict is given twice", ""},
		"a list for one":   {"fail-on: [low]\n", ".gpudoctor.yaml:1: fail-on: not a single value", ""},
		"an object":        {"skip: {a: b}\n", ".gpudoctor.yaml:1: skip: not a value or a list of values", ""},
		"an empty value":   {"deadline:\n", ".gpudoctor.yaml:1: deadline: the value is empty", ""},
		"an empty list":    {"skip: []\n", ".gpudoctor.yaml:1: skip: the list is empty", ""},
		"no keys":          {"- strict\n", ".gpudoctor.yaml:1: not a list of keys and values", ""},
		"the user's alone": {"policy: rules\n", ".gpudoctor.yaml:1: policy cannot be set by a file in the current directory", "set it on the command line, or in "},
		"two documents":    {"strict: true\n---\nstrict: true\n", ".gpudoctor.yaml: more than one YAML document", ""},
		"no YAML":          {"strict: [\n", ".gpudoctor.yaml: yaml: line", ""},
		"too large":        {strings.Repeat("#", maxBytes+1), ".gpudoctor.yaml: larger than 64 KiB", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inFolders(t, tt.here, "")
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
			inFolders(t, "", "fail-on: low\n")
			err := make()
			if errors.Is(err, os.ErrPermission) {
				t.Skip("only root can give a file to another user")
			}
			expect.NoError(t, err)
			s := expect.Value(Load(keys))(t)
			_, set := s.Of("strict")
			expect.That(t, !set && len(s.Ignored) != 0, "it was read, or nothing is said of it: %q", s.Ignored)
			_, set = s.Of("fail-on")
			expect.That(t, set, "the user's own file was not read")
		})
	}
}

// TestOwnFile checks where the user's own file is.
func TestOwnFile(t *testing.T) {
	for _, tt := range []struct{ xdg, home, want string }{
		{"/x", "/home/u", "/x/gpudoctor/config.yaml"},
		{"", "/home/u", "/home/u/.config/gpudoctor/config.yaml"},
		{"relative", "/home/u", "/home/u/.config/gpudoctor/config.yaml"},
		{"", "", ""},
		{"", "relative", ""},
	} {
		t.Setenv("XDG_CONFIG_HOME", tt.xdg)
		t.Setenv("HOME", tt.home)
		expect.Equal(t, tt.want, ownFile(), "XDG_CONFIG_HOME=%q HOME=%q", tt.xdg, tt.home)
	}
}

// FuzzParse checks that no text makes it panic, and that what it reads is a key.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "strict: true", "skip: [a, b]", "a: &x [*x]", "? [1]\n: 2", "<<: {strict: true}", "policy: x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, _, err := parse("f", []byte(text), keys, false)
		for _, s := range all {
			expect.That(t, err == nil && s.Key != "policy" && len(s.Values) > 0, "%q: %+v and %v", text, s, err)
		}
	})
}
