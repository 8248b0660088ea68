// Package rdma reads what tools print about RDMA devices, their ports and their modules.
package rdma

import "github.com/gpudoctor/gpudoctor/checks/text/parse"

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	return parse.Family{Kinds: []*parse.Kind{
		ibvDevinfoKind,
		ibstatKind,
		ibstatusKind,
		ibdev2netdevKind,
		showGIDsKind,
		linkKind,
		ibSysfsKind,
		ibSysfsCatKind,
		cmaRoCEModeKind,
		lsmodKind,
		lsmodPromptKind,
		mlnxQoSKind,
		gdscheckKind,
	}}
}
