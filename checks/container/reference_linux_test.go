package container_test

import (
	"bytes"
	"os"
	"testing"

	reference "github.com/moby/sys/mountinfo"

	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestOwnMounts compares what both make of the mounts of this process.
func TestOwnMounts(t *testing.T) {
	expect.That(t, compare(t, expect.Value(os.ReadFile("/proc/self/mountinfo"))(t)) != 0, "no mount was compared")
}

// FuzzParse checks that whatever the parser of github.com/moby/sys reads is read the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n",
		"36 35 0:5 /a\\040b /c\\134d\\1234\\8\\ rw shared:7 master:1 - fuse.x a\\011b ro\n",
		"21 1 0:9 / /c rw - cifs //s/d rw,unc=//s/My - Docs\n",
		"1 2 3:4 / / rw - - - -\n", "1 2 3 / / rw - a b c\n", "\n", "1 2 +3:-4 / \\+12 rw - a b c\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) { compare(t, b) })
}

// compare returns the number of mounts that both read.
func compare(t *testing.T, b []byte) int {
	t.Helper()
	want, err := reference.GetMountsFromReader(bytes.NewReader(b[:bytes.LastIndexByte(b, '\n')+1]), nil)
	got, gotErr := container.ParseMounts(b)
	if err != nil {
		return 0 // It refuses lines of 64 KiB, too.
	}
	expect.Must(t, gotErr == nil && len(got) == len(want), "%d mounts (%v), want %d", len(got), gotErr, len(want))
	for i, w := range want {
		if g := *got[i]; g != (container.Mount{
			Root: w.Root, Mountpoint: w.Mountpoint, Options: w.Options, VFSOptions: w.VFSOptions, FSType: w.FSType,
		}) {
			t.Errorf("mount %d is %+v, want %+v", i, g, *w)
		}
	}
	return len(want)
}
