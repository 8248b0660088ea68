package nodes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestFind checks what each engine's variables say.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, env, self string
		count           int
		want            string
	}{
		{"srun", "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=r[1-2]n[08-09],x", "", 0, "Slurm 1/3 [r1n08]"},
		{"srun, one on each", "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n[1-2]", "", 0, "Slurm 1/2 [n1] [n1 n2]"},
		{"the script of sbatch", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_NODELIST=n[1-2]", "", 0, "no variables"},
		{"mpirun", "SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_MCA_orte_hnp_uri=5.0;tcp://192.0.2.2,10.0.0.1:44483;tcp6://[fd00::2]:52279", "", 0, "Open MPI 3/4 [192.0.2.2 10.0.0.1 fd00::2]"},
		{"prterun", "PMIX_RANK=1 PMIX_SERVER_URI4=5.0;tcp4://127.0.0.1:56469", "", 2, "PMIx 1/2 [127.0.0.1]"},
		{"of how many?", "PMIX_RANK=1", "", 0, "nothing says of how many"},
		{"Hydra", "PMI_RANK=0 PMI_SIZE=2", "", 0, "PMI 0/2 []"},
		{"Kubernetes", "JOB_COMPLETION_INDEX=3", "train-3.workers.default.svc.cluster.local", 4, "Kubernetes 3/4 [train-0.workers.default.svc.cluster.local]"},
		{"Kubernetes without a service", "JOB_COMPLETION_INDEX=3 JOB_COMPLETIONS=4", "train-3", 0, "Kubernetes 3/4 []"},
		{"torchrun", "RANK=0 WORLD_SIZE=1 MASTER_ADDR=a", "", 0, "torchrun 0/1 [a]"},
		{"nothing", "", "", 4, "no variables"},
		{"no number", "RANK=x WORLD_SIZE=4", "", 0, "not the number of a rank"},
		{"beyond the last", "RANK=4 WORLD_SIZE=4", "", 0, "rank 4 of 4 is not possible"},
		{"negative", "RANK=-1 WORLD_SIZE=4", "", 0, "rank -1 of 4"},
		{"far too many", "RANK=1 WORLD_SIZE=999999", "", 0, "at most 4096"},
		{"a malformed list", "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NODELIST=n[1-", "", 0, "Slurm 1/3 []"},
	} {
		env := map[string]string{}
		for v := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(v, "=")
			env[name] = value
		}
		p, err := Find(func(name string) string { return env[name] }, c.self, c.count)
		got := fmt.Sprintf("%s %d/%d %v", p.Engine, p.Rank, p.Count, p.Hosts)
		if p.Names != nil {
			got += fmt.Sprint(" ", p.Names)
		}
		if err != nil {
			got = err.Error()
		}
		expect.That(t, got == c.want || err != nil && strings.Contains(got, c.want), "%s: %s", c.name, got)
		expect.That(t, errors.Is(err, ErrNoEngine) == strings.HasPrefix(c.want, "no var"), "%s: %v", c.name, err)
	}
	a, b := Place{Job: "7.0."}, Place{Job: "7.1."}
	expect.That(t, a.Port() != b.Port() && a.Port() >= 20000 && a.Port() < 30000, "%d %d", a.Port(), b.Port())
}

// TestExpand checks lists of hosts, and that malformed and endless ones give none.
func TestExpand(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"":                   "",
		"a":                  "a",
		"a,b":                "a b",
		"n[1-3]":             "n1 n2 n3",
		"n[08-10,7],gpu-a":   "n08 n09 n10 n7 gpu-a",
		"r[1-2]n[1,3]-ib0":   "r1n1-ib0 r1n3-ib0 r2n1-ib0 r2n3-ib0",
		"a[1],b[2-3,5],c[1]": "a1 b2 b3 b5 c1",
		"n[1-":               "", "n[": "", "n]": "", "n[]": "", "n[3-1]": "", "n[x]": "", "a,,b": "", "n[-1]": "", ",": "",
		"[1][2][3]": "123", strings.Repeat("n[1]", 1<<20): "",
		"n[1-999999999]": "", "n[1-4000][1-4000]": "", "n[" + strings.Repeat("0", 1<<20) + "-9]": "", "n[1-3000],m[1-3000]": "", "n[1-99999999999999999999]": "",
	} {
		got := Expand(list, MaxNodes)
		if list == "" {
			got = nil
		}
		expect.That(t, slices.Equal(got, strings.Fields(want)), "%q gives %d: %.100q", list, len(got), got)
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("r[1-2]n[08-09],x")
	f.Fuzz(func(t *testing.T, list string) {
		all := Expand(list, MaxNodes)
		expect.That(t, len(all) <= MaxNodes && !slices.Contains(all, ""), "%q gives %d", list, len(all))
	})
}
