# METADATA
# title: A network adapter lacks its driver
# description: >-
#   An RDMA adapter is in the PCI tree, but no driver is bound to it, or the driver for Ethernet alone: NCCL finds no
#   RDMA device for it and uses another adapter or TCP. After an update of the kernel, the modules of an installed RDMA
#   stack are often missing. On a host that gives its adapters to virtual machines, an adapter without a driver is
#   normal.
# related_resources:
#   - ref: https://github.com/linux-rdma/rdma-core/blob/v55.0/Documentation/udev.md
#     description: How the modules for RDMA are loaded
#   - ref: https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/index.html
#     description: The parts of the driver of NVIDIA's adapters
# custom:
#   severity: medium
#   confidence: likely
#   cause: wrong-nic
#   needs: [pci.devices, nics.rdma]
#   remedies: [load-rdma-driver]
#   profiles: [training]
#   since: "0.2"
package gpudoctor.rules.nic_driver_missing

import data.gpudoctor.lib.facts
import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings

# adapters are the RDMA adapters of this machine; their virtual functions may wait for a container.
adapters contains d if {
	some d in input.pci.devices
	d.address in surroundings.rdma_nics
	d.kind == "nic"
	not d.virtual == true
	not d.off_bus == true
}

without_driver contains d.address if {
	some d in adapters
	not d.driver
}

# drivers_known is true where a device shows its driver: a machine on which none does was recorded without them.
drivers_known if {
	some d in input.pci.devices
	d.driver
}

# live is true where the RDMA devices were read from the machine: a text of the PCI tree may leave out the drivers.
live if is_array(input.nics.rdma)

findings contains {
	"id": "no-driver",
	"subject": subject(without_driver),
	"message": sprintf("No driver is bound to %s (%s), which no program can use", [facts.counted(count(without_driver), "RDMA adapter"), facts.few(without_driver)]),
	"evidence": [{"fact": sprintf("pci.devices[%s].driver", [address]), "value": "", "source": sprintf("/sys/bus/pci/devices/%s/driver", [address])} | some address in sort(without_driver)],
	"severity": severity,
	"remedies": ["load-rdma-driver"],
} if {
	live
	drivers_known
	count(without_driver) > 0
}

default severity := "medium"

severity := "low" if facts.is_passthrough_host == true

subject(set_) := min(set_) if {
	count(set_) == 1
} else := "network"

# ethernet_only are the adapters whose driver is there and whose RDMA device is not. With link
# aggregation, several adapters or functions of one have one RDMA device.
ethernet_only contains d.address if {
	some d in adapters
	d.driver == "mlx5_core"
	count(input.nics.rdma) == 0
}

findings contains {
	"id": "no-rdma",
	"subject": subject(ethernet_only),
	"message": sprintf("%s (%s) has the driver mlx5_core, but no RDMA device: mlx5_ib is not loaded, so NCCL uses TCP", [facts.counted(count(ethernet_only), "RDMA adapter"), facts.few(ethernet_only)]),
	"evidence": rdma.module_evidence,
	"severity": "low",
	"remedies": ["load-rdma-driver"],
} if {
	count(ethernet_only) > 0
	is_array(input.nics.modules)
	count({m | some m in input.nics.modules; m == "mlx5_ib"}) == 0
}

missing contains {"fact": "nics.rdma", "words": "the RDMA devices of the machine are not known"} if {
	not live
	count(surroundings.rdma_nics) > 0
}

missing contains {"fact": "pci.devices[].driver", "words": "the drivers of the PCI devices are not known"} if {
	live
	not drivers_known
	count(adapters) > 0
}

not_applicable contains "no RDMA adapter on this machine" if surroundings.no_rdma_nic
