package patch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// settings are one of each kind that a file of containers can have, in the order of plans.
func settings() []Want {
	reason := "The machine needs it."
	return []Want{
		{Setting: plan.Setting{Kind: plan.Variable, Name: "NCCL_IB_HCA", Value: "=mlx5_0,mlx5_1", Reason: reason}},
		{Setting: plan.Setting{Kind: plan.Variable, Name: "CUDA_DEVICE_ORDER", Value: "PCI_BUS_ID", Reason: "The GPUs differ."}},
		{Setting: plan.Setting{Kind: plan.Unset, Name: "NCCL_P2P_DISABLE", Reason: "Peer access works here."}, Values: []string{"1"}},
		{Setting: plan.Setting{Kind: plan.GPUs, Value: "all", Reason: "It uses the GPUs."}},
		{Setting: plan.Setting{Kind: plan.SharedMemory, Value: "16g", Reason: "NCCL uses it. It costs nothing."}},
		{Setting: plan.Setting{Kind: plan.Device, Name: "/dev/infiniband", Reason: "NCCL opens the NICs."}},
		{Setting: plan.Setting{Kind: plan.Limit, Name: "memlock", Value: "-1", Reason: "NCCL opens the NICs."}},
		{Setting: plan.Setting{Kind: plan.Capability, Name: "IPC_LOCK", Reason: reason, For: []string{"kubernetes"}}},
		{Setting: plan.Setting{Kind: plan.Capability, Name: "SYS_NICE", Reason: "It binds memory."}},
		{Setting: plan.Setting{Kind: plan.Group, Name: "video", Reason: "Its nodes belong to it."}},
		{Setting: plan.Setting{Kind: plan.Namespace, Name: "ipc", Value: "host", Reason: "Containers exchange memory."}},
		{Setting: plan.Setting{Kind: plan.Mount, Name: "/sys", Value: "/sys:ro", Reason: "It reads the topology."}},
	}
}

// cases are the launch files of fixtures and of this package, by name.
func cases(tb testing.TB) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../../../fixtures/launches/*.txtar", "testdata/*.txtar"} {
		names, err := filepath.Glob(pattern)
		expect.Must(tb, err == nil && len(names) > 0, "%s: %d files, %v", pattern, len(names), err)
		for _, name := range names {
			a := expect.Value(txtar.ParseFile(name))(tb)
			for _, f := range a.Files {
				all[strings.TrimSuffix(filepath.Base(name), ".txtar")+"/"+filepath.Base(f.Name)] = string(f.Data)
			}
		}
	}
	return all
}

// made makes a patch, and checks what must hold of each: applied again it changes nothing, and
// what is not removed is there in its order, byte for byte.
func made(t *testing.T, name, text string, wants []Want) (Result, bool) {
	t.Helper()
	r := Request{Name: name, Text: text, Wants: wants, GPUs: 8, Vendor: "nvidia"}
	got, err := Make(t.Context(), r)
	if err != nil {
		return got, false
	}
	r.Text = got.Text
	again, err := Make(t.Context(), r)
	if err != nil || again.Text != got.Text || len(again.Changes) > 0 {
		t.Errorf("%s: it changes again: %v\n%s\n---\n%s", name, err, got.Text, again.Text)
	}
	if !slices.EqualFunc(again.Manual, got.Manual, func(a, b Remark) bool { return a.What == b.What && a.Where == b.Where }) {
		t.Errorf("%s: by hand: first %v, then %v", name, got.Manual, again.Manual)
	}
	if (len(got.Changes) > 0) != (got.Text != text) {
		t.Errorf("%s: %d changes, and the text differs: %v", name, len(got.Changes), got.Text != text)
	}
	keepsLines(t, name, text, got)
	return got, true
}

// keepsLines checks that the lines of the original are in the result, in order and byte for
// byte, but for as many as were changed or removed.
func keepsLines(t *testing.T, name, text string, got Result) {
	t.Helper()
	before, after := slices.Collect(strings.Lines(text)), slices.Collect(strings.Lines(got.Text))
	lost := len(before) - common(before, after)
	budget := 0
	for _, c := range got.Changes {
		if c.What != "" {
			budget += 4 // An entry of two lines, and the key above it.
		}
	}
	expect.That(t, lost <= budget, "%s: %d lines of %d are lost, with %d changes:\n%s", name, lost, len(before), len(got.Changes), got.Text)
	for _, l := range after {
		if strings.TrimSpace(l) != "" && strings.HasSuffix(text, "\n") && !strings.HasSuffix(l, "\n") {
			t.Errorf("%s: a line lost its end: %q", name, l)
		}
	}
	if strings.HasSuffix(text, "\n") != strings.HasSuffix(got.Text, "\n") && text != "" && got.Text != "" {
		t.Errorf("%s: the end of the last line changed", name)
	}
}

// common is the length of the longest common subsequence.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			old := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diagonal = old
		}
	}
	return row[len(b)]
}

// deviations counts what a document says that another does not: keys and items that are
// missing, and values that differ.
func deviations(before, after any) int {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			return 1
		}
		n := 0
		for key, value := range b {
			if other, has := a[key]; has {
				n += deviations(value, other)
			} else {
				n++
			}
		}
		return n
	case []any:
		a, ok := after.([]any)
		if !ok {
			return 1
		}
		// The cheapest way to find the items in order.
		row := make([]int, len(a)+1)
		for _, x := range b {
			diagonal := row[0]
			row[0]++
			for j, y := range a {
				old := row[j+1]
				row[j+1] = min(row[j+1]+1, row[j], diagonal+deviations(x, y))
				diagonal = old
			}
		}
		return row[len(a)]
	}
	if before == nil || reflect.DeepEqual(before, after) {
		return 0
	}
	return 1
}

// documents are those of a YAML file.
func documents(t *testing.T, text string) ([]any, error) {
	t.Helper()
	var all []any
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var n yaml.Node
		if err := d.Decode(&n); err != nil {
			if err.Error() == "EOF" {
				return all, nil
			}
			return nil, err
		}
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// keepsMeaning checks that a YAML file says what it said before, but for its changes.
func keepsMeaning(t *testing.T, name, text string, got Result) {
	t.Helper()
	before, err := documents(t, text)
	if err != nil || len(before) == 0 {
		return
	}
	if _, isText := before[0].(string); isText {
		return // A script reads as YAML as well.
	}
	after, err := documents(t, got.Text)
	expect.Must(t, err == nil, "%s: %v\n%s", name, err, got.Text)
	budget := 0
	for _, c := range got.Changes {
		if strings.HasPrefix(c.What, "remove ") || c.What != "" {
			budget++
		}
	}
	if n := deviations(before, after); n > budget {
		t.Errorf("%s: %d things that it said are missing, with %d changes:\n%s", name, n, budget, got.Text)
	}
}

// TestFiles changes every launch file of the fixtures and of this package, with each setting
// alone, and with all of them with each kind of line end, with and without the last. With all of them, a script is still one, and a
// file describes the jobs that it described.
func TestFiles(t *testing.T) {
	t.Parallel()
	changed, scripts := 0, 0
	for name, text := range cases(t) {
		sets := [][]Want{settings(), settings()[:10]}
		for _, w := range settings() {
			sets = append(sets, []Want{w})
		}
		for i, wants := range sets {
			for _, form := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), strings.TrimSuffix(text, "\n"), "\ufeff" + text} {
				if i > 1 && form != text {
					continue
				}
				script := i == 0 && form == text && (filepath.Ext(name) == ".sh" || filepath.Ext(name) == ".sbatch")
				got, ok := made(t, name, form, wants)
				if !ok {
					expect.That(t, !script, "%s is not changed", name)
					continue
				}
				if len(got.Changes) > 0 {
					changed++
				}
				if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
					keepsMeaning(t, name, form, got)
				}
				if script {
					isScript(t, name, got.Text)
					scripts++
				}
				if i == 0 && form == text {
					after := jobs(name, got.Text)
					for job, n := range jobs(name, text) {
						expect.That(t, after[job] == n, "%s: %s: %d, then %d in\n%s", name, job, n, after[job], got.Text)
					}
				}
				if strings.Contains(form, "\r\n") && strings.Count(got.Text, "\n") != strings.Count(got.Text, "\r\n") {
					t.Errorf("%s: line ends are mixed", name)
				}
				if strings.HasPrefix(form, "\ufeff") != strings.HasPrefix(got.Text, "\ufeff") {
					t.Errorf("%s: the byte order mark changed", name)
				}
			}
		}
	}
	expect.AtLeast(t, 200, changed, "files were changed")
	expect.AtLeast(t, 8, scripts, "scripts")
}

// isScript checks that a script is still one, by the shell itself.
func isScript(t *testing.T, name, text string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		return
	}
	file := filepath.Join(t.TempDir(), "script")
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), bash, "-n", file).CombinedOutput()
	expect.That(t, err == nil, "%s: %v: %s\n%s", name, err, out, text)
}

// jobs counts the jobs that a file describes, by kind and object.
func jobs(name, text string) map[string]int {
	count := map[string]int{}
	for _, l := range texttest.Parse(name, text).Launches {
		if l.Kind != "shell" {
			count[l.Kind+" "+l.Object]++
		}
	}
	return count
}

// applied runs a program that applies a patch.
func applied(t *testing.T, folder, diff string, words ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), words[0], words[1:]...)
	c.Dir, c.Stdin = folder, strings.NewReader(diff)
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestApplied checks that git and patch apply what is printed, and get the same text.
func TestApplied(t *testing.T) {
	t.Parallel()
	ran := map[string]int{}
	for name, text := range cases(t) {
		for _, form := range []string{text, strings.ReplaceAll(text, "\n", "\r\n"), strings.TrimSuffix(text, "\n")} {
			got, ok := made(t, name, form, settings())
			if !ok || len(got.Changes) == 0 {
				continue
			}
			for _, words := range [][]string{{"git", "apply", "-"}, {"patch", "-p1", "--binary", "--no-backup-if-mismatch"}} {
				if _, err := exec.LookPath(words[0]); err != nil {
					continue
				}
				folder := t.TempDir()
				inPatch := filepath.Base(name)
				if ran[words[0]]%2 == 1 {
					inPatch = "with space " + inPatch
				}
				file := filepath.Join(folder, inPatch)
				expect.NoError(t, os.WriteFile(file, []byte(form), 0o600))
				diff := expect.Value(got.Unified(inPatch, form))(t)
				if out, err := applied(t, folder, diff, words...); err != nil {
					t.Errorf("%s: %v: %v\n%s\n%s", name, words, err, out, diff)
					continue
				}
				after := expect.Value(os.ReadFile(file))(t)
				expect.That(t, string(after) == got.Text, "%s: %v gives\n%q\nnot\n%q", name, words, after, got.Text)
				ran[words[0]]++
			}
		}
	}
	if len(ran) == 0 {
		t.Skip("neither git nor patch")
	}
	t.Log(fmt.Sprint(ran))
}

// FuzzMake checks that any text is either refused or changed as it must be.
func FuzzMake(f *testing.F) {
	for name, text := range cases(f) {
		f.Add(name, text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		if len(text) > 4096 {
			t.Skip()
		}
		got, ok := made(t, name, text, settings())
		if ok && (strings.HasSuffix(name, "yaml") || strings.Contains(text, "containers:")) {
			keepsMeaning(t, name, text, got)
			expect.That(t, len(got.Text) <= len(text)+100_000, "%d bytes became %d", len(text), len(got.Text))
		}
	})
}
