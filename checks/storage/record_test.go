package storage_test

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/host/rootfs"
	"github.com/gpudoctor/gpudoctor/checks/storage"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func gathered(t *testing.T, h *host.Host) *facts.StorageFacts {
	t.Helper()
	f := &facts.Facts{}
	expect.NoError(t, storage.Check.Gather(t.Context(), gather.New(h, f, gather.Options{})))
	return f.Storage
}

// A recording holds no serial numbers, and gives the same facts.
func TestRecorded(t *testing.T) {
	h, recording := host.New(server()).Record()
	want := gathered(t, h)
	var snapshot bytes.Buffer
	expect.NoError(t, recording.Write(&snapshot, host.RecordOptions{}))
	for _, private := range []string{"S6CKNT0W", "nqn."} {
		expect.That(t, !strings.Contains(snapshot.String(), private), "%s is in the snapshot", private)
	}
	replayed := expect.Value(host.ParseSnapshot("x", snapshot.Bytes()))(t)
	got := gathered(t, replayed)
	expect.NoDiff(t, want, got, "replayed")
}

// A copy of /sys and /proc gives the same, but for what no file tells: the settings of cuFile, the variables, and
// the kernel's configuration.
func TestTree(t *testing.T) {
	m := server()
	copied := rootfs.New(&rootfs.Budget{})
	for _, top := range []string{"/sys", "/proc"} {
		copyFolder(t, m, copied, top)
	}
	want, got := gathered(t, host.New(m)), gathered(t, copied.Host())
	want.GDS.Properties, want.GDS.Variables, want.GDS.Config, want.GDS.KernelP2PDMA = nil, nil, "", nil
	expect.NoDiff(t, want, got, "tree")
}

// copyFolder copies what a tree keeps of a folder.
func copyFolder(t *testing.T, from *host.Memory, to *rootfs.Machine, at string) {
	t.Helper()
	names := expect.Value(from.ReadDir(at))(t)
	for _, name := range names {
		name = path.Join(at, name)
		if target, err := from.ReadLink(name); err == nil {
			if rootfs.Keeps(name) {
				err = to.AddLink(name, target)
			}
			expect.NoError(t, err)
			continue
		}
		if b, err := from.ReadFile(name, 1<<20); err == nil {
			if rootfs.Keeps(name) {
				err = to.AddFile(name, bytes.NewReader(b))
			}
			expect.NoError(t, err)
			continue
		}
		if !rootfs.Prunes(name) {
			expect.NoError(t, to.AddDir(name))
			copyFolder(t, from, to, name)
		}
	}
}
