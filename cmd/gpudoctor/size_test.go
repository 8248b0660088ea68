package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// maxSize is the most bytes that the stripped program may have: 45 MB.
const maxSize = 45_000_000

// releaseTags are the build tags of a release: without the generator of manual pages of
// urfave/cli, which manual_page.go replaces, the program is 250 KB smaller.
const releaseTags = "urfave_cli_no_docs"

// TestSize holds the program to its size. The release is larger by its relocations.
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("it links the program")
	}
	file := filepath.Join(t.TempDir(), "gpudoctor")
	out, err := exec.Command("go", "build", "-tags="+releaseTags, "-ldflags=-s -w", "-o", file, ".").CombinedOutput()
	expect.Must(t, err == nil, "%v\n%s", err, out)
	info := expect.Value(os.Stat(file))(t)
	if info.Size() > maxSize {
		t.Errorf("the stripped program has %d bytes, more than %d; go version -m and go tool nm -size show what is in it", info.Size(), maxSize)
	}
	t.Logf("%d bytes", info.Size())
	for _, script := range []string{"../../.ci/release", "../../Dockerfile"} {
		expect.That(t, strings.Contains(string(expect.Value(os.ReadFile(script))(t)), releaseTags), "%s builds without %s", script, releaseTags)
	}
}

// TestLinked checks that the parts of OPA that would make the program 5 MB larger are
// not linked: the rules are evaluated by v1/topdown.
func TestLinked(t *testing.T) {
	list := expect.Value(exec.Command("go", "list", "-deps", ".").Output())(t)
	const opa = "github.com/open-policy-agent/opa/"
	packages := strings.Fields(string(list))
	for _, name := range packages {
		for _, heavy := range []string{opa + "v1/rego", opa + "v1/bundle", opa + "internal/compiler/wasm", "google.golang.org/protobuf/"} {
			expect.That(t, !strings.HasPrefix(name, heavy), "the program links %s", name)
		}
	}
	expect.That(t, slices.Contains(packages, opa+"v1/topdown"), "%sv1/topdown is not among the %d packages", opa, len(packages))
}
