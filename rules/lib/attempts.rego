# Outcomes of calls that a child of gpudoctor made, for the rules about containers, limits and networks.
package gpudoctor.lib.attempts

# refused are the attempts that the kernel refused, by name.
refused[name] := a if {
	some name, a in input.container.attempts
	a.outcome == "refused"
}

# reached are those that failed because a limit of the process or of the machine was reached.
reached := {"EMFILE", "ENFILE", "ENOBUFS", "EADDRNOTAVAIL"}

# told says what was refused: "fallocate gives ENOSPC".
told(a) := sprintf("a seccomp filter ends a process that calls %s", [object.get(a, "call", "it")]) if {
	a.errno == "SIGSYS"
} else := sprintf("%s gives %s", [object.get(a, "call", "a call"), object.get(a, "errno", "an error")])

# evidence is an attempt as evidence.
evidence(name) := {
	"fact": sprintf("container.attempts.%s", [name]),
	"value": object.filter(input.container.attempts[name], ["outcome", "call", "errno", "bytes", "interface", "address"]),
	"source": sprintf("%s, really tried", [object.get(sources, name, name)]),
}

sources := {
	"shared_memory": "a file in /dev/shm",
	"locked_memory": "mlock2(2)",
	"set_mempolicy": "set_mempolicy(2)",
	"mbind": "mbind(2)",
	"move_pages": "move_pages(2)",
	"connection": "a TCP connection of a process to itself",
}
