package nvidia

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvdriverVersionKind is the version of the kernel module that is loaded, as
// /proc/driver/nvidia/version and, at loading, the kernel log tell it, or
// /sys/module/nvidia/version, which holds the bare number.
//
//	NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (...)
//	NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
var nvdriverVersionKind = &parse.Kind{
	Name:     "nvidia-driver-version",
	Title:    "the version of the loaded NVIDIA kernel module",
	Command:  "cat /proc/driver/nvidia/version",
	Gives:    []string{"gpus", "software"},
	Anchors:  []string{"NVRM version: NVIDIA", "NVRM: loading NVIDIA"},
	Commands: []string{"cat /sys/module/nvidia/version"},
	Begins: func(in *parse.Lines) bool {
		return nvdriverLine.MatchString(in.First().Text) || in.After("cat /sys/module/nvidia/version") && nvsmiDriverVersion.MatchString(strings.TrimSpace(in.First().Text))
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		l, _ := in.Next()
		version := strings.TrimSpace(l.Text)
		d := &s.GPUs().Driver
		if m := nvdriverLine.FindStringSubmatch(l.Text); m != nil {
			version = m[2]
			d.Open = new(strings.Contains(m[1], "Open"))
		}
		d.KernelVersion = version // The last that was loaded is the one that runs.
		s.Told("gpus.driver.kernel_version", version, l)
		s.Package("nvidia-driver", version, "", "kernel", l)
	},
}

var nvdriverLine = lazy.New(`NVRM(?: version)?: (?:loading )?NVIDIA UNIX (.{0,60}?Kernel Module.{0,40}?)\s(\d{3}\.\d+(?:\.\d+)?)(?:\s|$)`)

// nvdriverParamsKind is /proc/driver/nvidia/params, whole or in parts.
var nvdriverParamsKind = &parse.Kind{
	Name:    "nvidia-driver-params",
	Title:   "parameters of the NVIDIA kernel module",
	Command: "cat /proc/driver/nvidia/params",
	Gives:   []string{"gpus"},
	Anchors: []string{
		"ResmanDebugLevel: ", "RmLogonRC: ", "ModifyDeviceFiles: ", "EnableStreamMemOPs: ", "NvLinkDisable: ", "EnablePCIERelaxedOrderingMode: ",
		"EnableResizableBar: ", "DmaRemapPeerMmio: ", "GrdmaPciTopoCheckOverride: ", "RegistryDwords: ", "CoherentGPUMemoryMode: ", "ExcludedGpus: ",
		"ImexChannelCount: ", "CreateImexChannel0: ", "EnableGpuFirmware: ",
	},
	Begins: parse.BeginsLike(nvdriverParam),
	Read: func(s *parse.Sink, in *parse.Lines) {
		d := &s.GPUs().Driver
		in.While(func(l parse.Line) bool {
			m := nvdriverParam.FindStringSubmatch(l.Text)
			if m == nil {
				return false
			}
			if len(d.Parameters) < 500 { // Driver 580 has 50.
				parse.Put(&d.Parameters, m[1], strings.ToValidUTF8(strings.Trim(m[2], `"`), "?"))
				s.Told("gpus.driver.parameters["+m[1]+"]", d.Parameters[m[1]], l)
			}
			return true
		})
	},
}

// nvdriverParam is "EnableMSI: 1", or `RegistryDwords: ""`.
var nvdriverParam = lazy.New(`^([A-Z][A-Za-z0-9]{2,60}): (\d{1,10}|".{0,1000}")\s*$`)

// nvdriverModuleKind is modinfo nvidia: the module on disk, which need not be
// the one that is loaded.
var nvdriverModuleKind = &parse.Kind{
	Name:    "modinfo-nvidia",
	Title:   "the NVIDIA kernel module on disk, from modinfo",
	Command: "modinfo nvidia",
	Gives:   []string{"software"},
	Anchors: []string{"/nvidia.ko", "/nvidia-current.ko"},
	Begins:  parse.BeginsLike(nvdriverFile),
	Read: func(s *parse.Sink, in *parse.Lines) {
		in.While(func(l parse.Line) bool {
			m := nvdriverField.FindStringSubmatch(l.Text)
			if m == nil {
				return false
			}
			if m[1] == "version" && nvsmiDriverVersion.MatchString(m[2]) {
				s.Package("nvidia-driver", m[2], "", "modinfo", l)
			}
			return true
		})
	},
}

var (
	nvdriverFile  = lazy.New(`^filename:\s+\S*/nvidia(?:-current)?\.ko`)
	nvdriverField = lazy.New(`^([a-z_]+):\s+(.*?)\s*$`)
)
