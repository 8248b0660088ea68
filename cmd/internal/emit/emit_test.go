package emit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures/contract"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// TestGoldenSchema checks that the published contract equals the Go types.
func TestGoldenSchema(t *testing.T) {
	s := contract.Schema(t, plan.Schema, &plan.Plan{}, map[reflect.Type][]any{
		reflect.TypeFor[plan.Kind](): {
			plan.Variable, plan.Unset, plan.Argument, plan.GPUs, plan.SharedMemory, plan.Limit, plan.Capability, plan.Device, plan.Group, plan.Namespace,
			plan.Mount, plan.KernelParameter, plan.Sysctl, plan.ModuleOption,
		},
	}, "remedies", filepath.Join("remedies", "plan"), filepath.Join("checks", "probe"))
	expect.Golden(t, filepath.Join("..", "..", "..", "docs", "plan.schema.json"), expect.Value(lines.JSON(s))(t))
}

// nasty is a value that means something else in each language, unless it is quoted.
const nasty = `a b"c'd$e` + "`f`" + `\g%h#i;j{k}: l*`

// full is a plan with every kind of setting, and values that need quotes.
func full() *plan.Plan {
	cures := []remedies.Cure{{Rule: "some-rule", Subject: "host"}}
	p := &plan.Plan{
		Schema: plan.Schema, Version: "1.2.3", Machine: "2 x NVIDIA H200\nwith a second line", Vendor: "nvidia", Bind: true,
		Ranks: []plan.Rank{
			{GPU: "0000:18:00.0", Index: 0, Node: new(0), CPUs: "0-15,32-47", NICs: []string{"mlx5_0"}},
			{GPU: "0000:98:00.0", Index: 1, Node: new(1), CPUs: "16-31,48-63", NICs: []string{"mlx5_1", "mlx5_2"}},
		},
		Settings: []plan.Setting{
			{Kind: plan.Variable, Name: "NCCL_NASTY", Value: nasty},
			{Kind: plan.Variable, Name: "NCCL_P2P_DISABLE", Value: "1", Cures: cures, Remedy: "nccl-p2p-disable", Caution: "It only affects NCCL", Until: "Set the IOMMU to pass-through", Proof: &remedies.Proof{Outcome: remedies.Proven, Detail: "43.2 GB/s, correct"}},
			{Kind: plan.Variable, Name: "CUDA_VISIBLE_DEVICES", Value: "0,1"},
			{Kind: plan.Unset, Name: "NCCL_SOCKET_IFNAME", Cures: cures, Remedy: "unset-env"},
			{Kind: plan.Argument, Name: "vllm", Value: "--disable-custom-all-reduce"},
			{Kind: plan.Argument, Name: "sglang", Value: "--disable-custom-all-reduce"},
			{Kind: plan.GPUs, Value: "all"},
			{Kind: plan.SharedMemory, Value: "16g"},
			{Kind: plan.Limit, Name: "memlock", Value: "-1"},
			{Kind: plan.Limit, Name: "nofile", Value: "1048576:1048576"},
			{Kind: plan.Limit, Name: "pids", Value: "-1"},
			{Kind: plan.Capability, Name: "SYS_NICE"},
			{Kind: plan.Capability, Name: "IPC_LOCK", For: []string{"kubernetes"}},
			{Kind: plan.Device, Name: "/dev/infiniband"},
			{Kind: plan.Group, Name: "render"},
			{Kind: plan.Namespace, Name: "ipc", Value: "host"},
			{Kind: plan.Namespace, Name: "network", Value: "host"},
			{Kind: plan.Mount, Name: "/sys", Value: "/sys:ro"},
			{Kind: plan.KernelParameter, Name: "pci", Value: "disable_acs_redir=0000:17:00.0;0000:39:00.0", Cures: cures, Remedy: "disable-acs"},
			{Kind: plan.KernelParameter, Name: "iommu", Value: "pt"},
			{Kind: plan.KernelParameter, Name: "quiet"},
			{Kind: plan.Sysctl, Name: "kernel.numa_balancing", Value: "0"},
			{Kind: plan.ModuleOption, Name: "amdgpu", Value: "pcie_p2p=1"},
		},
		Steps:   []plan.Step{{Remedy: "update-bios", Title: "Update the BIOS", Cures: cures}},
		Unknown: []string{"the RDMA devices"},
	}
	for i := range p.Settings {
		p.Settings[i].Reason = fmt.Sprintf("Reason %d, with \"quotes\" = $signs, and # too: it\nhas two lines.", i)
	}
	return p
}

func plans() map[string]*plan.Plan {
	one := full()
	one.Ranks = one.Ranks[:1]
	loose := full()
	loose.Bind = false
	return map[string]*plan.Plan{"full": full(), "one rank": one, "not bound": loose, "empty": {Machine: "1 x NVIDIA H200", Ranks: []plan.Rank{{GPU: "0000:18:00.0"}}}, "nothing": {}}
}

func emitted(t *testing.T, target string, p *plan.Plan) string {
	t.Helper()
	to, known := emit.Named(target)
	expect.Must(t, known, "there is no target %s", target)
	return to.Write(p, "")
}

// each calls a function for each plan in the form of some targets.
func each(t *testing.T, targets []string, check func(t *testing.T, p *plan.Plan, text string)) {
	t.Helper()
	for _, target := range targets {
		for name, p := range plans() {
			t.Run(target+"/"+name, func(t *testing.T) { check(t, p, emitted(t, target, p)) })
		}
	}
}

// checkers are the targets, each with the function that holds it against the real thing.
var checkers = map[string]func(t *testing.T, p *plan.Plan, text string){
	"torchrun": isScript, "vllm": isScript, "sglang": isScript, "deepspeed": isScript, "mpi": isScript, "slurm": isScript, "docker": isScript, "env": isScript,
	"compose": isYAML, "kubernetes": isYAML, "grub": isGRUB, "systemd": isUnit, "nccl.conf": isConf, "sysctl": settingsOnly("kernel.numa_balancing = 0"), "modprobe": settingsOnly("options amdgpu pcie_p2p=1"),
}

// TestReal checks that what is written is what its reader takes, and means what the plan says.
func TestReal(t *testing.T) {
	for _, target := range emit.Names() {
		check := checkers[target]
		expect.Must(t, check != nil, "nothing checks %s", target)
		each(t, []string{target}, check)
	}
}

// TestRead checks that every form which starts a program, and the variables for a shell, are read as a
// description of a job with the variables of the plan.
func TestRead(t *testing.T) {
	kinds := map[string]string{
		"torchrun": "torchrun", "vllm": "command", "sglang": "command", "deepspeed": "command", "mpi": "mpirun", "slurm": "slurm", "docker": "docker-run",
		"compose": "compose", "kubernetes": "kubernetes", "env": "shell",
	}
	each(t, slices.Sorted(maps.Keys(kinds)), func(t *testing.T, p *plan.Plan, text string) {
		t.Helper()
		target, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestRead/"), "/")
		name := "standard input"
		if target == "env" {
			name = "gpudoctor.env"
		}
		f := texttest.Parse(name, text)
		has := func(kind string) bool {
			return slices.ContainsFunc(f.Launches, func(l facts.Launch) bool { return l.Kind == kind })
		}
		sets := slices.ContainsFunc(p.Settings, func(s plan.Setting) bool { return s.Kind == plan.Variable })
		expect.That(t, (has(kinds[target]) || target == "env" && !sets) && len(f.Unknown) == 0, "got %+v, %+v from\n%s", f.Launches, f.Unknown, text)
		for _, s := range p.Settings {
			expect.That(t, s.Kind != plan.Variable || s.Value == nasty || slices.ContainsFunc(f.Launches, func(l facts.Launch) bool { return l.Variables[s.Name] == s.Value }), "%s is not read from\n%s", s.Name, text)
		}
	})
}

func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("%s is not installed", name)
	}
	c := exec.Command(path, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	expect.Must(t, err == nil, "%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	return string(out)
}

func saved(t *testing.T, dir, name, text string, perm os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	expect.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	expect.NoError(t, os.WriteFile(file, []byte(text), perm))
	return file
}

// isScript checks that bash takes it.
func isScript(t *testing.T, _ *plan.Plan, text string) {
	t.Helper()
	output(t, "", nil, "bash", "-n", saved(t, t.TempDir(), "script", text, 0o644))
	for line := range strings.Lines(text) {
		expect.That(t, !strings.HasPrefix(line, "#") || len(line) <= 120, "the comment is %d columns wide: %s", len(line), line)
	}
}

// isYAML checks that it is one document of YAML. With the tag ci, the loader of Compose and the decoder of Kubernetes read it.
func isYAML(t *testing.T, _ *plan.Plan, text string) {
	t.Helper()
	var document map[string]any
	d := yaml.NewDecoder(strings.NewReader(text))
	expect.That(t, d.Decode(&document) == nil && errors.Is(d.Decode(new(any)), io.EOF), "it is not one document:\n%s", text)
}

// isGRUB checks what grub-mkconfig makes of it: the shell reads the file, the value stands in a
// line of GRUB's language, and that is split into words, of which quotes are no part.
func isGRUB(t *testing.T, p *plan.Plan, text string) {
	t.Helper()
	isScript(t, p, text)
	dir := t.TempDir()
	line := output(t, dir, nil, "bash", "-c", `GRUB_CMDLINE_LINUX=first; . "$0"; printf %s "$GRUB_CMDLINE_LINUX"`, saved(t, dir, "gpudoctor.cfg", text, 0o644))
	words := grubWords(t, line)
	want := []string{"first"}
	if len(p.Settings) > 0 {
		want = append(want, "pci=disable_acs_redir=0000:17:00.0;0000:39:00.0", "iommu=pt", "quiet")
	}
	expect.That(t, slices.Equal(words, want), "GRUB passes %q, want %q", words, want)
}

// grubWords splits a line as GRUB's script language does (GNU GRUB manual, "Writing full
// configuration files directly", section on quoting): a semicolon outside of quotes ends the command.
func grubWords(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	word, in, quoted := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted, in = !quoted, true
		case c == '\\' && i+1 < len(line) && (!quoted || strings.IndexByte("$\"\\", line[i+1]) >= 0):
			i++
			word, in = word+string(line[i]), true
		case strings.IndexByte(";|&<>{}", c) >= 0 && !quoted || c == '$':
			t.Fatalf("GRUB takes %q of %s for its own", c, line)
		case (c == ' ' || c == '\t') && !quoted:
			if in {
				words = append(words, word)
			}
			word, in = "", false
		default:
			word, in = word+string(c), true
		}
	}
	if in {
		words = append(words, word)
	}
	return words
}

// isUnit checks that systemd takes it as a drop-in of a service, and what it makes of it.
func isUnit(t *testing.T, p *plan.Plan, text string) {
	t.Helper()
	dir := t.TempDir()
	saved(t, dir, "job.service.d/gpudoctor.conf", text, 0o644)
	unit := saved(t, dir, "job.service", "[Unit]\nDescription=a job\n[Service]\nExecStart=/bin/true\n", 0o644)
	c := exec.Command("systemd-analyze", "verify", "--man=no", "--generators=no", unit)
	c.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
	out, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("systemd-analyze is not installed")
	}
	expect.That(t, !strings.Contains(string(out), "gpudoctor.conf") && (err == nil || !strings.Contains(string(out), dir)), "%v\n%s\n%s", err, out, text)
	if len(p.Settings) == 0 {
		return
	}
	for _, want := range []string{"\nLimitMEMLOCK=infinity\n", "\nLimitNOFILE=1048576:1048576\n", "\nTasksMax=infinity\n", "\nUnsetEnvironment=NCCL_SOCKET_IFNAME\n", "\nEnvironment=\"NCCL_P2P_DISABLE=1\"\n"} {
		expect.That(t, strings.Contains(text, want), "it lacks %q", strings.TrimSpace(want))
	}
}

// isConf checks what NCCL reads of it: as setEnvFile of its src/misc/param.cc, each line up to the
// first equals sign is a name, whatever stands there.
func isConf(t *testing.T, p *plan.Plan, text string) {
	t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, set := strings.Cut(strings.TrimSuffix(line, "\n"), "="); set {
			got[name] = value
		}
	}
	want := map[string]string{}
	if len(p.Settings) > 0 {
		want = map[string]string{"NCCL_NASTY": nasty, "NCCL_P2P_DISABLE": "1"}
	}
	expect.NoDiff(t, want, got, "NCCL reads")
}

// settingsOnly checks that each line is a comment or a setting.
func settingsOnly(setting string) func(t *testing.T, p *plan.Plan, text string) {
	return func(t *testing.T, p *plan.Plan, text string) {
		t.Helper()
		var got []string
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				got = append(got, line)
			}
		}
		want := []string{setting}[:min(1, len(p.Settings))]
		expect.That(t, slices.Equal(got, want), "it sets %q, want %q", got, want)
	}
}

// stub is a program that writes its arguments and some of its environment, a line each, instead of what it stands for.
const stub = `#!/bin/bash
echo "$(basename "$0")"
printf '%s\n' "$@"
echo "NASTY=${NCCL_NASTY-none}"
echo "P2P=${NCCL_P2P_DISABLE-none}"
echo "IFNAME=${NCCL_SOCKET_IFNAME-none}"
`

// environment is what the stub writes of the environment of the full plan.
var environment = []string{"NASTY=" + nasty, "P2P=1", "IFNAME=none"}

// started is what a script starts when it is called with arguments.
func started(t *testing.T, target string, p *plan.Plan, env []string, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"torchrun", "vllm", "python3", "deepspeed", "mpirun", "srun", "docker", "numactl", "taskset"} {
		saved(t, dir, name, stub, 0o755)
	}
	script := saved(t, dir, "script", emitted(t, target, p), 0o755)
	env = append(env, "PATH="+dir+":"+os.Getenv("PATH"), "NCCL_SOCKET_IFNAME=dead0")
	out := output(t, dir, env, "bash", append([]string{script}, args...)...)
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(out, script, "SCRIPT"), "\n"), "\n")
}

// TestStarted checks what each script really starts: the launcher with its flags and the user's
// arguments as they are, in an environment with the variables.
func TestStarted(t *testing.T) {
	for target, want := range map[string][]string{
		"torchrun":  {"torchrun", "--nproc-per-node=2", "--numa-binding=node", "a b", "*"},
		"vllm":      {"vllm", "serve", "a b", "*", "--disable-custom-all-reduce", "--numa-bind"},
		"sglang":    {"python3", "-m", "sglang.launch_server", "a b", "*", "--disable-custom-all-reduce", "--numa-node", "0", "1"},
		"deepspeed": {"deepspeed", "--num_gpus", "2", "--no_python", "SCRIPT", "python3", "a b", "*"},
		"mpi": {
			"mpirun", "--map-by", "ppr:2:node", "--bind-to", "none", "-x", "NCCL_NASTY", "-x", "NCCL_P2P_DISABLE", "-x", "CUDA_VISIBLE_DEVICES",
			"-x", "GPUDOCTOR_RANK=1", "SCRIPT", "a b", "*",
		},
		"slurm": {"srun", "--cpu-bind=map_ldom:0,1", "--mem-bind=map_mem:0,1", "a b", "*"},
		"docker": {
			"docker", "run", "--rm", "--env=NCCL_NASTY=" + nasty, "--env=NCCL_P2P_DISABLE=1", "--env=CUDA_VISIBLE_DEVICES=0,1", "--env=NCCL_SOCKET_IFNAME",
			"--gpus=all", "--shm-size=16g", "--ulimit=memlock=-1", "--ulimit=nofile=1048576:1048576", "--pids-limit=-1", "--cap-add=SYS_NICE",
			"--device=/dev/infiniband", "--group-add=render", "--ipc=host", "--network=host", "--volume=/sys:/sys:ro", "a b", "*",
		},
	} {
		t.Run(target, func(t *testing.T) {
			want := append(want, environment...)
			if target == "docker" { // The variables are the container's.
				want = append(want[:len(want)-len(environment)], "NASTY=none", "P2P=none", "IFNAME=none")
			}
			expect.NoDiff(t, want, started(t, target, full(), nil, "a b", "*"), "it starts")
		})
	}
}

// TestRanks checks what the script becomes when the launcher starts it as a rank: the program,
// bound to the node of its GPU.
func TestRanks(t *testing.T) {
	for target, variable := range map[string]string{"deepspeed": "LOCAL_RANK", "mpi": "OMPI_COMM_WORLD_LOCAL_RANK"} {
		for rank, node := range []string{"0", "1"} {
			env := []string{"GPUDOCTOR_RANK=1", fmt.Sprintf("%s=%d", variable, rank)}
			want := append([]string{"numactl", "--cpunodebind=" + node, "--membind=" + node, "python3", "train.py", "a b"}, environment...)
			got := started(t, target, full(), env, "python3", "train.py", "a b")
			expect.That(t, slices.Equal(got[:min(len(got), len(want))], want), "%s, rank %d: %q", target, rank, got)
		}
	}
}

// TestWords checks that each setting has words of its own, that each but the bare number of GPUs and
// the size has a target that sets it, and that a plan's overview shows each, at every width.
func TestWords(t *testing.T) {
	for _, s := range full().Settings {
		expect.That(t, emit.Words(s) != "" && slices.ContainsFunc(emit.Targets(), func(to emit.Target) bool { return to.Sets(s) }), "%s %s: words %q, or no target sets it", s.Kind, s.Name, emit.Words(s))
	}
	for _, width := range []int{0, 20, 40, 80, 200} {
		for name, p := range plans() {
			text := string(emit.Overview(p, width, false, true))
			flat := strings.Join(strings.Fields(text), " ")
			for _, s := range p.Settings {
				expect.That(t, strings.Contains(text, emit.Words(s)), "%s at %d columns: it does not show %s", name, width, emit.Words(s))
			}
			for i, step := range p.Steps {
				want := fmt.Sprintf("%d. %s (gpudoctor explain %s)", i+1, step.Title, step.Remedy)
				expect.That(t, strings.Contains(flat, want), "%s at %d columns: it does not show %q", name, width, want)
			}
		}
	}
}
