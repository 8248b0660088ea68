package text_test

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// FuzzRead checks, of any file: reading it ends, within the bound of what is read; it
// gives texts, a recording or an error; each text is read, or it is told why not;
// every line that is named is one of its text; and reading it again tells the same.
func FuzzRead(f *testing.F) {
	const largest = 16 << 10 // Larger ones are as slow to change as they are to read.
	for _, text := range texttest.EveryText(f) {
		f.Add([]byte(text[:min(len(text), largest)]))
	}
	for _, wrap := range wrappings {
		if wrapped := wrap(strings.Repeat(known, 3)); len(wrapped) < largest {
			f.Add([]byte(wrapped))
		}
	}
	f.Add(checktest.Gzip([]byte(known)))
	f.Add(checktest.Gzip(checktest.Gzip([]byte(known))))
	f.Add([]byte("-- a --\n" + texttest.LspciVerbose + "-- b --\n" + placesQuery))
	f.Add([]byte("-- a --\n" + texttest.NvsmiTableText + "-- b --\nservices:\n  s:\n    image: i\n    shm_size: 1g\n"))
	f.Add(tarred(f, "a.log", known, "b/c.log", known))
	f.Add(checktest.Gzip(tarred(f, "a.log.gz", string(checktest.Gzip([]byte(known))), "b.zip", string(zipped(f, "c.log", known)))))
	f.Add(zipped(f, "a.log", known, "b.tar", string(tarred(f, "c.log", known))))
	f.Add(bzipped)
	f.Add(packZstd(f, known, 1<<10))
	f.Add(packZstd(f, string(tarred(f, "a.log", known)), 1<<10))
	f.Add([]byte("-- a.log --\n" + known + "-- b.log --\n" + known))
	f.Add([]byte("$ lspci -vvv\r\n\x1b[0mfoo\r\n"))
	f.Add([]byte(`{"schema": "gpudoctor.facts/v1", "host": {"kernel": "6.8"}}`))
	snapshot := expect.Value(os.ReadFile("../../fixtures/hosts/h200x2.txtar"))(f)
	f.Add(snapshot[:largest])
	const most = 1 << 20
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := text.Read(t.Context(), []string{"-"}, text.Options{Stdin: bytes.NewReader(data), MaxBytes: most})
		if got.Facts == nil {
			expect.That(t, err != nil, "neither facts nor an error")
			return
		}
		expect.That(t, err != nil || len(got.Facts.Texts) != 0 || got.Recording != "", "neither texts nor an error")
		checkTexts(t, got, most)
		if got.Recording != "" {
			return
		}
		again, _ := text.Read(t.Context(), []string{"-"}, text.Options{Stdin: bytes.NewReader(data), MaxBytes: most})
		expect.NoDiff(t, texttest.Indented(t, got.Facts), texttest.Indented(t, again.Facts), "read again")
	})
}

// bzipped is known as bzip2 packs it: the library only unpacks.
var bzipped = []byte("\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\xde\x72\x24\x04\x00\x00\x0a\xdf\x80\x00\x10\x40\x61\x00\x10\x02\x00\x96\x00\x3f\xeb\xde\xe0\x20\x00\x6a\x22\x9e\x84\xc2\x62\x3f\x54\x0d\x0c\xd2\x04\x53\xf4\xa1\x99\x35\x06\x80\x0d\x0f\x51\x9f\x1b\x50\x16\xb6\x45\xb8\xd5\x8d\x72\xac\xde\x26\x60\xc3\x8b\xba\x28\x8b\xc8\x8c\x0b\xa4\xd0\x66\x42\x10\xb3\x57\x2f\x69\x05\xe8\x79\x66\x2c\xa5\x3b\xc1\x94\xe4\x28\x67\x74\x3e\x45\x77\x89\x39\xc6\xb3\x45\x0c\xf9\xe0\x18\x64\x94\x93\xe3\x26\x7e\x2e\xe4\x8a\x70\xa1\x21\xbc\xe4\x48\x08")

// checkTexts checks what is true of the texts of every reading.
func checkTexts(t *testing.T, got text.Result, most int64) {
	t.Helper()
	lines, read := map[string]int{}, int64(0)
	for _, text := range got.Facts.Texts {
		_, twice := lines[text.Name]
		expect.That(t, !twice, "two texts are called %q", text.Name)
		lines[text.Name] = text.Lines
		read += text.Bytes
		expect.That(t, text.Kinds != nil && (text.Unread == "" || text.Problem != "") && (text.Lines != 0 || text.Problem != ""), "neither read nor a reason: %+v", text)
		for _, k := range text.Kinds {
			expect.That(t, k.Line >= 1 && k.Line <= text.Lines && k.Lines >= 1, "%s: %+v", text.Name, k)
		}
	}
	expect.That(t, read <= most*(1+text.MaxDepth), "%d bytes are read", read)
	place := func(what, source string, line int) {
		n, known := lines[source]
		expect.That(t, known && line >= 1 && line <= n, "%s is of %q, line %d, which has %d", what, source, line, n)
	}
	if got.Recording != "" {
		return // It names texts of its own.
	}
	told := map[string]bool{}
	for _, o := range got.Facts.Origins {
		place(o.Fact, o.Source, o.Line)
		expect.That(t, !told[o.Fact], "%s has two places", o.Fact)
		told[o.Fact] = true
	}
	for _, l := range got.Facts.Launches {
		place("a launch", l.Source, l.Line)
		for part, line := range l.Lines {
			place(part, l.Source, line)
		}
	}
	for _, b := range got.Facts.Benchmarks {
		for part, line := range b.Lines {
			place(part, b.Source, line)
		}
	}
	if got.Facts.Env != nil {
		for _, v := range got.Facts.Env.Variables {
			if v.Line != 0 { // Not known.
				place(v.Name, v.Source, v.Line)
			}
		}
	}
	if got.Facts.Logs != nil {
		for _, m := range got.Facts.Logs.Messages {
			place(m.ID, m.Source, m.Line)
		}
	}
}

// TestTextsOfFixtures checks the same of each text of the repository, in each form.
func TestTextsOfFixtures(t *testing.T) {
	texts := texttest.EveryText(t)
	paths := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		paths["d/"+strings.ReplaceAll(name, "/", "_")] = texts[name]
	}
	got := expect.Value(text.Read(t.Context(), []string{"d"}, text.Options{Files: newTree(t, paths, fault{})}))(t)
	expect.Equal(t, len(texts), len(got.Facts.Texts), "it")
	checkTexts(t, got, text.DefaultMaxBytes)
	expect.Len(t, 0, slices.DeleteFunc(got.Facts.Texts, func(text facts.Text) bool { return text.Problem == "" }), "not read")
}

// BenchmarkRead reads logs of jobs. With -cpu 1 it is the speed of one core.
func BenchmarkRead(b *testing.B) {
	log := []byte(strings.Repeat(strings.Join(slices.Collect(maps.Values(texttest.EveryText(b))), ""), 16))
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	for b.Loop() {
		r := text.NewReading()
		expect.NoError(b, r.Read(b.Context(), "log", bytes.NewReader(log)))
		r.Finish()
	}
}

// TestStatementsNeed checks that no row of the catalogue misses a line because it lacks a
// literal: the lines are those of the rows' examples and of the repository's texts.
func TestStatementsNeed(t *testing.T) {
	lines := make(map[string]bool)
	for _, text := range texttest.EveryText(t) {
		for line := range strings.SplitSeq(text, "\n") {
			lines[line] = true
		}
	}
	for _, row := range message.Statements() {
		like, unlike := regexp.MustCompile(withoutBlank(row.Like)), regexp.MustCompile(withoutBlank(row.Unlike))
		for line := range lines {
			if !slices.ContainsFunc(row.Anchors, func(a string) bool { return strings.Contains(line, a) }) {
				continue
			}
			plain := withoutBlank(line)
			want := like.MatchString(plain) && (row.Unlike == "" || !unlike.MatchString(plain))
			_, got := row.Row.Match(line)
			expect.That(t, got == want, "%s: %q: got %t, want %t", row.ID, line, got, want)
		}
	}
}

// withoutBlank is a line or a form without a blank before a colon, as they are compared.
func withoutBlank(text string) string { return strings.ReplaceAll(text, " : ", ": ") }
