package lacks_test

import (
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/rules/internal/lacks"
)

// TestIn holds what counts as lacking.
func TestIn(t *testing.T) {
	input := func(text string) ast.Object {
		object, ok := ast.MustParseTerm(text).Value.(ast.Object)
		if !ok {
			t.Fatalf("%s is no object", text)
		}
		return object
	}
	for _, tt := range []struct {
		facts, lack string
		want        bool
	}{
		{`{}`, "env", true},
		{`{}`, "env.variables", true},
		{`{"env": {}}`, "env", false},
		{`{"env": {}}`, "env.variables", true},
		{`{"env": {"variables": []}}`, "env.variables", true},
		{`{"env": {"variables": null}}`, "env.variables", false},
		{`{"env": {"variables": [{"name": "X"}]}}`, "env.variables", false},
		{`{"container": {"inside": false}}`, "container.inside", true},
		{`{"container": {"inside": true}}`, "container.inside", false},
		{`{}`, "vendor amd", true},
		{`{"gpus": {}}`, "vendor amd", true},
		{`{"gpus": {"devices": []}}`, "vendor amd", true},
		{`{"gpus": {"devices": [{"vendor": "nvidia"}]}}`, "vendor amd", true},
		{`{"gpus": {"devices": [{"vendor": "nvidia"}]}}`, "vendor nvidia", false},
		{`{"gpus": {"devices": [{"vendor": "nvidia"}, {"vendor": "amd"}]}}`, "vendor amd", false},
		{`{"gpus": {"devices": [{}]}}`, "vendor amd", false},
		{`{"gpus": {"devices": [{"vendor": "other"}]}}`, "vendor amd", false},
	} {
		if got := lacks.In(input(tt.facts))(tt.lack); got != tt.want {
			t.Errorf("%s lacks %s: %t", tt.facts, tt.lack, got)
		}
	}
	unknown := lacks.By(func(string) (ast.Value, bool) { return nil, false })
	for _, lack := range []string{"env", "env.variables", "vendor amd"} {
		if unknown(lack) {
			t.Errorf("%s is lacking where nothing is known", lack)
		}
	}
}
