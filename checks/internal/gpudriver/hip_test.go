package gpudriver

import (
	"debug/elf"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// realLibrary is the runtime of Debian's package libamdhip64-5, which CI installs; a test is skipped where it is not.
func realLibrary(t *testing.T) string {
	t.Helper()
	found := expect.Value(filepath.Glob("/usr/lib/*/libamdhip64.so.5"))(t)
	if len(found) == 0 {
		expect.LacksTool(t, "libamdhip64.so.5 is not installed: apt-get install libamdhip64-5")
	}
	return found[0]
}

// TestHIPSymbols checks that every function that the door asks for is in a real library, under that name.
func TestHIPSymbols(t *testing.T) {
	file := expect.Value(elf.Open(realLibrary(t)))(t)
	symbols, err := file.DynamicSymbols()
	expect.NoError(t, errors.Join(err, file.Close()))
	has := make(map[string]bool)
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			has[s.Name] = true
		}
	}
	for _, functions := range []any{&Calls{}, &hipCalls{}, &hipCompiler{}} {
		for field := range reflect.TypeOf(functions).Elem().Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("hip"), ",")
			expect.That(t, has[name], "the library has no %q", name)
		}
	}
}

// TestHIPVersion checks how a version is read, which are refused, and which flag opens memory of another process.
func TestHIPVersion(t *testing.T) {
	for v, want := range map[int32]string{50221153: "5.2.21153", 60241133: "6.2.41133", 70051831: "7.0.51831"} {
		d := newHIP(Global, "")
		d.c.RuntimeGetVersion = func(at *int32) error { *at = v; return nil }
		got, err := d.Version()
		expect.That(t, err == nil && got == want, "version %d is %q (%v), want %q", v, got, err, want)
		expect.That(t, (d.LazyPeerAccess == 1) == (v >= 6e7), "version %d opens memory with the flag %d", v, d.LazyPeerAccess)
	}
	for _, v := range []int32{40421401, 80012345, 0, -1} {
		d := newHIP(Global, "")
		d.c.RuntimeGetVersion = func(at *int32) error { *at = v; return nil }
		got, err := d.Version()
		expect.That(t, errors.Is(err, ErrVersion), "version %d is taken for %q", v, got)
	}
}

// TestHIPMissing checks that a call to a function that the library lacks says so.
func TestHIPMissing(t *testing.T) {
	d := newHIP(Global, "")
	expect.Fails(d.AllocShared(8))(t, ErrMissing, "a call that the library lacks")
	expect.Fails(d.LoadModule("x"))(t, ErrMissing, "kernels without a compiler give")
}
