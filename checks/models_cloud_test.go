package checks

import (
	"fmt"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/internal/nvml"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// p5 is an EC2 instance p5.48xlarge. Its rates are those that HuggingFaceTB's training playbook
// measured on one: 14.2 GB/s between host memory and a GPU, and 786 GB/s both ways between GPUs.
func p5() *host.Memory {
	tree, gpus := checktest.EightWithEFA()
	m := model{tree: tree, amd: true}
	for _, g := range gpus {
		m.gpus = append(m.gpus, g.Address)
	}
	m.rate = func(int, int) float64 { return 392.5 }
	mem := m.memory()
	mem.AddFile("/sys/class/dmi/id/sys_vendor", []byte("Amazon EC2\n"))
	mem.AddFile("/sys/class/dmi/id/product_name", []byte("p5.48xlarge\n"))
	mem.AddFile("/proc/cpuinfo", []byte("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7R13 Processor\nphysical id\t: 0\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7R13 Processor\nphysical id\t: 1\nflags\t\t: fpu hypervisor\n\n"))
	mem.AddFile("/proc/self/status", []byte("Name:\tgpudoctor\nPid:\t4242\nNStgid:\t4242\nCapEff:\t000001ffffffffff\nSeccomp:\t0\nCpus_allowed_list:\t0-191\nMems_allowed_list:\t0-1\n"))
	mem.AddFile("/sys/module/nvidia_peermem/initstate", []byte("live\n"))
	mem.AddFile("/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net-ofi.so", []byte("\x7fELF NET/OFI aws-ofi-nccl 1.16.0\x00"))
	mem.Answer(host.AskNVML, asH100(m.nvml()))
	mem.Answer(host.AskProbe+"full", withHostCopies(m.probe()))
	return mem
}

const h100Name = "NVIDIA H100 80GB HBM3"

// asH100 makes the GPUs of an answer H100 that NVSwitches join.
func asH100(a nvml.Answer) nvml.Answer {
	for i := range a.Devices {
		d := &a.Devices[i]
		d.Name, d.Architecture, d.ComputeCapability = h100Name, "hopper", "9.0"
		d.MemoryBytes, d.BAR1Bytes = 80<<30, new(int64(128<<30))
		d.NVLinks = nvlinks(18, facts.NVLink{Active: true, Version: 4, SpeedMBps: 26562, RemoteType: "switch"})
		d.Fabric = &facts.Fabric{State: "completed", Status: "SUCCESS"}
	}
	for i := range a.P2P {
		a.P2P[i].NVLink = "ok"
	}
	return a
}

// withHostCopies makes a quick report a full one, with the copies of host memory of each node.
func withHostCopies(r *probe.Report) *probe.Report {
	r.Mode = probe.Full
	for i := range r.Devices {
		r.Devices[i].Name, r.Devices[i].ComputeCapability, r.Devices[i].MemoryBytes = h100Name, "9.0", 80<<30
	}
	for node, rates := range [][2]float64{{14.2, 13.9}, {14.1, 13.8}} {
		for i, d := range r.Devices {
			toDevice, toHost := rates[0], rates[1]
			if i/4 != node {
				toDevice, toHost = toDevice-0.2, toHost-0.2
			}
			name := fmt.Sprintf("node%d", node)
			r.Transfers = append(r.Transfers,
				probe.Transfer{Test: probe.TestHostToDevice, Source: name, Destination: d.Address, Outcome: probe.OK, Bytes: 64 << 20, GBps: &toDevice, Verified: "gpu"},
				probe.Transfer{Test: probe.TestDeviceToHost, Source: d.Address, Destination: name, Outcome: probe.OK, Bytes: 64 << 20, GBps: &toHost, Verified: "gpu"})
		}
	}
	return r
}
