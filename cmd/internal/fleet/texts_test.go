package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const aSnapshot = "gpudoctor.snapshot/v1\nof "

// judgeTexts is a judge for which a node is healthy if a text of it says so. It names the node as a snapshot does, and its driver are the
// files that it was given.
func judgeTexts(_ context.Context, file string) ([]byte, error) {
	texts := map[string]string{}
	err := filepath.WalkDir(file, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			raw, _ := os.ReadFile(p) //nolint:gosec // A file of the test.
			texts[cmp.Or(strings.TrimPrefix(below(file, p), "."), filepath.Base(p))] = string(raw)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	name, well := "", false
	for _, text := range texts {
		if of, is := strings.CutPrefix(text, aSnapshot); is {
			name, well = of, true
		}
		well = well || text == "well"
	}
	if !well {
		return nil, errors.New(file + ": nothing in it was recognized")
	}
	return []byte(reportOf(name, strings.Join(slices.Sorted(maps.Keys(texts)), " "))), nil
}

// TestNodeFolders checks which nodes a folder with texts and recordings has, and that an archive of these must be unpacked.
func TestNodeFolders(t *testing.T) {
	t.Parallel()
	report := strings.Replace(reportOf("host-1", "570"), `"verdict"`, `"redacted":"names","verdict"`, 1)
	type files = map[string]string
	for name, c := range map[string]struct {
		files
		want string // Each node with its files, and then what does not count.
	}{
		"texts": {files{"n1/dmesg.txt": "well", "n1/logs/smi.txt": "x", "n2/dmesg.txt": "well"}, "n1 (dmesg.txt logs/smi.txt), n2 (dmesg.txt)"},
		"snapshots": {
			files{"a/host.txtar": aSnapshot + "gpu-1", "b/host.txtar": aSnapshot + "host-1", "b/job.log": "x"},
			"b (host.txtar job.log), gpu-1 (host.txtar)",
		},
		"recordings of several in one folder": {files{"rack/n1.txtar": aSnapshot + "host-1", "rack/n2.txtar": aSnapshot + "gpu-2"}, "gpu-2 (n2.txtar), n1 (n1.txtar)"},
		"recordings without a folder":         {files{"n1.txtar": aSnapshot + "host-1", "n2.txtar": aSnapshot + "host-1"}, "n1 (n1.txtar), n2 (n2.txtar)"},
		"copies of machines": {
			files{"n1/sys/class/x": "well", "n1/proc/version": "", "n2/sys/class/x": "well", "n2/sys/devices/empty": ""},
			"n1 (proc/version sys/class/x), n2 (sys/class/x sys/devices/empty)",
		},
		"texts with the names of nodes": {files{"n1/n1.log": "well", "n2/n2.log": "well"}, "n1 (n1.log), n2 (n2.log)"},
		"nothing recognized": {
			files{"n1/dmesg.txt": "well", "n2/dmesg.txt": "x", "n2/empty": "", "n3/dmesg.txt": "well"},
			"n1 (dmesg.txt), n3 (dmesg.txt); n2: nothing in it was recognized",
		},
		"a report that is cut off among texts": {
			files{"n1/dmesg.txt": "well", "n2/dmesg.txt": "well", "n2/r.json": report[:70]},
			"n1 (dmesg.txt), n2 (dmesg.txt r.json); n2/r.json: is cut off",
		},
		"reports and texts": {
			files{"n1/r.json": report, "n1/dmesg.txt": "well", "n2/r.json": reportOf("gpu-2", "575")},
			"gpu-2 (575), n1 (570); n1: its report counts, and 1 other file beside it were not judged",
		},
		"reports of several, and a text": {files{"all/n1.json": report, "all/n2.json": report, "all/n3.log": "well"}, "n1 (570), n2 (570), n3 (n3.log)"},
		"several reports and a copy": {
			files{"all/n1.json": report, "all/n2.json": report, "all/n3/sys/class/x": "well"},
			"n1 (570), n2 (570); all/n3/sys/class: is a copy of a machine's files, which is judged only in a folder of its own",
		},
		"an archive": {files{"n1.tar": string(checktest.Tar(t, "", fstest.MapFS{"n1/dmesg.txt": {Data: []byte("well")}}))}, "; n1.tar: holds no reports: unpack it, and name the folder, in which each node has one of its own"},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			expect.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o750))
			expect.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
		}
		r := expect.Value(Read(t.Context(), []string{root}, nil, judgeTexts))(t)
		f := Fold(r, nil, "test")
		got := strings.Join(expect.Map(f.Nodes, func(n *Node) string { return fmt.Sprintf("%s (%s)", n.Name, n.Traits["driver"]) }), ", ")
		for _, p := range f.Problems {
			got += "; " + strings.TrimLeft(strings.TrimPrefix(p.String(), root), "/:")
		}
		expect.Equal(t, c.want, got, "%s", name)
	}
}
