package patch

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	expect.That(t, err == nil && again.Text == got.Text && len(again.Changes) == 0, "%s: it changes again: %v\n%s\n---\n%s", name, err, got.Text, again.Text)
	for _, m := range again.Manual { // What was written may make up for what was not, as the host's /dev/shm does for one of a size.
		expect.That(t, slices.ContainsFunc(got.Manual, func(o Remark) bool { return o.What == m.What && o.Where == m.Where }), "%s: by hand: first %v, then %v", name, got.Manual, again.Manual)
	}
	expect.That(t, (len(got.Changes) > 0) == (got.Text != text), "%s: %d changes, and the text differs: %v", name, len(got.Changes), got.Text != text)
	keepsLines(t, name, text, got)
	return got, true
}

// keepsLines checks that the patch takes no more lines of the original away than were changed or removed, and that line ends stay. TestApplied
// checks that it is the difference.
func keepsLines(t *testing.T, name, text string, got Result) {
	t.Helper()
	diff := expect.Value(got.Unified(name, text))(t)
	lost := strings.Count(diff, "\n-") // Its heading does not begin behind a line end.
	// An entry of two lines goes with the key above it and its comment.
	expect.That(t, lost <= 4*len(got.Changes), "%s: %d lines are lost, with %d changes:\n%s", name, lost, len(got.Changes), diff)
	for l := range strings.Lines(got.Text) {
		expect.That(t, strings.TrimSpace(l) == "" || !strings.HasSuffix(text, "\n") || strings.HasSuffix(l, "\n"), "%s: a line lost its end: %q", name, l)
	}
}

// count counts the plain values of a document, by the keys above each.
func count(n *yaml.Node, path string, by int, all map[string]int) {
	for i, c := range n.Content {
		switch {
		case n.Kind != yaml.MappingNode:
			count(c, path+"[]", by, all)
		case i%2 == 1:
			count(c, path+"."+n.Content[i-1].Value, by, all)
		}
	}
	if len(n.Content) == 0 && n.Tag != "!!null" {
		all[path+"="+n.Value] += by
	}
}

// keepsMeaning checks that a YAML file says what it said before, but for its changes.
func keepsMeaning(t *testing.T, name, text string, got Result) {
	t.Helper()
	before, err := documentsOf(text)
	if err != nil || len(before) == 0 || before[0].Kind == yaml.ScalarNode { // A script reads as YAML as well.
		return
	}
	after, err := documentsOf(got.Text)
	expect.Must(t, err == nil, "%s: %v\n%s", name, err, got.Text)
	lost, missing := map[string]int{}, 0
	for _, n := range before {
		count(n, "", 1, lost)
	}
	for _, n := range after {
		count(n, "", -1, lost)
	}
	for leaf, n := range lost {
		if !strings.HasSuffix(leaf, ".name=NCCL_P2P_DISABLE") { // It goes with its value.
			missing += max(n, 0)
		}
	}
	// A limit may have two values.
	expect.That(t, missing <= 2*len(got.Changes), "%s: %d things that it said are missing, with %d changes:\n%s", name, missing, len(got.Changes), got.Text)
}

// TestFiles changes every launch file of the fixtures and of this package, with each setting
// alone, and with all of them with each kind of line end, with and without the last. With all of them, a
// file describes the jobs that it described.
func TestFiles(t *testing.T) {
	t.Parallel()
	changed := 0
	for name, text := range cases(t) {
		sets := [][]Want{settings(), settings()[:10]}
		for _, w := range settings() {
			sets = append(sets, []Want{w})
		}
		for i, wants := range sets {
			for _, form := range []string{text, strings.TrimSuffix(text, "\n")} {
				if i > 1 && form != text {
					continue
				}
				got, ok := made(t, name, form, wants)
				if !ok {
					continue
				}
				if len(got.Changes) > 0 {
					changed++
				}
				if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
					keepsMeaning(t, name, form, got)
				}
				if i == 0 && form == text {
					after := jobs(name, got.Text)
					for job, n := range jobs(name, text) {
						expect.That(t, after[job] == n, "%s: %s: %d, then %d in\n%s", name, job, n, after[job], got.Text)
					}
				}
			}
		}
	}
	expect.AtLeast(t, 200, changed, "files were changed")
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
		for _, form := range []string{text, strings.TrimSuffix(text, "\n")} {
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
				out, err := applied(t, folder, diff, words...)
				expect.Must(t, err == nil, "%s: %v: %v\n%s\n%s", name, words, err, out, diff)
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

// FuzzMake checks that any text is either refused or changed as it must be, and is still read as a launch.
func FuzzMake(f *testing.F) {
	for name, text := range cases(f) {
		f.Add(name, text)
	}
	f.Add("pod.yaml", "containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]")
	f.Fuzz(func(t *testing.T, name, text string) {
		if len(text) > 4096 {
			t.Skip()
		}
		got, ok := made(t, name, text, settings())
		if ok && (strings.HasSuffix(name, "yaml") || strings.Contains(text, "containers:")) {
			keepsMeaning(t, name, text, got)
			expect.That(t, len(got.Text) <= len(text)+100_000, "%d bytes became %d", len(text), len(got.Text))
		}
		expect.That(t, len(got.Changes) == 0 || len(jobs(name, got.Text)) >= len(jobs(name, text)), "jobs are lost in\n%s", got.Text)
	})
}

// TestRefused checks that files that cannot be changed line by line are refused, with a hint where there is one.
func TestRefused(t *testing.T) {
	file := "services:\n  a:\n    gpus: all\n"
	for name, text := range map[string]string{
		"line ends": strings.ReplaceAll(file, "\n", "\r\n"), "a byte order mark": "\ufeff" + file, "binary": file + "\x00", "no text": file + "\xff",
		"too large": file + strings.Repeat("\n", maxLines), "a script": "#!/bin/bash\ndocker run --gpus all image\n", "a template": "services: {a: {image: '{{ .Image }}', gpus: all}}\n",
	} {
		got, err := Make(t.Context(), Request{Name: "compose.yaml", Text: text, Wants: settings(), GPUs: 8, Vendor: "nvidia"})
		expect.That(t, err != nil && got.Text == "", "%s: changed to %q", name, got.Text)
	}
}

// TestLarge checks that files of the largest size, with as many containers and variables as fit, are changed or refused in time.
func TestLarge(t *testing.T) {
	t.Parallel()
	const pod = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n"
	for name, parts := range map[string][2]string{
		"pod.yaml":  {pod, "  - name: a\n    resources: {limits: {nvidia.com/gpu: 8}}\n"},
		"pods.yaml": {"", pod + "  - name: a\n    resources: {limits: {nvidia.com/gpu: 8}}\n---\n"},
	} {
		if expect.FewRows() && name != "pod.yaml" {
			continue
		}
		for _, n := range []int{10, (MaxBytes - len(parts[0])) / len(parts[1])} {
			begun := time.Now()
			got, err := Make(t.Context(), Request{Name: name, Text: parts[0] + strings.Repeat(parts[1], n), Wants: settings(), GPUs: 8, Vendor: "nvidia"})
			expect.That(t, (n > 10) == errors.Is(err, ErrLarge) && (n > 10 || len(got.Changes) > 0), "%s: %d parts: %d changes, %v", name, n, len(got.Changes), err)
			expect.That(t, time.Since(begun) < time.Minute, "%s: it takes %v", name, time.Since(begun)) // Seconds on an idle machine.
		}
	}
	roots := expect.Value(documentsOf("a: &a {x: y}\nb: &b {<<: [*a" + strings.Repeat(", *a", 3000) + "]}\nc: &c {<<: [*b" + strings.Repeat(", *b", 3000) + "]}\nd: &d {<<: [*c, *d]}\n"))(t)
	expect.Equal(t, "", text(roots[0], "d", "missing"), "a key that mappings merged into each other lack")
}

// TestGoldenPatches shows the patches of this package's files, with what is left to a person.
func TestGoldenPatches(t *testing.T) {
	all := cases(t)
	groups := map[string]*bytes.Buffer{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		folder := filepath.Dir(name)
		if m, err := filepath.Glob("testdata/" + folder + ".txtar"); err != nil || len(m) == 0 {
			continue
		}
		if groups[folder] == nil {
			groups[folder] = new(bytes.Buffer)
		}
		b := groups[folder]
		got, ok := made(t, name, all[name], settings())
		expect.Must(t, ok, "%s is not changed", name)
		diff := expect.Value(got.Unified(filepath.Base(name), all[name]))(t)
		fmt.Fprintf(b, "== %s\n%s", filepath.Base(name), diff)
		for _, m := range got.Manual {
			fmt.Fprintf(b, "by hand: %d: %s: %s: %s\n", m.Line, m.Where, m.What, m.Note)
		}
		for _, m := range got.Notes {
			fmt.Fprintf(b, "note: %s: %s: %s\n", m.Where, m.What, m.Note)
		}
	}
	for folder, b := range groups {
		expect.Golden(t, "testdata/"+folder+".golden", b.Bytes())
	}
}
