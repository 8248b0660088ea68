package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/util"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

const (
	// TraitVariables is the trait that names the variables that are set, if the environment is known: a variable that
	// is not among them is not set.
	TraitVariables = "variables"
	// TraitSubnet begins the name of the subnet of an RDMA port.
	TraitSubnet = "subnet of "
	// NotSet is the value of a variable that is not set.
	NotSet = "not set"
	// noElement is the value of a trait that comes from an empty list.
	noElement = "none"
)

// Traits are the values of table fleet in the facts of a machine, by name. What is not known is left out.
func Traits(f *facts.Facts) map[string]string {
	all := map[string]string{}
	var document any = facts.Facts{
		Host: f.Host, IOMMU: f.IOMMU, NUMA: f.NUMA, GPUs: f.GPUs, Libraries: f.Libraries, NICs: f.NICs, Container: f.Container,
	}
	if util.RoundTrip(&document) != nil { // A size stays as it is written.
		return all // Facts can be encoded: they are read from JSON.
	}
	for _, row := range data.Fleet().Traits {
		if row.Fact == "" {
			continue
		}
		if values, known := valuesAt(document, strings.Split(row.Fact, ".")); known {
			if value := together(values, row.Counted); value != "" {
				all[row.Name] = value
			}
		}
	}
	addVariables(all, f.Env)
	addSubnets(all, f.NICs)
	return all
}

// valuesAt are the values at a path. They are not known if one of them is not; of a list without elements there are none.
func valuesAt(v any, path []string) (values []string, known bool) {
	if list, ok := v.([]any); ok {
		for _, element := range list {
			of, ok := valuesAt(element, path)
			if !ok {
				return nil, false
			}
			values = append(values, of...)
		}
		return values, true
	}
	if len(path) == 0 {
		if on, is := v.(bool); is {
			v = map[bool]string{true: "on", false: "off"}[on]
		}
		return []string{fmt.Sprint(v)}, v != nil && v != ""
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	name, choice, _ := strings.Cut(strings.TrimSuffix(path[0], "]"), "[")
	next := object[name]
	if field, value, chosen := strings.Cut(choice, "="); chosen {
		list, ok := next.([]any)
		if !ok {
			return nil, false
		}
		next = slices.DeleteFunc(list, func(element any) bool {
			object, ok := element.(map[string]any)
			return !ok || object[field] != value
		})
	}
	return valuesAt(next, path[1:])
}

// together are values in one text: each once, or counted.
func together(values []string, counted bool) string {
	if len(values) == 0 {
		return noElement
	}
	counts := map[string]int{}
	for _, v := range values {
		counts[v]++
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if counted {
		for i, v := range values {
			values[i] = fmt.Sprintf("%d x %s", counts[v], v)
		}
	}
	return strings.Join(values, " + ")
}

// addVariables adds the variables on which NCCL and RCCL depend.
func addVariables(all map[string]string, env *facts.EnvFacts) {
	if env == nil || env.Variables == nil {
		return
	}
	var names []string
	known := data.Variables()
	for _, v := range env.Variables {
		if _, read := known.Known[v.Name]; read && v.Effective && !v.Trial && !known.IsBeside(v.Name) && !slices.Contains(data.Fleet().Own, v.Name) {
			all[v.Name] = v.Value
			names = append(names, v.Name)
		}
	}
	all[TraitVariables] = together(names, false)
}

// addSubnets adds the IPv4 subnets of the RDMA ports with a network interface.
func addSubnets(all map[string]string, nics *facts.NICFacts) {
	if nics == nil {
		return
	}
	for _, port := range nics.RDMA {
		var subnets []string
		for _, i := range nics.Interfaces {
			if port.Host != "" || port.Netdev == "" || i.Name != port.Netdev || i.Host != "" {
				continue
			}
			for _, address := range i.Addresses {
				if p, err := netip.ParsePrefix(address); err == nil && p.Addr().Is4() {
					subnets = append(subnets, p.Masked().String())
				}
			}
		}
		if len(subnets) > 0 {
			all[TraitSubnet+port.Device] = together(subnets, false)
		}
	}
}
