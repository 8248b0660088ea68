package report

import (
	"slices"
	"strings"
	"unicode"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Term is an abbreviation and what it means.
type Term struct{ Name, Means string }

// glossary holds all terms. A name that is part of another one comes after it.
var glossary = []Term{
	{"ACS", "PCIe Access Control Services, which can send traffic between two devices up through the processor"},
	{"ATS", "Address Translation Services: a device caches the IOMMU's translations"},
	{"BAR1", "the window through which other devices reach an NVIDIA GPU's memory"},
	{"BAR", "the window of a PCI device's memory that other devices can reach"},
	{"ECC", "error correction of the GPU's memory"},
	{"EFA", "Amazon's network adapter for RDMA"},
	{"GID", "one of the addresses of an RDMA port"},
	{"GPUDirect RDMA", "a network adapter reads and writes GPU memory without a copy through host memory"},
	{"IMEX", "NVIDIA's service that lets GPUs of different hosts share memory over NVLink"},
	{"IOMMU", "the unit that translates the addresses that devices use for memory"},
	{"MIG", "Multi-Instance GPU: a GPU divided into partitions"},
	{"MNNVL", "NVLink between the GPUs of several hosts"},
	{"MTU", "the largest packet that an interface sends"},
	{"NUMA", "processors with the memory next to them"},
	{"NVLS", "all-reduce with the multicast of NVSwitches"},
	{"PFC", "Priority Flow Control: a switch pauses senders instead of losing packets"},
	{"RDMA", "a network adapter accesses the memory of another host without its processor"},
	{"ReBAR", "Resizable BAR: it can be enlarged to cover all of the GPU's memory"},
	{"RoCE", "RDMA over Ethernet"},
	{"SXid", "the number of an error of an NVSwitch in the kernel log"},
	{"Xid", "the number of an error that NVIDIA's driver writes to the kernel log"},
	{"cuMem", "CUDA's calls by which processes share memory"},
	{"xGMI", "AMD's links between GPUs"},
}

// known are terms that reports use and do not explain, as those who read reports mostly know them. They are only looked up.
var known = []Term{
	{"CmpltRedir", "the bit of ACS that sends completions up through the processor"},
	{"IBGDA", "InfiniBand GPUDirect Async: a GPU starts transfers of a network adapter itself"},
	{"NCCL", "NVIDIA's library for collective communication"},
	{"NIC", "network adapter"},
	{"NVLink", "NVIDIA's links between GPUs"},
	{"NVML", "NVIDIA's management library, libnvidia-ml.so.1"},
	{"NVSwitch", "the switch that connects the NVLinks of all GPUs"},
	{"NODE", "a path across host bridges of one NUMA node"},
	{"P2P", "a GPU reads or writes another GPU's memory without a copy through host memory"},
	{"PHB", "a path across root ports of one CPU"},
	{"PIX", "a path under one PCIe switch"},
	{"PXB", "a path across PCIe switches"},
	{"PXN", "NCCL sends through another GPU, which is nearer to the network adapter"},
	{"RCCL", "AMD's library for collective communication"},
	{"ReqRedir", "the bit of ACS that sends requests up through the processor"},
	{"SM", "streaming multiprocessor: the part of a GPU that runs kernels"},
	{"SYS", "a path across NUMA nodes"},
}

// Glossary are all terms of reports.
func Glossary() []Term { return slices.Concat(glossary, known) }

// TermsIn lists the terms that a text uses as words of their own, or with the s of a plural, in alphabetical order, capitals
// first. Part of a longer word, a path or a variable's name is no use of a term.
func TermsIn(text string) []Term {
	words := " " + strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_/-=", r)
	}), " ") + " "
	return lines.Filter(glossary, func(t Term) bool {
		return strings.Contains(words, " "+t.Name+" ") || strings.Contains(words, " "+t.Name+"s ")
	})
}
