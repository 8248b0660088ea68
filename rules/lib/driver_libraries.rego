# METADATA
# title: The driver's libraries
# description: >-
#   The files of the NVIDIA driver's libraries that programs here could load:
#   real libraries, link-time stubs of the toolkit, and compatibility libraries,
#   and which of them belong to an image.
package gpudoctor.lib.driver_libraries

import data.gpudoctor.lib.image_files
import data.gpudoctor.lib.surroundings

kernel_driver := input.gpus.driver.kernel_version

# kinds are the libraries that belong to the driver, not to a toolkit, and what another
# version than the kernel driver's does to each. Without NVML NCCL does not start;
# without the compiler only some programs fail.
kinds := {
	"libcuda": {"severity": "critical", "refusal": "CUDA fails to start (error 803)"},
	"libnvidia-ml": {"severity": "critical", "refusal": "NVML fails to start (driver/library version mismatch)"},
	"libnvidia-ptxjitcompiler": {"severity": "medium", "refusal": "run-time compilation of kernels may fail (errors 221 and 222)"},
}

# libraries are those files of the driver that could be loaded: real ones, and
# not those of WSL, which stand for the Windows driver and have its numbers.
libraries contains l if {
	some l in input.libraries.files
	kinds[l.kind]
	l.path != ""
	not l.empty
	not startswith(l.path, "/usr/lib/wsl/")
}

# real are neither stubs nor compatibility libraries and have version numbers like
# drivers: 580.159.04.
real contains l if {
	some l in libraries
	not l.stub
	not l.compat
	regex.match(`^[0-9]{3}\.[0-9]+(\.[0-9]+)?$`, l.version)
}

# nameless are those of which nothing states a version: a copy that was renamed.
nameless contains l if {
	some l in libraries
	not l.stub
	not l.compat
	not l.version
}

# mismatched are those that the loader takes and that have another version than the
# kernel's module.
mismatched contains l if {
	some l in real
	l.loads
	l.version != kernel_driver
}

stubs contains l if {
	some l in libraries
	l.stub
	l.loads
}

loaded_compat contains l if {
	some l in libraries
	l.compat
	l.loads
}

older_compat contains l if {
	some l in loaded_compat
	surroundings.version(l.version) < surroundings.version(kernel_driver)
}

# In an image, LD_LIBRARY_PATH comes before the library that the target's driver brings along, and the
# loader's cache does not.
older_compat contains l if {
	surroundings.image
	some l in loaded_compat
	l.found_by == "ld_library_path"
	surroundings.version(l.version) < surroundings.version(input.target.driver)
}

# at_home is true of a library of the driver that is loaded here, outside of a
# container: who judges a whole machine for the profile image looks at its own.
at_home(l) if {
	input.container.inside == false
	l.version == kernel_driver
}

# baked is true of a file that belongs to the image: it is no mount of its own,
# and not in a folder that container platforms mount as a whole (Google's
# device plugin, Apptainer, the driver container of the GPU operator).
baked(l) if {
	not l.mounted
	not platform_folder(l.path)
}

platform_folder(path) if {
	some folder in ["/usr/local/nvidia/", "/.singularity.d/", "/run/nvidia/", "/run/opengl-driver/", "/host/"]
	startswith(path, folder)
}

evidence(l) := image_files.evidence(l)

# way_out takes the folder that leads to a library off the loader's path, or the variable
# that names the library. The author of an image edits its ENV, and cannot take a folder
# of the system off the path.
way_out(l) := ["unset-env"] if {
	l.found_by == "ld_preload"
} else := ["remove-driver-libraries"] if {
	l.found_by == "default_path"
	surroundings.image
} else := ["remove-from-image-path"] if {
	surroundings.image
} else := ["remove-from-library-path"]

led_by(l) := {"variable": "LD_PRELOAD"} if {
	l.found_by == "ld_preload"
} else := {"folder": folder(l.path), "kept": kept} if {
	surroundings.image
} else := {"folder": folder(l.path)}

# kept are the folders of LD_LIBRARY_PATH that remain: none where one of them could not be
# typed as it is.
default kept := []

kept := rest if {
	some v in input.env.variables
	v.name == "LD_LIBRARY_PATH"
	every f in split(v.value, ":") {
		regex.match(`^(/[A-Za-z0-9._+/-]*)?$`, f)
		not contains(f, "..")
	}
	rest := [f |
		some f in split(v.value, ":")
		f != ""
		not trim_right(f, "/") in in_the_way
	]
}

# in_the_way are the folders of the files that must not be loaded.
in_the_way := {folder(l.path) | some l in (stubs | older_compat)}

folder(path) := regex.replace(path, `/[^/]*$`, "")

# finding is a finding on a file.
finding(l, grade, message, rest) := object.union(
	{
		"subject": l.path, "severity": grade[0], "confidence": grade[1], "message": message,
		"evidence": [evidence(l)], "params": {"library": l.path}, "remedies": ["remove-driver-libraries"],
	},
	rest,
)
