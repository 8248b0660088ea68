package gpudoctor.lib.library_versions_test

import data.gpudoctor.lib.library_versions

package_(name, version, manager) := {"name": name, "version": version, "manager": manager, "source": "a.log", "line": 1}

used(library, packages) := versions if {
	versions := {u.version | some u in library_versions.used[library]} with input as {"software": packages}
}

test_ranges if {
	row := {"since": "2.24.3", "fixed": "2.26.3"}
	library_versions.in_range(row, "2.24.3")
}

# What was loaded counts before what is installed, and installed ones count only where they agree.
test_which_version_counts if {
	log := package_("nccl", "2.28.9", "log")
	used("nccl", [package_("libnccl2", "2.27.7-1+cuda12.9", "dpkg"), package_("nccl", "2.27.7.1", "conda")]) == {"2.27.7"}
	not library_versions.version_known.nccl with input as {"software": [log, package_("rocm", "7.2.1", "rocm")]}
	used("rccl", [package_("rccl", "2.22.3", "log")]) == {"2.22.3"}
}

test_versions_of_amd if {
	live := {"libraries": {"files": [{"kind": "librccl", "path": "/x/librccl.so.1", "version": "2.22.3"}, {"kind": "librccl", "path": "/y/librccl.so.1", "version": "1.0.60102"}]}}
	{u.version | some u in library_versions.used.rccl} == {"2.22.3"} with input as live
}
