package evidence

// registry has every family, in the order in which a line is offered to their kinds.
var registry = newRegistry(
	launchFamily, nvidiaFamily, amdFamily, benchmarkFamily, rdmaFamily, networkFamily, pciFamily, hostFamily, softwareFamily, ncclFamily,
)

// Kinds is every kind of text that is recognised.
func Kinds() []*Kind { return registry.Kinds() }
