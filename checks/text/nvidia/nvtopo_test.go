package nvidia_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const nvtopoText = "$ nvidia-smi topo -m\n" +
	"\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n" +
	"GPU0\t X \tNV12\tNV12\tPIX\t0-31\t0\t\tN/A\n" +
	"GPU1\tNV12\t X \tNV12\tSYS\t0-31\t0\t\tN/A\n" +
	"GPU2\tNV12\tNV12\t X \tSYS\t32-63\t1\t\tN/A\n" +
	"NIC0\tPIX\tSYS\tSYS\t X \t\t\t\t\n" +
	"\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n  NIC0: mlx5_2\n"

func nvtopoFind(f *facts.Facts, a, b string) *facts.Pair { return f.Links.Between(a, b) }

func TestNvtopo(t *testing.T) {
	f := texttest.Parse("topo.txt", nvtopoText)
	p := nvtopoFind(f, "GPU0", "GPU1")
	expect.That(t, p != nil && *p.NVLinks == 12 && p.NVSwitch && p.Kind == "gpu-gpu" && p.Path == "", "got %+v", p)
	p = nvtopoFind(f, "GPU0", "mlx5_2")
	expect.That(t, p != nil && p.Path == "PIX" && p.Kind == "gpu-nic", "got %+v", p)
	expect.Len(t, 6, f.Links.Pairs, "it")
	k := f.Texts[0].Kinds
	expect.That(t, len(k) == 1 && k[0].Lines == 14, "got %+v", k)
}

// TestNvtopoPromptBehindPrefix checks that a line that is a prompt without what stands before it is no matrix.
func TestNvtopoPromptBehindPrefix(t *testing.T) {
	for _, before := range []string{"> ", "3: ", "[0] ", "- "} {
		f := texttest.Parse("topo.txt", before+"$ GPU0 X\nGPU1 (UUID: GPU-1)\n")
		expect.That(t, f.Links == nil, "got %+v behind %q", f.Links, before)
	}
}

func TestNvtopoLayouts(t *testing.T) {
	for name, c := range map[string]struct{ text, path string }{
		"blanks":        {"        GPU0    GPU1    CPU Affinity    NUMA Affinity\nGPU0     X      PHB     0-15    N/A\nGPU1    PHB      X      0-15    N/A\n", "PHB"},
		"no header":     {"GPU0     X      SYS     0-15\nGPU1    SYS      X      16-31\n", "SYS"},
		"NICs by name":  {"\tGPU0\tmlx5_0\tGPU1\tCPU Affinity\nGPU0\t X \tPIX\tNODE\t0-9\nmlx5_0\tPIX\t X \tNODE\nGPU1\tNODE\tNODE\t X \t0-9\n", "NODE"},
		"in the middle": {"I see this:\n\tGPU0\tGPU1\nGPU0\t X \tPXB\nGPU1\tPXB\t X \nWhy?\n", "PXB"},
	} {
		f := texttest.Parse("topo.txt", c.text)
		expect.Must(t, f.Links != nil, "%s: nothing", name)
		p := nvtopoFind(f, "GPU0", "GPU1")
		expect.That(t, p != nil && p.Path == c.path && p.NVLinks != nil && *p.NVLinks == 0, "%s: got %+v, want %s", name, p, c.path)
	}
	failed := texttest.Parse("topo.txt", "\tGPU0\tGPU1\tCPU Affinity\nFailed to run topology matrix\n")
	expect.That(t, failed.Links == nil && failed.Logs != nil && failed.Logs.Messages[0].ID == "nvsmi-topo-failed", "got %+v, %+v", failed.Links, failed.Logs)
}

func TestNvtopoNUMA(t *testing.T) {
	f := texttest.Parse("both.txt", texttest.NvsmiTableText+"\n"+nvtopoText)
	for _, d := range f.PCI.Devices {
		expect.That(t, d.Address != "0000:1c:00.0" || d.NUMANode != nil && *d.NUMANode == 0, "got %+v", d)
	}
	p := nvtopoFind(f, "0000:1b:00.0", "0000:1c:00.0")
	expect.That(t, p != nil, "the pair does not bear the addresses: %+v", f.Links.Pairs)
}

func TestNvtopoPeers(t *testing.T) {
	matrix := func(word string) string {
		return " \tGPU0\tGPU1\t\n GPU0\tX\t" + word + "\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"
	}
	for text, want := range map[string]facts.P2PStatus{
		"$ nvidia-smi topo -p2p r\n" + matrix("OK"):  {Read: "ok"},
		"$ nvidia-smi topo -p2p w\n" + matrix("CNS"): {Write: "chipset-not-supported"},
		"$ nvidia-smi topo -p2p n\n" + matrix("NS"):  {NVLink: "not-supported"},
		matrix("GNS"): {Read: "gpu-not-supported"},
	} {
		p := nvtopoFind(texttest.Parse("p2p.txt", text), "GPU0", "GPU1")
		expect.That(t, p != nil && p.P2P != nil && *p.P2P == want, "%q: got %+v, want %+v", text, p, want)
	}
	f := texttest.Parse("p2p.txt", matrix("NS"))
	expect.That(t, f.Links == nil, "a matrix that may be of atomics: got %+v", f.Links)
}

const nvlinkText = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
	 Link 0: 25 GB/s
	 Link 1: <inactive>
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-6d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
	 Link 0: Replay Errors: 4
	 Link 0: Recovery Errors: 1
	 Link 0: CRC Errors: 0

	 Link 1: Replay Errors: 0
`

func TestNvlinkState(t *testing.T) {
	f := texttest.Parse("nvlink.txt", nvlinkText)
	expect.Must(t, len(f.GPUs.Devices) == 2 && f.GPUs.NVML != "ok", "got %+v", f.GPUs)
	a, b := f.GPUs.Devices[0].NVLinks, f.GPUs.Devices[1].NVLinks
	expect.That(t, len(a) == 2 && a[0].Active && a[0].SpeedMBps == 25000 && !a[1].Active, "got %+v", a)
	expect.That(t, len(b) == 2 && b[0].Active, "got %+v", b)
	dark := texttest.Parse("nvlink.txt", "GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\nNVML: Unable to retrieve NVLink information as all links are inActive\n")
	expect.That(t, dark.GPUs.Devices[0].NVLinks == nil && dark.Logs.Messages[0].ID == "nvlink-all-inactive", "got %+v", dark)
}
