package nvidia_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestNvsmiTable(t *testing.T) {
	f := texttest.Parse("smi.txt", texttest.NvsmiTableText)
	d := f.GPUs.Driver
	expect.Must(t, d.Version == "610.43.02" && d.CUDAVersion == "13.3" && f.GPUs.NVML == "ok" && len(f.GPUs.Devices) == 2, "got %+v", f.GPUs)
	want := facts.GPU{
		Address: "0000:1b:00.0", Vendor: "nvidia", InNVML: true, Index: new(0), Name: "NVIDIA A100-SXM4-80GB",
		MemoryBytes: 81920 << 20, MemoryUsedBytes: new(int64(1024 << 20)), PerformanceState: new(0), UtilizationPercent: new(12), Persistence: new(true),
		MIG: new(false), ECC: &facts.ECC{Enabled: true, VolatileUncorrected: new(int64(3))},
		Processes: []facts.GPUProcess{{PID: 7713, Name: "python3"}},
	}
	expect.NoDiff(t, want, f.GPUs.Devices[0], "it")
	expect.NoDiff(t, new(true), f.GPUs.Devices[1].MIG, "MIG of GPU 1")
	expect.That(t, f.Logs != nil && f.Logs.Messages[0].ID == "nvsmi-err", "the ERR! of GPU 1 is not noted: %+v", f.Logs)
}

func TestNvsmiTableLayouts(t *testing.T) {
	for name, c := range map[string]struct {
		text, driver, cuda, gpu, nvml string
		memory                        int64
	}{
		"two lines a GPU": {
			text: "| NVIDIA-SMI 375.66                 Driver Version: 375.66                    |\n" +
				"|-------------------------------+----------------------+----------------------+\n" +
				"|   0  Tesla M40 24GB      On   | 0000:06:00.0     Off |                    0 |\n" +
				"| N/A   30C    P8    16W / 250W |      0MiB / 22939MiB |      0%      Default |\n" +
				"+-------------------------------+----------------------+----------------------+\n",
			driver: "375.66", gpu: "0000:06:00.0", memory: 22939 << 20,
		},
		"a line that grep left": {text: "|   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |                    0 |\n", gpu: "0000:1a:00.0"},
		"one GPU asked for":     {text: strings.Replace(texttest.NvsmiTableText, "$ nvidia-smi\n", "$ nvidia-smi -i 0\n", 1), driver: "610.43.02", cuda: "13.3", gpu: "0000:1b:00.0", memory: 81920 << 20},
	} {
		f := texttest.Parse("smi.txt", c.text)
		expect.Must(t, f.GPUs != nil && len(f.GPUs.Devices) != 0, "%s: no GPU", name)
		g := f.GPUs.Devices[0]
		expect.That(t, f.GPUs.Driver.Version == c.driver && f.GPUs.Driver.CUDAVersion == c.cuda && g.Address == c.gpu && g.MemoryBytes == c.memory && f.GPUs.NVML == c.nvml, "%s: got %+v, %+v", name, f.GPUs, g)
	}
}

const nvsmiQueryText = `
==============NVSMI LOG==============

Timestamp                                 : Tue Mar  3 10:12:44 2026
Driver Version                            : 535.161.08
CUDA Version                              : 12.2

Attached GPUs                             : 2
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    Product Architecture                  : Hopper
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    GPU Recovery Action                   : GPU Reset
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Device Max                : 5
            Link Width
                Max                       : 16x
                Current                   : 8x
        Replays Since Reset               : 12
    FB Memory Usage
        Total                             : 81559 MiB
    BAR1 Memory Usage
        Total                             : 131072 MiB
    Ecc Mode
        Current                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 1
            DRAM Correctable              : 2
            SRAM Uncorrectable Parity     : 1
            DRAM Uncorrectable            : 4
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 3
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Fabric
        State                             : Completed
        Status                            : Insufficient Resources
        Health
            Bandwidth                     : Degraded
            Route Unhealthy               : False
    Processes
        Process ID                        : 991
            Name                          : /usr/bin/python3 train.py
            Used GPU Memory               : 512 MiB

GPU 00000000:2A:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
`

func TestNvsmiQuery(t *testing.T) {
	f := texttest.Parse("smi-q.txt", nvsmiQueryText)
	expect.Must(t, f.GPUs.NVML == "ok" && len(f.GPUs.Devices) == 2 && f.GPUs.Driver.Version == "535.161.08", "got %+v", f.GPUs)
	g := f.GPUs.Devices[0]
	expect.That(t, g.Name == "NVIDIA H100 80GB HBM3" && g.Architecture == "hopper" && *g.Index == 0 && *f.GPUs.Devices[1].Index == 1, "got %+v", g)
	expect.That(t, !*g.MIG && g.RecoveryAction == "gpu-reset" && *g.BAR1Bytes == 131072<<20, "got %+v", g)
	expect.That(t, g.PCIe.Width == 8 && g.PCIe.MaxWidth == 16, "got %+v", g.PCIe)
	expect.That(t, g.ECC.Enabled && *g.ECC.VolatileUncorrected == 5, "got %+v", g.ECC)
	expect.NoDiff(t, &facts.RemappedRows{Pending: true}, g.RemappedRows, "remapped rows")
	expect.That(t, g.Fabric.State == "completed" && g.Fabric.Status == "INSUFFICIENT_RESOURCES", "got %+v", g.Fabric)
	expect.NoDiff(t, []string{"degraded-bandwidth"}, g.Fabric.Unhealthy, "fabric")
	expect.That(t, len(g.Processes) == 1 && g.Processes[0].Name == "python3", "got %+v", g.Processes)
}

// TestNvsmiQueryParts: grep leaves the sections of all GPUs one below the other.
func TestNvsmiQueryParts(t *testing.T) {
	part := "    Fabric\n        State                             : In Progress\n        Status                            : N/A\n"
	f := texttest.Parse("a", "$ nvidia-smi -q | grep -A 2 Fabric\n"+part+"--\n"+strings.Replace(part, "In Progress", "Completed", 1))
	expect.That(t, len(f.GPUs.Devices) == 2 && f.GPUs.NVML != "ok" && f.GPUs.Devices[0].Fabric.State == "in-progress" && f.GPUs.Devices[1].Fabric.State == "completed", "got %+v", f.GPUs)
	f = texttest.Parse("a", "$ nvidia-smi -q -i 3 | grep -A 2 Fabric\n"+part)
	expect.That(t, len(f.GPUs.Devices) == 1 && f.GPUs.Devices[0].Address == "GPU3", "got %+v", f.GPUs)
	// What is listed again replaces what was counted before.
	f = texttest.Parse("a", nvsmiQueryText+"\n$ nvidia-smi -q\n"+nvsmiQueryText)
	expect.Equal(t, 5, *f.GPUs.Devices[0].ECC.VolatileUncorrected, "listed twice")
}

const nvsmiXMLText = `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
	<driver_version>550.54.15</driver_version>
	<cuda_version>12.4</cuda_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000008:06:00.0">
		<product_name>NVIDIA GB200</product_name>
		<persistence_mode>Enabled</persistence_mode>
		<mig_mode><current_mig>N/A</current_mig></mig_mode>
		<pci><pci_gpu_link_info><link_widths><current_link_width>16x</current_link_width></link_widths></pci_gpu_link_info></pci>
		<bar1_memory_usage><total>524288 MiB</total></bar1_memory_usage>
		<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
		<ecc_errors><volatile><dram_uncorrectable>2</dram_uncorrectable></volatile></ecc_errors>
		<remapped_rows><remapped_row_corr>0</remapped_row_corr><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>
		<fabric><state>Completed</state><status>Success</status></fabric>
		<processes><process_info><pid>44</pid><process_name>a.out</process_name><used_memory>8 MiB</used_memory></process_info></processes>
	</gpu>
</nvidia_smi_log>
`

func TestNvsmiXML(t *testing.T) {
	f := texttest.Parse("smi.xml", nvsmiXMLText)
	expect.Must(t, f.GPUs != nil && f.GPUs.NVML == "ok" && len(f.GPUs.Devices) == 1 && f.GPUs.Driver.CUDAVersion == "12.4", "got %+v", f.GPUs)
	g := f.GPUs.Devices[0]
	expect.That(t, g.Address == "0008:06:00.0" && g.Name == "NVIDIA GB200" && g.MIG == nil && g.PCIe.Width == 16 && *g.BAR1Bytes == 512<<30 && *g.ECC.VolatileUncorrected == 2 && g.RemappedRows.Failed && len(g.Processes) == 1, "got %+v", g)
	// A document that breaks off gives what it holds, and is not the whole list.
	broken, _, _ := strings.Cut(nvsmiXMLText, "<processes>")
	f = texttest.Parse("smi.xml", broken)
	expect.That(t, len(f.GPUs.Devices) == 1 && f.GPUs.NVML != "ok" && f.GPUs.Devices[0].Name == "NVIDIA GB200", "got %+v", f.GPUs)
}

func TestNvsmiCSV(t *testing.T) {
	for name, c := range map[string]struct {
		text                  string
		gpus                  []string
		nvml, driver, compute string
	}{
		"with a header": {
			text: "$ nvidia-smi --query-gpu=index,name,driver_version,compute_cap --format=csv\nindex, name, driver_version, compute_cap\n0, NVIDIA L4, 550.54.15, 8.9\n1, NVIDIA L4, 550.54.15, 8.9\n",
			gpus: []string{"GPU0", "GPU1"}, nvml: "ok", driver: "550.54.15", compute: "8.9",
		},
		"without a prompt":  {text: "index, pci.bus_id, memory.total [MiB]\n4, 00000000:84:00.0, 22939 MiB\n", gpus: []string{"0000:84:00.0"}},
		"without a header":  {text: "$ nvidia-smi --query-gpu=index,name --format=csv,noheader\n0, NVIDIA H200\n1, NVIDIA H200\n$ ls\n", gpus: []string{"GPU0", "GPU1"}, nvml: "ok"},
		"one GPU, no index": {text: "$ nvidia-smi -i 2 --query-gpu=name,compute_cap --format=csv,noheader\nTesla T4, 7.5\n", gpus: []string{"GPU2"}, compute: "7.5"},
		"cut by a pipe":     {text: "$ nvidia-smi --query-gpu=index,name --format=csv | head -2\nindex, name\n0, NVIDIA H200\n", gpus: []string{"GPU0"}},
	} {
		f := texttest.Parse("smi.txt", c.text)
		expect.Must(t, f.GPUs != nil, "%s: no GPU", name)
		got := expect.Map(f.GPUs.Devices, func(g facts.GPU) string { return g.Address })
		expect.That(t, reflect.DeepEqual(got, c.gpus) && f.GPUs.NVML == c.nvml && f.GPUs.Driver.Version == c.driver && f.GPUs.Devices[0].ComputeCapability == c.compute, "%s: got %v, %+v", name, got, f.GPUs)
	}
	for _, text := range []string{"name, age\nBob, 12\n", "$ nvidia-smi --query-gpu=name,ecc.errors.uncorrected.volatile.total --format=csv,noheader | sort | uniq -c\n      8 NVIDIA H200, 0\n", "index, value\n0, 1\n", "Dear name, you\n"} {
		f := texttest.Parse("mail.txt", text)
		expect.That(t, f.GPUs == nil, "%q: got %+v, want nothing", text, f.GPUs)
	}
}

func TestNvsmiList(t *testing.T) {
	f := texttest.Parse("l.txt", "$ nvidia-smi -L\nGPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-6d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n")
	expect.That(t, len(f.GPUs.Devices) == 2 && f.GPUs.NVML == "ok" && *f.GPUs.Devices[0].MIG && f.GPUs.Devices[1].MIG == nil && f.GPUs.Devices[1].Name == "NVIDIA A100-SXM4-40GB", "got %+v", f.GPUs)
	f = texttest.Parse("l.txt", "GPU 3: NVIDIA L4 (UUID: GPU-6d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n")
	expect.That(t, f.GPUs.NVML != "ok" && f.GPUs.Devices[0].Address == "GPU3", "a part of a list: got %+v", f.GPUs)
}

// TestNvsmiJoin: a list by index and a table by address tell of the same GPUs.
func TestNvsmiJoin(t *testing.T) {
	f := texttest.Parse("both.txt", "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n"+texttest.NvsmiTableText)
	expect.That(t, len(f.GPUs.Devices) == 2 && f.GPUs.Devices[0].UUID != "" && f.GPUs.Devices[0].Address == "0000:1b:00.0", "got %+v", f.GPUs.Devices)
}

// nvsmiBounded fails where a text makes more facts than it has room for.
func nvsmiBounded(t *testing.T, f *facts.Facts) {
	t.Helper()
	expect.That(t, f.GPUs == nil || len(f.GPUs.Devices) <= parse.MaxDevices && len(f.GPUs.P2P) <= parse.MaxEntries, "too many GPUs")
	expect.That(t, f.Links == nil || len(f.Links.Pairs) <= parse.MaxEntries+parse.MaxDevices, "too many pairs")
	expect.That(t, len(f.Software) <= parse.MaxEntries && len(f.Origins) <= parse.MaxOrigins, "%d packages, %d origins", len(f.Software), len(f.Origins))
}

// FuzzTexts checks that what is read of any text is bounded.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		nvdriverBugReport, nvtopoText, nvlinkText, "● nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Active: failed\n",
		"filename:       /lib/modules/6.8.0/nvidia.ko\nversion:        550.90.07\n",
		"$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n",
		"lrwxrwxrwx. 1 root root 22 Nov  2 10:12 /usr/lib64/libnvidia-ml.so.1 -> libnvidia-ml.so.550.90.07\n",
		"libcuda.so.1 -> /usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01\r\nlibcuda.so.1 -> \n",
		texttest.NvsmiTableText, nvsmiQueryText, nvsmiXMLText, "$ nvidia-smi --query-gpu=index,name --format=csv,noheader\n0, NVIDIA H200\n", "GPU 0: x (UUID: GPU-1)\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := texttest.Parse("fuzz", text)
		nvsmiBounded(t, got)
		for _, p := range got.Software {
			expect.That(t, p.Name != "" && p.Version != "", "software without name or version: %+v", p)
		}
	})
}

func TestNvsmiUtilization(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want *int
	}{
		"csv":           {"index, pcie.link.gen.current, utilization.gpu [%]\n0, 4, 97 %\n", new(97)},
		"query":         {"GPU 00000000:01:00.0\n    Product Name                          : NVIDIA H200\n    PCI\n        GPU Link Info\n            PCIe Generation\n                Max                       : 4\n                Current                   : 1\n    Utilization\n        Gpu                               : 3 %\n        Memory                            : 1 %\n", new(3)},
		"none":          {"index, pcie.link.gen.current, utilization.gpu [%]\n0, 4, [N/A]\n", nil},
		"table":         {"|   0  NVIDIA L4                      On  | 00000000:17:00.0 Off |                    0 |\n| N/A   52C    P0              34W /  72W |    478MiB / 23034MiB |    100%      Default |\n", new(100)},
		"then a matrix": {"index, name, utilization.gpu [%]\n0, Tesla V100-PCIE-32GB, 99 %\n$ nvidia-smi topo -m\n\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-15\t0\n", new(99)},
	} {
		f := texttest.Parse("smi.txt", c.text)
		expect.Must(t, f.GPUs != nil && len(f.GPUs.Devices) == 1, "%s: got %+v, want one GPU", name, f.GPUs)
		expect.NoDiff(t, c.want, f.GPUs.Devices[0].UtilizationPercent, "%s", name)
	}
}

// The load counts only beside the generation of the same moment.
func TestNvsmiLoadAndLinkOfOneMoment(t *testing.T) {
	const link = "index, pcie.link.gen.current, pcie.link.gen.max, utilization.gpu [%]\n0, 1, 4, 0 %\n"
	for name, c := range map[string]struct {
		texts []string
		want  int
	}{
		"a load later":         {[]string{link, "index, name, utilization.gpu [%]\n0, NVIDIA H200, 97 %\n"}, 0},
		"a load before":        {[]string{"index, name, utilization.gpu [%]\n0, NVIDIA H200, 97 %\n", link}, 0},
		"both, later, at work": {[]string{link, "index, pcie.link.gen.current, utilization.gpu [%]\n0, 3, 97 %\n"}, 97},
	} {
		f := texttest.Parse("smi.txt", strings.Join(c.texts, "\n$ date\n\n"))
		expect.Must(t, f.GPUs != nil && len(f.GPUs.Devices) == 1, "%s: got %+v, want one GPU", name, f.GPUs)
		g := f.GPUs.Devices[0]
		expect.That(t, g.UtilizationPercent != nil && *g.UtilizationPercent == c.want && g.PCIe.MaxGeneration == 4, "%s: got load %v, link %+v; want load %d", name, g.UtilizationPercent, g.PCIe, c.want)
	}
}

// The table cuts long names; what lists them in full fills them in.
func TestNvsmiCutName(t *testing.T) {
	f := texttest.Parse("x", "|   0  NVIDIA GeForce ...  Off  | 00000000:01:00.0 Off |                  Off |\n"+
		"$ nvidia-smi -L\nGPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-0a7c1f7a-70f2-83a4-a0fb-000000000001)\n")
	expect.That(t, f.GPUs != nil && len(f.GPUs.Devices) == 1 && f.GPUs.Devices[0].Name == "NVIDIA GeForce RTX 4090", "got %+v", f.GPUs)
}
