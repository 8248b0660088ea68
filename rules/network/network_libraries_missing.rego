# METADATA
# title: The image lacks libraries for RDMA
# description: >-
#   NCCL reaches InfiniBand and RoCE NICs through libibverbs and the provider of the NIC, and EFA through the plugin
#   aws-ofi-nccl, which needs libfabric. Without them it uses TCP, which is several times slower. The NICs of the target
#   are given by --target.
# related_resources:
#   - {ref: https://github.com/linux-rdma/rdma-core, description: libibverbs and its providers}
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
#   grades:
#     plugin: "The image holds the plugin for EFA and libfabric ({path}), but no libfabric: the plugin does not load, and NCCL uses TCP"
#     target: "The target has RDMA devices ({devices}), and the image lacks {lacks}: NCCL uses TCP between machines"
package gpudoctor.rules.network_libraries_missing

import data.gpudoctor.lib.image_files

# plugins are copies of the plugin for libfabric: those that state their version, and those in its folders.
plugins := {l | some l in image_files.files; l.kind == "nccl-net"; true in {is_string(l.version), contains(l.path, "ofi")}}

findings contains {
	"grade": "plugin",
	"subject": "libfabric",
	"about": plugin,
	"evidence": [image_files.evidence(plugin)],
	"remedies": ["fix-ofi-plugin"],
} if {
	plugin := min(plugins)
	not "libfabric" in image_files.kinds
}

verbs := {device | some device in input.target.rdma; device != "efa"}

# providers are the drivers of libibverbs, by the names of the files: libmlx5-rdmav34.so.
providers := {regex.replace(l.path, `^.*/lib([a-z0-9_]+)-rdmav[0-9]+\.so$`, "$1") | some l in image_files.files; l.kind == "rdma-provider"}

# lacks are the libraries by which NCCL uses the devices of the target, by the remedy.
lacks["install-ofi-plugin"] contains "aws-ofi-nccl" if {
	"efa" in input.target.rdma
	count(plugins) == 0
}

lacks["install-rdma-libraries"] contains name if {
	count(verbs) > 0
	some name in (({"libibverbs"} - image_files.kinds) | {sprintf("lib%s-rdmav*.so", [device]) | some device in (verbs - providers)})
}

findings contains {
	"grade": "target",
	"subject": min(names),
	"about": {"devices": input.target.rdma, "lacks": names},
	"evidence": [image_files.of_target("rdma", input.target.rdma)],
	"remedies": [remedy],
} if {
	count(image_files.kinds & {"libnccl", "librccl"}) > 0
	some remedy, names in lacks
}

not_applicable contains "no target is given (--target), and the image holds no plugin for libfabric" if {
	input.libraries
	not input.target.rdma
	count(plugins) == 0
}
