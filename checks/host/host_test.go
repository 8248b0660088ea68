package host

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestReal(t *testing.T) {
	m := &Memory{}
	m.AddFile("/sys/devices/pci0/0000:01:00.0/vendor", nil)
	m.AddLink("/sys/bus/pci/devices/0000:01:00.0", "../../../devices/pci0/0000:01:00.0")
	m.AddLink("/dev/gpu", "/sys/bus/pci/devices/./0000:01:00.0/")
	m.AddLink("/dev/round", "round")
	h := New(m)
	for name, want := range map[string]string{
		"/":         "/",
		"/dev/gpu":  "/sys/devices/pci0/0000:01:00.0",
		"/dev/gpu/": "/sys/devices/pci0/0000:01:00.0",
		"/sys/bus/pci/devices/0000:01:00.0/vendor": "/sys/devices/pci0/0000:01:00.0/vendor",
	} {
		got, err := h.Real(name)
		expect.That(t, err == nil && got == want, "%s leads to %s (%v), want %s", name, got, err, want)
	}
	expect.Fails(h.Real("/dev/gpu/none"))(t, fs.ErrNotExist, "a path that leads nowhere")
	var failed *fs.PathError
	_, err := h.Real("/dev/round")
	expect.That(t, errors.As(err, &failed) && failed.Op == "resolve" && failed.Path == "/dev/round", "a link to itself gives %v", err)
}

func TestProcessSeen(t *testing.T) {
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Skipf("this system shows no processes: %v", err)
	}
	for name, want := range map[string]bool{strings.TrimSpace(string(own)): true, "no such name": false, "": false} {
		got, err := processSeen(name)
		expect.That(t, got == want && err == nil, "processSeen(%q) = %t, %v, want %t", name, got, err, want)
	}
}
