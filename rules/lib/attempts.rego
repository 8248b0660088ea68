# Outcomes of calls that a child of gpudoctor made, for the rules about containers, limits and networks.
package gpudoctor.lib.attempts

refused[name] := a if {
	some name, a in input.container.attempts
	a.outcome == "refused"
}

# told says what was refused: "fallocate gives ENOSPC". SIGSYS is the answer of a seccomp filter that ends a process.
told(a) := sprintf("%s gives %s", [object.get(a, "call", "a call"), object.get(a, "errno", "an error")])

evidence(name) := {
	"fact": sprintf("container.attempts.%s", [name]),
	"value": object.filter(input.container.attempts[name], ["outcome", "call", "errno", "bytes"]),
	"source": "really tried by gpudoctor",
}
