package gpudoctor.lib.driver_libraries_test

import data.gpudoctor.lib.driver_libraries

machine(files) := {"gpus": {"driver": {"kernel_version": "580.159.04"}}, "libraries": {"files": files}}

libcuda(path, version) := {"kind": "libcuda", "path": path, "version": version, "loads": true, "found_by": "ld_cache"}

test_libraries_by_what_they_are if {
	own := libcuda("/usr/lib/libcuda.so.1", "575.10.01")
	stub := object.union(libcuda("/usr/local/cuda/lib64/stubs/libcuda.so.1", ""), {"stub": true})
	compat := object.union(libcuda("/usr/local/cuda/compat/libcuda.so.1", "570.86.10"), {"compat": true})
	given := machine([own, stub, compat])
	driver_libraries.mismatched == {own} with input as given
	driver_libraries.stubs == {stub} with input as given
	driver_libraries.older_compat == {compat} with input as given
}

test_the_way_out if {
	l := libcuda("/opt/stubs/libcuda.so.1", "")
	[driver_libraries.way_out(l), driver_libraries.led_by(l)] == [["remove-from-library-path"], {"folder": "/opt/stubs"}]
	driver_libraries.way_out(object.union(l, {"found_by": "ld_preload"})) == ["unset-env"]
}

stub := object.union(libcuda("/opt/stubs/libcuda.so.1", ""), {"stub": true, "found_by": "ld_library_path"})

image(value) := object.union(machine([stub]), {"profile": "image", "image": {"form": "oci-layout"}, "env": {"variables": [{"name": "LD_LIBRARY_PATH", "value": value}]}})

test_the_way_out_of_an_image if {
	driver_libraries.way_out(stub) == ["remove-from-image-path"] with input as image("/opt/stubs")
	driver_libraries.way_out(object.union(stub, {"found_by": "default_path"})) == ["remove-driver-libraries"] with input as image("")
	driver_libraries.led_by(stub) == {"folder": "/opt/stubs", "kept": ["/usr/lib", "/opt/x"]} with input as image("/usr/lib:/opt/stubs/:/opt/x:")
	driver_libraries.kept == [] with input as image("/opt/stubs")
	driver_libraries.kept == [] with input as image("/usr/lib:/opt/stubs:/opt/a b")
	driver_libraries.kept == [] with input as image("/usr/lib:/opt/stubs:$HOME/lib")
	driver_libraries.kept == [] with input as image("/usr/lib:/opt/stubs:/opt/../etc")
}
