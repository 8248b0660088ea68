package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// fixtureTexts are all texts of fixtures/texts, by file and member.
func fixtureTexts(tb testing.TB) map[string]string {
	tb.Helper()
	files := expect.Value(filepath.Glob("../../fixtures/texts/*.txtar"))(tb)
	expect.Must(tb, len(files) > 0, "no texts")
	all := make(map[string]string)
	for _, file := range files {
		raw := expect.Value(os.ReadFile(file))(tb)
		for _, f := range txtar.Parse(raw).Files {
			all[strings.TrimSuffix(filepath.Base(file), ".txtar")+":"+f.Name] = string(f.Data)
		}
	}
	return all
}

// TestGoldenRedactChanges lists every word of the repository's texts and recordings that redacting changes, with what
// becomes of it. A word on the list that is neither a name nor a secret is a fault: evidence is spoilt.
func TestGoldenRedactChanges(t *testing.T) {
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	texts := fixtureTexts(t)
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := texts[name]
		r := redact.New()
		r.Study(text)
		if changes := changedWords(text, r.Text(text)); len(changes) > 0 {
			fmt.Fprintf(&list, "%s\n  %s\n", name, strings.Join(changes, "\n  "))
		}
		if got := redact.NewSecrets().Text(text); got != text {
			fmt.Fprintf(&list, "%s, secrets\n  %s\n", name, strings.Join(changedWords(text, got), "\n  "))
		}
	}
	// A recorded machine, redacted once, has nothing more to replace.
	hosts := expect.Value(filepath.Glob("../../fixtures/hosts/*.txtar"))(t)
	expect.Must(t, len(hosts) > 0, "no recorded machines")
	for _, host := range hosts {
		raw := expect.Value(os.ReadFile(host))(t)
		m := expect.Value(Parse(host, raw))(t)
		out := recordingRedactor{redact.New()}.memory(m)
		for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
			before, _ := valueOf[content](m.nodes[name], read)
			after, _ := valueOf[content](out.nodes[name], read)
			if changes := changedWords(string(before.data), string(after.data)); out.nodes[name] == nil || len(changes) > 0 {
				fmt.Fprintf(&list, "%s %s\n  %s\n", filepath.Base(host), name, strings.Join(changes, "\n  "))
			}
		}
		for _, question := range slices.Sorted(maps.Keys(m.answers)) {
			if before, after := jsonText(t, m, question), jsonText(t, out, question); before != after {
				fmt.Fprintf(&list, "%s %s\n  %s\n", filepath.Base(host), question, strings.Join(changedWords(before, after), "\n  "))
			}
		}
	}
	expect.Golden(t, filepath.Join("testdata", "redact-changes.golden"), []byte(list.String()))
}

// jsonText is an answer in order of its keys; empty for one that failed.
func jsonText(t *testing.T, m *Memory, question string) string {
	t.Helper()
	raw, err := m.Ask(t.Context(), question, nil)
	if err != nil {
		return ""
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	expect.NoError(t, decoder.Decode(&v))
	return string(expect.Value(json.MarshalIndent(v, "", " "))(t))
}

// changedWords returns what differs between two texts of equal lines, word by word, each change once.
func changedWords(from, to string) []string {
	word := regexp.MustCompile(`\S+`)
	var all []string
	a, b := strings.Split(from, "\n"), strings.Split(to, "\n")
	if len(a) != len(b) {
		return []string{fmt.Sprintf("%d lines become %d", len(a), len(b))}
	}
	for i := range a {
		was, is := word.FindAllString(a[i], -1), word.FindAllString(b[i], -1)
		if len(was) != len(is) {
			if a[i] != b[i] {
				all = append(all, a[i]+" -> "+b[i])
			}
			continue
		}
		for j := range was {
			if was[j] != is[j] {
				all = append(all, was[j]+" -> "+is[j])
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
