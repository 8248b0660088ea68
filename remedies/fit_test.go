package remedies

import (
	"fmt"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

func withEnv(variables ...facts.Variable) *facts.Facts {
	return &facts.Facts{Env: &facts.EnvFacts{Variables: variables}}
}

// inForce is NCCL_P2P_DISABLE with a value that is in force.
func inForce(value, source string, line int) facts.Variable {
	return facts.Variable{Name: "NCCL_P2P_DISABLE", Value: value, Source: source, Line: line, Effective: true}
}

// TestFit checks what is advised and what is withheld, by what is in force.
func TestFit(t *testing.T) {
	p2p := variable("NCCL_P2P_DISABLE", rules.High)
	sound := finding("p2p-slow", rules.Low, rules.Likely, "nccl-p2p-disable")
	pod := &facts.Facts{
		Env:      withEnv(inForce("1", "pod.yaml", 12)).Env,
		Launches: []facts.Launch{{Kind: "kubernetes", Variables: map[string]string{"NCCL_P2P_DISABLE": "1"}, Source: "pod.yaml", Line: 3}},
		Texts:    []facts.Text{{Name: "pod.yaml"}},
	}
	iommu := finding("iommu-translation", rules.High, rules.Likely, "iommu-pt")
	caps := finding("container-caps", rules.High, rules.Likely, "add-sys-nice", "share-ipc")
	docker := facts.Launch{Kind: "docker-run", IPC: "host", CapAdd: []string{"SYS_NICE"}}
	level := finding("env-misconfig", rules.High, rules.Likely, "nccl-p2p-level", "unset-env")
	level.Params = map[string]any{"variable": "NCCL_P2P_LEVEL", "level": "SYS"}
	opposite := level
	opposite.Remedies = []string{"unset-env", "nccl-p2p-level"}
	s := builtin(t)
	for name, tt := range map[string]struct {
		findings []rules.Finding
		facts    *facts.Facts
		advice   string
		withheld []string // Setting and reason.
	}{
		"nothing is known":               {findings: []rules.Finding{acs()}, advice: "nccl-p2p-disable disable-acs iommu-pt"},
		"a workaround in force":          {[]rules.Finding{acs()}, withEnv(inForce("1", "environment", 0)), "disable-acs iommu-pt", []string{"NCCL_P2P_DISABLE=1 in-force"}},
		"in other words":                 {[]rules.Finding{acs()}, withEnv(inForce(" 01", "environment", 0)), "disable-acs iommu-pt", []string{"NCCL_P2P_DISABLE=1 in-force"}},
		"with another value":             {[]rules.Finding{acs()}, withEnv(inForce("0", "environment", 0)), "nccl-p2p-disable disable-acs iommu-pt", nil},
		"in a file that another hides":   {[]rules.Finding{acs()}, withEnv(facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "1", Source: "/etc/nccl.conf"}), "nccl-p2p-disable disable-acs iommu-pt", nil},
		"in a pod":                       {[]rules.Finding{acs()}, pod, "disable-acs iommu-pt", []string{"NCCL_P2P_DISABLE=1 in-force"}},
		"not unset while it is the cure": {[]rules.Finding{acs(), p2p}, pod, "disable-acs iommu-pt", []string{"NCCL_P2P_DISABLE needed", "NCCL_P2P_DISABLE=1 in-force"}},
		"unset where the cure is slight": {[]rules.Finding{p2p, sound}, nil, "unset-env", []string{"NCCL_P2P_DISABLE=1 opposed"}},
		"set, by what names it first":    {[]rules.Finding{level}, nil, "nccl-p2p-level", []string{"NCCL_P2P_LEVEL needed"}},
		"unset, by what names it first":  {[]rules.Finding{opposite}, nil, "unset-env", []string{"NCCL_P2P_LEVEL=SYS opposed"}},
		"a kernel parameter in force":    {[]rules.Finding{iommu}, &facts.Facts{Host: &facts.HostFacts{CommandLine: []string{"quiet", "iommu=pt"}}}, "", []string{"iommu=pt in-force"}},
		"one of another value":           {[]rules.Finding{iommu}, &facts.Facts{Host: &facts.HostFacts{CommandLine: []string{"iommu=on"}}}, "iommu-pt", nil},
		"a flag of every container":      {[]rules.Finding{caps}, &facts.Facts{Launches: []facts.Launch{docker}}, "share-ipc", []string{"--cap-add=SYS_NICE in-force", "--ipc=host in-force"}},
		"of one of two containers":       {[]rules.Finding{caps}, &facts.Facts{Launches: []facts.Launch{docker, {Kind: "compose"}}}, "add-sys-nice share-ipc", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ranking := s.Rank(tt.findings, Situation{Facts: tt.facts})
			expect.Equal(t, tt.advice, order(ranking.Advice), "advice")
			withheld := expect.Map(ranking.Withheld, func(w Withheld) string { return w.Setting + " " + w.Reason })
			slices.Sort(withheld)
			expect.NoDiff(t, tt.withheld, withheld, "withheld")
		})
	}
}

// TestEdits checks that a variable is taken out of the place at which it is set.
func TestEdits(t *testing.T) {
	launch := func(kind string) *facts.Facts {
		return &facts.Facts{
			Env:      withEnv(inForce("1", "job.txt", 12)).Env,
			Launches: []facts.Launch{{Kind: kind, Variables: map[string]string{"NCCL_P2P_DISABLE": "1"}, Source: "job.txt", Line: 3}},
			Texts:    []facts.Text{{Name: "job.txt"}},
		}
	}
	text := func(name string, kinds ...string) *facts.Facts {
		f := withEnv(inForce("1", name, 4))
		f.Texts = []facts.Text{{Name: name}}
		for _, k := range kinds {
			f.Texts[0].Kinds = append(f.Texts[0].Kinds, facts.TextKind{Kind: k})
		}
		return f
	}
	hidden := facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "1", Source: "/etc/nccl.conf", Line: 2} // By one of the environment.
	log := withEnv(inForce("1", "nccl.log", 4))
	log.Texts = []facts.Text{{Name: "nccl.log"}}
	s := builtin(t)
	for name, tt := range map[string]struct {
		facts *facts.Facts
		unset bool
		edits []string
		needs []Need
		lasts string
	}{
		"not known":             {nil, true, nil, []Need{NeedJobRestart}, "job"},
		"the environment":       {withEnv(inForce("1", "environment", 0)), true, nil, []Need{NeedJobRestart}, "job"},
		"a log":                 {log, true, nil, []Need{NeedJobRestart}, "job"},
		"NCCL's file":           {withEnv(inForce("1", "/etc/nccl.conf", 2)), false, []string{"/etc/nccl.conf:2"}, []Need{NeedJobRestart, NeedRoot}, "forever"},
		"the user's file":       {withEnv(inForce("1", "/home/u/.nccl.conf", 2)), false, []string{"/home/u/.nccl.conf:2"}, []Need{NeedJobRestart}, "forever"},
		"a hidden file":         {withEnv(inForce("1", "environment", 0), hidden), true, []string{"/etc/nccl.conf:2"}, []Need{NeedJobRestart, NeedRoot}, "job"},
		"a pod":                 {launch("kubernetes"), false, []string{"job.txt:12"}, []Need{NeedJobRestart, NeedContainerRestart}, "forever"},
		"a Dockerfile":          {launch("dockerfile"), false, []string{"job.txt:12"}, []Need{NeedJobRestart, NeedImageRebuild}, "forever"},
		"a batch script's text": {text("job.txt", "sbatch", "environment"), false, []string{"job.txt:4"}, []Need{NeedJobRestart}, "forever"},
		"a Dockerfile's text":   {text("job.txt", "dockerfile"), false, []string{"job.txt:4"}, []Need{NeedJobRestart, NeedImageRebuild}, "forever"},
		"a script and a log":    {text("job.txt", "sbatch", "nccl-log"), true, nil, []Need{NeedJobRestart}, "job"},
		"a copy of NCCL's file": {text("ticket/nccl.conf", "environment"), false, []string{"ticket/nccl.conf:4"}, []Need{NeedJobRestart}, "forever"},
		"a batch script":        {launch("slurm"), false, []string{"job.txt:12"}, []Need{NeedJobRestart}, "forever"},
	} {
		t.Run(name, func(t *testing.T) {
			advice := s.Rank([]rules.Finding{variable("NCCL_P2P_DISABLE", rules.High)}, Situation{Facts: tt.facts}).Advice
			expect.Must(t, len(advice) == 1, "advice = %+v", advice)
			a := advice[0]
			var edits []string
			for _, e := range a.Apply.Edits {
				edits = append(edits, e.String())
				expect.Equal(t, "NCCL_P2P_DISABLE=1", e.Remove, "it removes")
			}
			expect.NoDiff(t, tt.edits, edits, "edits")
			expect.That(t, slices.Equal(a.Apply.Unset, []string{"NCCL_P2P_DISABLE"}) == tt.unset, "it unsets %q", a.Apply.Unset)
			expect.That(t, slices.Equal(a.Needs, tt.needs) && a.Lasts == tt.lasts, "it takes %v and lasts %s, want %v and %s", a.Needs, a.Lasts, tt.needs, tt.lasts)
		})
	}
}

// TestForms checks that the ways to set a variable say the same.
func TestForms(t *testing.T) {
	got := Apply{Environment: map[string]string{"B": "2", "A": "x"}}.WithForms()
	expect.NoDiff(t, Apply{
		Environment: map[string]string{"B": "2", "A": "x"}, Docker: []string{"-e A=x", "-e B=2"},
		Kubernetes: "env:\n  - {name: A, value: \"x\"}\n  - {name: B, value: \"2\"}\n",
		Slurm:      []string{"#SBATCH --export=ALL,A=x,B=2"},
	}, got, "forms")
}

// TestRemovalsApart checks that variables which are removed in different ways are
// advised apart, each with what that way takes.
func TestRemovalsApart(t *testing.T) {
	f := withEnv(inForce("1", "environment", 0), facts.Variable{Name: "NCCL_SHM_DISABLE", Value: "1", Source: "/etc/nccl.conf", Line: 2, Effective: true})
	advice := builtin(t).Rank([]rules.Finding{variable("NCCL_P2P_DISABLE", rules.High), variable("NCCL_SHM_DISABLE", rules.High)}, Situation{Facts: f}).Advice
	got := expect.Map(advice, func(a Advice) string {
		return fmt.Sprintf("%v %d %v %s", a.Apply.Unset, len(a.Apply.Edits), a.Needs, a.Lasts)
	})
	expect.NoDiff(t, []string{"[NCCL_P2P_DISABLE] 0 [job-restart] job", "[] 1 [job-restart root] forever"}, got, "advice")
}
