package nvidia_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const nvdriverBugReport = `____________________________________________

*** /proc/driver/nvidia/./version
*** ls: -r--r--r-- 1 root root 0 2026-03-03 10:12:44.000000000 +0000 /proc/driver/nvidia/./version
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U22)
GCC version:  gcc version 13.3.0

____________________________________________

*** /sys/module/nvidia/version
*** ls: -r--r--r-- 1 root root 4096 2026-03-03 10:12:44.000000000 +0000 /sys/module/nvidia/version
570.86.15

*** /proc/driver/nvidia/./params
ResmanDebugLevel: 4294967295
EnableResizableBar: 1
RegistryDwords: "RMIntrLockingMode=1"

`

func TestNvdriver(t *testing.T) {
	f := texttest.Parse("nvidia-bug-report.log", nvdriverBugReport)
	d := f.GPUs.Driver
	expect.That(t, d.KernelVersion == "570.86.15" && d.Open != nil && *d.Open && d.Parameters["EnableResizableBar"] == "1" && d.Parameters["RegistryDwords"] == "RMIntrLockingMode=1", "got %+v", d)
	f = texttest.Parse("dmesg", "[    9.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n")
	expect.That(t, f.GPUs.Driver.KernelVersion == "535.183.01" && !*f.GPUs.Driver.Open, "got %+v", f.GPUs.Driver)
}

func TestNvfabric(t *testing.T) {
	for text, want := range map[string]*facts.FabricManager{
		"● nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Loaded: loaded (/lib/systemd/system/x; enabled)\n     Active: failed (Result: exit-code) since Mon\n": {Running: new(false)},
		"● nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Active: active (running) since Mon\n":                                                                 {Running: new(true)},
		"Fabric Manager version is : 535.161.08\n":                                                      {Version: "535.161.08"},
		"[INFO] Fabric Manager version 550.54.15 is running with the following configuration options\n": {Version: "550.54.15"},
	} {
		f := texttest.Parse("a", text)
		expect.Must(t, f.GPUs != nil && f.GPUs.Driver.FabricManager != nil, "%q: nothing", text)
		got := f.GPUs.Driver.FabricManager
		expect.That(t, got.Version == want.Version && (got.Running == nil) == (want.Running == nil) && (got.Running == nil || *got.Running == *want.Running), "%q: got %+v, want %+v", text, got, want)
	}
}
