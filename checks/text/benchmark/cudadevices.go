package benchmark

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// cudaDevicesKind reads the lists of devices that NVIDIA's benchmarks print above their tables.
var cudaDevicesKind = &parse.Kind{
	Name:    "cuda-devices",
	Title:   "GPUs by address, from the head of p2pBandwidthLatencyTest, nvbandwidth or nccl-tests",
	Command: "./nvbandwidth -l",
	Gives:   []string{"gpus"},
	Anchors: []string{"pciBusID: ", "Device 0: ", "Device 1: ", "): NVIDIA", ": NVIDIA ", "] NVIDIA ", "] Tesla "},
	Line:    cudaDevicesLine,
}

var (
	// p2pBandwidthLatencyTest.cu: "Device: %d, %s, pciBusID: %x, pciDeviceID: %x, pciDomainID:%x".
	cudaDevicesSample = lazy.New(`^\s*Device: (\d+), (.+), pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2}), pciDomainID: ?([0-9a-f]{1,8})\s*$`)
	// nvbandwidth.cpp: "Device %d: %s (%s)" with the bus id.
	cudaDevicesBandwidth = lazy.New(`^\s*Device (\d+): (.+) \(([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?\)\s*$`)
	// nccl-tests since 2.15: "... device  0 [0000:53:00] NVIDIA H100 80GB HBM3".
	cudaDevicesTests = lazy.New(`\bdevice +(\d+) \[([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?\] ((?:NVIDIA|Tesla) .+?)\s*$`)
)

func cudaDevicesLine(s *parse.Sink, l parse.Line) bool {
	name, address := "", ""
	if m := cudaDevicesSample.FindStringSubmatch(l.Text); m != nil {
		part := func(digits string) uint64 {
			n, _ := strconv.ParseUint(digits, 16, 32) // The form bounds it.
			return n
		}
		name, address = m[2], facts.Address(fmt.Sprintf("%04x:%02x:%02x.0", part(m[5]), part(m[3]), part(m[4])))
	} else if m := cudaDevicesBandwidth.FindStringSubmatch(l.Text); m != nil {
		name, address = m[2], facts.Address(m[3]+".0")
	} else if m := cudaDevicesTests.FindStringSubmatch(l.Text); m != nil {
		name, address = m[3], facts.Address(m[2]+".0")
	}
	if address == "" {
		return false
	}
	g := s.GPU(address, l)
	g.Vendor = "nvidia"
	g.Name = cmp.Or(g.Name, escape.Printable(name, 100))
	return true
}
