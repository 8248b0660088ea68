package gpudoctor.lib.library_versions_test

import data.gpudoctor.lib.library_versions

package_(name, version, manager) := {"name": name, "version": version, "manager": manager, "source": "a.log", "line": 1}

used(library, packages) := versions if {
	versions := {u.version | some u in library_versions.used[library]} with input as {"software": packages}
}

test_ranges if {
	row := {"since": "2.24.3", "fixed": "2.26.3"}
	library_versions.in_range(row, "2.24.3")
	library_versions.in_range(row, "2.26.2+cuda12.8")
	not library_versions.in_range(row, "2.26.3")
	not library_versions.in_range(row, "2.23.4")
	library_versions.in_range({"fixed": "2.15.1"}, "2.4.8")
	library_versions.range_words(row) == "2.24.3 up to but excluding 2.26.3"
	library_versions.range_words({"fixed": "2.3"}) == "all versions before 2.3"
	library_versions.range_words({}) == "no version without it is known"
}

# What was loaded counts before what is installed, and installed ones count only where they agree.
test_which_version_counts if {
	log := package_("nccl", "2.28.9", "log")
	used("nccl", [log, package_("nvidia-nccl-cu12", "2.14.3", "pip")]) == {"2.28.9"}
	used("nccl", [package_("libnccl2", "2.27.7-1+cuda12.9", "dpkg"), package_("nccl", "2.27.7.1", "conda")]) == {"2.27.7"}
	two := [package_("nvidia-nccl-cu11", "2.14.3", "pip"), package_("nvidia-nccl-cu12", "2.20.5", "pip")]
	not library_versions.version_known.nccl with input as {"software": two}
	not library_versions.version_known.nccl with input as {"software": [log, package_("rocm", "7.2.1", "rocm")]}
	used("rccl", [package_("rccl", "2.22.3", "log")]) == {"2.22.3"}
	live := {"libraries": {"files": [{"kind": "libnccl", "path": "/x/libnccl.so.2", "version": "2.27.3", "found_by": "python"}]}}
	{u.version | some u in library_versions.used.nccl} == {"2.27.3"} with input as live
}

test_versions_of_amd if {
	used("rocm", [package_("rocm", "7.2.1", "rocm")]) == {"7.2.1"}
	{u.version | some u in library_versions.used.rocm} == {"6.4.1"} with input as {"gpus": {"amd": {"rocm": "6.4.1"}}}
	live := {"libraries": {"files": [{"kind": "librccl", "path": "/x/librccl.so.1", "version": "2.22.3"}, {"kind": "librccl", "path": "/y/librccl.so.1", "version": "1.0.60102"}]}}
	{u.version | some u in library_versions.used.rccl} == {"2.22.3"} with input as live
	library_versions.on_amd with input as {"logs": {"messages": [{"program": "rccl"}]}}
}
