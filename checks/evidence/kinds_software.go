package evidence

// softwareFamily are the kinds of text of this area.
func softwareFamily(*Sink) Family {
	return Family{Kinds: []*Kind{
		torchrunKind,
		packagesFrozen, packagesTable, packagesShown, packagesSystemLists, packagesHistory, packagesImages, packagesStated, packagesPrinted,
		collectEnvKind, collectEnvGPUs, osReleaseKind, osReleasePrinted,
	}}
}
