package storage_test

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/checktest"
	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
	"github.com/gpudoctor/gpudoctor/checks/storage"
)

// large is a server with 16 NVMe drives, four arrays of them, and 200 mounts.
func large() *machine.Memory {
	m := server()
	for n := range 16 {
		addDrive(m, n, false)
	}
	lines := []string{}
	for i := range 4 {
		var members []string
		for n := range 4 {
			members = append(members, fmt.Sprintf("nvme%dn1", 4*i+n))
		}
		addArray(m, fmt.Sprintf("md%d", 10+i), fmt.Sprintf("9:%d", 10+i), map[string]string{
			"level": "raid5", "array_state": "clean", "metadata_version": "1.2", "raid_disks": "4", "degraded": "0", "sync_action": "idle", "sync_completed": "none",
		}, members...)
		lines = append(lines, fmt.Sprintf(`9:%d / /raid/%d rw - xfs /dev/md%d rw`, 10+i, i, 10+i))
	}
	for i := range 196 {
		lines = append(lines, fmt.Sprintf(`0:%d / /mnt/%d rw - nfs4 filer:/%d rw,proto=tcp`, i+100, i, i))
	}
	mounts(m, lines...)
	return m
}

func BenchmarkServer(b *testing.B) {
	m := large()
	b.ReportAllocs()
	for b.Loop() {
		f := &facts.Facts{}
		if err := storage.Check.Gather(b.Context(), checktest.On(m, f)); err != nil {
			b.Fatal(err)
		}
		if len(f.Storage.Drives) != 16 || len(f.Storage.Mounts) != 64 {
			b.Fatalf("got %d drives, %d mounts", len(f.Storage.Drives), len(f.Storage.Mounts))
		}
	}
}
