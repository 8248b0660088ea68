package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// rowsOf are the ids of rows that a module names, with their places: in logs.by_id["id"],
// in the arguments of logs.said and logs.messages, where the id of a message (m) or of an
// event (e, b) is compared, and in a set of ids that it is compared with.
func rowsOf(m *ast.Module) map[string]*ast.Location {
	rows := map[string]*ast.Location{}
	note := func(x any) {
		ast.WalkTerms(x, func(t *ast.Term) bool {
			if s, ok := t.Value.(ast.String); ok {
				rows[string(s)] = t.Location
			}
			_, nested := t.Value.(ast.Ref)
			return nested
		})
	}
	isID := func(t *ast.Term) bool {
		ref, ok := t.Value.(ast.Ref)
		return ok && len(ref) > 1 && ref[len(ref)-1].Equal(ast.StringTerm("id")) && slices.ContainsFunc([]string{"m", "e", "b"}, func(of string) bool { return ref[0].Equal(ast.VarTerm(of)) })
	}
	noteSet := func(t *ast.Term) {
		for _, rule := range m.Rules {
			if _, named := t.Value.(ast.Var); named && rule.Head.Value != nil && rule.Head.Name.String() == t.Value.String() {
				note(rule.Head.Value)
			}
		}
		note(t)
	}
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		if len(ref) > 2 && ref[0].Equal(ast.VarTerm("logs")) && ref[1].Equal(ast.StringTerm("by_id")) {
			note(ref[2])
		}
		return false
	})
	call := func(terms []*ast.Term) {
		switch name := terms[0].String(); {
		case name == "logs.said" || name == "logs.messages":
			note(terms[1])
		case (name == "eq" || name == "equal" || name == "neq" || name == "internal.member_2") && isID(terms[1]):
			noteSet(terms[2])
		}
	}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		if terms, ok := e.Terms.([]*ast.Term); ok {
			call(terms)
		}
		return false
	})
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if c, ok := t.Value.(ast.Call); ok {
			call(c)
		}
		return false
	})
	return rows
}

// TestRowsExist checks that every row of the catalogue which a rule or a library names is
// there: one that was renamed would silence the rule.
func TestRowsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, row := range everyRow() {
		known[row.ID] = true
	}
	named, events := 0, 0
	for _, m := range wholeSet(t).modules {
		for id, at := range rowsOf(m) {
			named++
			if slices.ContainsFunc(message.KernelForms(), func(k *message.KernelForm) bool { return k.ID == id }) {
				events++
			}
			expect.That(t, known[id] || !strings.Contains(id, "-"), "%s: %s is no row of the catalogue", at, id)
		}
	}
	expect.That(t, named >= 200 && events > 0, "only %d rows are named, %d of them of events", named, events)
}
