# METADATA
# title: A finding of the severity that the test asks for
# description: >-
#   It finds each variable NCCL_TEST_GATE, with the variable's value as its
#   severity, so that tests of the program need no real fault.
# related_resources:
#   - ref: https://example.com/gate
#     description: what a test asks for
# schemas:
#   - input: schema.facts
# custom:
#   severity: low
#   confidence: confirmed
#   remedies: [test-remedy]
#   since: "0.1"
package gpudoctor.rules.test_gate

findings contains {
	"subject": v.name,
	"severity": v.value,
	"message": sprintf("The test asked for %s.", [v.value]),
	"evidence": [{"fact": sprintf("env.variables[%s].value", [v.name]), "value": v.value, "source": v.source}],
} if {
	some v in input.env.variables
	v.name == "NCCL_TEST_GATE"
}

missing contains "env: the environment was not read" if not input.env
