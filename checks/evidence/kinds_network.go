package evidence

// rdmaFamily are the kinds of text of this area.
func rdmaFamily(*Sink) Family {
	return Family{Kinds: []*Kind{
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
	}}
}
