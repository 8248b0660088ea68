package rules

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestTraits checks that each row of table fleet names a fact, and that some case has a value of it, but for three.
func TestTraits(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, c := range expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t) {
		for name, value := range Traits(c.Facts) {
			found[name] = true
			expect.That(t, value != "", "%s: %s is empty", c.Name, name)
		}
	}
	choice, names := regexp.MustCompile(`\[[^]]*\]`), map[string]bool{}
	for _, row := range data.Fleet().Traits {
		expect.That(t, !names[row.Name], "%s is there twice", row.Name)
		names[row.Name] = true
		if row.Fact != "" {
			expect.That(t, inFacts(choice.ReplaceAllString(row.Fact, "[]")), "%s: %s is no fact", row.Name, row.Fact)
			bare := slices.Contains([]string{"BIOS", "amdgpu driver", "clock synchronization"}, row.Name) // No case has them.
			expect.That(t, found[row.Name] != bare, "%s: a case has a value: %v", row.Name, found[row.Name])
		}
	}
	for _, name := range data.Fleet().Own {
		expect.That(t, data.Variables().Known[name] != "", "%s is no variable of NCCL", name)
	}
}

// TestTraitValues checks that what is not known has no value, that nothing is "none", and what counts as one value.
func TestTraitValues(t *testing.T) {
	t.Parallel()
	port := func(device, netdev string, rate float64, firmware string) facts.RDMAPort {
		return facts.RDMAPort{Device: device, Port: 1, Netdev: netdev, RateGbps: rate, Firmware: firmware}
	}
	network := func(ports ...facts.RDMAPort) *facts.Facts { return &facts.Facts{NICs: &facts.NICFacts{RDMA: ports}} }
	rails := network(port("mlx5_0", "eth0", 400, "28.1"), port("mlx5_1", "eth1", 400, "28.1"), port("mlx5_2", "eth2", 100, "28.0"))
	rails.NICs.Interfaces = []facts.Interface{{Name: "eth0", Addresses: []string{"10.0.3.7/24", "fe80::1/64"}}, {Name: "eth1", Addresses: []string{"nonsense"}}}
	variables := &facts.Facts{Env: &facts.EnvFacts{Variables: []facts.Variable{
		{Name: "NCCL_ALGO", Value: "Ring", Effective: true},
		{Name: "NCCL_ALGO", Value: "Tree"},
		{Name: "NCCL_PROTO", Value: "LL", Effective: true, Trial: true},
		{Name: "NCCL_DEBUG", Value: "INFO", Effective: true},
		{Name: "NCCL_HOSTID", Value: "7", Effective: true},
		{Name: "RANK", Value: "3", Effective: true},
	}}}
	for name, tt := range map[string]struct {
		facts *facts.Facts
		want  map[string]string
	}{
		"nothing":      {&facts.Facts{}, map[string]string{}},
		"no section":   {&facts.Facts{NICs: &facts.NICFacts{}, Env: &facts.EnvFacts{}, Libraries: &facts.LibraryFacts{}}, map[string]string{}},
		"no ports":     {network([]facts.RDMAPort{}...), map[string]string{}},
		"rails":        {rails, map[string]string{"RDMA ports": "1 x 100 + 2 x 400", "firmware of the NICs": "28.0 + 28.1", "subnet of mlx5_0": "10.0.3.0/24"}},
		"unknown":      {network(port("mlx5_0", "", 400, "28.1"), port("mlx5_1", "", 0, "28.1")), map[string]string{"firmware of the NICs": "28.1"}},
		"variables":    {variables, map[string]string{"NCCL_ALGO": "Ring", TraitVariables: "NCCL_ALGO"}},
		"no variables": {&facts.Facts{Env: &facts.EnvFacts{Variables: []facts.Variable{}}}, map[string]string{TraitVariables: "none"}},
	} {
		got := Traits(tt.facts)
		maps.DeleteFunc(got, func(_, value string) bool { return tt.facts.NICs != nil && value == noElement }) // What ports without GIDs have.
		expect.NoDiff(t, tt.want, got, "%s", name)
	}
}
