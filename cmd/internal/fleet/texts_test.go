package fleet

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const aSnapshot = "gpudoctor.snapshot/v1\nof "

// judgeTexts is a judge for which a node is healthy if a text of it says so. It names the node as a snapshot does, and its driver are the
// files that it was given.
func judgeTexts(_ context.Context, file string) ([]byte, error) {
	texts := map[string]string{}
	switch info, err := os.Stat(file); {
	case strings.HasSuffix(file, ".tar"):
		raw, _ := os.ReadFile(file) //nolint:gosec // A file of the test.
		for members := tar.NewReader(bytes.NewReader(raw)); ; {
			head, err := members.Next()
			if err != nil {
				break
			}
			raw, _ := io.ReadAll(members)
			texts[strings.TrimPrefix(head.Name, "nodes/all/")] = string(raw)
		}
	case err != nil:
		return nil, err
	case info.IsDir():
		err := filepath.WalkDir(file, func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				raw, _ := os.ReadFile(p) //nolint:gosec // A file of the test.
				texts[below(file, p)] = string(raw)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	default:
		raw, _ := os.ReadFile(file) //nolint:gosec // A file of the test.
		texts[filepath.Base(file)] = string(raw)
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

// packed is files in a tar archive, under a folder.
func packed(t *testing.T, under string, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	to := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		expect.NoError(t, to.WriteHeader(&tar.Header{Name: path.Join(under, name), Size: int64(len(files[name])), Mode: 0o600, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}))
		_, err := to.Write([]byte(files[name]))
		expect.NoError(t, err)
	}
	expect.NoError(t, to.Close())
	return b.Bytes()
}

// TestNodeFolders checks which nodes a folder with texts and recordings has, and that an archive of several is not taken for one of them.
func TestNodeFolders(t *testing.T) {
	t.Parallel()
	report := strings.Replace(reportOf("host-1", "570"), `"verdict"`, `"redacted":"names","verdict"`, 1)
	type files = map[string]string
	for name, c := range map[string]struct {
		files
		want string // Each node with its files, and then what does not count.
		only string // Where an archive differs.
	}{
		"texts": {files{"n1/dmesg.txt": "well", "n1/logs/smi.txt": "x", "n2/dmesg.txt": "well"}, "n1 (dmesg.txt logs/smi.txt), n2 (dmesg.txt)", ""},
		"snapshots": {
			files{"a/host.txtar": aSnapshot + "gpu-1", "b/host.txtar": aSnapshot + "host-1", "b/job.log": "x"},
			"b (host.txtar job.log), gpu-1 (host.txtar)", "",
		},
		"recordings of several in one folder": {files{"rack/n1.txtar": aSnapshot + "host-1", "rack/n2.txtar": aSnapshot + "gpu-2"}, "gpu-2 (n2.txtar), n1 (n1.txtar)", ""},
		"recordings without a folder":         {files{"n1.txtar": aSnapshot + "host-1", "n2.txtar": aSnapshot + "host-1"}, "n1 (n1.txtar), n2 (n2.txtar)", ""},
		"copies of machines": {
			files{"n1/sys/class/x": "well", "n1/proc/version": "", "n2/sys/class/x": "well", "n2/sys/devices/empty": ""},
			"n1 (proc/version sys/class/x), n2 (sys/class/x sys/devices/empty)", "",
		},
		"texts with the names of nodes": {files{"n1/n1.log": "well", "n2/n2.log": "well"}, "n1 (n1.log), n2 (n2.log)", ""},
		"nothing recognized": {
			files{"n1/dmesg.txt": "well", "n2/dmesg.txt": "x", "n2/empty": "", "n3/dmesg.txt": "well"},
			"n1 (dmesg.txt), n3 (dmesg.txt); n2: nothing in it was recognized", "",
		},
		"a report that is cut off among texts": {
			files{"n1/dmesg.txt": "well", "n2/dmesg.txt": "well", "n2/r.json": report[:70]},
			"n1 (dmesg.txt), n2 (dmesg.txt r.json); n2/r.json: is cut off", "",
		},
		"reports and texts": {
			files{"n1/r.json": report, "n1/dmesg.txt": "well", "n2/r.json": reportOf("gpu-2", "575")},
			"gpu-2 (575), n1 (570); n1: its report counts, and 1 other file beside it were not judged", "a folder",
		},
		"reports of several, and a text": {files{"all/n1.json": report, "all/n2.json": report, "all/n3.log": "well"}, "n1 (570), n2 (570), n3 (n3.log)", "a folder"},
		"several reports and a copy": {
			files{"all/n1.json": report, "all/n2.json": report, "all/n3/sys/class/x": "well"},
			"n1 (570), n2 (570); all/n3/sys/class: is a copy of a machine's files, which is judged only in a folder of its own", "a folder",
		},
		"texts in folders by subject": {files{"logs/job.log": "well", "commands/smi.txt": "x"}, "NAME (commands/smi.txt logs/job.log)", "an archive"},
	} {
		for kind, under := range map[string]string{"a folder": "", "an archive": "", "an archive of the folder": "nodes/all"} {
			if c.only != "" && !strings.HasPrefix(kind, c.only) {
				continue
			}
			root := t.TempDir()
			if kind == "a folder" {
				for file, text := range c.files {
					expect.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o750))
					expect.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
				}
			} else {
				archive := filepath.Join(t.TempDir(), "NAME.tar")
				expect.NoError(t, os.WriteFile(archive, packed(t, under, c.files), 0o600))
				root = archive
			}
			r := expect.Value(Read(t.Context(), []string{root}, nil, judgeTexts))(t)
			f := Fold(r, nil, "test")
			got := strings.Join(expect.Map(f.Nodes, func(n *Node) string { return fmt.Sprintf("%s (%s)", n.Name, n.Traits["driver"]) }), ", ")
			for _, p := range f.Problems {
				got += "; " + strings.TrimLeft(strings.TrimPrefix(strings.ReplaceAll(p.String(), "nodes/all/", ""), root), "/:")
			}
			want := c.want
			if c.only == "" && kind != "a folder" {
				want = ";  holds recordings or texts of several nodes: unpack it, and name the folder"
			}
			expect.Equal(t, want, got, "%s, %s", name, kind)
		}
	}
}
