package container_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []*container.Mount
		err        string
	}{
		{name: "nothing"},
		{
			name: "optional fields, an escaped space and a server",
			text: "36 35 0:55 / /mnt/a\\040b rw,noatime shared:1 master:2 - nfs4 nas:/export/x\\011y ro,proto=rdma\n",
			want: []*container.Mount{{Minor: 55, Root: "/", Mountpoint: "/mnt/a b", Options: "rw,noatime", FSType: "nfs4", Source: "nas:/export/x\ty", VFSOptions: "ro,proto=rdma"}},
		},
		{
			name: "a truncated last line",
			text: "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 1 0:4 / /proc rw - pr",
			want: []*container.Mount{{Major: 8, Minor: 1, Root: "/", Mountpoint: "/", Options: "rw", FSType: "ext4", Source: "/dev/sda1", VFSOptions: "rw"}},
		},
		{
			name: "spaces in the options of the file system",
			text: "21 1 0:9 / /c rw - cifs //s/d rw,unc=//s/My Docs\n",
			want: []*container.Mount{{Minor: 9, Root: "/", Mountpoint: "/c", Options: "rw", FSType: "cifs", Source: "//s/d", VFSOptions: "rw,unc=//s/My"}},
		},
		{name: "too few fields", text: "21 1 8:1 / /\n", err: `line "21 1 8:1 / /" is no mount: it lacks fields`},
		{name: "no separator", text: "21 1 8:1 / / rw a b c d e\n", err: "it lacks fields"},
		{name: "no device", text: "21 1 8 / / rw - ext4 /dev/sda1 rw\n", err: `"8" is no device number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := container.ParseMounts([]byte(c.text))
			if c.err != "" {
				expect.Must(t, err != nil && strings.Contains(err.Error(), c.err), "error %v, want %q", err, c.err)
				return
			}
			expect.That(t, err == nil && reflect.DeepEqual(got, c.want), "got %v (%v), want %v", got, err, c.want)
		})
	}
}
