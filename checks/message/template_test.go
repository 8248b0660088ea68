package message

import (
	"cmp"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestShare checks that a row may take the template of another row, of another file as
// well, and that one without a template of its own has none to give.
func TestShare(t *testing.T) {
	t.Parallel()
	row := func(id, finding string) string {
		return strings.NewReplacer("ID", id, "FINDING", finding).Replace(
			"- {id: ID, program: p, says: s, role: cause, anchors: [anchor], source: s, examples: [anchor], finding: {FINDING}}\n")
	}
	files := func(second string) fstest.MapFS {
		return fstest.MapFS{
			"a.yaml": {Data: []byte(row("first", "as: second"))},
			"b.yaml": {Data: []byte(row("second", second) + row("third", "as: second"))},
		}
	}
	rows := expect.Value(readStatements(files("rule: r, subject: s, text: t")))(t)
	expect.That(t, rows[0].Finding == rows[1].Finding && rows[2].Finding == rows[1].Finding && rows[1].Finding.Text == "t" && rows[1].Finding.Group == "second", "%v, %v, %v", rows[0].Finding, rows[1].Finding, rows[2].Finding)
	for finding, want := range map[string]string{
		"as: third":        "has no finding of its own",
		"as: third, id: x": "has no finding of its own",
		"rule: r, subject: s, text: t, params: {p: []}": "the list is empty",
	} {
		expect.Fails(readStatements(files(finding)))(t, want, "%s", finding)
	}
}

// TestParamFilled checks that a list holds what each message fills into each of its elements, and each value once.
func TestParamFilled(t *testing.T) {
	t.Parallel()
	said := []*facts.Message{{Fields: map[string]string{"a": "1"}}, {Fields: map[string]string{"a": "1", "b": "2"}}}
	p := Param{List: true, Value: "{a}", More: []string{"{b}", "2", "3", "{c}"}}
	expect.NoDiff(t, []string{"1", "2", "3"}, p.Filled(said, &Said{}), "it")
}

func TestFillWho(t *testing.T) {
	t.Parallel()
	three := 3
	for want, m := range map[string]facts.Message{
		"rank 3 on node7":            {Rank: &three, Host: "node7", PID: 12, Device: &three},
		"rank 3":                     {Rank: &three},
		"node7, GPU 3 of process 12": {Host: "node7", PID: 12, Device: &three},
		"node7":                      {Host: "node7", PID: 12},
		"the log":                    {PID: 12},
	} {
		expect.Equal(t, want+": it", Fill("{who}: it", &m, &Said{}), "%s", want)
	}
}

// TestTemplatesHaveFields checks that each place {name} of a template is a field of a row that has this template: words
// may stand in for a field that a line lacks ({name|words}), and a name that no row has would show them always.
func TestTemplatesHaveFields(t *testing.T) {
	t.Parallel()
	rows := expect.Value(readStatements(os.DirFS(".")))(t)
	fields, owner := map[*Template][]string{}, map[*Template]string{}
	for _, row := range rows {
		if row.Finding == nil {
			continue
		}
		like, err := regexp.Compile(row.Like)
		expect.Must(t, err == nil, "%s: %v", row.ID, err)
		fields[row.Finding] = append(fields[row.Finding], like.SubexpNames()...)
		owner[row.Finding] = cmp.Or(owner[row.Finding], row.ID)
	}
	for v, id := range owner {
		texts := v.texts()
		for _, c := range v.Grades {
			texts = append(texts, c.texts()...)
		}
		for _, place := range placeholder.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
			name := place[2]
			if place[1] == "" && !slices.Contains([]string{"text", "words", "who"}, name) && !slices.Contains(fields[v], name) {
				t.Errorf("%s: the finding has the place %s, and like has no group %q", id, place[0], name)
			}
		}
	}
}
