package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// maxDistinct bounds the values of a trait: one with more is each node's own, such as an address.
const maxDistinct = 1000

// Judge asks the rules over many nodes. What they find are causes like those of the nodes' own reports.
func (f *Fleet) Judge(ctx context.Context, set *rules.Set) error {
	if len(f.Nodes) < 2 {
		return nil
	}
	result, err := set.Evaluate(ctx, &facts.Facts{Schema: facts.FactsSchema, Fleet: &facts.FleetFacts{Nodes: len(f.Nodes), Traits: traitsOf(f.Nodes)}}, rules.Options{Profile: rules.Fleet})
	if err != nil {
		return err
	}
	groups := groupsOf(f.Nodes)
	for _, found := range result.Findings {
		c := Cause{Rule: found.Rule, Title: found.Message, Severity: found.Severity, Nodes: found.Nodes}
		if len(found.Remedies) > 0 {
			c.Remedy = found.Remedies[0]
		}
		c.associate(f.Nodes, without(groups, found.Subject), len(result.Findings)*len(groups))
		f.Causes = append(f.Causes, c)
		if found.Severity.Rank() <= rules.High.Rank() {
			f.ExitCode = worse(f.ExitCode, exitFindings)
		}
	}
	for _, s := range result.Skipped {
		for _, m := range s.Missing {
			f.Problems = append(f.Problems, Problem{Source: "rule " + s.Rule, Reason: m.String()})
		}
		f.ExitCode = worse(f.ExitCode, exitUnknown)
	}
	slices.SortFunc(f.Causes, Cause.compare)
	return nil
}

// addUnset adds the variables that others have set to the traits of nodes on which they are not set.
func addUnset(nodes []*Node) {
	variables := map[string]bool{}
	for _, n := range nodes {
		for trait := range n.Traits {
			if _, known := data.Variables().Known[trait]; known {
				variables[trait] = true
			}
		}
	}
	for _, n := range nodes {
		if _, known := n.Traits[rules.TraitVariables]; !known {
			continue
		}
		delete(n.Traits, rules.TraitVariables)
		for name := range variables {
			if _, set := n.Traits[name]; !set {
				n.Traits[name] = rules.NotSet
			}
		}
	}
}

// without are groups without a trait, which would explain itself.
func without(groups []group, trait string) []group {
	var others []group
	for _, g := range groups {
		g.traits = lines.Filter(g.traits, func(t Trait) bool { return t.Name != trait })
		if len(g.traits) > 0 {
			others = append(others, g)
		}
	}
	return others
}

// compared is a trait of the nodes with some hardware, or of all.
type compared struct{ trait, hardware string }

// traitsOf are the traits of all nodes, with the names of the nodes that have each value, but for one of most nodes.
func traitsOf(nodes []*Node) []facts.FleetTrait {
	values := map[compared]map[string][]string{}
	for _, n := range nodes {
		for trait, value := range n.Traits {
			if strings.HasPrefix(trait, partOfName) {
				continue
			}
			of := compared{trait: trait}
			if rowOf(trait).LikeHardware {
				of.hardware = n.Hardware
			}
			if values[of] == nil {
				values[of] = map[string][]string{}
			}
			values[of][value] = append(values[of][value], n.Name)
		}
	}
	var all []facts.FleetTrait
	for of, by := range values {
		if len(by) <= maxDistinct {
			all = append(all, facts.FleetTrait{Name: of.trait, Hardware: of.hardware, Values: valuesOf(by, rowOf(of.trait).Expected)})
		}
	}
	slices.SortFunc(all, func(a, b facts.FleetTrait) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hardware, b.Hardware))
	})
	return all
}

// rowOf is what the table says of a trait. Of what the table lacks, all but variables and subnets is compared between nodes with the same
// GPUs only.
func rowOf(trait string) data.FleetTrait {
	rows := data.Fleet().Traits
	if i := slices.IndexFunc(rows, func(r data.FleetTrait) bool { return r.Name == trait }); i >= 0 {
		return rows[i]
	}
	_, variable := data.Variables().Known[trait]
	return data.FleetTrait{LikeHardware: !variable && !strings.HasPrefix(trait, rules.TraitSubnet)}
}

// valuesOf are the values of a trait, the most frequent first. The nodes of a value are named unless it is the expected
// one; where none of them is, unless it is that of most nodes.
func valuesOf(by map[string][]string, expected string) []facts.FleetValue {
	total := 0
	for _, names := range by {
		total += len(names)
	}
	var all []facts.FleetValue
	for _, value := range slices.Sorted(maps.Keys(by)) {
		v := facts.FleetValue{Value: value, Count: len(by[value])}
		usual := 2*v.Count > total
		if by[expected] != nil {
			usual = value == expected
		}
		if !usual {
			v.Nodes = by[value]
		}
		all = append(all, v)
	}
	slices.SortStableFunc(all, func(a, b facts.FleetValue) int { return cmp.Compare(b.Count, a.Count) })
	return all
}
