package rules

import _ "embed"

//go:embed facts.schema.json
var factsSchema []byte
