package checktest

// EightGPU is a bare-metal server of two sockets with eight GPUs behind PCIe
// switches, and the names of its GPUs and NICs in order of address. Between
// its GPUs are all the types of paths:
//
//	socket 0, root bus 15: switch with GPUs 0 and 1 and NIC 0    PIX
//	          root bus 37: switch with GPU 2 and NIC 1, and a
//	                       second switch below it with GPU 3     PXB
//	socket 1, root bus 97: two root ports, each with a switch,
//	                       GPU 4 with NIC 2, and GPU 5 with NIC 3   PHB
//	          root bus b7: switch with GPUs 6 and 7              PIX; NODE to 4
//
// Every root bus has a hundred functions beside, as a server processor does.
func EightGPU() (t *Tree, gpus, nics []*Function) {
	t = &Tree{
		Nodes: []Node{
			{CPUs: "0-31,64-95", MemoryKiB: 1056411988},
			{CPUs: "32-63,96-127", MemoryKiB: 1056948224},
		},
		CommandLine: "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro intel_iommu=on iommu=pt",
		IOMMUUnits:  []string{"dmar0", "dmar1"},
		IOMMUType:   "identity",
	}
	link := Gen(5, 16)
	root := func(bus, node, ports int) []*Function {
		b := t.Root(0, bus, node)
		b.Add(0, 0, Function{Class: 0x060000, Vendor: 0x8086, Device: 0x09a2, Port: NoExpress})
		var roots []*Function
		for i := range ports {
			roots = append(roots, b.Bridge(1+2*i, RootPort, link, ACSOff()))
		}
		for i := range 100 {
			b.Other(8+i/8, i%8)
		}
		return roots
	}
	gpu := func(port *Function) { gpus = append(gpus, port.Below.GPU(0, link)) }
	nic := func(port *Function) { nics = append(nics, port.Below.NIC(0, link)) }

	_, down := root(0x15, 0, 1)[0].Below.Switch(3, link, ACSOff())
	gpu(down[0])
	gpu(down[1])
	nic(down[2])

	_, down = root(0x37, 0, 1)[0].Below.Switch(3, link, ACSOff())
	gpu(down[0])
	_, inner := down[1].Below.Switch(1, link, ACSOff())
	gpu(inner[0])
	nic(down[2])

	for _, port := range root(0x97, 1, 2) {
		_, down = port.Below.Switch(2, link, ACSOff())
		gpu(down[0])
		nic(down[1])
	}

	_, down = root(0xb7, 1, 1)[0].Below.Switch(2, link, ACSOff())
	gpu(down[0])
	gpu(down[1])
	return t, gpus, nics
}

// FlatVM is a virtual machine with a number of H200s whose PCI tree is flat:
// every function stands on the root bus, no NUMA node is named, there is no
// IOMMU, and the hypervisor masks some extended capabilities. The figures are
// those of a Firecracker guest.
func FlatVM(count int) (t *Tree, gpus []*Function) {
	t = &Tree{
		Nodes:       []Node{{CPUs: "0-31", MemoryKiB: 462 << 20}},
		CommandLine: "console=ttyS0 reboot=k panic=1 pci=realloc",
	}
	b := t.Root(0, 0, -1)
	b.Add(0, 0, Function{Class: 0x060000, Vendor: 0x8086, Device: 0x0d57, Port: NoExpress})
	virtio := Function{Vendor: 0x1af4, Device: 0x1042, Class: 0x018000, Driver: "virtio-pci", Port: NoExpress, BARs: []BAR{{0, 512 << 10, 0x140204}}}
	b.Add(1, 0, virtio)
	virtio.Device, virtio.Class = 0x1041, 0x020000
	b.Add(2, 0, virtio)
	for i := range count {
		gpus = append(gpus, b.Add(3+i, 0, Function{
			Class: 0x030200, Vendor: 0x10de, Device: 0x2335, Driver: "nvidia", Link: Gen(5, 16), Masked: true,
			BARs: []BAR{{0, 16 << 20, 0x14220c}, {2, 256 << 30, 0x14220c}, {4, 32 << 20, 0x14220c}},
		}))
	}
	return t, gpus
}
