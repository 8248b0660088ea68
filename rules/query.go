package rules

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// evaluate compiles a query, evaluates it against the input and returns the value
// of the variable name. The query must have exactly one result. The store holds what
// rules read in addition to packages and the input. tracer may be nil.
//
// It does what OPA's package rego does for a query that is already parsed. That
// package also links the compiler to WebAssembly, bundles and Protocol Buffers,
// which make the program 5 MB larger.
func evaluate(ctx context.Context, compiler *ast.Compiler, store storage.Store, query ast.Body, name ast.Var, input ast.Value, tracer topdown.QueryTracer) (ast.Value, error) {
	queryCompiler := compiler.QueryCompiler()
	compiled, err := queryCompiler.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("prepare the rules: %w", err)
	}
	var results []ast.Value
	err = storage.Txn(ctx, store, storage.TransactionParams{}, func(txn storage.Transaction) error {
		cancel := topdown.NewCancel()
		defer context.AfterFunc(ctx, cancel.Cancel)()
		q := topdown.NewQuery(compiled).WithQueryCompiler(queryCompiler).WithCompiler(compiler).
			WithStore(store).WithTransaction(txn).WithInput(ast.NewTerm(input)).
			WithStrictBuiltinErrors(true).WithCancel(cancel)
		if tracer != nil {
			q = q.WithQueryTracer(tracer)
		}
		return q.Iter(ctx, func(result topdown.QueryResult) error {
			if bound, ok := result[name]; ok {
				results = append(results, bound.Value)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, errors.New("the rules returned no result")
	}
	return results[0], nil
}
