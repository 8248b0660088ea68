package nvidia

import (
	"cmp"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvdriverVersionKind is the version of the kernel module that is loaded, as /proc/driver/nvidia/version and, at
// loading, the kernel log tell it.
//
//	NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (...)
//	NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
var nvdriverVersionKind = &parse.Kind{
	Name: "nvidia-driver-version", Title: "the version of the loaded NVIDIA kernel module",
	Command: "cat /proc/driver/nvidia/version", Gives: []string{"gpus"},
	Anchors: []string{"NVRM version: NVIDIA", "NVRM: loading NVIDIA"},
	Begins: parse.BeginsWith(func(text string) bool {
		version, _ := checks.DriverVersion(text)
		return version != ""
	}),
	Read: func(s *parse.Sink, in *parse.Lines) {
		l, _ := in.Next()
		version, open := checks.DriverVersion(l.Text)
		d := &s.GPUs().Driver
		d.KernelVersion, d.Open = version, cmp.Or(open, d.Open) // The last that was loaded is the one that runs.
		s.Told("gpus.driver.kernel_version", version, l)
	},
}

// nvdriverParamsKind is /proc/driver/nvidia/params, whole or in parts.
var nvdriverParamsKind = &parse.Kind{
	Name: "nvidia-driver-params", Title: "parameters of the NVIDIA kernel module",
	Command: "cat /proc/driver/nvidia/params", Gives: []string{"gpus"},
	Anchors: []string{
		"ResmanDebugLevel: ", "RmLogonRC: ", "ModifyDeviceFiles: ", "EnableStreamMemOPs: ", "NvLinkDisable: ", "EnablePCIERelaxedOrderingMode: ",
		"EnableResizableBar: ", "DmaRemapPeerMmio: ", "GrdmaPciTopoCheckOverride: ", "RegistryDwords: ", "CoherentGPUMemoryMode: ", "ExcludedGpus: ",
		"ImexChannelCount: ", "CreateImexChannel0: ", "EnableGpuFirmware: ",
	},
	Begins: parse.BeginsWith(func(text string) bool {
		name, _ := checks.DriverParameter(&facts.GPUDriver{}, text)
		return name != ""
	}),
	Read: func(s *parse.Sink, in *parse.Lines) {
		in.While(func(l parse.Line) bool {
			name, value := checks.DriverParameter(&s.GPUs().Driver, l.Text)
			if name != "" {
				s.Told("gpus.driver.parameters["+name+"]", value, l)
			}
			return name != ""
		})
	},
}
