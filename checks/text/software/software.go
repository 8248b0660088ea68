// Package software reads which software is installed, and what Python programs report about
// themselves.
package software

import "github.com/gpudoctor/gpudoctor/checks/text/parse"

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	return parse.Family{Kinds: []*parse.Kind{
		packagesFrozen, packagesTable, packagesShown, packagesSystemLists, packagesHistory, packagesImages, packagesStated, packagesPrinted,
		collectEnvKind, collectEnvGPUs, osReleaseKind, osReleasePrinted,
	}}
}
