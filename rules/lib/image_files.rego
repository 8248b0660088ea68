# The files of a container image. Which copies of the libraries an image holds, and which layer each comes from.
package gpudoctor.lib.image_files

import data.gpudoctor.lib.surroundings
import data.tables.thresholds

# layer says which layer a file comes from, for people; empty outside of images.
layer(l) := sprintf(" (layer %d%s)", [l.layer.index, concat("", [sprintf(": %s", [c]) | c := l.layer.command; c != ""])]) if {
	l.layer.index > 0
} else := ""

place(l) := sprintf("%s%s", [real(l), layer(l)])

real(l) := object.get(l, "real_path", l.path)

evidence(l) := {"fact": sprintf("libraries.files[%s].version", [l.path]), "value": object.get(l, "version", ""), "source": place(l)}

package_evidence(p) := {"fact": sprintf("libraries.packages[%s].version", [p.name]), "value": p.version, "source": place(p)}

files contains l if {
	some l in input.libraries.files
	l.path != ""
	not l.empty
}

# kinds are the libraries that the image holds. Stubs of the toolkit are for linking only.
kinds contains l.kind if {
	some l in files
	not l.stub
}

# copies are the files of a library with a known version, each file once: the name that
# the loader takes, else the first.
copies(kind) := {sort(names)[0] | some _, names in object.get(by_file, kind, {})}

by_file[l.kind][real(l)] contains [{true: 0, false: 1}[object.get(l, "loads", false)], l] if some l in files

# cuda_major is the release of CUDA that a version or a package names: "2.26.2+cuda12.2",
# "2.3.0+cu118", "nvidia-nccl-cu12".
cuda_major(text) := to_number(concat("", array.slice(found[0], 1, 3))) if {
	found := regex.find_all_string_submatch_n(`(?:\+cuda([0-9]{1,2})\.|[+-]cu([0-9]{2}))`, text, 1)
}

# runtimes are the CUDA runtimes that programs take, with their releases.
runtimes contains {"library": l, "release": release} if {
	some l in files
	l.kind == "libcudart"
	release := surroundings.version(l.version)
	count(release) > 1
}

# least_branch is the least driver branch of each major release of CUDA, and cuda_of the newest that a driver serves.
least_branch[to_number(major)] := branch if some major, branch in thresholds.cuda_drivers

cuda_of(driver) := max([major | some major, least in least_branch; surroundings.version(driver)[0] >= least])

# rocm are the releases of ROCm that the image holds, each with the file of the HIP runtime that states it:
# libamdhip64.so.6.2.60203 is of ROCm 6.2.3 (ROCm/clr, hipamd/CMakeLists.txt, ROCM_LIBPATCH_VERSION).
rocm contains [sprintf("%d.%d.%d", [floor(n / 10000), floor(n / 100) % 100, n % 100]), l] if {
	some [_, l] in copies("libamdhip64")
	n := surroundings.version(l.version)[2]
	n >= 10000
}

of_target(fact, value) := {"fact": sprintf("target.%s", [fact]), "value": value, "source": target_source}

target_source := input.target.source if {
	input.target.source != ""
} else := "--target"
