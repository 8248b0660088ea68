package hip

import (
	"debug/elf"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// realLibrary is the runtime of Debian's package libamdhip64-5, which CI installs; a test is skipped where it is not.
func realLibrary(t *testing.T) string {
	t.Helper()
	found := expect.Value(filepath.Glob("/usr/lib/*/libamdhip64.so.5"))(t)
	if len(found) == 0 {
		night.Lacks(t, "libamdhip64.so.5 is not installed: apt-get install libamdhip64-5")
	}
	return found[0]
}

// TestSymbols checks that every function that the door asks for is in a real library, under that name.
func TestSymbols(t *testing.T) {
	file := expect.Value(elf.Open(realLibrary(t)))(t)
	symbols, err := file.DynamicSymbols()
	expect.NoError(t, errors.Join(err, file.Close()))
	has := make(map[string]bool)
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			has[s.Name] = true
		}
	}
	for _, functions := range []any{&gpudriver.Calls{}, &calls{}, &compiler{}} {
		for field := range reflect.TypeOf(functions).Elem().Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("hip"), ",")
			expect.That(t, has[name], "the library has no %q", name)
		}
	}
}

// TestOwner checks that a copy between two devices names both, and that one into
// another process's memory leaves it to the runtime.
func TestOwner(t *testing.T) {
	var peer, plain int
	device := int32(0)
	d := newDriver(gpudriver.Global, "")
	d.Calls.MemAlloc = func(p *Pointer, _ uint64) error { *p = Pointer(0x1000 * (1 + device)); return nil }
	d.Calls.MemFree = func(Pointer) error { return nil }
	d.Calls.CurrentDevice = func(at *gpudriver.Device) error { *at = gpudriver.Device(device); return nil }
	d.c = calls{
		MemcpyAsync: memcpyCounter(&plain),
		MemcpyPeerAsync: func(_ Pointer, to int32, _ Pointer, from int32, _ uint64, _ Stream) error {
			peer++
			expect.That(t, to == 1 && from == 0, "copied from %d to %d", from, to)
			return nil
		},
	}
	a := expect.Value(d.Alloc(0x800))(t)
	device = 1
	b := expect.Value(d.Alloc(0x800))(t)
	for _, copied := range []struct{ dst, src Pointer }{{b + 16, a + 32}, {b, b + 64}, {0x9000, a}} {
		expect.NoError(t, d.Copy(copied.dst, copied.src, 8, 0))
	}
	expect.That(t, peer == 1 && plain == 2, "%d copies between devices and %d others, want 1 and 2", peer, plain)
	expect.NoError(t, d.Free(b))
	_, ours := d.owner(b)
	expect.That(t, !ours, "memory that was given back has an owner")
}

// TestVersion checks how a version is read, which are refused, and which flag opens memory of another process.
func TestVersion(t *testing.T) {
	for v, want := range map[int32]string{50221153: "5.2.21153", 60241133: "6.2.41133", 70051831: "7.0.51831"} {
		d := newDriver(gpudriver.Global, "")
		d.c.RuntimeGetVersion = func(at *int32) error { *at = v; return nil }
		got, err := d.Version()
		expect.That(t, err == nil && got == want, "version %d is %q (%v), want %q", v, got, err, want)
		expect.That(t, (d.LazyPeerAccess == 1) == (v >= 6e7), "version %d opens memory with the flag %d", v, d.LazyPeerAccess)
	}
	for _, v := range []int32{40421401, 80012345, 0, -1} {
		d := newDriver(gpudriver.Global, "")
		d.c.RuntimeGetVersion = func(at *int32) error { *at = v; return nil }
		got, err := d.Version()
		expect.That(t, errors.Is(err, gpudriver.ErrVersion), "version %d is taken for %q", v, got)
	}
}

// TestMissing checks that a call to a function that the library lacks says so.
func TestMissing(t *testing.T) {
	d := newDriver(gpudriver.Global, "")
	expect.Fails(d.AllocShared(8))(t, gpudriver.ErrMissing, "a call that the library lacks")
	expect.Fails(d.LoadModule("x"))(t, gpudriver.ErrMissing, "kernels without a compiler give")
}

func memcpyCounter(n *int) func(dst, src unsafe.Pointer, bytes uint64, kind int32, s Stream) error {
	return func(_, _ unsafe.Pointer, _ uint64, kind int32, _ Stream) error {
		if kind == deviceToDevice {
			*n++
		}
		return nil
	}
}
