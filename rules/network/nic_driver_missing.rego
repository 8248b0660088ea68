# METADATA
# title: A network adapter lacks its driver
# description: >-
#   An RDMA adapter is in the PCI tree, but no driver is bound to it, or the driver for Ethernet alone: NCCL finds no
#   RDMA device for it and uses another adapter or TCP. After an update of the kernel, the modules of an installed RDMA
#   stack are often missing. On a host that gives its adapters to virtual machines, this is normal.
# related_resources:
#   - ref: https://github.com/linux-rdma/rdma-core/blob/v55.0/Documentation/udev.md
#     description: How the modules for RDMA are loaded
# custom:
#   severity: medium
#   confidence: likely
#   cause: wrong-nic
#   needs: [pci.devices, nics.rdma]
#   remedies: [load-rdma-driver]
#   profiles: [training]
#   since: "0.2"
#   grades:
#     no-driver: "{adapters:RDMA adapter} ({adapters:few}) cannot be used for RDMA: no driver is bound, or mlx5_ib is not loaded"
package gpudoctor.rules.nic_driver_missing

import data.gpudoctor.lib.rdma
import data.gpudoctor.lib.surroundings

# adapters are the RDMA adapters of this machine; their virtual functions may wait for a container.
adapters[d.address] := d if {
	some d in input.pci.devices
	d.address in surroundings.rdma_nics
	d.kind == "nic"
	not d.virtual == true
	not d.off_bus == true
}

# A machine on which no device shows its driver was recorded without them.
drivers_known if input.pci.devices[_].driver

unusable contains address if {
	drivers_known
	some address, d in adapters
	not d.driver
}

# With link aggregation, several adapters or functions of one have one RDMA device.
unusable contains address if {
	some address, d in adapters
	d.driver == "mlx5_core"
	count(input.nics.rdma) == 0
	is_array(input.nics.modules)
	count({m | some m in input.nics.modules; m == "mlx5_ib"}) == 0
}

findings contains {
	"id": "no-driver",
	"subject": {true: min(unusable), false: "network"}[count(unusable) == 1],
	"about": {"adapters": unusable},
	"evidence": array.concat(
		[{"fact": sprintf("pci.devices[%s].driver", [address]), "value": object.get(d, "driver", ""), "source": sprintf("/sys/bus/pci/devices/%s/driver", [address])} | some address, d in adapters; address in unusable],
		rdma.module_evidence,
	),
	"severity": {true: "low", false: "medium"}[object.get(input, ["host", "virtualization", "passthrough_host"], false)],
} if {
	is_array(input.nics.rdma) # A text of the PCI tree may leave out the drivers.
	count(unusable) > 0
}

asks contains "pci.devices[].driver" if count(adapters) > 0

not_applicable contains "no RDMA adapter on this machine" if surroundings.no_rdma_nic
