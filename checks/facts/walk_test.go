package facts_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// typesIn are the types of structures in a type, each true if there are lists of it.
func typesIn(of reflect.Type, all map[reflect.Type]bool) map[reflect.Type]bool {
	switch of.Kind() { //nolint:exhaustive // All others hold no parts.
	case reflect.Pointer, reflect.Map:
		typesIn(of.Elem(), all)
	case reflect.Slice:
		typesIn(of.Elem(), all)
		if of.Elem().Kind() == reflect.Struct {
			all[of.Elem()] = true
		}
	case reflect.Struct:
		if _, seen := all[of]; !seen {
			all[of] = false
			for f := range of.Fields() {
				typesIn(f.Type, all)
			}
		}
	}
	return all
}

// TestIdentities checks that each list of the facts has an identity, and that it is of fields that there are.
func TestIdentities(t *testing.T) {
	whole := []string{"facts.Text", "facts.TextKind", "facts.PastLine", "facts.Origin", "facts.Comparison"} // Nothing cites their elements.
	for of, isList := range typesIn(reflect.TypeFor[facts.Facts](), map[reflect.Type]bool{}) {
		identity := facts.Identity(of)
		expect.That(t, isList == (identity != nil) || slices.Contains(whole, of.String()), "%v: the facts have lists of it: %v; identities.yaml names its elements by %v", of, isList, identity)
		for _, name := range identity {
			_, ok := of.FieldByName(name)
			expect.That(t, ok, "identities: %v has no %s", of, name)
		}
	}
}

// TestWalk checks paths, what is left out, and that a visit can end the way down.
func TestWalk(t *testing.T) {
	f := &facts.Facts{
		GPUs: &facts.GPUFacts{
			Driver:  facts.GPUDriver{Parameters: map[string]string{"NVreg_X": "1"}},
			Devices: []facts.GPU{{Address: "0000:3b:00.0", Persistence: new(false)}},
			P2P:     []facts.GPUPeer{{A: "0000:3b:00.0", B: "0000:86:00.0"}},
		},
		NICs: &facts.NICFacts{RDMA: []facts.RDMAPort{{Device: "mlx5_0", Port: 1}}},
		PCI:  &facts.PCIFacts{},
	}
	seen := map[string]any{}
	facts.Walk("", f, func(n *facts.Node) bool {
		if n.IsLeaf() {
			seen[n.Path()] = n.Value.Interface()
		}
		return n.Field == nil || n.Field.Name != "pci"
	})
	for path, want := range map[string]any{
		"gpus.driver.parameters[NVreg_X]": "1", "gpus.devices[0000:3b:00.0].persistence": false, "nics.rdma[mlx5_0:1].port": 1,
		"gpus.p2p[0000:3b:00.0 -> 0000:86:00.0].a": "0000:3b:00.0", "pci.devices": nil, "host.kernel": nil, "gpus.devices[0000:3b:00.0].ecc": nil,
	} {
		expect.That(t, seen[path] == want, "%s: got %v, want %v", path, seen[path], want)
	}
}
