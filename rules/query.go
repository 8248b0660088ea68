package rules

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// evaluate evaluates a query against the input, which may be nil, and returns its results.
//
// It does what OPA's package rego does for a query that is already parsed. That package also links the compiler to
// WebAssembly, bundles and Protocol Buffers, which make the program 5 MB larger.
func (p *program) evaluate(ctx context.Context, body ast.Body, input ast.Value, tracers ...topdown.QueryTracer) ([]topdown.QueryResult, error) {
	compiler := p.compiler.QueryCompiler()
	body, err := compiler.Compile(body)
	if err != nil {
		return nil, fmt.Errorf("prepare the rules: %w", err)
	}
	var results []topdown.QueryResult
	err = storage.Txn(ctx, p.store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		cancel := topdown.NewCancel()
		defer context.AfterFunc(ctx, cancel.Cancel)()
		q := topdown.NewQuery(body).WithQueryCompiler(compiler).WithCompiler(p.compiler).
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
