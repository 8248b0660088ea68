package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestEvidenceStands checks that what is said of a text stands in the line that is named: without that line, nothing is
// put down to it. Each place that the facts name is tried, in each text of the repository, in bundles of them, so that a
// fact of one is not put down to another, and in each incident where those are at hand; and evidence names a place of
// the fact that it is about. That the check can tell is shown by the lines beside: nearly no fact goes with one of those.
func TestEvidenceStands(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	if expect.FewRows() {
		t.Skip("the rates below are those of more than a few")
	}
	known := learnt(t)
	try := expect.EachNth(8)
	work := make(chan ticket)
	var mu sync.Mutex
	var sum tally
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for c := range work {
				one := c.examine(t, known)
				mu.Lock()
				sum = tally{sum.facts + one.facts, sum.evidence + one.evidence, sum.nowhere + one.nowhere, sum.beside + one.beside, sum.noticed + one.noticed}
				mu.Unlock()
			}
		})
	}
	for _, c := range tickets(t) {
		if try() {
			work <- c
		}
	}
	close(work)
	workers.Wait()
	t.Logf("%+v", sum)
	expect.AtLeast(t, 60, sum.facts, "places of facts")
	expect.AtLeast(t, 30, sum.evidence, "places of evidence")
	expect.That(t, sum.nowhere*50 <= sum.evidence, "%d pieces of evidence name no line, and %d do", sum.nowhere, sum.evidence)
	expect.That(t, sum.noticed*100 >= sum.beside*88, "of %d lines beside the right one, only %d were noticed", sum.beside, sum.noticed)
}

// tally counts places that were tried, evidence without one, and lines beside a place.
type tally struct{ facts, evidence, nowhere, beside, noticed int }

type ticket map[string]string

// tickets are the files of the cases of fixtures/texts and of the scripts, all texts and the examples of messages each by
// itself and in bundles of eight, and the incidents and machines beside the repository.
func tickets(t *testing.T) []ticket {
	t.Helper()
	var list []ticket
	var single []string
	for _, pattern := range []string{"../../fixtures/texts/*.txtar", "testdata/script/*.txtar"} {
		files := expect.Value(filepath.Glob(pattern))(t)
		expect.Must(t, len(files) > 0, "no texts in %s", pattern)
		for _, file := range files {
			c := ticket{}
			for _, f := range expect.Value(txtar.ParseFile(file))(t).Files {
				c[f.Name] = string(f.Data)
				single = append(single, string(f.Data))
			}
			list = append(list, c)
		}
	}
	for _, row := range message.Statements() {
		single = append(single, "\n"+strings.Join(row.Examples, "\n")+"\n\n")
	}
	for i := 0; i+8 <= len(single); i += 8 {
		bundle := ticket{}
		for j, s := range single[i : i+8] {
			name := fmt.Sprintf("%d.txt", i+j)
			bundle[name] = s
			list = append(list, ticket{name: s})
		}
		list = append(list, bundle)
	}
	for _, pattern := range []string{"../../../shared/incidents/*/case.yaml", "../../../shared/data/*/topo.txt"} {
		for _, folder := range expect.Value(filepath.Glob(pattern))(t) {
			c := ticket{}
			for _, file := range expect.Value(filepath.Glob(filepath.Join(filepath.Dir(folder), "*")))(t) {
				if filepath.Base(file) != "case.yaml" && filepath.Ext(file) != ".gz" {
					c[file] = string(expect.Value(os.ReadFile(file))(t))
				}
			}
			list = append(list, c)
		}
	}
	return list
}

func (c ticket) read(without string) *facts.Facts {
	r := text.NewReading()
	for _, name := range slices.Sorted(maps.Keys(c)) {
		content := c[name]
		if line, found := strings.CutPrefix(without, name+":"); found {
			n, _ := strconv.Atoi(line) // It is a place.
			lines := strings.SplitAfter(content, "\n")
			lines[n-1] = "\n"
			content = strings.Join(lines, "")
		}
		texttest.Text(r, name, content)
	}
	return r.Finish()
}

func (c ticket) has(place string) bool {
	at := strings.LastIndexByte(place, ':')
	n, err := strconv.Atoi(place[at+1:])
	return at > 0 && err == nil && n > 0 && n <= strings.Count(c[place[:max(at, 0)]], "\n")+1 && c[place[:max(at, 0)]] != ""
}

func (c ticket) examine(t *testing.T, known knowledge) (sum tally) {
	t.Helper()
	f := c.read("")
	told := placesOf(t, f)
	try := expect.EachNth(max(1, len(told)/64))
	for _, place := range slices.Sorted(maps.Keys(told)) {
		if !c.has(place) {
			t.Errorf("%v is put down to %s, and there is no such line", told[place], place)
		} else if try() {
			sum.facts++
			still := placesOf(t, c.read(place))[place]
			expect.That(t, len(still) == 0, "%v is put down to %s, and without that line %v is", told[place], place, still)
			at := strings.LastIndexByte(place, ':')
			n, _ := strconv.Atoi(place[at+1:])
			for _, by := range []int{-1, 1} {
				if beside := fmt.Sprintf("%s:%d", place[:at], n+by); c.has(beside) {
					sum.beside++
					if len(placesOf(t, c.read(beside))[place]) > 0 {
						sum.noticed++
					}
				}
			}
		}
	}
	verdict := expect.Value(known.rules.Evaluate(t.Context(), f, rules.Options{Profile: rules.Training, Memory: ruleMemory}))(t)
	for _, finding := range flatten(report.New(report.Input{TextsOnly: true, Facts: f, Verdict: *verdict, Profile: rules.Training, FailOn: report.Threshold(rules.High)}).Findings) {
		for _, e := range finding.Evidence {
			facts := told[e.Source]
			switch about := func(fact string) bool {
				return continues(fact, e.Fact) || continues(e.Fact, fact) || fact == key.ReplaceAllString(e.Fact, "")
			}; {
			case !c.has(e.Source):
				sum.nowhere++
			case !slices.ContainsFunc(facts, about):
				t.Errorf("%s is put down to %s, of which the facts say %v", e.Fact, e.Source, facts)
			default:
				sum.evidence++
			}
		}
	}
	return sum
}

func continues(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], ".["))
}

// placesOf are the facts by the places that they name: the paths of facts.origins, and without their keys those of
// entries that have a source and a line, or lines of their parts.
func placesOf(t *testing.T, f *facts.Facts) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	var walk func(path, source string, v any)
	walk = func(path, source string, v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(path, source, one)
			}
		case map[string]any:
			if fact, ok := v["fact"].(string); ok {
				path = fact
			}
			if own, ok := v["source"].(string); ok {
				source = own
			}
			for name, part := range v {
				if line, ok := part.(float64); ok && source != "" {
					place := fmt.Sprintf("%s:%v", source, line)
					if of, isPart := strings.CutSuffix(path, ".lines"); isPart {
						all[place] = append(all[place], of+"."+name)
					} else if name == "line" || name == "shown" {
						all[place] = append(all[place], path)
					}
				}
				of := source
				if text, ok := v["name"].(string); ok && path == "texts" && name == "topics" { // They are those of the text.
					of = text
				}
				walk(strings.TrimPrefix(path+"."+name, "."), of, part)
			}
		}
	}
	walk("", "", asJSON(t, f))
	return all
}

// key is what names an element of a list in a path.
var key = regexp.MustCompile(`\[[^\]]*\]`)

// asJSON is a value as a program reads it from the report.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	return decoded[any](t, expect.Value(json.Marshal(value))(t))
}
