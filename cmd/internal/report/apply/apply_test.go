package apply

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
)

func TestInstructionsOfEveryKind(t *testing.T) {
	a := remedies.Apply{
		Environment: map[string]string{"B": "2", "A": "1"}, Unset: []string{"C"},
		Edits: []remedies.Edit{{Place: remedies.Place{Kind: "file", File: "/etc/nccl.conf", Line: 3}, Remove: "D=1"}}, KernelCommandLine: []string{"iommu=pt", "amd_iommu=on"},
		Docker: []string{"--shm-size=16g"}, Kubernetes: "a:\n  b: c\n", Slurm: []string{"PropagateResourceLimitsExcept=MEMLOCK"},
		Sysctl: map[string]string{"kernel.numa_balancing": "0"}, Modprobe: []string{"options nvidia a=b"}, Commands: []string{"one", "two"}, Steps: []string{"Open the lid."},
	}
	primary, others := Instructions(a, "")
	want := []Instruction{
		{Language: "sh", Lines: []string{"export A=1", "export B=2", "unset C"}},
		{Where: "until the next boot", Language: "sh", Lines: []string{"one", "two", "sysctl -w kernel.numa_balancing=0"}},
		{Where: "sysctl.d", Language: "text", Lines: []string{"kernel.numa_balancing = 0"}},
		{Where: "edit", Language: "text", Lines: []string{"remove D=1 from /etc/nccl.conf, line 3"}},
		{Where: "kernel command line", Language: "text", Lines: []string{"iommu=pt amd_iommu=on"}},
		{Where: "modprobe.d", Language: "text", Lines: []string{"options nvidia a=b"}},
		{Where: "by hand", Lines: []string{"Open the lid."}},
	}
	expect.NoDiff(t, want, primary, "primary")
	where := expect.Map(others, func(i Instruction) string { return i.Where })
	expect.NoDiff(t, []string{"docker run", "Slurm", "Kubernetes"}, where, "others")
	only, _ := Instructions(remedies.Apply{Docker: []string{"--ipc=host"}}, "")
	expect.That(t, len(only) == 1 && only[0].Lines[0] == "--ipc=host", "a remedy for Docker alone: got %v", only)
}

// TestInstructionsWhereTheJobRuns checks that what starts the job comes first.
func TestInstructionsWhereTheJobRuns(t *testing.T) {
	a := remedies.Apply{Docker: []string{"--ipc=host"}, Slurm: []string{"srun"}, Kubernetes: "hostIPC: true"}
	for runs, want := range map[string]string{"": "docker run", "Kubernetes": "Kubernetes", "Slurm": "Slurm", "mpirun": "docker run"} {
		primary, _ := Instructions(a, runs)
		expect.Equal(t, want, primary[0].Where, "%q: first", runs)
	}
	pod := &facts.Facts{Launches: []facts.Launch{{Kind: "command"}, {Kind: "kubernetes"}}}
	expect.Equal(t, "Kubernetes", RunsBy(pod), "a pod runs by")
	for runtime, want := range map[string]string{
		"docker": "docker run", "podman": "podman run", "containerd": "nerdctl run", "kubernetes": "Kubernetes", "crio": "Kubernetes",
		"apptainer": "apptainer", "gvisor": "", "other": "", "": "",
	} {
		expect.Equal(t, want, RunsBy(&facts.Facts{Container: &facts.ContainerFacts{Runtime: runtime}}), "%s runs by", runtime)
	}
}
