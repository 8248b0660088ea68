package host

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// corpus are the things that must not be seen, and the lines that they stand in.
type corpus struct{ things, lines map[string][]string }

// readCorpus reads testdata/planted.tsv.
func readCorpus(tb testing.TB) corpus {
	tb.Helper()
	raw := expect.Value(os.ReadFile(filepath.Join("testdata", "planted.tsv")))(tb)
	c := corpus{map[string][]string{}, map[string][]string{}}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		switch {
		case len(f) != 3:
			tb.Fatalf("not three parts: %q", line)
		case f[1] == "thing" && f[0] == "secret":
			c.things[f[0]] = append(c.things[f[0]], strings.ReplaceAll(f[2], "+", ""))
		case f[1] == "thing":
			c.things[f[0]] = append(c.things[f[0]], f[2])
		default:
			c.lines[f[0]] = append(c.lines[f[0]], strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(f[2]))
		}
	}
	return c
}

// TestPlanted puts every thing of the corpus into every line of its kind: the thing must not be seen in what comes out,
// whatever the line is part of, and redacting that again must change nothing.
func TestPlanted(t *testing.T) {
	c, tried := readCorpus(t), 0
	for kind, lines := range c.lines {
		expect.Must(t, len(c.things[kind]) > 0, "no things of the kind %s", kind)
		for _, line := range lines {
			for _, thing := range c.things[kind] {
				tried++
				text := "first\n" + strings.ReplaceAll(line, "{}", thing) + "\nlast\n"
				r := redact.New()
				r.Study(text)
				got := r.Text(text)
				expect.That(t, !strings.Contains(strings.ToLower(got), strings.ToLower(thing)), "%s %q is seen: %q", kind, thing, got)
				expect.That(t, len(strings.Split(got, "\n")) == len(strings.Split(text, "\n")), "%q has other lines than %q", got, text)
				again := redact.New()
				again.Study(got)
				expect.Equal(t, got, again.Text(got), "%s: redacted twice: %q becomes", kind, got)
				if kind == "secret" || kind == "password" || kind == "key" {
					got := redact.NewSecrets().Text(text)
					expect.That(t, !strings.Contains(got, thing), "%s %q is seen where names stay: %q", kind, thing, got)
				}
			}
		}
	}
	t.Logf("%d lines", tried)
}

// text is the corpus as one text: every thing in every line of its kind.
func (c corpus) text() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(c.lines)) {
		for _, line := range c.lines[kind] {
			for _, thing := range c.things[kind] {
				b.WriteString(strings.ReplaceAll(line, "{}", thing) + "\n")
			}
		}
	}
	return b.String()
}

// TestPlantedInSnapshot plants the corpus wherever a recording holds text: none of it may be seen in the snapshot.
func TestPlantedInSnapshot(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	c := readCorpus(t)
	text := c.text()
	src := &Memory{}
	src.AddFile("/proc/self/mountinfo", []byte(text))
	src.AddFile("/etc/nccl.conf", []byte("\xff\xfe not UTF-8\n"+text))
	src.AddFile("/proc/1/environ", []byte(strings.ReplaceAll(text, "\n", "\x00")))
	src.AddFile("/etc/resolv.conf", []byte(text))
	src.AddError("/proc/2/comm", errors.New(strings.ReplaceAll(text, "\n", "; ")))
	src.Answer(AskKernelLog, text)
	src.Answer(AskEnviron, slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "    value:") // Of two lines.
	}))
	src.Answer("note", map[string]any{"notes": strings.Split(text, "\n"), "whole": text, "command": strings.Fields(text)})
	src.AddFile("/proc/sys/kernel/hostname", []byte("gpunode-17\n"))
	src.Answer(AskUname, Uname{Node: "gpunode-17.hpc.acme-corp.com"})
	snapshotOf := func(keepNames bool) string {
		r := NewRecorder(src)
		for name := range src.nodes {
			_, _ = r.ReadFile(name, MaxFile)
		}
		for question := range src.answers {
			_, _ = r.Ask(t.Context(), question, nil)
		}
		var b bytes.Buffer
		expect.NoError(t, r.Write(&b, RecordOptions{KeepNames: keepNames}))
		return b.String()
	}
	redacted := snapshotOf(false)
	seen := strings.ToLower(redacted)
	control := strings.ToLower(snapshotOf(true))
	for kind, things := range c.things {
		for _, thing := range things {
			thing = strings.ToLower(thing)
			expect.That(t, strings.Contains(control, thing), "%s %q is not in the snapshot that is not redacted: the test tests nothing", kind, thing)
			if i := strings.Index(seen, thing); i >= 0 {
				t.Errorf("%s %q is seen: %q", kind, thing, seen[max(0, i-60):min(len(seen), i+60)])
			}
		}
	}
	first := &Recorder{seen: *expect.Value(Parse("x", []byte(redacted)))(t)}
	var again bytes.Buffer
	expect.NoError(t, first.Write(&again, RecordOptions{}))
	expect.NoDiff(t, redacted, again.String(), "redacting twice changes something")
}
