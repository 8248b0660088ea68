package main

import (
	"bytes"
	"debug/elf"
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

// TestSBOM checks that a bill of materials names each module of a program, and is the same each time.
func TestSBOM(t *testing.T) {
	info := built(t)
	var first, second bytes.Buffer
	expect.NoError(t, writeSBOM(&first, info))
	expect.NoError(t, writeSBOM(&second, info))
	expect.That(t, first.String() == second.String(), "the second bill of materials differs from the first")
	for _, m := range modules(info) {
		expect.That(t, strings.Contains(first.String(), `"pkg:golang/`+m.Path+"@"+m.Version+`"`), "it lacks %s", m.Path)
	}
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
		"PT_GNU_RELRO is missing": {prog(elf.PT_GNU_STACK, elf.PF_R|elf.PF_W)},
	} {
		err := hardened(&elf.File{FileHeader: elf.FileHeader{Type: elf.ET_DYN}, Progs: progs})
		expect.That(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)), "%q: %v", want, err)
	}
	names(t, hardened(&elf.File{FileHeader: elf.FileHeader{Type: elf.ET_EXEC}}), "not position-independent", "ET_EXEC: %v")
}

// TestLinked checks that what a program needs is found: the shell's, which is linked with glibc on most systems.
func TestLinked(t *testing.T) {
	f := expect.Value(elf.Open("/bin/sh"))(t)
	defer f.Close() //nolint:errcheck // It was only read.
	libraries := expect.Value(f.ImportedLibraries())(t)
	if len(libraries) == 0 || strings.Contains(libraries[len(libraries)-1], "musl") {
		t.Skip("the shell is not linked with glibc")
	}
	expect.Error(t, static(f), "it is static")
	_, err := glibc(f)
	expect.That(t, err == nil || strings.Contains(err.Error(), "README.md promises"), "%v", err)
}

// TestUsage checks that whatever else is asked for is an error.
func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"sbom"}, {"check", "x"}, {"sbom", "/nowhere"}, {"check", "/nowhere"}, {"check", "x", "y"}} {
		var b bytes.Buffer
		expect.Error(t, run(args, &b), "%q is taken", args)
	}
	program := expect.Value(os.Executable())(t)
	var b bytes.Buffer
	err := run([]string{"sbom", program}, &b)
	expect.That(t, err == nil && strings.Contains(b.String(), "cyclonedx-go"), "sbom: %v", err)
}
