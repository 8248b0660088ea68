package evidence

// pciKinds are the kinds of text of this area.
var pciKinds = []*Kind{
	lspciKind, lspciTreeKind, kernelKind, cmdlineKind, lscpuKind, numactlKind, affinityKind, unameKind, dmidecodeKind, sysfsKind, sysfsCatKind, iommuUnitsKind, setpciKind,
	hostXMLKind, pythonCopyKind,
}
