package report

import (
	"fmt"
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// samples are reports of machines as they are met, by name.
func samples() map[string]*Document {
	all := map[string]*Document{}
	for name, in := range map[string]Input{
		"healthy":      healthy(8),
		"healthy-pair": healthy(4),
		"acs":          acs(),
		"hang":         hang(),
		"hang-driver":  driverHang(),
		"no-gpu":       noGPUs(),
		"low":          low(),
		"unproven":     unproven(),
		"many":         many(),
		"hostile":      hostile(),
		"full":         full(),
		"busy":         busy(),
		"busy-part":    busyInPart(),
		"withheld":     withheld(),
		"steps":        undecided(),
		"waived":       waived(),
	} {
		all[name] = New(withRules(in))
	}
	return all
}

// withRules adds the rules of which a sample speaks: it is as if there were no others.
func withRules(in Input) Input {
	set, err := rules.Load()
	if err != nil {
		panic(err) // The rules are part of the program.
	}
	for i := range in.Verdict.Findings {
		f := &in.Verdict.Findings[i]
		if rule, ok := set.Rule(f.Rule); ok {
			f.Symptom = rule.Symptom || rule.LastResort || rule.Unexplained
		}
	}
	var spoken func(found []rules.Finding, id string) bool
	spoken = func(found []rules.Finding, id string) bool {
		return slices.ContainsFunc(found, func(f rules.Finding) bool { return f.Rule == id || spoken(f.Explains, id) })
	}
	in.Rules = slices.DeleteFunc(set.Rules(), func(r rules.Rule) bool {
		_, notApplicable := in.Verdict.NotApplicable[r.ID]
		return !notApplicable && !slices.Contains(in.Verdict.Passed, r.ID) && !spoken(in.Verdict.Findings, r.ID) &&
			!slices.ContainsFunc(in.Verdict.Skipped, func(s rules.Skipped) bool { return s.Rule == r.ID })
	})
	return in
}

// accounted lets the findings of a sample account for all that failed or was slow in it, as those of real rules do. The
// test of what no finding accounts for does without.
func accounted(in Input) Input {
	for _, t := range in.Facts.Transfers.Transfers {
		for i := range in.Verdict.Findings {
			f := &in.Verdict.Findings[i]
			f.AccountsFor = append(f.AccountsFor, rules.Account{Test: t.Test, Source: t.Source, Destination: t.Destination, Way: t.Way})
		}
	}
	return in
}

// waived is a machine with a finding that is waived; another waiver has expired, a third matches nothing.
func waived() Input {
	in := acs()
	waiving := waivers.Apply(in.Verdict, []waivers.Waiver{
		{Rule: in.Verdict.Findings[0].Rule, Reason: "The switch is replaced in May.", Expires: "2027-05-31", Owner: "hardware team", File: ".gpudoctor.yaml", Line: 3},
		{Rule: "p2p-broken-platform", Subject: "*", Reason: "Known", Expires: "2026-01-31", File: ".gpudoctor.yaml", Line: 8},
		{Rule: in.Verdict.Passed[0], Subject: "host", Reason: "Known", Expires: "2027-05-31", File: ".gpudoctor.yaml", Line: 12},
	}, "2026-11-23")
	in.Waiving = &waiving
	return in
}

// gpuAt and transfer are short names.
var (
	gpuAt    = fixtures.H200Address
	transfer = fixtures.H200Transfer
)

var passed = []string{
	"bar-too-small", "container-caps", "cuda-driver-too-old", "driver-library-mismatch", "env-misconfig", "fabric-manager", "gpu-fault",
	"gpu-visibility", "memlock-limit", "mig-mode", "numa-affinity", "nvlink-down", "p2p-broken-platform", "p2p-unsupported-gpu", "shm-too-small",
}

func healthy(n int) Input {
	return Input{
		Version: "0.1.0", Sources: []string{"this machine"}, Profile: rules.Training, FailOn: "high",
		Facts: fixtures.H200s(n),
		Verdict: rules.Result{
			Passed: passed,
			Skipped: []rules.Skipped{
				{Rule: "acs-redirect", Missing: []rules.Missing{{Fact: "pci.devices[].acs", Words: "no bridge above the GPUs is visible in this virtual machine"}}},
				{Rule: "pcie-link-degraded", Missing: []rules.Missing{{Fact: "links.pairs[].narrowest", Words: "no bridge above the GPUs is visible in this virtual machine"}}},
				{Rule: "gpu-events", Missing: []rules.Missing{{Fact: "kernel_log", Words: "open /dev/kmsg: permission denied"}}},
			},
			NotApplicable: map[string]string{"amd-iommu": "no AMD GPU", "ipc-namespace": "not in a container"},
		},
		Timing: Timing{TotalMS: 2612, RulesMS: 21.5, RemediesMS: 0.1, ChecksMS: map[string]float64{"pci": 41, "gpus": 612, "transfers": 2570}},
	}
}

func low() Input {
	in := healthy(8)
	in.Verdict.Findings = []rules.Finding{
		{
			Rule: "env-misconfig", Cause: "env-misconfig", Severity: rules.Low, Confidence: rules.Likely,
			Title: "A communication variable costs speed", Subject: "NCCL_NVLS_ENABLE",
			Message:  "NCCL_NVLS_ENABLE=0 is set: large all-reduces lose up to a quarter. It was found in the environment.",
			Evidence: []rules.Evidence{{Fact: "env.variables[NCCL_NVLS_ENABLE].value", Value: "0", Source: "environment"}},
			Remedies: []string{"unset-env"}, Params: map[string]any{"variable": "NCCL_NVLS_ENABLE"},
		},
		{
			Rule: "numa-affinity", Cause: "numa-affinity", Severity: rules.Info, Confidence: rules.Likely,
			Title: "Automatic NUMA balancing is on", Subject: "host", Message: "numa_balancing is 1: pages may move while a job runs.",
			Evidence: []rules.Evidence{{Fact: "numa.balancing", Value: 1, Source: "/proc/sys/kernel/numa_balancing"}}, Remedies: []string{"disable-numa-balancing"},
		},
	}
	in.Advice = []remedies.Advice{unset("NCCL_NVLS_ENABLE", "env-misconfig")}
	return in
}

func unset(variable, rule string) remedies.Advice {
	return remedies.Advice{
		Remedy: "unset-env", Title: "Remove the variable", Kind: remedies.Fix, Cures: []remedies.Cure{{Rule: rule, Subject: variable}},
		Why: "the only fix; no root", Description: "Removes the setting, so that the library chooses by itself.", Needs: []remedies.Need{remedies.NeedJobRestart},
		Risk: "none", Lasts: "job", Apply: remedies.Apply{Unset: []string{variable}}, Undo: "Set it again.",
		Verify: "gpudoctor check --only " + rule, Links: []string{"https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"},
	}
}

// acs is a pair of GPUs under two root ports whose traffic ACS redirects.
func acs() Input {
	a, b := "0000:41:00.0", "0000:c1:00.0"
	f := &facts.Facts{
		Schema: facts.FactsSchema,
		Host: &facts.HostFacts{
			Hostname: "ws-1", Kernel: "6.14.0-29-generic", Arch: "amd64", Distribution: "Ubuntu 24.04.3 LTS",
			Virtualization: &facts.Virtualization{Kind: "none", Source: "/sys/hypervisor"},
			CPU:            &facts.CPU{Vendor: "AuthenticAMD", Model: "AMD Ryzen Threadripper PRO 7965WX 24-Cores"},
		},
		PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{}}, IOMMU: &facts.IOMMUFacts{Mode: "translated"}, NUMA: &facts.NUMAFacts{}, Container: &facts.ContainerFacts{Inside: new(false)}, Env: &facts.EnvFacts{Variables: []facts.Variable{}}, Libraries: &facts.LibraryFacts{Files: []facts.Library{}},
		GPUs:  &facts.GPUFacts{NVML: "ok", Driver: facts.GPUDriver{KernelVersion: "595.84"}},
		Links: &facts.LinkFacts{Pairs: []facts.Pair{{A: a, B: b, Kind: "gpu-gpu", Path: "PHB", NVLinks: new(0)}}},
		Transfers: &probe.Report{
			Mode: probe.Full, Outcome: probe.OK,
			Devices: []probe.Device{{Ordinal: 0, Address: a, Name: "NVIDIA RTX PRO 6000", Outcome: probe.OK}, {Ordinal: 1, Address: b, Name: "NVIDIA RTX PRO 6000", Outcome: probe.OK}},
		},
	}
	for i, address := range []string{a, b} {
		f.GPUs.Devices = append(f.GPUs.Devices, facts.GPU{
			Address: address, Vendor: "nvidia", InPCI: true, InNVML: true, Index: new(i), Name: "NVIDIA RTX PRO 6000",
			PCIe: &facts.GPULink{MaxGeneration: 5, MaxWidth: 16}, NVLinks: []facts.NVLink{},
		})
	}
	var broken []rules.Finding
	for _, p := range [][2]string{{a, b}, {b, a}} {
		f.Transfers.Peers = append(f.Transfers.Peers, probe.Peer{Source: p[0], Destination: p[1], Access: new(true)})
		f.Transfers.Transfers = append(f.Transfers.Transfers,
			probe.Transfer{Test: probe.TestCopy, Source: p[0], Destination: p[1], Outcome: probe.Corrupt, Reason: "all of 268435456 bytes differ", Bytes: 268435456, BadBytes: 268435456, FirstBad: new(int64(0)), Found: "poison", Verified: "gpu"},
			probe.Transfer{Test: probe.TestStaged, Source: p[0], Destination: p[1], Outcome: probe.OK, Bytes: 268435456, GBps: new(11.2), Verified: "gpu"})
		broken = append(broken, rules.Finding{
			Rule: "p2p-broken-platform", Cause: "p2p-broken-platform", Severity: rules.Critical, Confidence: rules.Confirmed,
			Title: "Transfers between two GPUs lose data", Subject: p[0] + " -> " + p[1], Affects: []string{p[0], p[1]},
			Message:  "The driver reports success, and none of the data arrived.",
			Evidence: []rules.Evidence{{Fact: "transfers.transfers[copy].outcome", Value: "corrupt", Source: "probe"}}, Remedies: []string{"nccl-p2p-disable"},
		})
	}
	bridge := func(address string, explains []rules.Finding) rules.Finding {
		return rules.Finding{
			Rule: "acs-redirect", Cause: "acs-redirect", Severity: rules.Critical, Confidence: rules.Confirmed,
			Title: "ACS redirects the traffic between the GPUs to the IOMMU", Subject: address, Affects: []string{a, b},
			Message:  "Bridge " + address + " has ReqRedir+ and CmpltRedir+, and the IOMMU domains of its GPUs are translated.",
			Evidence: []rules.Evidence{{Fact: "pci.devices[" + address + "].acs.control", Value: []string{"SrcValid", "ReqRedir", "CmpltRedir"}, Source: "/sys/bus/pci/devices/" + address + "/config"}},
			Explains: explains, Remedies: []string{"disable-acs", "iommu-pt", "nccl-p2p-disable"}, Params: map[string]any{"bridges": []any{address}},
		}
	}
	cures := []remedies.Cure{{Rule: "acs-redirect", Subject: "0000:40:01.1"}, {Rule: "acs-redirect", Subject: "0000:c0:01.1"}}
	return accounted(Input{
		Version: "0.1.0", Sources: []string{"this machine"}, Profile: rules.Training, FailOn: "high", Facts: f,
		Verdict: rules.Result{Findings: []rules.Finding{bridge("0000:40:01.1", broken), bridge("0000:c0:01.1", broken)}, Passed: passed[:10]},
		Advice: []remedies.Advice{
			{
				Remedy: "nccl-p2p-disable", Title: "Send data between GPUs through host memory", Kind: remedies.Workaround, Cures: cures,
				Why:         "quickest: no root, this job only; measured here",
				Description: "NCCL copies through host memory instead of the path between the GPUs.", Cost: "bandwidth: 11 GB/s instead of up to 55",
				Needs: []remedies.Need{remedies.NeedJobRestart}, Risk: "none", Lasts: "job",
				Apply: remedies.Apply{Environment: map[string]string{"NCCL_P2P_DISABLE": "1"}, Docker: []string{"-e", "NCCL_P2P_DISABLE=1"}, Kubernetes: "env:\n- name: NCCL_P2P_DISABLE\n  value: \"1\"\n"},
				Undo:  "unset NCCL_P2P_DISABLE", Verify: "gpudoctor check --only p2p-broken-platform",
				Proof: &remedies.Proof{Outcome: "proven", Detail: "host-staged copy: 11.2 GB/s, verified"},
				Links: []string{"https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"},
			},
			{
				Remedy: "disable-acs", Title: "Switch ACS redirection off on the bridges", Kind: remedies.Fix, Cures: cures,
				Why: "first fix: takes the cause away; no reboot", Description: "Clears the ACS control word of each bridge on the path.", Cost: "isolation between the devices below these bridges",
				Needs: []remedies.Need{remedies.NeedRoot}, Risk: "low", Lasts: "boot", Caution: "never on a host that passes devices through to guests",
				Apply: remedies.Apply{Commands: []string{"setpci -s 0000:40:01.1 ECAP_ACS+6.w=0000", "setpci -s 0000:c0:01.1 ECAP_ACS+6.w=0000"}},
				Undo:  "reboot", Verify: "gpudoctor check --only acs-redirect", Links: []string{"https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"},
			},
			{
				Remedy: "iommu-pt", Title: "Let the IOMMU pass DMA through", Kind: remedies.Fix, Cures: cures[:1],
				Why: "second fix: it takes a reboot", Description: "Sets the IOMMU's default domain to identity.", Cost: "DMA protection of the host",
				Needs: []remedies.Need{remedies.NeedRoot, remedies.NeedReboot}, Risk: "low", Lasts: "forever",
				Apply: remedies.Apply{KernelCommandLine: []string{"iommu=pt"}}, Undo: "Remove iommu=pt and reboot.", Verify: "gpudoctor check --only iommu-translation", Links: []string{},
			},
		},
		Timing: Timing{TotalMS: 1903},
	})
}

// hang is a fabric on which one path hangs and one is slow.
func hang() Input {
	in := healthy(8)
	for i := range in.Facts.Transfers.Transfers {
		t := &in.Facts.Transfers.Transfers[i]
		switch {
		case t.Source == gpuAt(2) && t.Destination == gpuAt(5):
			*t = probe.Transfer{Test: t.Test, Source: t.Source, Destination: t.Destination, Outcome: probe.Hang, Reason: "no end within 2 s"}
		case t.Source == gpuAt(6) && t.Destination == gpuAt(0):
			t.Outcome, t.GBps, t.Fraction = probe.Slow, new(2.73), new(0.006)
		}
	}
	in.Verdict.Findings = []rules.Finding{{
		Rule: "p2p-broken-platform", Cause: "p2p-broken-platform", Severity: rules.Critical, Confidence: rules.Confirmed,
		Title: "A transfer between two GPUs never ends", Subject: gpuAt(2) + " -> " + gpuAt(5), Affects: []string{gpuAt(2), gpuAt(5)},
		Message:  "The copy did not end within 2 s, while those between the other GPUs took less than a millisecond. A job that uses this path stands still.",
		Evidence: []rules.Evidence{{Fact: "transfers.transfers[copy].outcome", Value: "hang", Source: "probe"}}, Remedies: []string{"reset-gpu"},
	}, {
		Rule: "p2p-slow", Cause: "p2p-broken-platform", Severity: rules.High, Confidence: rules.Confirmed,
		Title: "A path between two GPUs is far slower than its links", Subject: gpuAt(6) + " -> " + gpuAt(0),
		Message: "2.7 GB/s were measured where 18 NVLinks carry 450.", Evidence: []rules.Evidence{{Fact: "transfers.transfers[copy].gbps", Value: 2.73, Source: "probe"}},
		Remedies: []string{"reset-gpu"},
	}}
	in.Advice = []remedies.Advice{{
		Remedy: "reset-gpu", Title: "Reset the GPU", Kind: remedies.Fix,
		Cures: []remedies.Cure{{Rule: "p2p-broken-platform", Subject: gpuAt(2) + " -> " + gpuAt(5)}, {Rule: "p2p-slow", Subject: gpuAt(6) + " -> " + gpuAt(0)}},
		Why:   "the only fix", Description: "Ends what runs on the GPUs and resets them.", Cost: "all jobs on the machine", Needs: []remedies.Need{remedies.NeedRoot, remedies.NeedJobRestart},
		Risk: "medium", Lasts: "forever", Apply: remedies.Apply{Commands: []string{"nvidia-smi --gpu-reset"}}, Undo: "nothing to undo", Verify: "gpudoctor check --probe full", Links: []string{},
	}}
	return accounted(in)
}

// driverHang is a driver that hangs before any transfer.
func driverHang() Input {
	in := healthy(8)
	in.Facts.Transfers = &probe.Report{Mode: probe.Quick, Outcome: probe.Hang, Stage: "cuInit", Reason: "no answer within 60 s", Left: true}
	in.Verdict.Findings = []rules.Finding{{
		Rule: "gpu-fault", Cause: "gpu-fault", Severity: rules.Critical, Confidence: rules.Confirmed, Title: "The GPU driver does not answer", Subject: "host",
		Message: "cuInit gave no answer within 60 s.", Evidence: []rules.Evidence{{Fact: "transfers.outcome", Value: "hang", Source: "probe"}}, Remedies: []string{},
	}}
	return in
}

func noGPUs() Input {
	in := healthy(0)
	in.Facts.Host.Virtualization = nil
	in.Facts.Container = &facts.ContainerFacts{Inside: new(true), Runtime: "docker"}
	in.Facts.GPUs = &facts.GPUFacts{NVML: "not-found", Devices: []facts.GPU{}}
	in.Facts.Transfers = nil
	in.Facts.Links = &facts.LinkFacts{Pairs: []facts.Pair{}}
	in.Facts.Unknown = []facts.Unknown{{Section: "transfers", Reason: "no NVIDIA driver library was found"}}
	in.Verdict = rules.Result{
		Passed: []string{"container-caps", "env-misconfig", "memlock-limit"},
		NotApplicable: map[string]string{
			"acs-redirect": "no GPU", "gpu-fault": "no GPU", "nvlink-down": "no GPU", "p2p-broken-platform": "no GPU", "fabric-manager": "no NVSwitch",
		},
		Findings: []rules.Finding{{
			Rule: "shm-too-small", Cause: "shm-too-small", Severity: rules.Low, Confidence: rules.Likely, Title: "/dev/shm is small", Subject: "/dev/shm",
			Message:  "/dev/shm holds 64 MiB: enough for two ranks, not for eight.",
			Evidence: []rules.Evidence{{Fact: "container.shm.size_bytes", Value: 67108864, Source: "statfs /dev/shm"}}, Remedies: []string{"increase-shm"},
		}},
	}
	in.Timing.TotalMS = 84
	return in
}

// unproven is a machine whose GPUs were not tried.
func unproven() Input {
	in := healthy(8)
	in.Facts.Transfers = nil
	in.Facts.Unknown = append(in.Facts.Unknown, facts.Unknown{Section: "transfers", Reason: "the probe was not asked for", Hint: "--probe quick"})
	in.Timing.TotalMS = 311
	return in
}

// many is a machine with sixteen GPUs and one path that fails.
func many() Input {
	in := healthy(16)
	for i := range in.Facts.Transfers.Transfers {
		t := &in.Facts.Transfers.Transfers[i]
		if t.Source == gpuAt(3) && t.Destination == gpuAt(12) {
			*t = probe.Transfer{Test: t.Test, Source: t.Source, Destination: t.Destination, Outcome: probe.Error, ErrorCode: 719, ErrorName: "CUDA_ERROR_LAUNCH_FAILED"}
		}
	}
	for i := range 9 {
		in.Verdict.Findings = append(in.Verdict.Findings, rules.Finding{
			Rule: "nvlink-down", Cause: "nvlink-down", Severity: rules.Medium, Confidence: rules.Likely, Title: "An NVLink is down", Subject: gpuAt(i),
			Message: fmt.Sprintf("Link %d of %s is inactive.", i, gpuAt(i)), Evidence: []rules.Evidence{}, Remedies: []string{},
		})
	}
	return accounted(in)
}

// hostile is a machine whose every name was chosen to do harm where it is printed.
func hostile() Input {
	const bad = "x\x1b[2J\x1b]0;owned\a\u202egpj.exe\u200b\x9b31m`|<script>alert(1)</script> @everyone https://evil.example/ **b** \xff\r\nline2"
	in := low()
	in.Facts.Host.Hostname = bad
	in.Facts.Host.CPU.Model = bad
	in.Facts.GPUs.Driver.KernelVersion = bad
	in.Facts.GPUs.Devices[0].Name = bad
	f := &in.Verdict.Findings[0]
	f.Severity, f.Title, f.Subject, f.Message = rules.High, bad, bad, bad
	f.Evidence = []rules.Evidence{{Fact: bad, Value: map[string]any{bad: bad}, Source: bad}}
	f.Steps = []rules.Step{{Look: bad, Command: bad}}
	in.Advice = []remedies.Advice{unset("A'; rm -rf ~ #"+bad, "env-misconfig")}
	in.Advice[0].Cures[0].Subject = bad
	in.Advice[0].Apply.Environment = map[string]string{"X": "$(reboot) ```\n```"}
	in.Advice[0].Links = []string{"javascript:alert(1)", "https://e.example/)<b>"}
	in.Verdict.Skipped[0].Missing = []rules.Missing{{Fact: bad, Reason: bad, Words: bad}}
	in.Facts.Unknown = []facts.Unknown{{Section: "host", Fact: bad, Reason: bad, Hint: bad}}
	return in
}

// full is what the full probe found on two H200 joined by NVLink, and on host memory of two NUMA nodes.
func full() Input {
	in := healthy(2)
	t := in.Facts.Transfers
	t.Mode, t.Transfers = probe.Full, nil
	add := func(x probe.Transfer) { t.Transfers = append(t.Transfers, x) }
	timed := func(test string, i, j int, us float64) probe.Transfer {
		return probe.Transfer{Test: test, Source: gpuAt(i), Destination: gpuAt(j), Outcome: probe.OK, Microseconds: &us}
	}
	for _, p := range [][2]int{{0, 1}, {1, 0}} {
		i, j := p[0], p[1]
		add(transfer(probe.TestCopy, i, j, 395.1, 450))
		add(transfer(probe.TestCopyRead, i, j, 393.2+float64(i), 450))
		add(transfer(probe.TestStore, i, j, 369.4+float64(i), 450))
		add(transfer(probe.TestLoad, i, j, 372.3+float64(i), 450))
		add(transfer(probe.TestAllAtOnce, i, j, 390.4, 450))
		add(timed(probe.TestLatency, i, j, 0.851))
		add(probe.Transfer{Test: probe.TestAtomics, Source: gpuAt(i), Destination: gpuAt(j), Outcome: probe.OK, Verified: "gpu"})
		add(transfer(probe.TestStaged, i, j, 30.3+8.7*float64(i), 55))
		add(between("cuMem", i, j, 349.6+float64(i)))
		add(between("cudaIpc", i, j, 154.8+float64(i)))
	}
	add(transfer(probe.TestBidirectional, 0, 1, 783.1, 900))
	add(timed(probe.TestHandshake, 1, 0, 1.27)) // The driver numbers the GPUs as it likes.
	for i := range 2 {
		for node := range 2 {
			in, out := transfer(probe.TestHostToDevice, i, i, 55.4-9*float64(node), 63), transfer(probe.TestDeviceToHost, i, i, 55.4-8*float64(node), 63)
			in.Source, out.Destination = fmt.Sprintf("node%d", node), fmt.Sprintf("node%d", node)
			add(in)
			add(out)
		}
	}
	t.Stages = []probe.Stage{
		{Name: "load library", Milliseconds: 12},
		{Name: "cuInit", Milliseconds: 402.6},
		{Name: "devices", Milliseconds: 0.1},
		{Name: "peer access query", Milliseconds: 0.2},
		{Name: "contexts", Milliseconds: 187.4},
		{Name: "peer access", Milliseconds: 0.4},
		{Name: probe.TestCopy, Milliseconds: 21.5},
	}
	return in
}

// between is a transfer between processes on two GPUs, in one way.
func between(way string, i, j int, gbps float64) probe.Transfer {
	x := transfer(probe.TestInterprocess, i, j, gbps, 450)
	x.Way = way
	return x
}

// use marks a GPU as in use, and what would have been tried with it.
func use(in *Input, i int, by probe.User) {
	t := in.Facts.Transfers
	t.Devices[i].Outcome, t.Devices[i].Reason, t.Devices[i].Cause, t.Devices[i].User = probe.Unknown, by.String(), probe.CauseBusy, &by
	for n, x := range t.Transfers {
		if x.Outcome == probe.OK && (x.Source == gpuAt(i) || x.Destination == gpuAt(i)) {
			t.Transfers[n] = probe.Transfer{Test: x.Test, Source: x.Source, Destination: x.Destination, Outcome: probe.Unknown, Cause: probe.CauseDevice, Reason: gpuAt(i) + ": " + by.String()}
		}
	}
}

// busy is a pair of GPUs on which one job computes.
func busy() Input {
	in := healthy(2)
	use(&in, 0, probe.User{PID: 1234, Program: "python3"})
	use(&in, 1, probe.User{PID: 1234, Program: "python3"})
	return in
}

// busyInPart is a machine on which a job has six of eight GPUs, one process for
// each, and the memory of a seventh is full.
func busyInPart() Input {
	in := healthy(8)
	for i := range 6 {
		use(&in, i, probe.User{PID: 1234 + i, Program: "python3"})
	}
	in.Facts.GPUs.Devices[6].MemoryUsedBytes = new(int64(150 << 30))
	d := &in.Facts.Transfers.Devices[6]
	use(&in, 6, probe.User{})
	d.Reason, d.Cause, d.User = "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)", probe.CauseNoMemory, nil
	d.ErrorCode, d.ErrorName, d.Call = 2, "CUDA_ERROR_OUT_OF_MEMORY", "cuMemAlloc_v2"
	return in
}

// undecided has a finding behind which several things may lie, and nothing that cures it as it stands.
func undecided() Input {
	in := low()
	f := &in.Verdict.Findings[0]
	f.Severity, f.Remedies = rules.High, nil
	f.Steps = []rules.Step{
		{Look: "The mode of the IOMMU, which is to be pass-through where Instinct accelerators reach each other over PCIe", Command: "cat /sys/kernel/iommu_groups/*/type | sort | uniq -c"},
		{Look: "The slots: both cards belong below one switch"},
	}
	in.Advice = nil
	return in
}

// withheld is a pair of GPUs between which data arrives wrong, of which a pod knows:
// its workaround is set, and a name that nothing reads beside it.
func withheld() Input {
	in := acs()
	at := &remedies.Place{Kind: "kubernetes", File: "pod.yaml", Line: 12}
	cure := remedies.Cure{Rule: in.Verdict.Findings[0].Rule, Subject: in.Verdict.Findings[0].Subject}
	in.Advice = slices.DeleteFunc(slices.Clone(in.Advice), func(a remedies.Advice) bool { return a.Remedy == "nccl-p2p-disable" })
	setting := func(name, value, message string, params map[string]any) rules.Finding {
		params["variable"] = name
		return rules.Finding{
			Rule: "env-misconfig", Cause: "env-misconfig", Severity: rules.Low, Confidence: rules.Likely, Title: "A variable is misconfigured or left over",
			Subject: name, Message: name + "=" + value + ", set in line 12 of pod.yaml, " + message, Params: params, Remedies: []string{"unset-env"},
			Evidence: []rules.Evidence{{Fact: "env.variables[" + name + "]", Value: value, Source: "pod.yaml:12"}},
		}
	}
	in.Verdict.Findings = append(
		in.Verdict.Findings,
		setting("NCCL_P2P_DISABLE", "1", "disables peer access in NCCL", map[string]any{}),
		setting("NCCL_DEBG", "INFO", "is not a known variable; did you mean NCCL_DEBUG?", map[string]any{"effect": "none"}),
	)
	in.Withheld = []remedies.Withheld{
		{Remedy: "nccl-p2p-disable", Cures: []remedies.Cure{cure}, Setting: "NCCL_P2P_DISABLE=1", Reason: remedies.InForce, Where: at},
		{Remedy: "unset-env", Cures: []remedies.Cure{{Rule: "env-misconfig", Subject: "NCCL_P2P_DISABLE"}}, Setting: "NCCL_P2P_DISABLE", Reason: remedies.Needed, By: &cure},
	}
	edit := unset("NCCL_DEBG", "env-misconfig")
	edit.Apply = remedies.Apply{Edits: []remedies.Edit{{Place: *at, Remove: "NCCL_DEBG=INFO"}}}
	edit.Needs, edit.Lasts = []remedies.Need{remedies.NeedJobRestart, remedies.NeedContainerRestart}, "forever"
	in.Advice = append(in.Advice, edit)
	in.Recheck = remedies.Recheck{Flags: []string{"--with", "pod.yaml", "--fail-on", "medium"}, Files: true}
	return in
}
