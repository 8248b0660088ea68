package facts

// Retired are the paths, without the indices of lists, of fields that the facts had until 2026-11-22. Documents
// that hold them are still read, and they are dropped: nothing used them. Their names are not reused.
var Retired = []string{
	"benchmarks.peak_gbps",
	"benchmarks.points.algorithm_gbps",
	"container.cgroup",
	"container.device_nodes.member",
	"container.ptrace_scope",
	"container.shm.used_bytes",
	"container.stack_soft_bytes",
	"container.sys_read_only",
	"gpus.amd.memory_peers",
	"gpus.devices.kfd.compute_units",
	"gpus.devices.kfd.render_minor",
	"gpus.devices.kfd.xccs",
	"host.distribution_id",
	"host.distribution_version",
	"launches.cap_drop",
	"launches.security_options",
	"libraries.files.version_source",
	"links.pairs.coherent",
	"logs.communicators.local_ranks",
	"pci.devices.acs.control_word",
	"pci.devices.bars.is_64bit",
	"pci.devices.bars.prefetchable",
	"pci.devices.header_type",
}
