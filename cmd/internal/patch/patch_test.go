package patch

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
	expect.That(t, err == nil && again.Text == got.Text && len(again.Changes) == 0, "%s: it changes again: %v\n%s\n---\n%s", name, err, got.Text, again.Text)
	expect.That(t, slices.EqualFunc(again.Manual, got.Manual, func(a, b Remark) bool { return a.What == b.What && a.Where == b.Where }), "%s: by hand: first %v, then %v", name, got.Manual, again.Manual)
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
	expect.That(t, strings.HasSuffix(text, "\n") == strings.HasSuffix(got.Text, "\n") || text == "" || got.Text == "", "%s: the end of the last line changed", name)
}

// documents are those of a YAML file.
func documents(text string) (all []*yaml.Node, err error) {
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		n := new(yaml.Node)
		if err := d.Decode(n); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, n)
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
	before, err := documents(text)
	if err != nil || len(before) == 0 || before[0].Content[0].Kind == yaml.ScalarNode { // A script reads as YAML as well.
		return
	}
	after, err := documents(got.Text)
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
	expect.That(t, missing <= len(got.Changes), "%s: %d things that it said are missing, with %d changes:\n%s", name, missing, len(got.Changes), got.Text)
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
				expect.That(t, !strings.Contains(form, "\r\n") || strings.Count(got.Text, "\n") == strings.Count(got.Text, "\r\n"), "%s: line ends are mixed", name)
				expect.That(t, strings.HasPrefix(form, "\ufeff") == strings.HasPrefix(got.Text, "\ufeff"), "%s: the byte order mark changed", name)
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

// TestMutations checks that files with slips of the keyboard are refused or changed as they must be: lines that are
// lost, doubled, moved in or indented, and characters too many or too few.
func TestMutations(t *testing.T) {
	t.Parallel()
	all := cases(t)
	names := slices.Sorted(maps.Keys(all))
	var pool []string
	for _, name := range names {
		pool = append(pool, strings.SplitAfter(all[name], "\n")...)
	}
	source := rand.New(rand.NewPCG(1, 2))
	changed := 0
	for range map[bool]int{true: 200, false: 800}[testing.Short()] {
		name := names[source.IntN(len(names))]
		text := mutated(source, all[name], pool)
		got, ok := made(t, name, text, settings())
		if !ok || len(got.Changes) == 0 {
			continue
		}
		changed++
		if (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) && !strings.HasPrefix(text, "#!") {
			keepsMeaning(t, name, text, got)
		}
		expect.Must(t, !t.Failed(), "%s:\n%s", name, text)
	}
	expect.AtLeast(t, 30, changed, "files were changed")
}

// mutated is a text with a few slips. Others are lines that may be moved in.
func mutated(source *rand.Rand, text string, others []string) string {
	lines := strings.SplitAfter(text, "\n")
	for range 1 + source.IntN(4) {
		i := source.IntN(len(lines))
		at := source.IntN(len(lines[i]) + 1)
		switch before, after := lines[i][:at], lines[i][at:]; source.IntN(6) {
		case 0:
			lines[i] = ""
		case 1:
			lines = slices.Insert(lines, i, lines[source.IntN(len(lines))])
		case 2:
			lines = slices.Insert(lines, i, others[source.IntN(len(others))])
		case 3:
			const signs = "{}[]:,#&*!|>'\"\\ -$\t\n~<;"
			lines[i] = before + string(signs[source.IntN(len(signs))]) + after
		case 4:
			lines[i] = before + after[min(1, len(after)):]
		case 5:
			lines[i] = " " + lines[i]
		}
	}
	return strings.Join(lines, "")
}

// FuzzMake checks that any text is either refused or changed as it must be, and is still read as a launch.
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
		expect.That(t, len(got.Changes) == 0 || len(jobs(name, got.Text)) >= len(jobs(name, text)), "jobs are lost in\n%s", got.Text)
	})
}

// TestRemovalTakesItsComment checks that a removed line takes the comment directly above with it, in each form of
// file, and that headings of groups, options of batch systems and other comments stay.
func TestRemovalTakesItsComment(t *testing.T) {
	for name, form := range map[string]string{
		"job.sh":       "#!/bin/bash\n%sexport NCCL_P2P_DISABLE=1\n%storchrun --nproc-per-node=8 train.py\n",
		"job.sbatch":   "#!/bin/bash\n#SBATCH --gpus-per-node=8\n%sexport NCCL_P2P_DISABLE=1\n%ssrun python train.py\n",
		"Dockerfile":   "FROM a\n%sENV NCCL_P2P_DISABLE=1\n%sCMD torchrun train.py\n",
		"nccl.env":     "NCCL_DEBUG=WARN\n%sNCCL_P2P_DISABLE=1\n%sNCCL_IB_HCA=mlx5\n",
		"compose.yaml": "services:\n  a:\n    image: a\n    gpus: all\n    environment:\n      A: b\n%s      NCCL_P2P_DISABLE: \"1\"\n%s      NCCL_DEBUG: INFO\n",
	} {
		margin := ""
		if name == "compose.yaml" {
			margin = "      "
		}
		comment, other := margin+"# The old nodes hang with P2P.\n", margin+"# This stays.\n"
		for _, c := range []struct{ above, below, left string }{
			{"", "", ""},
			{comment, "", ""},
			{comment + comment, "", ""},
			{comment, other, other},
			{"\n" + comment, "\n", "\n\n"},
			{"\n" + comment, "", "\n" + comment}, // It heads the lines that follow.
		} {
			text := strings.Replace(strings.Replace(form, "%s", c.above, 1), "%s", c.below, 1)
			want := Want{Setting: plan.Setting{Kind: plan.Unset, Name: "NCCL_P2P_DISABLE"}, Values: []string{"1"}}
			got, err := Make(t.Context(), Request{Name: name, Text: text, Wants: []Want{want}, GPUs: 8, Vendor: "nvidia"})
			expect.Must(t, err == nil, "%s: %v", name, err)
			expect.That(t, !strings.Contains(got.Text, "P2P_DISABLE"), "%s: not removed from %q: %v", name, text, got.Manual)
			n := strings.Count(got.Text, "The old nodes")
			expect.That(t, n == strings.Count(c.left, "The old nodes") && strings.Contains(got.Text, "This stays") == strings.Contains(c.left, "This stays"), "%s: from %q\ngot  %q", name, text, got.Text)
		}
	}
}
