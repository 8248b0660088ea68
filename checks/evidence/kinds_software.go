package evidence

// softwareKinds are the kinds of text of this area.
var softwareKinds = []*Kind{
	torchrunKind,
	packagesFrozen, packagesTable, packagesShown, packagesSystemLists, packagesHistory, packagesImages, packagesStated, packagesPrinted,
	collectEnvKind, collectEnvGPUs, osReleaseKind, osReleasePrinted,
}
