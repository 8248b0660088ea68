package rules

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
)

// uncheckedStages are those that only refuse a faulty rule. Tests hold the
// built-in rules to all of them, so that a start can do without. Measured over
// 40 rules of 12 definitions each, checking types takes a fifth of compiling.
var uncheckedStages = []ast.StageID{
	ast.StageCheckUnusedImports, ast.StageCheckTypes, ast.StageBuildRequiredCapabilities,
}

// compile compiles all rules, once.
func (s *Set) compile() error {
	s.once.Do(func() {
		c := ast.NewCompiler().WithCapabilities(capabilities())
		if s.user {
			c, s.err = checked(c)
			if s.err != nil {
				return
			}
		} else {
			c = c.WithSkipStages(uncheckedStages...)
		}
		c.Compile(s.modules)
		if c.Failed() {
			s.err = errors.Join(problems("", c.Errors)...)
			return
		}
		s.compiler = c
	})
	return s.err
}

// checked makes the compiler strict and gives it the schema of the facts, so
// that a path that does not exist in the facts is an error.
func checked(c *ast.Compiler) (*ast.Compiler, error) {
	var schema any
	if err := json.Unmarshal(factsSchema, &schema); err != nil {
		return nil, fmt.Errorf("read facts.schema.json: %w", err)
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, schema)
	set.Put(ast.MustParseRef("schema.facts"), schema)
	return c.WithStrict(true).WithSchemas(set).WithUseTypeCheckAnnotations(true), nil
}
