package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// steps counts the steps of an evaluation, as a measure of its work that is the same on every run.
type steps struct{ n int }

func (s *steps) TraceEvent(topdown.Event) { s.n++ }

func (*steps) Enabled() bool { return true }

func (*steps) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// meter measures what rules take, each alone.
type meter struct {
	set     *Set
	queries map[string]rego.PreparedEvalQuery
	// measured counts the ways to grow that were followed to an answer.
	measured int
}

func newMeter(tb testing.TB) *meter {
	tb.Helper()
	return &meter{set: compiledSet(tb), queries: map[string]rego.PreparedEvalQuery{}}
}

func (m *meter) evaluate(tb testing.TB, id string, f *facts.Facts, more ...rego.EvalOption) error {
	tb.Helper()
	q, ok := m.queries[id]
	if !ok {
		rule, _ := m.set.Rule(id)
		p := expect.Value(m.set.program(m.set.everything()))(tb)
		q = expect.Value(rego.New(
			rego.Compiler(p.compiler), rego.Store(p.store), rego.ParsedQuery(p.queryBody([]Rule{rule})),
			rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
		).PrepareForEval(tb.Context()))(tb)
		m.queries[id] = q
	}
	input, err := valueOf(f)
	expect.NoError(tb, err)
	_, err = q.Eval(tb.Context(), append(more, rego.EvalParsedInput(input))...)
	return err
}

// growth is facts that grow in one way: the entries of one list, or of all, are copied.
type growth struct {
	document map[string]any
	// list is the path of the list; empty for all lists that lie in no other.
	list string
	// varied says which members differ from copy to copy, beside the place in a text.
	varied func(key string) bool
}

func listsOf(document map[string]any) []string {
	found := map[string]bool{}
	visit(document, "", func(object map[string]any, key, kind string) {
		if list, ok := object[key].([]any); ok && len(list) > 0 {
			found[kind] = true
		}
	})
	return slices.Sorted(maps.Keys(found))
}

// times are the facts with each entry n times, or nil where no Go type holds them.
func (g growth) times(tb testing.TB, n int) *facts.Facts {
	tb.Helper()
	b := expect.Value(json.Marshal(g.grow(g.document, "", n)))(tb)
	f := &facts.Facts{}
	if json.Unmarshal(b, f) != nil {
		return nil
	}
	return f
}

func (g growth) grow(v any, path string, n int) any {
	list, isList := v.([]any)
	if !isList || g.list != "" && g.list != path {
		return rebuilt(v, func(key string, member any) any { return g.grow(member, strings.TrimPrefix(path+key, "."), n) })
	}
	grown := make([]any, 0, n*len(list))
	for copies := range n {
		for _, element := range list {
			grown = append(grown, g.vary(element, "", copies))
		}
	}
	return grown
}

// rebuilt is a value with others for its members, which are found at ".key", and its elements, at "[]".
func rebuilt(v any, with func(key string, part any) any) any {
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, member := range v {
			all[key] = with("."+key, member)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, element := range v {
			all[i] = with("[]", element)
		}
		return all
	}
	return v
}

var (
	addressInText = regexp.MustCompile(`[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`)
	versionText   = regexp.MustCompile(`^[0-9]+(\.[0-9]+)+$`)
)

// vary is one copy of an entry: the first is the entry itself.
func (g growth) vary(v any, key string, copies int) any {
	if copies == 0 {
		return v
	}
	switch v := v.(type) {
	case float64:
		if key == "line" || key == "order" || key == "seconds" || g.varied(key) {
			return v + float64(1000*copies)
		}
	case string:
		if g.varied(key) {
			return another(v, copies)
		}
	}
	return rebuilt(v, func(of string, part any) any {
		if of == "[]" {
			of = key
		}
		return g.vary(part, strings.TrimPrefix(of, "."), copies)
	})
}

// another is a text of the same kind.
func another(text string, copies int) string {
	switch {
	case addressInText.MatchString(text):
		return addressInText.ReplaceAllStringFunc(text, func(address string) string {
			domain, rest, _ := strings.Cut(address, ":")
			n, _ := strconv.ParseInt(domain, 16, 64)
			return fmt.Sprintf("%04x:%s", n+int64(copies)<<4, rest)
		})
	case versionText.MatchString(text):
		at := strings.LastIndexByte(text, '.')
		n, _ := strconv.Atoi(text[at+1:])
		return fmt.Sprintf("%s.%d", text[:at], n+copies)
	}
	return fmt.Sprintf("%s%d", text, copies)
}

// places are the members that name a host, a device or a process.
var places = []string{"a", "address", "affects", "ancestors", "b", "bridges", "comm", "destination", "devices", "fact", "host", "hosts", "id_hex", "pid", "rank", "source"}

// kinds are the members that say what an entry is: a copy of another kind fires nothing.
var kinds = []string{"class", "found", "found_by", "id", "kind", "manager", "outcome", "program", "role", "section", "state", "test", "tool", "type", "vendor", "what"}

// ways are those in which a document may grow.
func ways(document map[string]any) map[string]growth {
	all := map[string]growth{}
	for variation, varied := range map[string]func(string) bool{
		"copies in other lines":             func(string) bool { return false },
		"copies of other places":            func(key string) bool { return slices.Contains(places, key) },
		"copies that differ but for a kind": func(key string) bool { return !slices.Contains(kinds, key) },
	} {
		for _, list := range append(listsOf(document), "") {
			all[cmp.Or(list, "all lists")+": "+variation] = growth{document, list, varied}
		}
	}
	return all
}

// tooFast reports whether something grows by more than 2.5 times per doubling, at sizes of 1, 2 and 4. What does not
// grow with the size is left out, and so is a start of a few hundred steps.
func tooFast(one, two, four int) bool { return float64(four-two) > 2.5*float64(max(two-one, 200)) }

// TestGrowth checks that no rule takes more than n log n steps of what it reads. Each case grows in each of its lists
// and in all at once, and each rule that fires in it is evaluated alone. One case of each rule, and all lists at once
// and every 15th way, stand for all; GPUDOCTOR_ALL_GROWTH tries every case and way.
func TestGrowth(t *testing.T) {
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	expect.NotByDay(t, "it judges large machines")
	_, every := os.LookupEnv("GPUDOCTOR_ALL_GROWTH")
	m := newMeter(t)
	all := expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(t)
	seen := map[string]bool{}
	tried, n := 0, 0
	for _, c := range all {
		ws := ways(reread[map[string]any](t, c.Facts))
		for _, f := range c.Want.Findings {
			if seen[f.Rule] && !every {
				continue
			}
			seen[f.Rule] = true
			for _, name := range slices.Sorted(maps.Keys(ws)) {
				n++
				if g := ws[name]; every || g.list == "" || n%15 == 0 {
					tried++
					m.grows(t, f.Rule, c.Name+", "+name, g)
				}
			}
		}
	}
	t.Logf("%d ways to grow, %d of them measured", tried, m.measured)
	expect.That(t, m.measured >= 150, "only %d of %d ways to grow were measured", m.measured, tried)
}

// grows fails the test where a rule takes too many steps more than facts grow.
func (m *meter) grows(t *testing.T, id, name string, g growth) {
	t.Helper()
	var counts []int
	for size := 4; size <= 32; size *= 2 {
		f := g.times(t, size)
		if f == nil {
			return // No Go type holds them.
		}
		counter := &steps{}
		switch err := m.evaluate(t, id, f, rego.EvalQueryTracer(counter)); {
		case topdown.IsError(err) && strings.Contains(err.Error(), topdown.ConflictErr):
			return // Two entries of one address that differ.
		case err != nil:
			t.Errorf("%s: %s, %d times: %v", id, name, size, err)
			return
		}
		counts = append(counts, counter.n)
		if n := len(counts); n > 2 && !tooFast(counts[n-3], counts[n-2], counts[n-1]) {
			m.measured++
			return // A step at one size is no growth.
		}
	}
	m.measured++
	t.Errorf("%s: %s: %v steps", id, name, counts)
}
