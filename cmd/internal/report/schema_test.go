package report

import (
	"bytes"
	"path/filepath"
	"reflect"
	"testing"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures/contract"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/golden"
	"github.com/gpudoctor/gpudoctor/rules"
)

// schemaFile is where the contract is published.
var schemaFile = filepath.Join("..", "..", "..", "docs", "report.schema.json")

// enums are the types of the report of which the contract knows every value.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[Redaction]():    {RedactedNames, RedactedSecrets},
	reflect.TypeFor[State]():        {Healthy, Findings, Inconclusive},
	reflect.TypeFor[ReasonCode]():   anyOf(reasonCodes),
	reflect.TypeFor[facts.Unread](): {facts.UnreadError, facts.UnreadForm, facts.UnreadBroken, facts.UnreadLines, facts.UnreadSize, facts.UnreadTime, facts.UnreadCount},
	reflect.TypeFor[Threshold]():    {Threshold("critical"), Threshold("high"), Threshold("medium"), Threshold("low"), Threshold("info"), Never},
	reflect.TypeFor[area.State]():   {area.OK, area.Note, area.Problem, area.Unknown, area.NotApplicable},
	reflect.TypeFor[rules.Area]():   anyOf(rules.Areas()),
}

// anyOf is a list as the schema takes it.
func anyOf[T any](list []T) []any {
	all := make([]any, len(list))
	for i, one := range list {
		all[i] = one
	}
	return all
}

// TestGoldenSchema checks that the published contract equals the Go types.
func TestGoldenSchema(t *testing.T) {
	golden.File(t, schemaFile, generate(t))
}

// generate makes the JSON Schema from the types and their comments.
func generate(t *testing.T) []byte {
	t.Helper()
	s := contract.Schema(t, Schema, &Document{}, enums, "checks", "rules", "remedies", filepath.Join("cmd", "internal"))
	return expect.Value(lines.JSON(s))(t)
}

// TestDocumentsFollowSchema validates every sample against the contract.
func TestDocumentsFollowSchema(t *testing.T) {
	schema := expect.Value(validator.NewCompiler().Compile(schemaFile))(t)
	all := samples()
	all["empty"] = New(nothing())
	for name, d := range all {
		var b bytes.Buffer
		writeJSON(&b, d, Style{})
		v := expect.Value(validator.UnmarshalJSON(&b))(t)
		err := schema.Validate(v)
		expect.That(t, err == nil, "%s: %v", name, err)
	}
	wrong := map[string]any{"schema": "gpudoctor.report/v2"}
	expect.That(t, schema.Validate(wrong) != nil, "the schema accepts a document of another version that holds nothing")
}
