package remedies

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

// acs is what the rule acs-redirect says of two bridges.
func acs() rules.Finding {
	return rules.Finding{
		Rule: "acs-redirect", Subject: "0000:40:01.1", Severity: rules.Critical, Confidence: rules.Confirmed,
		Remedies: []string{"disable-acs", "iommu-pt", "nccl-p2p-disable"}, Params: map[string]any{"bridges": []any{"0000:40:01.1", "0000:40:03.1"}},
		Explains: []rules.Finding{{Rule: "p2p-broken-platform"}},
	}
}

func finding(rule string, severity rules.Severity, confidence rules.Confidence, remedies ...string) rules.Finding {
	return rules.Finding{Rule: rule, Subject: "host", Severity: severity, Confidence: confidence, Remedies: remedies}
}

func order(advice []Advice) string {
	return strings.Join(expect.Map(advice, func(a Advice) string { return a.Remedy }), " ")
}

func TestRankOrder(t *testing.T) {
	type findings = []rules.Finding
	high := func(rule string, remedies ...string) rules.Finding {
		return finding(rule, rules.High, rules.Likely, remedies...)
	}
	doubtful := finding("memlock-limit", rules.High, rules.Possible, "raise-memlock")
	proven := func(id string) map[string]Proof { return map[string]Proof{id: {Outcome: Proven}} }
	s := builtin(t)
	for _, tt := range []struct {
		name     string
		findings findings
		proofs   map[string]Proof
		want     string
	}{
		{"nothing", nil, nil, ""},
		{"the quick workaround first, the fix beside it", findings{acs()}, nil, "nccl-p2p-disable disable-acs iommu-pt"},
		{
			"the fix moves up beside the workaround past another finding's remedy",
			findings{finding("p2p-broken-platform", rules.Critical, rules.Confirmed, "update-bios", "nccl-p2p-disable", "nccl-p2p-level", "nccl-cumem-disable")},
			nil, "nccl-p2p-disable update-bios nccl-p2p-level nccl-cumem-disable",
		},
		{
			"what does not help comes last",
			findings{acs(), finding("env-misconfig", rules.Low, rules.Possible, "unset-env")},
			map[string]Proof{"nccl-p2p-disable": {Outcome: Disproven, Detail: "corrupt"}},
			"disable-acs iommu-pt unset-env nccl-p2p-disable",
		},
		{"what is proven comes before what is not", findings{acs()}, proven("iommu-pt"), "nccl-p2p-disable iommu-pt disable-acs"},
		{
			"where all works, the fix comes first",
			findings{finding("acs-redirect", rules.High, rules.Confirmed, "disable-acs", "iommu-pt", "nccl-p2p-disable")},
			proven("nccl-p2p-disable"), "disable-acs nccl-p2p-disable iommu-pt",
		},
		{"a risky workaround does not come before the fix", findings{high("shm-too-small", "increase-shm", "nccl-shm-disable")}, nil, "increase-shm nccl-shm-disable"},
		{"the worst finding first", findings{finding("env-misconfig", rules.Medium, rules.Confirmed, "unset-env"), doubtful}, nil, "raise-memlock unset-env"},
		{"the surer finding first", findings{doubtful, high("env-misconfig", "unset-env")}, nil, "unset-env raise-memlock"},
		{"what cures more first", findings{acs(), finding("iommu-translation", rules.Critical, rules.Confirmed, "iommu-pt")}, nil, "nccl-p2p-disable iommu-pt disable-acs"},
		{"what leads for each finding, then what else helps", findings{
			high("a", "disable-acs", "iommu-pt", "update-bios", "nccl-p2p-disable"), high("b", "increase-shm", "share-ipc", "mount-sys"),
			finding("c", rules.Low, rules.Likely, "disable-numa-balancing"),
		}, nil, "disable-acs nccl-p2p-disable iommu-pt increase-shm share-ipc mount-sys update-bios disable-numa-balancing"},
		{
			"a fix of two findings stands with the first",
			findings{high("a", "disable-acs", "iommu-pt", "update-bios"), high("b", "increase-shm", "update-bios")},
			nil, "update-bios disable-acs increase-shm iommu-pt",
		},
		{"the rule's order among equals", findings{high("container-caps", "add-sys-nice", "add-ipc-lock", "mount-sys")}, nil, "add-sys-nice add-ipc-lock mount-sys"},
		{"an unknown remedy is left out", findings{high("x", "pray", "unset-env")}, nil, "unset-env"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect.Equal(t, tt.want, order(s.Rank(tt.findings, Situation{Proofs: tt.proofs}).Advice), "order")
			slices.Reverse(tt.findings)
			expect.Equal(t, tt.want, order(s.Rank(tt.findings, Situation{Proofs: tt.proofs}).Advice), "order of reversed findings")
		})
	}
}

// variable is what the rule env-misconfig says of a variable.
func variable(name string, severity rules.Severity) rules.Finding {
	f := finding("env-misconfig", severity, rules.Likely, "unset-env")
	f.Subject, f.Params = name, map[string]any{"variable": name}
	return f
}

// TestBands checks that the cure of a fault does nothing that only a finding of
// low severity asks for, which may be meant as it is.
func TestBands(t *testing.T) {
	upgrade := func(severity rules.Severity) rules.Finding {
		return finding("cuda-driver-too-old", severity, rules.Likely, "upgrade-driver")
	}
	s := builtin(t)
	for name, tt := range map[string]struct {
		findings []rules.Finding
		want     [][]string // What each advice unsets.
		cures    []int      // How many findings each advice cures.
	}{
		"a fault, and two that are none": {
			[]rules.Finding{variable("NCCL_P2P_DISABLE", rules.High), variable("NCCL_NVLS_ENABLE", rules.Low), variable("NVSHMEM_DISABLE_NVLS", rules.Info)},
			[][]string{{"NCCL_P2P_DISABLE"}, {"NCCL_NVLS_ENABLE"}, {"NVSHMEM_DISABLE_NVLS"}},
			[]int{1, 1, 1},
		},
		"two faults": {
			[]rules.Finding{variable("NCCL_P2P_DISABLE", rules.High), variable("NCCL_SHM_DISABLE", rules.Medium)},
			[][]string{{"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE"}},
			[]int{2},
		},
		"the same variable in both": {[]rules.Finding{variable("NCCL_P2P_DISABLE", rules.High), variable("NCCL_P2P_DISABLE", rules.Low)}, [][]string{{"NCCL_P2P_DISABLE"}}, []int{2}},
		"a remedy that is the same": {[]rules.Finding{upgrade(rules.High), upgrade(rules.Low), upgrade(rules.Info)}, [][]string{nil}, []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, order := range []string{"as they are", "reversed"} {
				var unset [][]string
				var cures []int
				for _, a := range s.Rank(tt.findings, Situation{}).Advice {
					list := slices.Clone(a.Apply.Unset)
					slices.Sort(list)
					unset, cures = append(unset, list), append(cures, len(a.Cures))
				}
				expect.NoDiff(t, tt.want, unset, "%s: unset", order)
				expect.NoDiff(t, tt.cures, cures, "%s: number of cures", order)
				slices.Reverse(tt.findings)
			}
		})
	}
}

// TestLeadsOfBands checks that a finding is told its own advice where a remedy has several.
func TestLeadsOfBands(t *testing.T) {
	findings := []rules.Finding{variable("NCCL_P2P_DISABLE", rules.High), variable("NCCL_NVLS_ENABLE", rules.Low)}
	advice := builtin(t).Rank(findings, Situation{}).Advice
	for _, f := range findings {
		fix := LeadsOf(advice, []rules.Finding{f}).Fix
		expect.That(t, fix != nil && slices.Equal(fix.Apply.Unset, []string{f.Subject}), "%s: got %+v, want to unset it alone", f.Subject, fix)
	}
}

func TestWhy(t *testing.T) {
	proofs := map[string]Proof{"nccl-p2p-disable": {Outcome: Proven, Detail: "11.2 GB/s, correct"}}
	advice := builtin(t).Rank([]rules.Finding{
		acs(), finding("p2p-slow", rules.Medium, rules.Likely, "nccl-p2p-disable"), finding("mig-mode", rules.High, rules.Likely, "disable-mig"),
	}, Situation{Proofs: proofs}).Advice
	got := map[string]string{}
	for _, a := range advice {
		got[a.Remedy] = a.Why
	}
	expect.NoDiff(t, map[string]string{
		"nccl-p2p-disable": "cures 1 critical finding and 1 more, confirmed; measured here: 11.2 GB/s, correct; no root, this job only",
		"disable-acs":      "cures 1 critical finding, confirmed; root, reboot, persistent",
		"iommu-pt":         "cures 1 critical finding, confirmed; root, reboot, persistent",
		"disable-mig":      "cures 1 high finding, likely; root, reload of the driver, persistent; medium risk",
	}, got, "why")
}

func TestLeads(t *testing.T) {
	s := builtin(t)
	for name, tt := range map[string]struct {
		finding  rules.Finding
		proofs   map[string]Proof
		now, fix string
	}{
		"both":                        {finding: acs(), now: "nccl-p2p-disable", fix: "disable-acs"},
		"the fix is as quick":         {finding: finding("env-misconfig", rules.High, rules.Likely, "unset-env", "ignore-cpu-affinity"), fix: "unset-env"},
		"no workaround":               {finding: finding("memlock-limit", rules.High, rules.Likely, "raise-memlock"), fix: "raise-memlock"},
		"no fix":                      {finding: finding("x", rules.High, rules.Likely, "nccl-p2p-level"), now: "nccl-p2p-level"},
		"the workaround does no good": {finding: acs(), proofs: map[string]Proof{"nccl-p2p-disable": {Outcome: Disproven}}, fix: "disable-acs"},
		"nothing":                     {finding: finding("x", rules.High, rules.Likely)},
	} {
		t.Run(name, func(t *testing.T) {
			leads := LeadsOf(s.Rank([]rules.Finding{tt.finding}, Situation{Proofs: tt.proofs}).Advice, []rules.Finding{tt.finding})
			id := func(a *Advice) string {
				if a == nil {
					return ""
				}
				return a.Remedy
			}
			expect.That(t, id(leads.Now) == tt.now && id(leads.Fix) == tt.fix, "leads = %q, %q; want %q, %q", id(leads.Now), id(leads.Fix), tt.now, tt.fix)
		})
	}
}

func TestTemplates(t *testing.T) {
	advice := builtin(t).Rank([]rules.Finding{acs()}, Situation{}).Advice
	got := advice[slices.IndexFunc(advice, func(a Advice) bool { return a.Remedy == "disable-acs" })]
	wantCommands := []string{"setpci -s 0000:40:01.1 ECAP_ACS+0x6.w=0000", "setpci -s 0000:40:03.1 ECAP_ACS+0x6.w=0000"}
	expect.NoDiff(t, wantCommands, got.Apply.Commands, "commands")
	expect.NoDiff(t, []string{"pci=disable_acs_redir=0000:40:01.1;0000:40:03.1"}, got.Apply.KernelCommandLine, "kernel command line")
	want := "gpudoctor check --only acs-redirect,p2p-broken-platform, as root;"
	expect.That(t, strings.HasPrefix(got.Verify, want), "verify = %q, want it to begin with %q", got.Verify, want)
}

func TestFill(t *testing.T) {
	one := func(p map[string]any) rules.Finding { return rules.Finding{Rule: "r", Params: p} }
	for name, tt := range map[string]struct {
		findings []rules.Finding
		item     string
		want     []string
	}{
		"a value":                   {[]rules.Finding{one(map[string]any{"gpu": "0000:3b:00.0"})}, "x {{.gpu}}", []string{"x 0000:3b:00.0"}},
		"the GPUs that suffer":      {[]rules.Finding{{Rule: "r", Affects: []string{"0000:3b:00.0"}}}, "x {{.gpu}}", []string{"x 0000:3b:00.0"}},
		"a list repeats":            {[]rules.Finding{one(map[string]any{"gpus": []any{"a", "b"}})}, "x {{.gpu}}", []string{"x a", "x b"}},
		"a list joins":              {[]rules.Finding{one(map[string]any{"gpus": []any{"a", "b"}})}, `x {{.gpus | join ";"}}`, []string{"x a;b"}},
		"findings repeat once":      {[]rules.Finding{one(map[string]any{"gpu": "a"}), one(map[string]any{"gpu": "b"}), one(map[string]any{"gpu": "a"})}, "x {{.gpu}}", []string{"x a", "x b"}},
		"values stay together":      {[]rules.Finding{one(map[string]any{"gpu": "a", "node": int64(0)}), one(map[string]any{"gpu": "b", "node": int64(1)})}, "{{.gpu}} {{.node}}", []string{"a 0", "b 1"}},
		"single values join":        {[]rules.Finding{one(map[string]any{"node": int64(0)}), one(map[string]any{"node": int64(1)})}, `x {{.nodes | join ","}}`, []string{"x 0,1"}},
		"missing":                   {[]rules.Finding{one(nil)}, "x {{.gpu}}", nil},
		"a command is not filled":   {[]rules.Finding{one(map[string]any{"gpu": "0; rm -rf /"})}, "x {{.gpu}}", nil},
		"nor a substitution":        {[]rules.Finding{one(map[string]any{"gpu": "$(id)"})}, "x {{.gpu}}", nil},
		"nor an option":             {[]rules.Finding{one(map[string]any{"gpu": "--help"})}, "x {{.gpu}}", nil},
		"nor a line":                {[]rules.Finding{one(map[string]any{"gpu": "a\nb"})}, "x {{.gpu}}", nil},
		"nor a path upwards":        {[]rules.Finding{one(map[string]any{"file": "/a/../etc/passwd"})}, "x {{.file}}", nil},
		"a path":                    {[]rules.Finding{one(map[string]any{"file": "/dev/nvidia0"})}, "x {{.file}}", []string{"x /dev/nvidia0"}},
		"a CPU list":                {[]rules.Finding{one(map[string]any{"cpus": "0-15,64-79"})}, `x {{.cpus | join ","}}`, []string{"x 0-15,64-79"}},
		"the subject, if it is one": {[]rules.Finding{{Rule: "r", Subject: "0000:3b:00.0"}}, "x {{.gpu}}", []string{"x 0000:3b:00.0"}},
		"no GPU":                    {[]rules.Finding{{Rule: "r", Subject: "host"}}, "x {{.gpu}}", nil},
		"an index":                  {[]rules.Finding{{Rule: "r", Affects: []string{"GPU3"}}}, "x -i {{.gpu_id}}", []string{"x -i 3"}},
		"words in its place":        {[]rules.Finding{one(nil)}, `x {{.gpu | else "the GPU"}}`, []string{"x the GPU"}},
		"where it is known":         {[]rules.Finding{one(map[string]any{"gpu": "a"})}, "{{with .gpu}}x", []string{"x"}},
		"where it is known, not":    {[]rules.Finding{one(nil)}, "{{with .gpu}}x", nil},
		"where it is not known":     {[]rules.Finding{one(nil)}, "{{without .gpus}}x", []string{"x"}},
		"its own name is no value":  {[]rules.Finding{one(map[string]any{"bridges": []any{"BRIDGE"}, "bridge": "BRIDGE"})}, "x {{.bridge}}", nil},
		"the same command again":    {[]rules.Finding{one(nil)}, "{{check}}", []string{"gpudoctor check --only r"}},
		"an object is not a value":  {[]rules.Finding{one(map[string]any{"gpu": map[string]any{"a": "b"}})}, "x {{.gpu}}", nil},
	} {
		expect.NoDiff(t, tt.want, newFiller(tt.findings, Recheck{}).list([]string{tt.item}), "%s: list", name)
	}
}

// FuzzFill checks that no param brings a character into a command that means something to a shell.
func FuzzFill(f *testing.F) {
	f.Add("0000:3b:00.0")
	f.Add("`id`")
	f.Add("a b")
	f.Add("é")
	f.Fuzz(func(t *testing.T, value string) {
		got := newFiller([]rules.Finding{{Params: map[string]any{"gpu": value}}}, Recheck{}).list([]string{"{{.gpu}}"})
		expect.That(t, len(got) <= 1 && (len(got) != 1 || strings.Trim(got[0], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+:,/-") == ""), "%q became %q", value, got)
	})
}

func TestProofs(t *testing.T) {
	rate := 11.24
	staged := func(o probe.Outcome) probe.Transfer {
		return probe.Transfer{Test: probe.TestStaged, Source: "a", Destination: "b", Outcome: o, GBps: &rate}
	}
	bad := Proof{Outcome: Disproven, Detail: "host-staged: corrupt from a to b"}
	s := builtin(t)
	for name, tt := range map[string]struct {
		report *probe.Report
		want   map[string]Proof
	}{
		"no probe": {nil, map[string]Proof{}},
		"not run":  {&probe.Report{}, map[string]Proof{}},
		"good":     {&probe.Report{Transfers: []probe.Transfer{staged(probe.OK)}}, map[string]Proof{"nccl-p2p-disable": {Outcome: Proven, Detail: "11.2 GB/s, correct"}}},
		"bad":      {&probe.Report{Transfers: []probe.Transfer{staged(probe.OK), staged(probe.Corrupt)}}, map[string]Proof{"nccl-p2p-disable": bad}},
	} {
		expect.NoDiff(t, tt.want, s.Proofs(tt.report), "%s: proofs", name)
	}
}

func TestUnfilled(t *testing.T) {
	for in, want := range map[string]string{
		"setpci -s {{.bridge}} X": "setpci -s <bridge> X", `--only {{.rules | join ","}}`: "--only <rules>", "plain": "plain",
		`Take {{.gpu | else "the GPU"}} out`: "Take <gpu> out", "by hand: {{without .gpu}}Find it": "by hand: where gpu is not known: Find it",
		"{{with .gpu}}Do it": "Do it", "{{check}}; see": "gpudoctor check --only <rules>; see", "export '{{.variable}}'=1": "export <variable>=1",
	} {
		expect.Equal(t, want, Unfilled(in), "Unfilled(%q)", in)
	}
}

// TestSuiting checks which form of a remedy the facts call for.
func TestSuiting(t *testing.T) {
	said := func(program string) *facts.Facts {
		return &facts.Facts{Logs: &facts.LogFacts{Messages: []facts.Message{{Program: program}}}}
	}
	set := func(source string) *facts.Facts {
		return withEnv(facts.Variable{Name: "SLURM_PROCID", Value: "3", Source: "job.log", Effective: true}, facts.Variable{Name: "CUDA_VISIBLE_DEVICES", Value: "0", Source: source, Line: 2, Effective: true})
	}
	slurm := set("job.log")
	slurm.Texts = []facts.Text{{Name: "job.log", Kinds: []facts.TextKind{{Kind: "nccl-log"}}}}
	script := set("job.sh")
	script.Texts = []facts.Text{{Name: "job.sh", Kinds: []facts.TextKind{{Kind: "sbatch"}}}}
	for name, tt := range map[string]struct {
		facts        *facts.Facts
		remedy, want string
	}{
		"no facts":                      {&facts.Facts{}, "pass-device-nodes", "pass-device-nodes"},
		"messages of HIP":               {said("hip"), "pass-device-nodes", "pass-amd-devices"},
		"messages of CUDA":              {said("cuda"), "pass-device-nodes", "pass-device-nodes"},
		"an image of ROCm":              {&facts.Facts{Launches: []facts.Launch{{Image: "rocm/pytorch"}}}, "pass-device-nodes", "pass-amd-devices"},
		"libraries of ROCm":             {&facts.Facts{Libraries: &facts.LibraryFacts{Files: []facts.Library{{Kind: "libamdhip64"}}}}, "pass-device-nodes", "pass-amd-devices"},
		"GPUs of NVIDIA":                {&facts.Facts{GPUs: &facts.GPUFacts{Devices: []facts.GPU{{Vendor: "nvidia"}}}, Logs: said("hip").Logs}, "pass-device-nodes", "pass-device-nodes"},
		"a variable that Slurm sets":    {slurm, "fix-visible-devices", "set-slurm-binding"},
		"one that the batch script set": {script, "fix-visible-devices", "fix-visible-devices"},
		"a job that Slurm saw fail":     {&facts.Facts{Logs: &facts.LogFacts{Deaths: []facts.Death{{Reporter: "slurm"}}}}, "fix-visible-devices", "set-slurm-binding"},
	} {
		f := finding("gpu-visibility", rules.High, rules.Likely, tt.remedy)
		f.Params = map[string]any{"variable": "CUDA_VISIBLE_DEVICES"}
		got := builtin(t).Suiting(tt.facts).Rank([]rules.Finding{f}, Situation{Facts: tt.facts}).Advice
		expect.That(t, len(got) == 1 && got[0].Remedy == tt.want, "%s: got %v", name, got)
	}
}

// TestOutOfStep checks that ranks out of step are spoken of for that cause alone.
func TestOutOfStep(t *testing.T) {
	for rule, want := range map[string]bool{"app-mismatch": true, "app-failure": false, "gpu-visibility": false, "oom": false} {
		a := builtin(t).Rank([]rules.Finding{finding(rule, rules.High, rules.Likely, "fix-application")}, Situation{}).Advice[0]
		expect.Equal(t, want, strings.Contains(strings.Join(a.Apply.Steps, "\n"), "out of step"), "%s: out of step is", rule)
		expect.That(t, len(a.Apply.Steps) > 0, "%s: no steps", rule)
	}
}
