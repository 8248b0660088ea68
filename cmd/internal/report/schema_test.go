package report

import (
	"bytes"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/fixtures/golden"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// schemaFile is where the contract is published.
var schemaFile = filepath.Join("..", "..", "..", "docs", "report.schema.json")

// enums are the types of which the contract knows every value.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[rules.Severity]():   {rules.Critical, rules.High, rules.Medium, rules.Low, rules.Info},
	reflect.TypeFor[rules.Confidence](): {rules.Confirmed, rules.Likely, rules.Possible},
	reflect.TypeFor[rules.Profile]():    {rules.Training, rules.Image},
	reflect.TypeFor[remedies.Kind]():    {remedies.Fix, remedies.Workaround},
	reflect.TypeFor[probe.Mode]():       {probe.Off, probe.Quick, probe.Full},
	reflect.TypeFor[probe.Outcome]():    {probe.OK, probe.Slow, probe.Corrupt, probe.Hang, probe.Error, probe.Unsupported, probe.Unknown},
	reflect.TypeFor[Redaction]():        {RedactedNames, RedactedSecrets},
	reflect.TypeFor[State]():            {Healthy, Findings, Inconclusive},
	reflect.TypeFor[ReasonCode]():       {ReasonFinding, ReasonFailed, ReasonProbe, ReasonUntried, ReasonSection, ReasonRule, ReasonNoGPU, ReasonTexts, ReasonCut, ReasonUnread},
	reflect.TypeFor[facts.Unread]():     {facts.UnreadError, facts.UnreadForm, facts.UnreadLines, facts.UnreadSize, facts.UnreadTime, facts.UnreadCount},
	reflect.TypeFor[area.State]():       {area.OK, area.Note, area.Problem, area.Unknown, area.NotApplicable},
	reflect.TypeFor[rules.Area]():       areaNamesInOrder(),
	reflect.TypeFor[Threshold]():        {Threshold("critical"), Threshold("high"), Threshold("medium"), Threshold("low"), Threshold("info"), Never},
}

// areaNamesInOrder are all areas.
func areaNamesInOrder() []any {
	var all []any
	for _, a := range rules.Areas() {
		all = append(all, a)
	}
	return all
}

// TestGoldenSchema holds that the published contract equals the Go types.
func TestGoldenSchema(t *testing.T) {
	golden.File(t, schemaFile, generate(t))
}

// generate makes the JSON Schema from the types and their comments.
func generate(t *testing.T) []byte {
	t.Helper()
	r := &jsonschema.Reflector{
		Anonymous: true,
		// A new optional field does not change the version, so a reader must
		// bear fields that it does not know.
		AllowAdditionalProperties: true,
		Mapper: func(typ reflect.Type) *jsonschema.Schema {
			if values := enums[typ]; values != nil {
				return &jsonschema.Schema{Type: "string", Enum: values}
			}
			return nil
		},
	}
	here := filepath.Join("cmd", "internal", "report")
	t.Chdir(filepath.Join("..", "..", "..")) // Comments are looked up by the folder's path in the module.
	for _, dir := range []string{"checks", "rules", "remedies", here, filepath.Join(here, "area")} {
		if err := r.AddGoComments("github.com/gpudoctor/gpudoctor", "./"+dir, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(here)
	s := r.Reflect(&Document{})
	s.Title = Schema
	raw, err := Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestDocumentsFollowSchema validates every sample against the contract.
func TestDocumentsFollowSchema(t *testing.T) {
	schema, err := validator.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	all := samples()
	all["empty"] = New(nothing())
	for name, d := range all {
		var b bytes.Buffer
		writeJSON(&b, d, Style{})
		v, err := validator.UnmarshalJSON(&b)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wrong := map[string]any{"schema": "gpudoctor.report/v2"}
	if schema.Validate(wrong) == nil {
		t.Error("the schema accepts a document of another version that holds nothing")
	}
}
