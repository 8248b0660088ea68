package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// Need is what a rule must know before it may pass: one of several facts, each the path of a fact ("links.pairs",
// "gpus.devices[].ecc") or a condition by name ("job-connected"). A path with [] asks for it in at least one element.
type Need []string

// condition is something that a rule may need and that no single path expresses.
type condition struct {
	// fact is the path that it concerns.
	fact string
	// is says that it holds, isNot what is missing if it does not.
	is, isNot string
	// ofLogs is true if it follows from logs.
	ofLogs bool
	// guard is true if it says when a need does not count, and is nothing to provide.
	guard bool
	holds func(f *facts.Facts) bool
}

// conditions are all of them, by name.
var conditions = map[string]condition{
	"job-connected": {
		fact: "logs.communicators", is: "a log shows that the ranks of a job connected",
		isNot: "no log of a run with NCCL_DEBUG=INFO shows that its ranks connected", ofLogs: true,
		holds: func(f *facts.Facts) bool { return !cut(f) && connected(f.Logs) },
	},
	"job-told": {
		fact: "logs.communicators", is: "a log shows how far a job came",
		isNot: "no log of a run with NCCL_DEBUG=INFO shows how far it came", ofLogs: true,
		holds: toldOfJob,
	},
	"job-told-if-given": {
		fact: "logs.communicators", is: "no text was given", isNot: "no log of a run with NCCL_DEBUG=INFO shows how far it came", ofLogs: true,
		holds: func(f *facts.Facts) bool { return !toldByTexts(f) || toldOfJob(f) },
	},
	"texts-given": {
		fact: "texts", guard: true, holds: toldByTexts,
	},
	"one-gpu": {
		fact: "gpus.devices", is: "the machine has one GPU", isNot: "the machine has several GPUs",
		holds: func(f *facts.Facts) bool { return f.GPUs != nil && len(f.GPUs.Devices) == 1 },
	},
	"transfers-tried": {
		fact: "transfers.transfers", is: "every path between GPUs was tried", isNot: "not every path between GPUs was tried",
		holds: func(f *facts.Facts) bool { return tried(f.Transfers, func(probe.Transfer) bool { return true }) },
	},
	"transfers-measured": {
		fact: "transfers.transfers", is: "the speed of every path between GPUs was measured", isNot: "not every path between GPUs was tried and its speed measured",
		holds: func(f *facts.Facts) bool {
			return tried(f.Transfers, func(t probe.Transfer) bool { return t.Outcome != probe.OK && t.Outcome != probe.Slow || t.GBps != nil })
		},
	},
}

// toldOfJob reports whether a log that was read to its end shows how far a job came.
func toldOfJob(f *facts.Facts) bool {
	return f.Logs != nil && len(f.Logs.Communicators) > 0 && !cut(f) && (connected(f.Logs) || complains(f.Logs))
}

// tried reports whether copies between GPUs were tried, with a known outcome for each and what good requires.
func tried(r *probe.Report, good func(probe.Transfer) bool) bool {
	if r == nil {
		return false
	}
	copies := slices.DeleteFunc(slices.Clone(r.Transfers), func(t probe.Transfer) bool { return t.Test != probe.TestCopy })
	return len(copies) > 0 && !slices.ContainsFunc(copies, func(t probe.Transfer) bool {
		return t.Outcome == probe.Unknown || t.Outcome == "" || !good(t)
	})
}

// cut reports whether the facts lack a part of the logs: a text was
// not read, or not to its end, or there were more messages than are kept.
func cut(f *facts.Facts) bool {
	return f.Logs != nil && f.Logs.Truncated ||
		slices.ContainsFunc(f.Texts, func(t facts.Text) bool { return t.Unread != "" || len(t.Kinds) > 0 && t.Problem != "" })
}

// connected reports whether the log of a job shows that its ranks reached each other: every communicator that was
// started was completed ("Init COMPLETE" of NCCL, src/init.cc, ncclCommInitRankFunc), and channels were opened ("via
// P2P/IPC", "via NET/IB/0"; src/transport/*.cc), between hosts over a network. What a log says before that does not
// show what would have failed after it.
func connected(l *facts.LogFacts) bool {
	if l == nil || len(l.Communicators) == 0 ||
		slices.ContainsFunc(l.Communicators, func(c facts.Communicator) bool { return c.Completed == 0 || c.Completed < c.Started }) {
		return false
	}
	apart := slices.ContainsFunc(l.Communicators, func(c facts.Communicator) bool { return c.Nodes > 1 || len(c.Hosts) > 1 })
	return slices.ContainsFunc(l.Transports, func(t facts.Transport) bool {
		return !apart || t.Kind == "net" || t.Kind == "collnet"
	})
}

// complains reports whether a log states a failure.
func complains(l *facts.LogFacts) bool {
	return slices.ContainsFunc(l.Messages, func(m facts.Message) bool { return m.Complains() })
}

// unmet lists what a rule needs and the facts lack. Where nothing else is missing and one of
// several facts would be enough, all of these are listed.
func unmet(needs []Need, f *facts.Facts, input ast.Value) []Missing {
	var alone, choices []Missing
	for _, need := range needs {
		if slices.ContainsFunc(need, func(n string) bool { return met(n, f, input) }) {
			continue
		}
		list := &alone
		if len(need) > 1 {
			list = &choices
		}
		for i, n := range need {
			if m := need.lacks(i, f, input); !conditions[n].guard && !slices.Contains(*list, m) {
				*list = append(*list, m)
			}
		}
	}
	if len(alone) > 0 {
		return alone
	}
	return choices
}

// lacks says that one fact of a need is missing, and the alternatives.
func (n Need) lacks(i int, f *facts.Facts, input ast.Value) Missing {
	c, isCondition := conditions[n[i]]
	m := Missing{Fact: cmp.Or(c.fact, n[i])}
	if section := m.Section(); len(n) == 1 && !known(input, []string{section}) {
		m.Fact = section
	}
	switch {
	case isCondition && c.ofLogs && cut(f):
		m = Missing{Fact: "logs", Words: "the logs were not read completely"}
	case isCondition && m.Fact == c.fact:
		m.Words = c.isNot
	case len(n) == 1:
		m.Words = data.Unknown().Facts[m.Fact]
	case slices.ContainsFunc(n, func(need string) bool { return conditions[need].guard }):
		// A log would do, and without one the rule has little to judge.
		m = Missing{Fact: "logs", Words: "no log was given, and " + n[i] + " is not known"}
	default:
		m.Words = "needed, unless " + n.instead(i)
	}
	return m
}

// instead says what would do instead of one fact of a need.
func (n Need) instead(i int) string {
	var others []string
	for j, other := range n {
		if o, ok := conditions[other]; ok {
			others = append(others, o.is)
		} else if j != i {
			others = append(others, other+" is known")
		}
	}
	return strings.Join(others, " or ")
}

// asked lists what a rule asks for; "" stands for what is not written out.
func asked(m *ast.Module) Need {
	var paths Need
	for _, rule := range m.Rules {
		if rule.Head.Name.String() == "asks" && rule.Head.Key != nil {
			path, _ := rule.Head.Key.Value.(ast.String)
			paths = append(paths, string(path))
		}
	}
	return paths
}

// met reports whether one fact is known, or one condition holds.
func met(need string, f *facts.Facts, input ast.Value) bool {
	if c, ok := conditions[need]; ok {
		return c.holds(f)
	}
	return known(input, keysOf(need))
}

// keysOf lists the keys of a path; "[]" stands for the elements of a list.
func keysOf(path string) []string { return strings.Split(strings.ReplaceAll(path, "[]", ".[]"), ".") }

// known reports whether a value holds something at a path. An empty list is known, an empty text is not.
func known(v ast.Value, path []string) bool {
	if len(path) == 0 {
		return v.Compare(ast.String("")) != 0
	}
	switch v := v.(type) {
	case ast.Object:
		t := v.Get(ast.StringTerm(path[0]))
		return t != nil && known(t.Value, path[1:])
	case *ast.Array:
		return path[0] == "[]" && v.Until(func(element *ast.Term) bool { return known(element.Value, path[1:]) })
	}
	return false
}

// strangeNeeds lists what rules need or ask for that is neither a path of the facts nor a condition, or
// that is never unknown.
func strangeNeeds(faults *faultsOf, rules []Rule, modules map[string]*ast.Module) {
	schema := readSchema()
	for _, rule := range rules {
		faults.file, faults.line = rule.File, packageAnnotations(modules[rule.File]).Location.Row
		for _, need := range slices.Concat(append(slices.Clone(rule.Needs), asked(modules[rule.File]))...) {
			if _, ok := conditions[need]; ok {
				continue
			}
			if _, ok := schemaAt(schema, keysOf(need)); !ok {
				faults.add("see rules/facts.schema.json; the conditions are "+strings.Join(slices.Sorted(maps.Keys(conditions)), ", "), "custom.needs: %q is not a path of the facts", need)
			} else if whole, always := alwaysKnown(schema, need); always {
				faults.add(fmt.Sprintf("name what it is part of: %q", whole), "custom.needs: %q is never unknown", need)
			}
		}
	}
}

// alwaysKnown reports whether a path leads to a number or truth value that is written wherever what holds it is, 0 or
// false where it was not read, and gives the path of what holds it.
func alwaysKnown(schema map[string]any, need string) (whole string, always bool) {
	path := keysOf(need)
	last := len(path) - 1
	holder, _ := schemaAt(schema, path[:last])
	value, _ := schemaAt(schema, path)
	if !slices.Contains([]any{"boolean", "integer", "number"}, value["type"]) {
		return "", false
	}
	required, _ := holder["required"].([]any)
	return strings.TrimSuffix(need, "."+path[last]), slices.Contains(required, any(path[last]))
}

// readSchema reads the schema of the facts, once.
var readSchema = sync.OnceValue(func() (schema map[string]any) {
	if err := json.Unmarshal(factsSchema, &schema); err != nil {
		panic(err) // It is part of the program, and a test reads it.
	}
	return schema
})

// schemaAt is the part of a JSON Schema for a path.
func schemaAt(at map[string]any, path []string) (map[string]any, bool) {
	if len(path) == 0 {
		return at, true
	}
	next, ok := at["items"].(map[string]any)
	if path[0] != "[]" {
		properties, _ := at["properties"].(map[string]any)
		next, ok = properties[path[0]].(map[string]any)
	}
	if !ok { // A map, whatever its keys.
		next, ok = at["additionalProperties"].(map[string]any)
	}
	if !ok {
		return nil, false
	}
	return schemaAt(next, path[1:])
}
