package apply

import (
	"strings"
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

// TestInContainer checks that each runtime is given its own flags, Docker's only where they are the same, and that
// what takes more has none.
func TestInContainer(t *testing.T) {
	a := remedies.Apply{Docker: []string{"--gpus all"}, Kubernetes: "a: b", Runtimes: map[string][]string{"podman": {"--device x"}, "apptainer": {"--nv"}}, Steps: []string{"Or so."}}
	for runs, want := range map[string]string{
		"docker run": "--gpus all", "podman run": "--device x", "nerdctl run": "--gpus all", "apptainer": "--nv",
		"Kubernetes": "a: b", "Slurm": "", "LXC": "", "": "",
	} {
		got := ""
		if primary, _ := Instructions(a, runs); InContainer(primary, runs) {
			got = strings.Join(primary[0].Lines, "\n")
		}
		expect.Equal(t, want, got, "%q", runs)
	}
	for _, a := range []remedies.Apply{{Environment: map[string]string{"A": "1"}, Docker: []string{"-e A=1"}}, {}} {
		primary, _ := Instructions(a, "docker run")
		expect.That(t, !InContainer(primary, "docker run"), "%v is applied by %v", a, primary)
	}
}

// TestEfforts checks, for every remedy, that what is typed says what it takes: what holds until the next boot needs no
// reboot and does not persist, and all else takes what the remedy takes.
func TestEfforts(t *testing.T) {
	set := expect.Value(remedies.Load())(t)
	both := 0
	for _, r := range set.Remedies() {
		primary, _ := Instructions(r.Apply, "")
		if !Efforts(primary, r.Needs, r.Lasts) {
			continue
		}
		for _, i := range primary {
			want := Effort(r.Needs, r.Lasts)
			switch i.Where {
			case ByHand:
				want = ""
			case UntilBoot:
				want = "root, takes effect at once"
				both++
			}
			expect.Equal(t, want, i.Effort, "%s, %s", r.ID, i.Where)
		}
	}
	expect.AtLeast(t, 2, both, "remedies hold until the next boot and for good")
}
