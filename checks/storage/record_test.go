package storage_test

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/storage"
	"github.com/gpudoctor/gpudoctor/checks/tree"
)

// gathered are the facts of a host.
func gathered(t *testing.T, h *host.Host) *facts.StorageFacts {
	t.Helper()
	f := &facts.Facts{}
	if err := storage.Check.Gather(t.Context(), gather.New(h, f, gather.Options{})); err != nil {
		t.Fatal(err)
	}
	return f.Storage
}

// A recording holds neither serial numbers nor the names of file servers, and gives the same facts.
func TestRecorded(t *testing.T) {
	h, recording := host.New(server()).Record()
	want := gathered(t, h)
	var snapshot bytes.Buffer
	if err := recording.Write(&snapshot, host.RecordOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"filer", "S6CKNT0W", "10.0.0", "nqn."} {
		if strings.Contains(snapshot.String(), private) {
			t.Errorf("%s is in the snapshot", private)
		}
	}
	replayed, err := host.ParseSnapshot("x", snapshot.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got := gathered(t, replayed)
	for _, s := range []*facts.StorageFacts{got, want} {
		for i := range s.Mounts {
			s.Mounts[i].Export = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("replayed (-want +got):\n%s", diff)
	}
}

// A copy of /sys and /proc gives the same, but for what no file tells: the settings of cuFile, the variables, and
// the kernel's configuration.
func TestTree(t *testing.T) {
	m := server()
	copied := tree.New(&tree.Budget{})
	for _, top := range []string{"/sys", "/proc"} {
		copyFolder(t, m, copied, top)
	}
	want, got := gathered(t, host.New(m)), gathered(t, copied.Host())
	want.GDS.Properties, want.GDS.Variables, want.GDS.Config, want.GDS.KernelP2PDMA = nil, nil, "", nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// copyFolder copies what a tree keeps of a folder.
func copyFolder(t *testing.T, from *machine.Memory, to *tree.Machine, at string) {
	t.Helper()
	names, err := from.ReadDir(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		name = path.Join(at, name)
		if target, err := from.ReadLink(name); err == nil {
			if tree.Keeps(name) {
				err = to.AddLink(name, target)
			}
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if b, err := from.ReadFile(name, 1<<20); err == nil {
			if tree.Keeps(name) {
				err = to.AddFile(name, bytes.NewReader(b))
			}
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !tree.Prunes(name) {
			if err := to.AddDir(name); err != nil {
				t.Fatal(err)
			}
			copyFolder(t, from, to, name)
		}
	}
}
