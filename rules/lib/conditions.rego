# METADATA
# title: The conditions that verdicts of messages name
# description: >-
#   A row of the catalogue of messages may say when its verdict is told, or how bad it
#   is, by the names of conditions (when, unless), and may quote a value of the facts
#   ({@name}). Each name is defined here, once, and holds only where the facts show it:
#   what is not known does not hold.
# schemas:
#   - input: schema.facts
package gpudoctor.lib.conditions

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.launches
import data.gpudoctor.lib.networks
import data.gpudoctor.lib.surroundings

# NCCL_SOCKET_IFNAME is set for the job.
holds contains "interface_asked" if networks.asked

values contains ["asked_interface", networks.asked] if networks.asked

shown contains ["interface_asked", {"fact": "env.variables[NCCL_SOCKET_IFNAME]", "value": networks.asked, "source": "the texts"}] if networks.asked

# Containers: how they were started.

# The texts tell of a container.
holds contains "container_told" if facts.in_container

holds contains "container_told" if count(launches.containers) > 0

# A container was given no RDMA device.
holds contains "container_without_rdma" if count(launches.without_rdma) > 0

shown contains ["container_without_rdma", fact] if some fact in launches.devices_evidence(launches.without_rdma)

# A container with GPUs was given no channel of IMEX.
holds contains "container_without_imex" if count(launches.without_imex) > 0

values contains ["container_without_imex", launches.title(sort(launches.without_imex)[0])] if count(launches.without_imex) > 0

shown contains ["container_without_imex", fact] if some fact in launches.devices_evidence(launches.without_imex)

# Which GPUs a program may use.

# NVIDIA_VISIBLE_DEVICES chooses the GPUs of a container.
holds contains "container_gpus_chosen" if facts.env.NVIDIA_VISIBLE_DEVICES

shown contains ["container_gpus_chosen", surroundings.variable_evidence(facts.variable.NVIDIA_VISIBLE_DEVICES)]
