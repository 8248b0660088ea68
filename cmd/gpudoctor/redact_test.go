package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// diagnosisOf is a diagnosis without names: what was found, how grave and how sure it
// is, what is advised, and the exit code.
func diagnosisOf(t *testing.T, known knowledge, doc *facts.Facts) []string {
	t.Helper()
	r := requestFor(rules.Training, "x")
	verdict := expect.Value(known.rules.Evaluate(t.Context(), doc, rules.Options{Profile: r.profile, Memory: ruleMemory}))(t)
	ranking := r.rank(known.remedies, verdict.Findings, doc)
	d := report.New(report.Input{
		Profile: r.profile, FailOn: r.failOn, Rules: known.rules.Rules(), Facts: doc, Verdict: *verdict, Advice: ranking.Advice, Withheld: ranking.Withheld,
	})
	var found []string
	var add func(all []rules.Finding, indent string)
	add = func(all []rules.Finding, indent string) {
		for _, f := range all {
			found = append(found, fmt.Sprintf("%s%s %s %s, %d pieces of evidence", indent, f.Rule, f.Severity, f.Confidence, len(f.Evidence)))
			add(f.Explains, indent+"  ")
		}
	}
	add(d.Findings, "")
	slices.Sort(found) // The findings of one rule stand in order of their subjects.
	out := expect.Map(d.Advice, func(a remedies.Advice) string { return "advice " + a.Remedy })
	slices.Sort(out)
	skipped := expect.Map(d.Skipped, func(s report.Skipped) string { return "skipped " + s.Rule })
	return slices.Concat(found, out, skipped, []string{fmt.Sprintf("%s, exit %d", d.Verdict.State, d.Verdict.ExitCode)})
}

// TestRedactionKeepsDiagnosis checks that the redacted facts of every recorded
// machine and of every text give the diagnosis that the facts themselves give.
func TestRedactionKeepsDiagnosis(t *testing.T) {
	known := learnt(t)
	examples := expect.Value(filepath.Glob("../../fixtures/*/*.txtar"))(t)
	expect.Must(t, len(examples) > 0, "no examples")
	for _, dir := range filepath.SplitList(os.Getenv("GPUDOCTOR_TEST_TEXTS")) { // More of them, by hand.
		examples = append(examples, expect.Value(filepath.Glob(dir))(t)...)
	}
	for _, file := range expect.SomeRows(8, examples) {
		f := factsOf(t, file)
		if f == nil {
			continue
		}
		redacted := host.RedactFacts(f)
		expect.NoDiff(t, diagnosisOf(t, known, f), diagnosisOf(t, known, redacted), "%s: redacted facts are judged differently", file)
		expect.NoDiff(t, redacted, host.RedactFacts(redacted), "%s: redacting twice changes something", file)
	}
}

// TestRedactOddHostNames calls a machine by every word that stands in its facts: no
// field that a rule reads may be taken for its name.
func TestRedactOddHostNames(t *testing.T) {
	files := []string{"../../fixtures/hosts/h200x2.txtar", "../../fixtures/hosts/model-mi250x4.txtar"}
	if testing.Short() {
		files = files[:1]
	}
	tried := 0
	for _, file := range files {
		f := factsOf(t, file)
		f.Links = nil // Many pairs, all alike.
		encode := func(hostname string) map[string]any {
			f.Host.Hostname = hostname
			redacted := host.RedactFacts(f)
			redacted.Host.Hostname = ""
			document, ok := asJSON(t, redacted).(map[string]any)
			expect.Must(t, ok, "facts are no object")
			return document
		}
		want := encode("zz-9-none")
		words := map[string]bool{}
		wordsIn(want, words)
		for word := range words {
			if len(word) < 3 || len(word) > 24 || expect.FewRows() && len(word)%5 > 0 {
				continue
			}
			tried++
			expect.NoDiff(t, want, encode(word), "%s: on a host called %q other facts change:\n", file, word)
		}
	}
	t.Logf("%d names", tried)
}

func wordsIn(v any, words map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if key != "value" { // Of a variable: somebody wrote it.
				wordsIn(e, words)
			}
		}
	case []any:
		for _, e := range v {
			wordsIn(e, words)
		}
	case string:
		// A field that holds one word, which a host can be called by.
		if !strings.ContainsAny(v, " /.:_,") && !strings.HasPrefix(v, "lib") {
			words[v] = true
		}
	}
}

func factsOf(t *testing.T, file string) *facts.Facts {
	t.Helper()
	read, err := text.Read(t.Context(), []string{file}, text.Options{})
	if errors.Is(err, text.ErrNothing) || err != nil && !strings.HasPrefix(file, "../../fixtures") {
		return nil
	}
	expect.NoError(t, err)
	return read.Facts
}

// corpus reads the corpus of things that must not be seen, by their kinds, and its lines, each with one of the things of its
// kind, so that every thing stands somewhere. Package host, which holds the corpus, tries every thing in every line.
func corpus(t *testing.T) (things map[string][]string, lines []string) {
	t.Helper()
	raw := expect.Value(os.ReadFile("../../checks/host/testdata/planted.tsv"))(t)
	things, seen := map[string][]string{}, map[string]int{}
	rows := regexp.MustCompile(`(?m)^([^#\t]+)\t(thing|line)\t(.*)$`).FindAllStringSubmatch(string(raw), -1)
	for _, row := range rows {
		if row[2] == "thing" {
			if row[1] == "secret" {
				row[3] = strings.ReplaceAll(row[3], "+", "")
			}
			things[row[1]] = append(things[row[1]], row[3])
		}
	}
	for _, row := range rows {
		of, n := things[row[1]], seen[row[1]]
		if row[2] == "thing" || strings.Contains(row[3], `\n`) {
			continue
		}
		if n > 0 { // The first line stands with all of them.
			of = of[n%len(of):][:1]
		}
		lines = append(lines, expect.Map(of, func(thing string) string { return strings.ReplaceAll(row[3], "{}", thing) })...)
		seen[row[1]]++
	}
	return things, lines
}

// plantedFacts are the facts of a job that says each of the lines in a message
// that is a finding, and of a launch with the lines as its command.
func plantedFacts(lines []string) *facts.Facts {
	f := &facts.Facts{Schema: facts.FactsSchema, Host: &facts.HostFacts{Hostname: "gpunode-17.hpc.acme-corp.com"}, Logs: &facts.LogFacts{Messages: []facts.Message{}}}
	const said = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."
	for i, line := range lines {
		f.Logs.Messages = append(f.Logs.Messages, facts.Message{
			ID: "dataloader-bus-error", Program: "pytorch", Role: "cause", Text: fmt.Sprintf("%s line-%d %s", line, i, said), Host: "zeus",
			Source: "/home/alice/dgx-07.log", Line: i + 1, Order: i, Count: 1, Ranks: 1,
		})
		f.Launches = append(f.Launches, facts.Launch{
			Kind: "docker-run", Name: fmt.Sprintf("ProjectApollo-%d", i), Image: "registry.acme-corp.com/team/secret-model:v3", Command: strings.Fields(line),
			Variables: map[string]string{"NCCL_NOTE": line, "DB_PASSWORD": "hunter2"}, Source: "run.sh", Line: i + 1,
		})
		f.Unknown = append(f.Unknown, facts.Unknown{Section: "pci", Reason: line})
	}
	return f
}

// TestNothingPlantedLeaves runs the program over facts that are full of names and secrets: none may be seen in a file
// that it writes, and no secret on a terminal either.
func TestNothingPlantedLeaves(t *testing.T) {
	things, lines := corpus(t)
	dir := t.TempDir()
	input := filepath.Join(dir, "in.json")
	var raw bytes.Buffer
	expect.NoError(t, host.WriteFacts(&raw, plantedFacts(lines)))
	expect.NoError(t, os.WriteFile(input, raw.Bytes(), 0o600))
	output := func(args ...string) string {
		code, stdout, stderr := inProcess(args...)
		expect.Must(t, code != exitError, "%q: %s", args, stderr)
		return stdout
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	document := output("facts", "--from", input)
	said := output("check", "--from", input, "-o", file("r.txt"), "-o", file("r.json"), "-o", file("r.md"), "-o", file("r.html"), "--format", "json", "--verbose")
	all := map[string]string{"facts": document}
	for _, name := range []string{"r.txt", "r.json", "r.md", "r.html"} {
		raw := expect.Value(os.ReadFile(file(name)))(t)
		all[name] = html.UnescapeString(string(raw))
	}
	whole := map[string]string{"facts": output("facts", "--no-redact", "--from", input), "r.json": output("check", "--from", input, "--no-redact", "--format", "json")}
	inJSON := func(thing string) string {
		raw := expect.Value(json.Marshal(thing))(t)
		return strings.ToLower(strings.NewReplacer(`\u0026`, "&").Replace(string(raw[1 : len(raw)-1])))
	}
	for kind, list := range things {
		isSecret := slices.Contains([]string{"secret", "password", "key"}, kind)
		for _, thing := range expect.Map(list, inJSON) {
			for name, text := range whole {
				expect.That(t, strings.Contains(strings.ToLower(text), thing), "%q is not in %s with --no-redact: the test tests nothing", thing, name)
			}
			for name, text := range all {
				text = strings.ToLower(text)
				if at := strings.Index(text, thing); at >= 0 {
					t.Errorf("%q is seen in %s: %q", thing, name, text[max(0, at-80):min(len(text), at+80)])
				}
			}
			expect.That(t, !isSecret || !strings.Contains(strings.ToLower(said), thing), "the secret %q is seen on standard output", thing)
		}
	}
	for _, name := range []string{"zeus", "dgx-07", "Falcon42"} {
		expect.That(t, strings.Contains(said, name), "the name %s is not seen in a pipe, where names stay", name)
	}
	for name, text := range all {
		expect.That(t, name == "facts" || strings.Contains(text, "Names, addresses and secrets are replaced") || strings.Contains(text, `"redacted": "names"`), "%s does not say that it is redacted", name)
	}
}
