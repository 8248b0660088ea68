package text

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Join adds to the facts of a machine what texts say about a job that ran there, and sections that they lack. What the
// machine itself shows stays: a text may be older, or from another machine.
func Join(machine, texts *facts.Facts) *facts.Facts {
	joined := *machine
	to, from := reflect.ValueOf(&joined).Elem(), reflect.ValueOf(texts).Elem()
	kept := map[string]bool{}
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		kept[name] = true
	}
	if machine.Env != nil && texts.Env != nil {
		joined.Env = joinEnv(machine.Env, texts.Env)
		delete(kept, "env")
	}
	if machine.NICs != nil && texts.NICs != nil {
		joined.NICs = joinNICs(machine.NICs, texts.NICs)
	}
	if machine.Storage != nil && texts.Storage != nil {
		joined.Storage = joinStorage(machine.Storage, texts.Storage)
		delete(kept, "storage") // What is of a text there is of gdscheck.
	}
	joined.Origins = slices.DeleteFunc(slices.Clone(texts.Origins), func(o facts.Origin) bool {
		section, _, _ := strings.Cut(o.Fact, ".")
		return kept[section]
	})
	joined.Unknown = machine.Unknown
	checks.CompareBenchmarks(&joined)
	return &joined
}

// joinNICs adds what the kernel here does not show: what tools alone print, RDMA ports where it has
// none, as in a container without them, and ports and interfaces of named hosts.
func joinNICs(machine, texts *facts.NICFacts) *facts.NICFacts {
	joined := *machine
	parse.Fill(&joined, texts)
	if machine.Modules != nil { // The list of a machine is whole.
		joined.Modules, joined.ModulesPartial = machine.Modules, machine.ModulesPartial
	}
	for _, p := range texts.RDMA {
		if len(machine.RDMA) > 0 && p.Host != "" {
			joined.RDMA = append(slices.Clip(joined.RDMA), p)
		}
	}
	for _, n := range texts.Interfaces {
		if len(machine.Interfaces) > 0 && n.Host != "" {
			joined.Interfaces = append(slices.Clip(joined.Interfaces), n)
		}
	}
	return &joined
}

// joinStorage adds what gdscheck says of GPUDirect Storage, which tries it, to what the files of the machine show.
func joinStorage(machine, texts *facts.StorageFacts) *facts.StorageFacts {
	joined := *machine
	switch {
	case texts.GDS == nil:
	case machine.GDS == nil:
		joined.GDS = texts.GDS
	default:
		gds := *texts.GDS
		gds.Loaded, gds.Config, gds.Variables, gds.KernelP2PDMA = machine.GDS.Loaded, machine.GDS.Config, machine.GDS.Variables, machine.GDS.KernelP2PDMA
		gds.Version = cmp.Or(machine.GDS.Version, gds.Version)
		joined.GDS = &gds
	}
	return &joined
}

// joinEnv adds the variables of a job, which are in force for it, to those of the machine, for what is started now:
// where both set a variable, both are listed, and the machine's counts.
func joinEnv(machine, job *facts.EnvFacts) *facts.EnvFacts {
	joined := &facts.EnvFacts{Variables: slices.Clone(machine.Variables)}
	for _, v := range job.Variables {
		if slices.ContainsFunc(machine.Variables, func(m facts.Variable) bool { return m.Name == v.Name }) {
			v.Effective = false
		}
		joined.Variables = append(joined.Variables, v)
	}
	slices.SortStableFunc(joined.Variables, func(a, b facts.Variable) int { return cmp.Compare(a.Name, b.Name) })
	return joined
}
