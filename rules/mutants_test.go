package rules

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestMutants checks that facts which are cut or spoilt make no rule fail, and that what is missing never makes a
// healthy machine sick: not known is not false.
//
// Each kind of fact ("gpus.devices[].bar1_bytes") is taken away, wherever it stands, from one machine. Which machine
// that is follows from the kind's place in the alphabet; GPUDOCTOR_ALL_MUTANTS takes it from every machine that has it.
// By day every tenth kind is spoilt, and one of each section in each way.
func TestMutants(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	expect.NotByDay(t, "TestUnknownNeverPasses takes away the same")
	set := compiledSet(t)
	machines := documents(t)
	owners := map[string][]int{} // The machines that have each kind of fact.
	for i, m := range machines {
		for _, kind := range kindsOf(m.document) {
			owners[kind] = append(owners[kind], i)
		}
	}
	_, all := os.LookupEnv("GPUDOCTOR_ALL_MUTANTS")
	tried, kindsTried, try := 0, 0, expect.EachNth(10)
	for n, kind := range slices.Sorted(maps.Keys(owners)) {
		section, _, _ := strings.Cut(kind, ".")
		if !try(section, section+" "+mutations[n%len(mutations)].name) {
			continue
		}
		kindsTried++
		chosen := owners[kind]
		if !all {
			chosen = chosen[n%len(chosen):][:1]
		}
		for _, i := range chosen {
			for _, m := range mutations {
				if !all && m.name != mutations[n%len(mutations)].name && m.name != "taken away" {
					continue
				}
				f := m.of(t, machines[i].document, kind)
				if f == nil {
					continue
				}
				tried++
				v, err := set.Evaluate(t.Context(), f, Options{Profile: machines[i].profile})
				expect.Must(t, err == nil, "%s, %s %s: %v", machines[i].name, kind, m.name, err)
				faults := ruleFaults(v)
				if machines[i].healthy && m.keepsHealth && !always(t, f, kind) && !unstated(machines[i].profile, kind) && refuting[kind] == "" {
					faults = alarms(v)
				}
				expect.Len(t, 0, faults, "%s, %s %s: faults", machines[i].name, kind, m.name)
			}
		}
	}
	t.Logf("%d mutants of %d machines", tried, len(machines))
	expect.That(t, tried >= kindsTried && kindsTried >= 100, "%d mutants of %d kinds of facts", tried, kindsTried)
}

// refuting are kinds of facts that show to be harmless what is a fault without them.
var refuting = map[string]string{
	"gpudirect.nics":              "a registration larger than the limit on locked memory shows that it does not count",
	"gpudirect.nics[].host":       "a registration larger than the limit on locked memory shows that it does not count",
	"gpudirect.nics[].host.bytes": "a registration larger than the limit on locked memory shows that it does not count",
}

// always is true of a member that the document has at any time, so that it is not unknown when it is taken away, and of
// a mark, which means no where it is left out.
func always(t *testing.T, f *facts.Facts, kind string) bool {
	t.Helper()
	// The second is a count, and left out where it is 0.
	left := []string{"libraries.files[].compat", "logs.messages[].steps_after", "logs.transports[].gdr"}
	return slices.Contains(left, kind) || slices.Contains(kindsOf(reread[map[string]any](t, f)), kind)
}

// unstated is true of a part of a file of a job: where it is left out, the file does not state it. What is unknown there
// is in launches[].unknown, with which TestUnknownParts tries each part.
func unstated(profile Profile, kind string) bool {
	return profile == Launch && strings.HasPrefix(kind, "launches[].")
}

// document is the facts of one machine as they are written.
type document struct {
	name     string
	healthy  bool
	document map[string]any
	profile  Profile
}

// documents are all cases, and the healthy machines as root sees them with the probe.
func documents(t *testing.T) []document {
	t.Helper()
	cases := expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t)
	var list []document
	for _, c := range cases {
		list = append(list, document{"case " + c.Name, strings.HasSuffix(c.Name, "-healthy"), reread[map[string]any](t, c.Facts), Profile(c.Want.Profile)})
	}
	for _, name := range slices.Sorted(maps.Keys(healthy)) {
		m := healthy[name]()
		if len(m.cards) > 0 && m.GPUs.NVML == "ok" {
			m.probed()
		}
		list = append(list, document{name, !judgedOtherwise[name], reread[map[string]any](t, m.Facts), Training})
	}
	return list
}

// reread is a value as another type reads its JSON.
func reread[T any](tb testing.TB, v any) (read T) {
	tb.Helper()
	expect.NoError(tb, json.Unmarshal(expect.Value(json.Marshal(v))(tb), &read))
	return read
}

// kindsOf lists the kinds of facts in a document, in order: its paths, with [] for whatever index.
func kindsOf(document map[string]any) []string {
	kinds := map[string]bool{}
	visit(document, "", func(_ map[string]any, _, kind string) { kinds[kind] = true })
	delete(kinds, "schema")
	return slices.Sorted(maps.Keys(kinds))
}

// visit gives each member of each object in a value, with the object, the key
// and the kind. The member may be taken away.
func visit(v any, path string, see func(object map[string]any, key, kind string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			kind := strings.TrimPrefix(path+"."+key, ".")
			see(v, key, kind)
			visit(v[key], kind, see)
		}
	case []any:
		for _, element := range v {
			visit(element, path+"[]", see)
		}
	}
}

// mutation spoils one kind of fact.
type mutation struct {
	name string
	// keepsHealth is true where a machine that is healthy must stay so.
	keepsHealth bool
	// change spoils one member, and reports whether there was something to do.
	change func(object map[string]any, key string) bool
}

var mutations = []mutation{
	{"taken away", true, func(object map[string]any, key string) bool {
		delete(object, key)
		return true
	}},
	{"made empty", false, func(object map[string]any, key string) bool {
		switch object[key].(type) {
		case string:
			object[key] = ""
		case []any:
			object[key] = []any{}
		default:
			return false
		}
		return true
	}},
	{"made foreign", false, func(object map[string]any, key string) bool {
		switch v := object[key].(type) {
		case string:
			object[key] = "\x1b[31m" + v + " -> %s {{.x}}\n"
		case float64:
			object[key] = -v - 1
		case bool:
			object[key] = !v
		default:
			return false
		}
		return true
	}},
	{"twice", false, func(object map[string]any, key string) bool {
		list, ok := object[key].([]any)
		if ok {
			object[key] = append(slices.Clone(list), list...)
		}
		return ok
	}},
}

// of returns the facts of a document in which every fact of a kind was spoilt,
// or nil where there is none to spoil. Facts that the Go types refuse are none.
func (m mutation) of(t *testing.T, original map[string]any, kind string) *facts.Facts {
	t.Helper()
	copied := reread[map[string]any](t, original)
	changed := false
	visit(copied, "", func(object map[string]any, key, k string) {
		if k == kind {
			changed = m.change(object, key) || changed
		}
	})
	if !changed {
		return nil
	}
	b := expect.Value(json.Marshal(copied))(t)
	f := &facts.Facts{}
	if json.Unmarshal(b, f) != nil {
		return nil
	}
	return f
}
