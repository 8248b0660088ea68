package host_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestIdentity(t *testing.T) {
	const listing = "$ ls -l /dev/kfd\ncrw-rw---- 1 root render 235, 0 Jan  5 10:40 /dev/kfd\n"
	const numbers = "$ ls -ln /dev/kfd\ncrw-rw---- 1 65534 992 235, 0 Jan  5 10:40 /dev/kfd\n"
	for text, want := range map[string]string{
		listing + "$ id\nuid=1000(dev) gid=1000(dev) groups=1000(dev),39(video)\n":                                                       "none",
		listing + "$ id\nuid=1000(dev) gid=1000(dev) groups=1000(dev),105(render)\n":                                                     "rw",
		numbers + "$ id\nuid=1000(dev) gid=1000(dev) groups=1000(dev),105(render)\n":                                                     "none",
		numbers + "$ id\nuid=1000(dev) gid=1000(dev) groups=1000(dev),992\n":                                                             "rw",
		listing + "$ id\nuid=0(root) gid=0(root) groups=0(root)\n":                                                                       "",
		"$ id\nuid=1000(dev) gid=1000(dev) groups=1000(dev)\n" + listing:                                                                 "none",
		"$ ls -l /dev/kfd\ncrw-rw----+ 1 root render 235, 0 Jan  5 10:40 /dev/kfd\n$ id\nuid=1000(dev) gid=1000(dev) groups=1000(dev)\n": "",
		listing: "",
	} {
		f := texttest.Parse("x", text)
		expect.Must(t, f.Container != nil && len(f.Container.DeviceNodes) == 1, "%q: no node", text)
		expect.Equal(t, want, f.Container.DeviceNodes[0].Access, "%q", text)
	}
}

func FuzzIdentity(f *testing.F) {
	f.Add("crw-rw---- 1 root render 235, 0 Jan  5 10:40 /dev/kfd\nuid=1000(dev) gid=1000(dev) groups=1000(dev),39(video)\n")
	f.Add("uid=1(a) gid=(b) groups=")
	f.Fuzz(func(t *testing.T, text string) {
		if facts := texttest.Parse("x", text); facts.Container != nil && len(facts.Container.DeviceNodes) > parse.MaxEntries {
			t.Errorf("%d nodes", len(facts.Container.DeviceNodes))
		}
	})
}
