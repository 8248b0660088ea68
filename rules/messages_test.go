package rules

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// factsOfLine are the facts of a log of one line, an example of a row.
func factsOfLine(t *testing.T, row, line string) *facts.Facts {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.log")
	expect.NoError(t, os.WriteFile(file, []byte(line+"\n"), 0o600))
	read, err := text.Read(t.Context(), []string{file}, text.Options{})
	expect.Must(t, err == nil, "%s: its example %q: %v", row, line, err)
	return read.Facts
}

// TestFindingsOfRows checks, for every example of every row with a template, that a log with that line has the finding
// of the template: of a rule that exists, with a severity and a confidence, remedies that the rule names, the line as
// evidence, and no gap in its text. Of a template that asks for conditions, or gives way to one, it holds so with the
// former given alone: an example may show what the template gives way to.
func TestFindingsOfRows(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	tried := 0
	for i, row := range everyRow() {
		v := row.Finding
		if v == nil || expect.FewRows() && i%32 > 0 {
			continue // The race detector makes each many times as slow.
		}
		rule, ok := set.Rule(v.Rule)
		expect.Must(t, ok, "%s: the template's rule %s does not exist", row.ID, v.Rule)
		for _, grade := range grades(v) {
			for _, remedy := range grade.Remedies {
				expect.That(t, slices.Contains(rule.Remedies, remedy), "%s: the rule %s does not name the remedy %s", row.ID, v.Rule, remedy)
			}
		}
		for _, example := range row.Examples {
			tried++
			f := factsOfLine(t, row.ID, example)
			var got []Finding
			if len(v.When) == 0 && !slices.ContainsFunc(v.Unless, message.IsCondition) {
				got = expect.Value(set.Evaluate(t.Context(), f, Options{Only: []string{v.Rule}}))(t).Findings
			} else {
				got = set.rowFindings(byRowOf(f.Logs, f.KernelLog), given(v, row.ID, v.When...))[v.Rule]
			}
			said := byRowOf(f.Logs, f.KernelLog)[row.ID]
			expect.Must(t, len(said) == 1, "%s: %q is heard %d times", row.ID, example, len(said))
			subject := message.Fill(v.Subject.Value, said[0].Message, &message.Said{})
			at := slices.IndexFunc(got, func(f Finding) bool {
				return f.Rule == v.Rule && f.Subject == subject && slices.ContainsFunc(f.Evidence, func(e Evidence) bool {
					return e.Fact == "logs.messages["+row.ID+"]" || said[0].event != "" && e == said[0].evidence()
				})
			})
			if at < 0 {
				t.Errorf("%s: %q gives no finding of %s: %v", row.ID, example, v.Rule, got)
				continue
			}
			checkTold(t, said[0], got[at])
		}
	}
	expect.That(t, tried != 0, "no row has a template")
}

// TestFindingsOfRoles checks that a message which says only of what kind a failure is, or
// that it follows from another, never makes a confirmed finding alone.
func TestFindingsOfRoles(t *testing.T) {
	t.Parallel()
	set := wholeSet(t)
	tried := 0
	for _, row := range message.Statements() {
		if row.Finding == nil || row.Role != "category" && row.Role != "consequence" {
			continue
		}
		tried++
		rule, _ := set.Rule(row.Finding.Rule)
		expect.That(t, cmp.Or(row.Finding.Confidence, string(rule.Confidence)) != string(Confirmed), "%s has the role %s, and its template is confirmed by nothing else", row.ID, row.Role)
	}
	expect.That(t, tried != 0, "no row of these roles has a template")
}

// grades are all that a template may say.
func grades(v *message.Template) []message.Grade {
	all := []message.Grade{v.Grade}
	for _, c := range v.Grades {
		all = append(all, c.Grade)
	}
	return all
}

// given is what a template goes by where a row was said, all values are known and some conditions hold.
func given(v *message.Template, row string, holds ...string) *situation {
	said := &situation{Said: message.Said{Rows: map[string]bool{row: true}, Holds: map[string]bool{}, Values: map[string]string{}}}
	for _, name := range holds {
		said.Holds[name] = true
	}
	_, values := v.Conditions()
	for _, name := range values {
		said.Values[name] = "known"
	}
	return said
}

// checkTold checks that a finding of a message is whole. What the message said may hold braces.
func checkTold(t *testing.T, said entry, got Finding) {
	t.Helper()
	text := strings.ReplaceAll(got.Message, said.Text, "")
	for _, value := range said.Fields {
		text = strings.ReplaceAll(text, value, "")
	}
	expect.That(t, !strings.ContainsAny(text, "{}") && !strings.Contains(got.Message, message.UnknownWords), "%s: the text has a gap: %s", said.ID, got.Message)
	expect.That(t, got.Severity.Rank() != len(severities), "%s: the severity %q is none of %q", said.ID, got.Severity, severities)
	expect.That(t, got.Confidence.Rank() != len(confidences), "%s: the confidence %q is none of %q", said.ID, got.Confidence, confidences)
	expect.That(t, (got.Order == nil) == (said.event != "") && len(got.Remedies) != 0, "%s: a finding without order or remedies: %+v", said.ID, got)
}

// everyRow is each row of the catalogue: messages, and forms of kernel messages.
func everyRow() []*message.Row {
	all := expect.Map(message.Statements(), func(t *message.Statement) *message.Row { return &t.Row })
	for _, k := range message.KernelForms() {
		all = append(all, &k.Row)
	}
	return all
}

// heardOf is what is heard where lines of a row come one after the other; the last of them was read first.
func heardOf(row string, lines ...string) byRow {
	logs, kernel := &facts.LogFacts{}, &facts.KernelLogFacts{Source: "dmesg"}
	form := slices.IndexFunc(message.KernelForms(), func(k *message.KernelForm) bool { return k.ID == row })
	for i, line := range lines {
		if form >= 0 {
			kernel.Events = append(kernel.Events, facts.KernelEvent{ID: row, Kind: message.KernelForms()[form].Kind, Message: line})
		} else {
			logs.Messages = slices.Insert(logs.Messages, 0, facts.Message{ID: row, Text: line, Source: "a", Line: 8 + i, Order: 8 + i})
		}
	}
	return byRowOf(logs, kernel)
}

// TestConditionsDecide checks, of every template: without one of its conditions it is not
// told, beside a row or a condition that it gives way to neither; each grade is reported
// where its conditions alone hold; and of several messages the first is reported.
func TestConditionsDecide(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	gaveWay, graded := 0, 0
	for id, v := range message.Templates() {
		messages := heardOf(id, "said first", "said later")
		told := func(holds ...string) []Finding { return set.rowFindings(messages, given(v, id, holds...))[v.Rule] }
		whole := told(v.When...)
		if len(whole) != 1 || whole[0].Order != nil && *whole[0].Order != 8 || whole[0].Evidence[0].Value != "said first" || v.All != (len(whole[0].Evidence) == 2) {
			t.Errorf("%s, twice: %v", id, whole)
			continue
		}
		for i, name := range v.When {
			expect.That(t, len(told(slices.Delete(slices.Clone(v.When), i, i+1)...)) == 0, "%s is told without %s", id, name)
		}
		for _, name := range v.Unless {
			gaveWay++
			expect.That(t, len(told(append(slices.Clone(v.When), name)...)) == 0, "%s is told beside %s", id, name)
		}
		for i, c := range v.Grades {
			graded++
			f := told(slices.Concat(v.When, c.When)...)
			expect.Must(t, len(f) == 1, "%s: grade %d is never told", id, i+1)
			expect.That(t, i != 0 || (c.Severity == "" || string(f[0].Severity) == c.Severity) && (c.Remedies == nil || slices.Equal(f[0].Remedies, c.Remedies)), "%s: grade %d is told as %v", id, i+1, f[0])
			checkTold(t, messages[id][0], f[0])
		}
	}
	expect.That(t, gaveWay != 0 && graded != 0, "%d rows or conditions before which a template gives way, %d grades", gaveWay, graded)
}

// TestToldAlso checks that the facts of a condition that is also shown are evidence where it holds, and only there.
func TestToldAlso(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	tried := 0
	for id, v := range message.Templates() {
		messages := heardOf(id, "")
		for _, name := range v.Also {
			if !message.IsCondition(name) || slices.Contains(v.When, name) {
				continue
			}
			tried++
			for _, holds := range []bool{false, true} {
				said := given(v, id, v.When...)
				said.Holds[name] = holds
				said.shown = map[string][]Evidence{name: {{Fact: "a.fact"}}}
				f := set.rowFindings(messages, said)[v.Rule][0]
				expect.That(t, slices.ContainsFunc(f.Evidence, func(e Evidence) bool { return e.Fact == "a.fact" }) == holds, "%s, where %s holds: %t: %v", id, name, holds, f.Evidence)
			}
		}
	}
	expect.That(t, tried != 0, "no template shows a condition")
}

// TestToldParams checks that a list of a parameter is of all messages, each value once, and may hold constants.
func TestToldParams(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	for _, tt := range []struct{ row, rule, param, want string }{
		{"nvidia-devices-forbidden", "container-caps", "nodes", "[/dev/nvidia0 /dev/nvidia1]"},
		{"ucx-no-transports", "env-misconfig", "variables", "[UCX_TLS UCX_NET_DEVICES]"},
	} {
		logs := &facts.LogFacts{}
		for order, node := range []string{"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia0"} {
			logs.Messages = append(logs.Messages, facts.Message{ID: tt.row, Order: order, Fields: map[string]string{"node": node}})
		}
		slices.Reverse(logs.Messages)
		f := set.rowFindings(byRowOf(logs, nil), given(message.Templates()[tt.row], tt.row))[tt.rule][0]
		expect.Equal(t, tt.want, fmt.Sprint(f.Params[tt.param]), "%s: %s", tt.row, tt.param)
	}
}

// TestConditionNames checks that every name that a template uses is a row of the catalogue
// or is defined in one file of conditions, and that every name defined there is used.
func TestConditionNames(t *testing.T) {
	t.Parallel()
	set := wholeSet(t)
	const where = conditionFiles + "*.rego"
	defined := map[string]map[string]bool{"holds": {}, "values": {}, "shown": {}}
	files := map[string]string{}
	for file, m := range set.modules {
		if !strings.HasPrefix(file, conditionFiles) {
			continue
		}
		for _, rule := range m.Rules {
			of := defined[rule.Head.Name.String()]
			if of == nil {
				continue
			}
			var name string
			switch key := rule.Head.Key.Value.(type) {
			case ast.String:
				name = string(key)
			case *ast.Array:
				written, _ := key.Elem(0).Value.(ast.String)
				name = string(written)
			}
			expect.That(t, name != "", "%s: the name of a condition is to be written out", rule.Location)
			other := files[name]
			expect.That(t, other == "" || other == file, "%s is defined in %s and in %s", name, other, file)
			of[name], files[name] = true, file
		}
	}
	used := map[string]map[string]bool{"holds": {}, "values": {}}
	rows := map[string]bool{}
	for _, row := range everyRow() {
		rows[row.ID] = true
	}
	for id, v := range message.Templates() {
		names, values := v.Conditions()
		for _, name := range names {
			used["holds"][name] = true
			expect.That(t, defined["holds"][name], "%s: no condition %s in %s", id, name, where)
		}
		for _, name := range values {
			used["values"][name] = true
			expect.That(t, defined["values"][name], "%s: no value %s in %s", id, name, where)
		}
		others := slices.Concat(v.When, v.Unless, v.Also)
		for _, c := range v.Grades {
			others = slices.Concat(others, c.When, c.Unless)
		}
		for _, name := range others {
			expect.That(t, message.IsCondition(name) || rows[name], "%s: %s is no row", id, name)
		}
	}
	for name := range defined["shown"] {
		expect.That(t, defined["holds"][name], "%s: %s is shown and is no condition", where, name)
	}
	for set, names := range used {
		for name := range defined[set] {
			expect.That(t, names[name], "%s: no template uses %s", where, name)
		}
	}
}

// TestWholeParams checks that a param that is the place of a value alone takes a list as
// it is, and is left out where the value is an empty text.
func TestWholeParams(t *testing.T) {
	t.Parallel()
	const row, place = "cuda-nvlink", "{@all_gpus}"
	expect.Must(t, message.Templates()[row].Params["gpus"].Value == place, "%s has the params %v", row, message.Templates()[row].Params)
	messages, params := heardOf(row, "said"), message.Templates()[row].Params
	told := func(value *ast.Term) any {
		said := conditionsFrom(messages, answer{sets: map[string][]*ast.Term{"values": {ast.ArrayTerm(ast.StringTerm("all_gpus"), value)}}})
		return said.params(params, messages[row][0].Message, nil)["gpus"]
	}
	got := told(ast.ArrayTerm(ast.StringTerm("GPU0")))
	expect.That(t, reflect.DeepEqual(got, []any{"GPU0"}), "a list becomes %v", got)
	got = told(ast.StringTerm(""))
	expect.That(t, got == nil, "an empty text becomes %v", got)
}

// TestFailedConditions checks, for every template, that its rule is at fault where the
// conditions that it names could not be asked, whether it is reported without them or not.
func TestFailedConditions(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	untold := 0
	for id, v := range message.Templates() {
		h := heardOf(id, "said")
		answers := map[string]reading{v.Rule: {}}
		h.noteFailure(answers, "it failed")
		got := answers[v.Rule]
		names, values := v.Conditions()
		expect.That(t, (len(got.faults) == 1) == (len(names)+len(values) > 0), "%s: faults %q with the conditions %q and the values %q", id, got.faults, names, values)
		if len(set.rowFindings(h, conditionsFrom(h, answer{}))[v.Rule]) == 0 {
			untold++
		}
	}
	expect.That(t, untold != 0, "no template waits for a condition")
}

// TestToldSubjects checks that there is a finding for each GPU where the subject has a place,
// and one for all where it stands in brackets; and what both say of the GPUs.
func TestToldSubjects(t *testing.T) {
	t.Parallel()
	set := compiledSet(t)
	event := func(id, gpu string) facts.KernelEvent {
		return facts.KernelEvent{ID: id, Kind: "amdgpu", Address: gpu, Message: strings.TrimSpace("it happened " + gpu)}
	}
	const a, b = "0000:05:00.0", "0000:26:00.0"
	told := func(events ...facts.KernelEvent) []string {
		var got []string
		for _, of := range set.rowFindings(byRowOf(nil, &facts.KernelLogFacts{Events: events}), &situation{}) {
			for _, f := range of {
				got = append(got, fmt.Sprintf("%s %s of %v: %s (%d), %v", f.ID, f.Subject, f.Affects, f.Message, len(f.Evidence), f.Params))
			}
		}
		slices.Sort(got)
		return got
	}
	for name, tt := range map[string]struct{ got, want []string }{
		"each GPU": {told(event("amdgpu-poison-created", b), event("amdgpu-poison-consumed", b), event("amdgpu-poison-created", a)), []string{
			"logged 0000:05:00.0 of []: The kernel log reports that GPU 0000:05:00.0 found uncorrectable memory (poison): it happened 0000:05:00.0 (1), map[gpu:0000:05:00.0]",
			"logged 0000:26:00.0 of []: The kernel log reports that GPU 0000:26:00.0 found uncorrectable memory (poison): it happened 0000:26:00.0 (2), map[gpu:0000:26:00.0]",
		}},
		"no GPU": {told(event("amdgpu-queue-silent", "")), []string{"logged host of []: The kernel log reports that an AMD GPU does not answer its driver: it happened (1), map[gpu:host]"}},
		"several": {
			told(event("amdgpu-xgmi-errors-uncorrected", b), event("amdgpu-xgmi-hive-failed", a), event("amdgpu-xgmi-hive-failed", "")),
			[]string{"uncorrected host of [0000:05:00.0 0000:26:00.0]: The driver reports uncorrectable errors on xGMI links: it happened 0000:26:00.0 (3), map[gpus:[0000:26:00.0 0000:05:00.0]]"},
		},
		"one": {
			told(event("amdgpu-xgmi-errors-corrected", b), event("amdgpu-xgmi-errors-corrected", "")),
			[]string{"corrected 0000:26:00.0 of [0000:26:00.0]: The driver corrected errors on xGMI links: it happened 0000:26:00.0 (2), map[gpus:[0000:26:00.0]]"},
		},
		"none of several": {told(event("amdgpu-xgmi-errors-corrected", "")), []string{"corrected host of []: The driver corrected errors on xGMI links: it happened (1), map[gpus:[host]]"}},
	} {
		expect.That(t, slices.Equal(tt.got, tt.want), "%s: got\n%s\nwant\n%s", name, strings.Join(tt.got, "\n"), strings.Join(tt.want, "\n"))
	}
}
