package rules

import (
	"os/exec"
	"strings"
	"testing"
)

// TestDependencies holds that the rules are evaluated without the parts of OPA
// that make the program larger than its budget of 32 MB.
func TestDependencies(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(list))
	const opa = "github.com/open-policy-agent/opa/"
	evaluated := false
	for _, name := range packages {
		evaluated = evaluated || name == opa+"v1/topdown"
		for _, heavy := range []string{opa + "v1/rego", opa + "v1/bundle", opa + "internal/compiler/wasm", "google.golang.org/protobuf/"} {
			if strings.HasPrefix(name, heavy) {
				t.Errorf("package rules links %s", name)
			}
		}
	}
	if !evaluated {
		t.Errorf("%s is not among the %d dependencies", opa+"v1/topdown", len(packages))
	}
}
