package main

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"encoding/binary"
	"os"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func built(t *testing.T) *debug.BuildInfo {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	expect.Must(t, ok && len(info.Deps) > 0, "the test holds no build information")
	return info
}

// names checks that an error names what is wrong.
func names(t *testing.T, err error, what, words string, args ...any) {
	t.Helper()
	expect.That(t, err != nil && strings.Contains(err.Error(), what), words, append(args, err)...)
}

// TestSBOM checks that a bill of materials names each module of a program, and
// that one that misses a module, or has one too many, is found out.
func TestSBOM(t *testing.T) {
	info := built(t)
	var first, second bytes.Buffer
	expect.NoError(t, writeSBOM(&first, info))
	if err := writeSBOM(&second, info); err != nil || first.String() != second.String() {
		t.Errorf("the second bill of materials differs from the first: %v", err)
	}
	expect.NoError(t, complete(first.Bytes(), info))
	for i, m := range info.Deps {
		less, changed := *info, *info
		less.Deps = append(append([]*debug.Module{}, info.Deps[:i]...), info.Deps[i+1:]...)
		other := *m
		other.Version += ".1"
		changed.Deps = append(append([]*debug.Module{}, less.Deps...), &other)
		for _, with := range []*debug.BuildInfo{&less, &changed} {
			names(t, complete(first.Bytes(), with), m.Path, "without %s: %v", m.Path)
			var b bytes.Buffer
			expect.NoError(t, writeSBOM(&b, with))
			names(t, complete(b.Bytes(), info), m.Path, "a bill of materials without %s: %v", m.Path)
		}
	}
	expect.Error(t, complete([]byte("{"), info), "half a bill of materials is taken")
}

// TestCheck checks that each property of a release is looked at.
func TestCheck(t *testing.T) {
	good := func() *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "-buildmode", Value: "pie"},
			{Key: "-trimpath", Value: "true"},
			{Key: "CGO_ENABLED", Value: "1"},
			{Key: "vcs", Value: "git"},
			{Key: "vcs.modified", Value: "false"},
			{Key: "vcs.revision", Value: strings.Repeat("0a", 20)},
		}}
	}
	expect.NoError(t, stamped(good(), dynamicBuild))
	for i := range good().Settings {
		info := good()
		info.Settings[i].Value += "x"[:min(1, 5-i)] // An empty revision, or another word.
		if i == 5 {
			info.Settings[i].Value = ""
		}
		names(t, stamped(info, dynamicBuild), info.Settings[i].Key, "%s is %q: %v", info.Settings[i].Key, info.Settings[i].Value)
	}
	prog := func(t elf.ProgType, f elf.ProgFlag) *elf.Prog {
		return &elf.Prog{ProgHeader: elf.ProgHeader{Type: t, Flags: f}}
	}
	for want, progs := range map[string][]*elf.Prog{
		"":                        {prog(elf.PT_LOAD, elf.PF_R|elf.PF_X), prog(elf.PT_GNU_STACK, elf.PF_R|elf.PF_W), prog(elf.PT_GNU_RELRO, elf.PF_R)},
		"stack is executable":     {prog(elf.PT_GNU_STACK, elf.PF_R|elf.PF_W|elf.PF_X), prog(elf.PT_GNU_RELRO, elf.PF_R)},
		"PT_GNU_STACK is missing": {prog(elf.PT_GNU_RELRO, elf.PF_R)},
		"PT_GNU_RELRO is missing": {prog(elf.PT_GNU_STACK, elf.PF_R|elf.PF_W)},
		"writable and executable": {prog(elf.PT_LOAD, elf.PF_W|elf.PF_X), prog(elf.PT_GNU_STACK, elf.PF_R|elf.PF_W), prog(elf.PT_GNU_RELRO, elf.PF_R)},
	} {
		err := hardened(&elf.File{FileHeader: elf.FileHeader{Type: elf.ET_DYN}, Progs: progs})
		expect.That(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)), "%q: %v", want, err)
	}
	names(t, hardened(&elf.File{FileHeader: elf.FileHeader{Type: elf.ET_EXEC}}), "not position-independent", "ET_EXEC: %v")
}

// TestMachO checks that each thing is looked at that a Mac asks of a program.
func TestMachO(t *testing.T) {
	good := func() *macho.File {
		signed := make(macho.LoadBytes, 16)
		binary.LittleEndian.PutUint32(signed, codeSignature)
		return &macho.File{
			FileHeader: macho.FileHeader{Cpu: macho.CpuArm64, Type: macho.TypeExec, Flags: macho.FlagPIE | macho.FlagTwoLevel}, ByteOrder: binary.LittleEndian,
			Loads: []macho.Load{&macho.Dylib{Name: "/usr/lib/libSystem.B.dylib"}, &macho.Dylib{Name: "/System/Library/Frameworks/Security.framework/Versions/A/Security"}, signed},
		}
	}
	expect.NoError(t, runsOnMacOS(good()))
	for want, change := range map[string]func(f *macho.File){
		"not an executable for arm64": func(f *macho.File) { f.Cpu = macho.CpuAmd64 },
		"not an executable":           func(f *macho.File) { f.Type = macho.TypeDylib },
		"not position-independent":    func(f *macho.File) { f.Flags &^= macho.FlagPIE },
		"not signed":                  func(f *macho.File) { f.Loads = f.Loads[:2] },
		"needs /opt/homebrew/lib/libzstd.dylib": func(f *macho.File) {
			f.Loads = append(f.Loads, &macho.Dylib{Name: "/opt/homebrew/lib/libzstd.dylib"})
		},
	} {
		f := good()
		change(f)
		err := runsOnMacOS(f)
		expect.That(t, err != nil && strings.Contains(err.Error(), want), "%s: %v", want, err)
	}
}

// TestNewer checks that versions are compared by number.
func TestNewer(t *testing.T) {
	order := []string{"0", "2.2.5", "2.3", "2.3.4", "2.14", "2.34", "2.41", "3.0"}
	for i, a := range order {
		for j, b := range order {
			expect.Equal(t, i > j, newer(a, b), "%s is newer than %s", a, b)
		}
	}
}

// TestLinked checks that what this test's own program needs is found: it is linked with glibc, so it is not static.
func TestLinked(t *testing.T) {
	f := expect.Value(elf.Open("/proc/self/exe"))(t)
	defer f.Close() //nolint:errcheck // It was only read.
	libraries := expect.Value(f.ImportedLibraries())(t)
	if err := static(f); (err == nil) != (len(libraries) == 0) {
		t.Errorf("static: %v, libraries %q", err, libraries)
	}
	if version, err := glibc(f); err != nil || len(libraries) > 0 && !newer(version, "2.1") {
		t.Errorf("glibc %s, %v", version, err)
	}
}

// TestUsage checks that whatever else is asked for is an error.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"sbom"}, {"check", "x"}, {"sbom", "/nowhere"}, {"check", "/nowhere", "/nowhere"}, {"reach", "::"}, {"reach", "http://127.0.0.1:1/"}} {
		var b bytes.Buffer
		expect.Error(t, run(args, &b), "%q is taken", args)
	}
	program := expect.Value(os.Executable())(t)
	var b bytes.Buffer
	err := run([]string{"sbom", program}, &b)
	expect.That(t, err == nil && strings.Contains(b.String(), "cyclonedx-go"), "sbom: %v", err)
}
