package facts

// Retired is a field that the facts no longer have. Documents that hold it are still read, and it
// is dropped: nothing used it.
type Retired struct {
	// Path is its path, without the indices of lists: "pci.devices.header_type".
	Path string
	// Since is the day from which it is no longer written.
	Since string
}

// RetiredFields are all of them. Their names are not reused.
func RetiredFields() []Retired {
	return []Retired{
		{"benchmarks.peak_gbps", "2026-11-22"},
		{"benchmarks.points.algorithm_gbps", "2026-11-22"},
		{"container.cgroup", "2026-11-22"},
		{"container.device_nodes.member", "2026-11-22"},
		{"container.ptrace_scope", "2026-11-22"},
		{"container.shm.used_bytes", "2026-11-22"},
		{"container.stack_soft_bytes", "2026-11-22"},
		{"container.sys_read_only", "2026-11-22"},
		{"gpus.amd.memory_peers", "2026-11-22"},
		{"gpus.devices.kfd.compute_units", "2026-11-22"},
		{"gpus.devices.kfd.render_minor", "2026-11-22"},
		{"gpus.devices.kfd.xccs", "2026-11-22"},
		{"host.distribution_id", "2026-11-22"},
		{"host.distribution_version", "2026-11-22"},
		{"launches.cap_drop", "2026-11-22"},
		{"launches.security_options", "2026-11-22"},
		{"libraries.files.version_source", "2026-11-22"},
		{"links.pairs.coherent", "2026-11-22"},
		{"logs.communicators.local_ranks", "2026-11-22"},
		{"pci.devices.acs.control_word", "2026-11-22"},
		{"pci.devices.bars.is_64bit", "2026-11-22"},
		{"pci.devices.bars.prefetchable", "2026-11-22"},
		{"pci.devices.header_type", "2026-11-22"},
	}
}
