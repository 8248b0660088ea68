# METADATA
# title: The image runs as a user whose memory is limited
# description: >-
#   An RDMA NIC needs locked memory. Root in a container may lock any amount with the capability IPC_LOCK; another user
#   does not get a capability that is added at launch, and is bound by the limit on locked memory, 64 KiB or 8 MiB by
#   default.
# related_resources:
#   - ref: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
#     description: NCCL requires an unlimited memlock in containers
#   - {ref: https://man7.org/linux/man-pages/man7/capabilities.7.html, description: What happens to capabilities of a user other than root}
# custom:
#   severity: low
#   confidence: likely
#   cause: memlock-limit
#   needs: [image.form, libraries.files]
#   remedies: [raise-memlock]
#   profiles: [image]
#   since: "0.2"
#   grades:
#     user: >-
#       The image runs as user {user} and holds libibverbs: --cap-add IPC_LOCK has no effect for that user, so jobs over
#       RDMA need an unlimited memlock at launch
package gpudoctor.rules.user_in_image

import data.gpudoctor.lib.image_files

findings contains {
	"grade": "user",
	"subject": "USER",
	"about": {"user": name},
	"evidence": [{"fact": "image.user", "value": input.image.user, "source": "the image's configuration"}],
} if {
	name := split(input.image.user, ":")[0] # Without a group; none is root's.
	not name in {"", "0", "root"}
	"libibverbs" in image_files.kinds
}

missing contains {"fact": "libraries", "words": "gpudoctor did not look for libraries"} if not input.libraries

not_applicable contains "the configuration of an image is not known here" if not input.image.environment == "configuration"
