//go:build linux && cgo

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// job is a probe between nodes that are processes on this machine, each with a simulated GPU.
type job struct {
	name  string
	nodes int
	// env are variables of single ranks, absent those that are not started.
	env    map[int]string
	absent []int
	// begun, if set, is called with the processes once all are started; done is closed when the first has ended.
	begun func(t *testing.T, ranks []*exec.Cmd, done <-chan struct{})
	// want is what is blamed, states how the nodes are that are not ok.
	want   []string
	states string
	code   int
	says   string
}

// nodesEnvironment is that of a rank of a job that was started by hand.
func nodesEnvironment(t *testing.T) []string {
	t.Helper()
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GOCOVERDIR=" + os.Getenv("GOCOVERDIR"), "GPUDOCTOR_SIM_GPUS=1", "NCCL_NVLS_ENABLE=0",
		"LD_LIBRARY_PATH=" + drivers.Build(t, "cuda") + ":" + drivers.Build(t, "nccl"),
	}
}

func (j job) run(t *testing.T, args ...string) (r *nodes.Report, said string) {
	t.Helper()
	env := append(nodesEnvironment(t), "MASTER_ADDR=127.0.0.1", fmt.Sprintf("WORLD_SIZE=%d", j.nodes), "TORCHELASTIC_RUN_ID="+rand.Text())
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	ranks, outputs := make([]*exec.Cmd, j.nodes), make([]bytes.Buffer, j.nodes)
	done := make(chan struct{})
	var running sync.WaitGroup
	for i := range ranks {
		cmd := exec.CommandContext(ctx, "gpudoctor", append([]string{"probe", "nccl", "--nodes", "--probe-timeout", "4s", "--format", "json"}, args...)...)
		cmd.Env = append(slices.Clone(env), fmt.Sprintf("RANK=%d", i), fmt.Sprintf("SLURMD_NODENAME=node%d", i))
		if more := j.env[i]; more != "" {
			cmd.Env = append(cmd.Env, strings.Split(more, " ")...)
		}
		cmd.Stdout, cmd.Stderr, ranks[i] = &outputs[i], os.Stderr, cmd
		if slices.Contains(j.absent, i) {
			continue
		}
		expect.NoError(t, cmd.Start())
	}
	if j.begun != nil {
		running.Go(func() { j.begun(t, ranks, done) })
	}
	_ = ranks[0].Wait() // The exit code is checked.
	close(done)
	running.Wait()
	for i, cmd := range ranks[1:] {
		if cmd.Process != nil {
			_ = cmd.Wait()
			expect.That(t, outputs[i+1].Len() == 0, "rank %d writes %s", i+1, outputs[i+1].String())
		}
	}
	expect.That(t, ranks[0].ProcessState.ExitCode() == j.code, "exit code %d, want %d:\n%s", ranks[0].ProcessState.ExitCode(), j.code, outputs[0].String())
	return new(decoded[nodes.Report](t, outputs[0].Bytes())), outputs[0].String()
}

// TestProbeNodes checks, for each way in which a node fails, that it is named, that the others are tested, and that nothing is left.
func TestProbeNodes(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it runs several programs at a time")
	needsNoGPU(t)
	const fault = "GPUDOCTOR_SIM_NCCL_FAULT="
	for _, j := range []job{
		{name: "healthy", nodes: 3},
		{name: "hangs by itself", nodes: 4, env: map[int]string{2: fault + "hang-init"}, want: []string{"node node2"}, states: "node2 failed", code: exitFindings, says: "by itself"},
		{name: "hangs with others", nodes: 5, env: map[int]string{2: fault + "hang-init-any"}, want: []string{"node node2"}, code: exitFindings, says: "the 4 nodes without node2 work together"},
		{name: "wrong data between nodes", nodes: 4, env: map[int]string{3: fault + "wrong-any@1,wrong-any@2,wrong-any@3"}, want: []string{"node node3"}, code: exitFindings, says: "wrong"},
		{name: "slow", nodes: 4, env: map[int]string{1: fault + "slow-any=9"}, want: []string{"node node1"}, code: exitFindings, says: "median of like pairs"},
		{
			name: "a dead NIC", nodes: 4, env: map[int]string{2: "GPUDOCTOR_SIM_NCCL_NICS=eth7,eth8 GPUDOCTOR_SIM_NCCL_DEAD=eth8"},
			want: []string{"rail node2"}, code: exitFindings, says: "with one NIC at a time, node2 works with node0 by eth7, but not by eth8",
		},
		{name: "another setting", nodes: 4, env: map[int]string{1: "NCCL_X=1 GPUDOCTOR_SIM_NCCL_BREAKS=NCCL_X"}, want: []string{"node node1"}, states: "node1 failed", code: exitFindings, says: "NCCL_X is 1 there, and not set on the others"},
		{name: "does not come", nodes: 3, absent: []int{2}, states: "rank 2 absent", code: exitUnproven},
		{name: "another secret", nodes: 3, env: map[int]string{2: "GPUDOCTOR_TOKEN=x"}, states: "rank 2 absent", code: exitUnproven},
		// Node 3 hangs, so that there is time for these.
		{
			name: "comes late", nodes: 4, absent: []int{1}, env: map[int]string{3: fault + "hang-init-any"}, want: []string{"node node3"}, code: exitFindings,
			begun: func(t *testing.T, ranks []*exec.Cmd, _ <-chan struct{}) {
				t.Helper()
				time.Sleep(time.Second)
				expect.NoError(t, ranks[1].Start())
			},
		},
		{
			name: "is killed", nodes: 4, env: map[int]string{3: fault + "hang-init-any"}, want: []string{"node node1", "node node3"}, states: "node1 lost", code: exitFindings,
			begun: func(t *testing.T, ranks []*exec.Cmd, _ <-chan struct{}) {
				t.Helper()
				time.Sleep(3 * time.Second)
				expect.NoError(t, ranks[1].Process.Kill())
			},
		},
		{
			name: "stops", nodes: 5, env: map[int]string{3: fault + "hang-init-any"}, want: []string{"node node1", "node node3"}, code: exitFindings,
			begun: func(t *testing.T, ranks []*exec.Cmd, done <-chan struct{}) {
				t.Helper()
				time.Sleep(3 * time.Second)
				expect.NoError(t, ranks[1].Process.Signal(syscall.SIGSTOP))
				<-done
				expect.NoError(t, ranks[1].Process.Kill())
			},
		},
	} {
		t.Run(j.name, func(t *testing.T) {
			byDay := j.name == "hangs with others"
			inCI := byDay || j.name == "healthy" || j.name == "slow" || j.name == "a dead NIC" || j.name == "another secret" || j.name == "is killed"
			if expect.FewRows() && !byDay || !expect.Night() && !inCI {
				t.Skip("it waits for deadlines of its own: .ci/run runs six of these jobs, make night all")
			}
			mark := runMarker + "=" + rand.Text()
			if j.env == nil {
				j.env = map[int]string{}
			}
			for i := range j.nodes {
				j.env[i] = strings.TrimSpace(j.env[i] + " " + mark)
			}
			arrive := "20s"
			if strings.Contains(j.states, "absent") {
				arrive = "6s"
			}
			r, said := j.run(t, "--arrive", arrive)
			expect.NoDiff(t, j.want, blamed(r), "blamed")
			others := lines.Filter(r.Nodes, func(n nodes.Peer) bool { return n.State != nodes.StateOK })
			states := expect.Map(others, func(n nodes.Peer) string { return n.Name + " " + n.State })
			expect.That(t, strings.Join(states, ", ") == j.states, "the nodes are %q, want %q", states, j.states)
			expect.That(t, strings.Contains(said, j.says), "it does not say %q:\n%s", j.says, said)
			expect.Len(t, 0, processes(mark), "processes were left behind")
		})
	}
}

func blamed(r *nodes.Report) []string {
	all := expect.Map(r.Blames, func(b nodes.Blame) string { return b.Kind + " " + strings.Join(b.Nodes, " ") })
	slices.Sort(all)
	return all
}

// TestMeetingPoints checks by which name the first rank is sought in a pod, and what is said where nobody knows.
func TestMeetingPoints(t *testing.T) {
	t.Parallel()
	hosts := filepath.Join(t.TempDir(), "hosts")
	expect.NoError(t, os.WriteFile(hosts, []byte("127.0.0.1\tlocalhost\n10.1.0.7\ttrain-3.workers.default.svc.cluster.local\ttrain-3\n"), 0o600))
	for host, want := range map[string]string{"train-3": "train-3.workers.default.svc.cluster.local", "other": "other"} {
		expect.That(t, fullName(hosts, host) == want && fullName("/nonexistent", host) == host, "%s: %s", host, fullName(hosts, host))
	}
	for line, says := range map[string]string{
		"probe nccl --nodes":                   "no variables of srun",
		"probe nccl --nodes --arms cleaned":    "--arms and --nodes cannot be used together",
		"probe nccl --nodes --format markdown": "markdown",
	} {
		code, _, stderr := inProcess(strings.Fields(line)...)
		expect.That(t, code == exitError && strings.Contains(stderr, says), "%s: exit code %d, %s", line, code, stderr)
	}
}

// TestNodesByMPI checks that the ranks of mpirun find each other, and that what their probe writes is a part of a fleet.
func TestNodesByMPI(t *testing.T) {
	expect.NotByDay(t, "it runs several programs at a time")
	needsNoGPU(t)
	if _, err := exec.LookPath("mpirun"); err != nil {
		expect.LacksTool(t, "mpirun is not installed")
	}
	script := filepath.Join(t.TempDir(), "rank")
	expect.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexport SLURMD_NODENAME=node$OMPI_COMM_WORLD_RANK\n[ $OMPI_COMM_WORLD_RANK != 2 ] || export GPUDOCTOR_SIM_NCCL_FAULT=hang-init-any\n"+
		"exec gpudoctor probe nccl --nodes --probe-timeout 4s --format json\n"), 0o700)) //nolint:gosec // It is a program.
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "mpirun --allow-run-as-root --oversubscribe -np 4 "+script+" | gpudoctor fleet --format json -")
	cmd.Env = nodesEnvironment(t)
	out, err := cmd.Output()
	f := decoded[struct {
		Networks []*nodes.Report
		ExitCode int `json:"exit_code"`
	}](t, out)
	expect.That(t, len(f.Networks) == 1 && f.Networks[0].Engine == "Open MPI" && slices.Equal(blamed(f.Networks[0]), []string{"node node2"}) && f.ExitCode == exitFindings, "%v:\n%s", err, out)
}

// TestNodesBySlurm checks eight nodes of a real Slurm, of which one does not come, one fails by itself, and one hangs with others.
func TestNodesBySlurm(t *testing.T) {
	needsSlurm(t)
	s := newSlurm(t, false, map[string]string{
		"node3": "export GPUDOCTOR_SIM_NCCL_FAULT=error-init=2", "node5": "export GPUDOCTOR_SIM_NCCL_FAULT=hang-init-any", "node8": "exit 1",
	})
	s.nodes = "8"
	wrapper := filepath.Join(s.folder, "bin/gpudoctor")
	text := string(expect.Value(os.ReadFile(wrapper))(t))
	text = strings.Replace(text, "exec ", "export GPUDOCTOR_SIM_GPUS=1 NCCL_NVLS_ENABLE=0 LD_LIBRARY_PATH=$LD_LIBRARY_PATH:"+drivers.Build(t, "nccl")+"\nexec ", 1)
	expect.NoError(t, os.WriteFile(wrapper, []byte(text), 0o700)) //nolint:gosec // It is a program.
	out := s.run(t, "srun --nodes=8 gpudoctor probe nccl --nodes --probe-timeout 4s --arrive 20s --meet 127.0.0.1:23456")
	for _, says := range []string{"8 nodes (Slurm), 6 well by themselves", "node3 fails\n", "node5 fails\n", "the 5 nodes without node5 work together", "node8 (it did not come)"} {
		expect.That(t, strings.Contains(out, says), "it does not say %q", says)
	}
	expect.That(t, strings.Count(out, " fails\n") == 2, "it blames others")
}
