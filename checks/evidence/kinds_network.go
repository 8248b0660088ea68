package evidence

// networkKinds are the kinds of text of this area.
var networkKinds = []*Kind{
	ibvDevinfoKind,
	ibstatKind,
	ibstatGUIDsKind,
	ibstatusKind,
	ibdev2netdevKind,
	showGIDsKind,
	rdmaLinkKind,
	ibSysfsKind,
	ibSysfsCatKind,
	cmaRoCEModeKind,
	lsmodKind,
	lsmodPromptKind,
	mlnxQoSKind,
	gdscheckKind,
}
