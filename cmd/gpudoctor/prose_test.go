package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// otherWords writes what a document says to people, which is its reasons, and the lines of events whose meaning is in
// their id and fields, in other words: backwards. Equal words stay equal. It returns how many it changed.
func otherWords(v any) (changed int) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			changed += otherWords(item)
		}
	case map[string]any:
		for key, item := range v {
			_, isEvent := v["id"]
			if words, ok := item.(string); ok && (key == "reason" || key == "words" || key == "message" && isEvent) {
				letters := []rune(words)
				slices.Reverse(letters)
				v[key] = string(letters)
				changed++
			}
			changed += otherWords(item)
		}
	}
	return changed
}

// TestProseDecidesNothing checks, for all situations, that no verdict changes with the words that are meant for people: no
// code looks into them, and meaning travels in fields of its own.
func TestProseDecidesNothing(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known, changed, try := learnt(t), 0, expect.EachNth(1)
	said := func(s situation) (all []string) {
		d := tellOf(t.Context(), t, known, s)
		all = append(all, fmt.Sprint(d.Verdict.State, d.Verdict.ExitCode))
		for _, f := range flatten(d.Findings) {
			all = append(all, fmt.Sprint(f.Rule, f.Subject, f.Severity, f.Confidence, f.Remedies))
		}
		return all
	}
	situations(t, func(s situation) {
		document := decoded[map[string]any](t, expect.Value(json.Marshal(s.facts))(t))
		n := otherWords(document)
		if n == 0 || !try() {
			return
		}
		changed += n
		other := s
		other.facts = decoded[*facts.Facts](t, expect.Value(json.Marshal(document))(t))
		expect.NoDiff(t, said(s), said(other), "%s, in other words", s.name)
	})
	expect.AtLeast(t, 30, changed, "reasons and lines were changed")
}
