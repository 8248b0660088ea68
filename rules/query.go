package rules

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// query is a compiled query.
type query struct {
	compiler ast.QueryCompiler
	body     ast.Body
	err      error
}

func (p *program) prepare(body ast.Body) query {
	c := p.compiler.QueryCompiler()
	body, err := c.Compile(body)
	return query{c, body, err}
}

// evaluate evaluates a query against the input, which may be nil, and returns its results.
//
// It does what OPA's package rego does for a query that is already parsed. That package also links the compiler to
// WebAssembly, bundles and Protocol Buffers, which make the program 5 MB larger.
func (p *program) evaluate(ctx context.Context, query query, input ast.Value, tracers ...topdown.QueryTracer) ([]topdown.QueryResult, error) {
	if query.err != nil {
		return nil, fmt.Errorf("prepare the rules: %w", query.err)
	}
	var results []topdown.QueryResult
	err := storage.Txn(ctx, p.store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		cancel := topdown.NewCancel()
		defer context.AfterFunc(ctx, cancel.Cancel)()
		q := topdown.NewQuery(query.body).WithQueryCompiler(query.compiler).WithCompiler(p.compiler).
			WithStore(p.store).WithTransaction(txn).WithStrictBuiltinErrors(true).WithCancel(cancel)
		if input != nil {
			q = q.WithInput(ast.NewTerm(input))
		}
		for _, tracer := range tracers {
			q = q.WithQueryTracer(tracer)
		}
		return q.Iter(ctx, func(result topdown.QueryResult) error {
			results = append(results, result)
			return nil
		})
	})
	return results, err
}
