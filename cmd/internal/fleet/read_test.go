package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

func reportOf(host, driver string, rules ...string) string {
	findings := expect.Map(rules, func(r string) string {
		return fmt.Sprintf(`{"rule":%q,"title":"T","severity":"high","remedies":["x"]}`, r)
	})
	state, exit := "healthy", 0
	if len(rules) > 0 {
		state, exit = "findings", 1
	}
	return fmt.Sprintf(`{"schema":"gpudoctor.report/v1","host":{"hostname":%q,"driver":%q,"gpus":[{"name":"H200"}]},"verdict":{"state":%q,"exit_code":%d},"findings":[%s]}`,
		host, driver, state, exit, strings.Join(findings, ","))
}

// TestRead checks that reports are read from a folder, an archive and a stream alike, and that what is no report is one
// line and loses nothing else.
func TestRead(t *testing.T) {
	t.Parallel()
	good := []string{reportOf("n1", "570"), reportOf("n2", "570", "acs-redirect"), reportOf("n3", "575")}
	bad := map[string]string{
		"cut.json":    reportOf("n4", "570")[:60],
		"other.json":  `{"schema":"gpudoctor.diff/v1"}`,
		"broken.json": "hello",
		"again.json":  reportOf("n3", "580"),
	}
	files, folder := map[string]string{}, t.TempDir()
	for i, r := range good {
		files[fmt.Sprintf("a%d.json", i)] = r
	}
	for name, content := range bad {
		files["b-"+name] = content
	}
	all := fstest.MapFS{}
	for name, content := range files { // The last one counts.
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	expect.NoError(t, os.CopyFS(folder, all))
	known := expect.Value(rules.Load())(t)
	for name, c := range map[string]struct {
		path, stdin string
		problems    int
	}{
		"a folder":   {folder, "", len(bad)},
		"an archive": {"-", string(checktest.Tar(t, "", all)), len(bad)},
		"a stream":   {"-", strings.Join(good, "\n") + bad["other.json"] + bad["again.json"] + bad["cut.json"], 3},
	} {
		r := expect.Value(Read(t.Context(), []string{c.path}, strings.NewReader(c.stdin), nil))(t)
		f := Fold(r, []string{"n1", "n9"}, "test")
		expect.Equal(t, 3, len(f.Nodes), "%s: nodes", name)
		expect.Equal(t, c.problems, len(f.Problems), "%s: problems %v", name, f.Problems)
		expect.Equal(t, "580", f.Nodes[2].Traits["driver"], "%s: the later report counts", name)
		expect.NoDiff(t, []string{"n9"}, f.Unreported, "%s: unreported", name)
		expect.Equal(t, 1, f.ExitCode, "%s: exit code", name)
		expect.Equal(t, 1, len(f.Causes), "%s: causes", name)
		expect.NoDiff(t, []string{"n2"}, f.Causes[0].Nodes, "%s: its nodes", name)
		expect.NoError(t, f.Judge(t.Context(), known))
		expect.Equal(t, 2, len(f.Causes), "%s: causes of the fleet", name)
		expect.NoDiff(t, []string{"n3"}, f.Causes[1].Nodes, "%s: the node with another driver", name)
	}
}

// TestBadInput checks that each input that cannot be a report is told in one line, and loses none of the others.
func TestBadInput(t *testing.T) {
	t.Parallel()
	good := reportOf("good", "570") + "\n"
	for name, c := range map[string]struct {
		input, said string
		lost        bool
	}{
		"cut off":      {reportOf("n1", "570")[:60], "is cut off", true},
		"nothing":      {"", "", false},
		"another kind": {`{"schema":"gpudoctor.diff/v1"}`, `is no report of check (schema "gpudoctor.diff/v1")`, false},
		"newer":        {`{"schema":"gpudoctor.report/v2","verdict":7}`, "a newer gpudoctor wrote it (gpudoctor.report/v2): update this one", true},
		"another type": {strings.Replace(reportOf("n1", "570"), `"exit_code":0`, `"exit_code":"0"`, 1), "cannot unmarshal string", true},
		"a text":       {"srun: error: n1: task 1: Killed\n", "is no JSON", false},
		"a list":       {"[1, 2]", "is no report of check", false},
		"escapes":      {`{"schema":"\u001b[31m\u202e"}`, `\x1b`, false},
		"far too long": {`{"schema":"` + strings.Repeat("x", maxReport+8192) + "\n", "longer than 16 MiB", true},
		"far too deep": {strings.Repeat("[", 1<<20) + "\n", "exceeded max depth", false},
	} {
		for _, input := range []string{c.input + "\n" + good, good + c.input} {
			r := expect.Value(Read(t.Context(), []string{"-"}, strings.NewReader(input), nil))(t)
			f := Fold(r, nil, "test")
			expect.Equal(t, "good", strings.Join(expect.Map(f.Nodes, func(n *Node) string { return n.Name }), " "), "%s: the nodes", name)
			if c.said == "" {
				expect.Len(t, 0, f.Problems, "%s: problems", name)
				continue
			}
			expect.Must(t, len(f.Problems) == 1, "%s: problems: %v", name, f.Problems)
			expect.That(t, strings.Contains(f.Problems[0].Reason, c.said), "%s: %s", name, f.Problems[0])
			expect.Equal(t, map[bool]int{true: exitUnknown}[c.lost], f.ExitCode, "%s: exit code", name)
		}
	}
}

// TestUnproven checks that no report without a verdict, and no node without a report, makes a fleet healthy.
func TestUnproven(t *testing.T) {
	t.Parallel()
	for _, verdict := range []string{`{}`, `{"state":"fine"}`, `{"state":"healthy","exit_code":2}`, `{"state":"healthy","exit_code":-1}`, `{"state":"inconclusive","exit_code":3}`} {
		in := `{"schema":"gpudoctor.report/v1","host":{"hostname":"n1"},"verdict":` + verdict + `}` + reportOf("n2", "570")
		r := expect.Value(Read(t.Context(), []string{"-"}, strings.NewReader(in), nil))(t)
		expect.Equal(t, exitUnknown, Fold(r, nil, "test").ExitCode, "%s: exit code", verdict)
	}
	expect.Equal(t, exitUnknown, Fold(&Reading{}, nil, "test").ExitCode, "no report: exit code")
	empty := filepath.Join(t.TempDir(), "n1.json")
	expect.NoError(t, os.WriteFile(empty, nil, 0o600))
	r := expect.Value(Read(t.Context(), []string{empty}, nil, nil))(t)
	expect.That(t, len(r.Problems) == 1 && r.Problems[0].Lost, "an empty file: %v", r.Problems)
}

// TestLater checks that the report that was written last counts, in whatever order they are read, and that reports whose
// names were replaced are of as many nodes as there are files.
func TestLater(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	put := func(name, content string, age time.Duration) {
		file := filepath.Join(folder, name)
		expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		expect.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		at := time.Now().Add(-age)
		expect.NoError(t, os.Chtimes(file, at, at))
	}
	put("a.json", reportOf("n1", "new"), 0)
	put("b.json", reportOf("n1", "old"), time.Hour)
	redacted := strings.Replace(reportOf("host-1", "570"), `"verdict"`, `"redacted":"names","verdict"`, 1)
	put("n2/report.json", redacted, 0)
	put("n3/report.json", redacted, 0)
	put("n3/report.txt", "for people", 0)
	put(".hidden", "", 0)
	r := expect.Value(Read(t.Context(), []string{folder}, nil, nil))(t)
	f := Fold(r, nil, "test")
	expect.Must(t, len(f.Nodes) == 3, "%d nodes", len(f.Nodes))
	expect.Equal(t, "new", f.Nodes[slices.IndexFunc(f.Nodes, func(n *Node) bool { return n.Name == "n1" })].Traits["driver"], "the report that counts")
	expect.NoDiff(t, []Problem{{Source: filepath.Join(folder, "b.json"), Reason: "does not count: " + filepath.Join(folder, "a.json") + " is a later report of n1"}}, f.Problems, "problems")
}

// TestRecordings checks that a file without a report is judged, and no other.
func TestRecordings(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"n1.json": reportOf("n1", "570"), "n2.log": "srun: a warning\n" + reportOf("n2", "570"), "n3.txtar": "a recording", "n4.txt": "nothing", "n5.json": `{"schema":"gpudoctor.rep`, "n6.tar": "",
	} {
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	r, err := Read(t.Context(), []string{folder}, nil, func(_ context.Context, file string) ([]byte, error) {
		if raw, err := os.ReadFile(file); err != nil || string(raw) != "a recording" { //nolint:gosec // A file of the test.
			return nil, errors.Join(errors.New("not recognized"), err)
		}
		return []byte(reportOf("host-1", "575")), nil
	})
	expect.NoError(t, err)
	f := Fold(r, nil, "test")
	expect.Equal(t, "n1 n2 n3", strings.Join(expect.Map(f.Nodes, func(n *Node) string { return n.Name }), " "), "the nodes")
	expect.Equal(t, "575", f.Nodes[2].Traits["driver"], "the recording")
	expect.Must(t, len(f.Problems) == 4, "problems: %v", f.Problems)
	for i, part := range []string{"is no JSON: ", "; as a recording: not recognized", "is cut off", "is empty"} {
		expect.That(t, strings.Contains(f.Problems[i].Reason, part), "problem %d: %s", i, f.Problems[i])
	}
}

// TestNames checks how lists of nodes are read, and that they are bounded.
func TestNames(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"n1,n2":                "n1 n2",
		"n1\t n2\r\nn3\n":      "n1 n2 n3",
		"n[01-03,7],gpu[1-2]b": "n01 n02 n03 n7 gpu1b gpu2b",
		"n[1-":                 "n[1-",
		"größe,日本":             "größe 日本",
		"":                     "",
	} {
		expect.Equal(t, want, strings.Join(Names(list), " "), "%q", list)
	}
	for _, list := range []string{"n[1-99999999999]", strings.Repeat("n[0-99999],", 20), "[1-9999][1-9999][1-9999]", strings.Repeat("n ", 300_000)} {
		expect.That(t, len(Names(list)) <= maxNodes+1, "%.20s: %d names", list, len(Names(list)))
	}
	r := &Reading{}
	r.byName = map[string]int{}
	for _, name := range []string{"n1", "n2.example.org", "n3"} {
		r.add(&Node{Name: name})
	}
	expect.NoDiff(t, []string{"n2.other.org", "n4"}, r.unreported([]string{"n1.example.org", "n2", "n2.other.org", "n3", "n4", "n4"}), "unreported")
}

// FuzzRead checks that no input is more than a bounded number of nodes and problems, and that each format can be written.
func FuzzRead(f *testing.F) {
	f.Add([]byte(reportOf("n1", "570", "acs-redirect") + "\n{\n" + reportOf("n2", "575")))
	f.Add([]byte("\x1f\x8b"))
	f.Add(bytes.Repeat([]byte("{\n"), 2*maxBroken))
	f.Add([]byte("hello\n{\n{"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := expect.Value(Read(t.Context(), []string{"-"}, bytes.NewReader(in), nil))(t)
		fleet := Fold(r, []string{"n1"}, "test")
		expect.That(t, len(fleet.Nodes)+len(fleet.Problems) <= len(in)+1, "%d nodes and %d problems of %d bytes", len(fleet.Nodes), len(fleet.Problems), len(in))
		for _, format := range Formats() {
			expect.NoError(t, fleet.Write(io.Discard, format, report.Style{}))
		}
	})
}
