package rules

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	jsonschemavalidate "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const schemaFile = "facts.schema.json"

// TestGoldenFactsSchema checks that facts.schema.json equals the Go types. Run make update after a change of the facts.
func TestGoldenFactsSchema(t *testing.T) {
	expect.Golden(t, schemaFile, generateSchema(t))
}

// generateSchema makes the schema of the facts from the Go types, without references, because OPA's type checker takes
// it so, and with the fields' comments as descriptions.
func generateSchema(t *testing.T) []byte {
	t.Helper()
	r := &jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, DoNotReference: true}
	t.Chdir("..") // AddGoComments joins the folder to the module's path.
	expect.NoError(t, r.AddGoComments("github.com/gpudoctor/gpudoctor", "./checks", jsonschema.WithFullComment()))
	t.Chdir("rules")
	schema := r.Reflect(&facts.Facts{})
	schema.Title = "gpudoctor facts"
	allowNull(schema)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	expect.NoError(t, enc.Encode(schema))
	return out.Bytes()
}

// allowNull lets lists that are always written be null: so a nil list, one
// that is not known, is written. Descriptions become one line each.
func allowNull(s *jsonschema.Schema) {
	s.Description = strings.Join(strings.Fields(s.Description), " ")
	if s.Items != nil {
		allowNull(s.Items)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties != jsonschema.FalseSchema {
		allowNull(s.AdditionalProperties)
	}
	for property := s.Properties.Oldest(); property != nil; property = property.Next() {
		allowNull(property.Value)
		if property.Value.Type == "array" && slices.Contains(s.Required, property.Key) {
			property.Value.Type = ""
			property.Value.Extras = map[string]any{"type": []string{"array", "null"}}
		}
	}
}

// TestSchemaTakesFacts checks that the schema accepts what the Go types write and refuses what they do not know.
func TestSchemaTakesFacts(t *testing.T) {
	raw := readSchema()
	c := jsonschemavalidate.NewCompiler()
	expect.NoError(t, c.AddResource(schemaFile, raw))
	schema := expect.Value(c.Compile(schemaFile))(t)
	for name, tt := range map[string]struct {
		facts string
		valid bool
	}{
		"empty":         {facts: mustJSON(t, facts.Facts{Schema: facts.FactsSchema}), valid: true},
		"null list":     {facts: mustJSON(t, facts.Facts{PCI: &facts.PCIFacts{}}), valid: true},
		"list":          {facts: mustJSON(t, facts.Facts{PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{{NUMANode: new(1)}}}}), valid: true},
		"unknown field": {facts: `{"schema": "gpudoctor.facts/v1", "phase": "full moon"}`},
		"wrong type":    {facts: `{"schema": "gpudoctor.facts/v1", "host": {"root": "yes"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			doc := expect.Value(jsonschemavalidate.UnmarshalJSON(strings.NewReader(tt.facts)))(t)
			err := schema.Validate(doc)
			expect.That(t, (err == nil) == tt.valid, "Validate(%s) = %v, want valid = %v", tt.facts, err, tt.valid)
		})
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	return string(expect.Value(json.Marshal(v))(t))
}
