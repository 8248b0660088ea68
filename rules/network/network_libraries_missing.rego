# METADATA
# title: The image lacks libraries for RDMA
# description: >-
#   NCCL reaches InfiniBand and RoCE NICs through libibverbs and the provider of the NIC, and EFA through the plugin
#   aws-ofi-nccl, which needs libfabric. Without them it uses TCP, which is several times slower. The NICs of the target
#   are given by --target.
# related_resources:
#   - ref: https://github.com/linux-rdma/rdma-core
#     description: libibverbs and its providers
#   - ref: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html
#     description: What EFA needs in an image
# custom:
#   severity: high
#   confidence: likely
#   cause: ofi-plugin
#   needs: [libraries.files]
#   remedies: [install-rdma-libraries, install-ofi-plugin, fix-ofi-plugin]
#   profiles: [image]
#   since: "0.2"
package gpudoctor.rules.network_libraries_missing

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.image_files

# plugins are copies of the plugin for libfabric: those that state their version, and those in its folders.
plugins contains l if {
	some l in image_files.files
	l.kind == "nccl-net"
	is_ofi(l)
}

is_ofi(l) if l.version
is_ofi(l) if contains(l.path, "ofi")

findings contains {
	"subject": "libfabric",
	"message": sprintf("The image holds the plugin for EFA and libfabric (%s%s), but no libfabric: the plugin does not load, and NCCL uses TCP", [l.path, image_files.layer(l)]),
	"evidence": [image_files.evidence(l)],
	"remedies": ["fix-ofi-plugin"],
} if {
	l := min(plugins)
	not "libfabric" in image_files.kinds
}

# needed are the libraries by which NCCL uses the devices of the target: {subject, what it is, remedy}.
needed contains ["aws-ofi-nccl", "the plugin aws-ofi-nccl for EFA", "install-ofi-plugin"] if {
	"efa" in input.target.rdma
	count(plugins) == 0
}

needed contains ["libibverbs", "libibverbs", "install-rdma-libraries"] if {
	count(verbs) > 0
	not "libibverbs" in image_files.kinds
}

needed contains [sprintf("lib%s", [device]), sprintf("the provider of %s for libibverbs (lib%s-rdmav*.so)", [device, device]), "install-rdma-libraries"] if {
	"libibverbs" in image_files.kinds
	some device in verbs
	not device in providers
}

verbs := {device | some device in input.target.rdma; device != "efa"}

# providers are the drivers of libibverbs, by the names of the files: libmlx5-rdmav34.so.
providers contains name if {
	some l in image_files.files
	l.kind == "rdma-provider"
	name := regex.replace(l.path, `^.*/lib([a-z0-9_]+)-rdmav[0-9]+\.so$`, "$1")
}

findings contains {
	"subject": subject,
	"message": sprintf("The target has RDMA devices (%s), and the image lacks %s: NCCL uses TCP between machines", [facts.list({device | some device in input.target.rdma}), what]),
	"evidence": [image_files.of_target("rdma", input.target.rdma)],
	"remedies": [remedy],
} if {
	count(image_files.kinds & {"libnccl", "librccl"}) > 0
	some [subject, what, remedy] in needed
}

not_applicable contains "no target is given (--target), and the image holds no plugin for libfabric" if {
	input.libraries
	not input.target.rdma
	count(plugins) == 0
}
