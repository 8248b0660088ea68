package emit

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// usage writes how a script is called, and that it stops at the first error.
func (f *file) usage(arguments string) {
	f.comment("", "usage: ./"+f.name+" "+arguments)
	f.line("set -euo pipefail")
}

// exports writes the variables for a shell.
func (f *file) exports() {
	var last plan.Setting
	for i, s := range f.of(plan.Variable, plan.Unset) {
		if i == 0 || s.Reason != last.Reason {
			f.line("")
			f.comment("", Why(s))
		}
		if s.Kind == plan.Unset {
			f.line("unset %s", remedies.Quote(s.Name))
		} else {
			f.line("export %s=%s", remedies.Quote(s.Name), remedies.Quote(s.Value))
		}
		last = s
	}
}

// arguments are those of the program that the script starts, each with a space before it.
func (f *file) arguments() string {
	var b strings.Builder
	for _, s := range f.of(plan.Argument) {
		b.WriteString(" " + remedies.Quote(s.Value))
	}
	return b.String()
}

// argued writes why the program gets arguments.
func (f *file) argued() {
	f.reasons(f.of(plan.Argument), func(s plan.Setting) string { return s.Value })
}

// near says that ranks run near their GPUs, and by what.
func (f *file) near(by string) {
	f.comment("", by+": each rank runs on the NUMA node of its GPU ("+f.nodes(", ")+").")
}

func writeTorchrun(f *file) {
	f.usage("[TORCHRUN'S FLAGS] SCRIPT.py [ARGUMENTS]")
	f.exports()
	f.line("")
	bind := ""
	if f.plan.Bind {
		bind = " --numa-binding=node"
		f.near("--numa-binding=node (PyTorch 2.9 and newer)")
	}
	f.line(`exec torchrun --nproc-per-node=%d%s "$@"`, f.gpus(), bind)
}

func writeVLLM(f *file) {
	f.usage("MODEL --tensor-parallel-size N [ARGUMENTS]")
	f.exports()
	f.line("")
	f.argued()
	bind := ""
	if f.plan.Bind {
		bind = " --numa-bind"
		f.near("--numa-bind (vLLM 0.18 and newer)")
	}
	f.line(`exec vllm serve "$@"%s%s`, f.arguments(), bind)
}

func writeSGLang(f *file) {
	f.usage("--model-path MODEL --tp N [ARGUMENTS]")
	f.exports()
	f.line("")
	f.argued()
	bind := ""
	if f.plan.Bind {
		bind = " --numa-node " + f.nodes(" ")
		f.near("--numa-node")
	}
	f.line(`exec python3 -m sglang.launch_server "$@"%s%s`, f.arguments(), bind)
}

func writeDeepSpeed(f *file) {
	f.usage("SCRIPT.py [ARGUMENTS]")
	f.exports()
	f.bound("LOCAL_RANK", false)
	f.line("")
	if f.plan.Bind {
		f.line(`GPUDOCTOR_RANK=1 exec deepspeed --num_gpus %d --no_python "$0" python3 "$@"`, f.gpus())
		return
	}
	f.line(`exec deepspeed --num_gpus %d "$@"`, f.gpus())
}

func writeMPI(f *file) {
	f.usage("PROGRAM [ARGUMENTS]")
	f.comment("", "MPIRUN_FLAGS has further flags of mpirun, such as the hosts: MPIRUN_FLAGS='-H a:8,b:8'.")
	ports := f.ports()
	f.exports()
	f.bound("OMPI_COMM_WORLD_LOCAL_RANK", ports != "")
	f.line("")
	var names strings.Builder
	for _, s := range f.of(plan.Variable) {
		names.WriteString(" -x " + remedies.Quote(s.Name))
	}
	if f.plan.Bind || ports != "" {
		f.line(`exec mpirun --map-by ppr:%d:node --bind-to none%s -x GPUDOCTOR_RANK=1 ${MPIRUN_FLAGS:-} "$0" "$@"`, f.gpus(), names.String())
		return
	}
	f.line(`exec mpirun --map-by ppr:%d:node --bind-to none%s ${MPIRUN_FLAGS:-} "$@"`, f.gpus(), names.String())
}

// ports are the RDMA ports nearest to the GPU of each rank, as UCX takes them; empty where
// they are not known of every rank.
func (f *file) ports() string {
	var all []string
	for _, r := range f.plan.Ranks {
		if len(r.Ports) == 0 {
			return ""
		}
		all = append(all, remedies.Quote(strings.Join(r.Ports, ",")))
	}
	return strings.Join(all, " ")
}

// bound writes what the script does when the launcher starts it again as a rank: it binds
// itself to the node of its GPU and becomes the program. Where memory may not be bound, which
// takes CAP_SYS_NICE in a container, processors alone are.
func (f *file) bound(rank string, withPorts bool) {
	if !f.plan.Bind && !withPorts {
		return
	}
	f.line("")
	f.comment("", "The launcher starts this script again as each rank.")
	f.line(`if [ -n "${GPUDOCTOR_RANK:-}" ]; then`)
	f.line(`    rank=$%s`, rank)
	if withPorts {
		f.comment("    ", "UCX uses the RDMA ports nearest to the GPU of the rank. NCCL finds them by itself.")
		f.line("    ports=(%s)", f.ports())
		f.line(`    export UCX_NET_DEVICES=${ports[$rank]}`)
	}
	if !f.plan.Bind {
		f.line(`    exec "$@"`)
		f.line("fi")
		return
	}
	f.comment("    ", "Each rank runs on the NUMA node of its GPU, and its memory is there.")
	f.line("    nodes=(%s)", f.nodes(" "))
	var cpus []string
	for _, r := range f.plan.Ranks {
		cpus = append(cpus, remedies.Quote(r.CPUs))
	}
	f.line("    cpus=(%s)", strings.Join(cpus, " "))
	f.line(`    bind=(--cpunodebind="${nodes[$rank]}" --membind="${nodes[$rank]}")`)
	f.line(`    if numactl "${bind[@]}" true >/dev/null 2>&1; then`)
	f.line(`        exec numactl "${bind[@]}" "$@"`)
	f.line("    fi")
	f.line(`    exec taskset --cpu-list "${cpus[$rank]}" "$@"`)
	f.line("fi")
}

func writeSlurm(f *file) {
	f.comment("", "usage: sbatch [SBATCH'S FLAGS] "+f.name+" PROGRAM [ARGUMENTS]")
	f.line("#SBATCH --nodes=1")
	f.line("#SBATCH --gpus-per-node=%d", f.gpus())
	f.line("#SBATCH --ntasks-per-node=%d", f.gpus())
	if f.plan.Bind {
		f.comment("", "Ranks are bound to NUMA nodes, of which the job must have all processors.")
		f.line("#SBATCH --exclusive")
	}
	f.line("set -euo pipefail")
	f.exports()
	f.line("")
	if !f.plan.Bind {
		f.line(`exec srun "$@"`)
		return
	}
	f.near("--cpu-bind and --mem-bind")
	f.line(`exec srun --cpu-bind=map_ldom:%s --mem-bind=map_mem:%s "$@"`, f.nodes(","), f.nodes(","))
}

func writeDocker(f *file) {
	f.usage("IMAGE [COMMAND]")
	f.line("")
	var options []string
	for _, s := range f.settings {
		options = append(options, remedies.Quote(flag(s)))
	}
	f.reasons(f.settings, flag)
	for _, s := range f.of(plan.Unset) {
		f.comment("", "A variable without a value is removed from those of the image.")
		f.line("unset %s", remedies.Quote(s.Name))
	}
	f.line("exec docker run --rm \\")
	for _, o := range options {
		f.line("    %s \\", o)
	}
	f.line(`    "$@"`)
}

func writeEnv(f *file) {
	f.comment("", "usage: source "+f.name)
	f.exports()
	if len(f.settings) == 0 {
		f.comment("", "This machine needs no variable: the defaults of the libraries fit.")
	}
}

func writeConf(f *file) {
	f.comment("", "NCCL reads it as /etc/nccl.conf, or ~/.nccl.conf. It cannot remove a variable, and the environment overrides it.")
	for _, s := range f.settings {
		f.comment("", s.Name+": "+Why(s))
		f.line("%s=%s", s.Name, s.Value)
	}
	if len(f.settings) == 0 {
		f.comment("", "This machine needs no variable of NCCL: the defaults fit.")
	}
}

func writeGRUB(f *file) {
	f.comment("", "Debian and Ubuntu: save it as /etc/default/grub.d/gpudoctor.cfg, run update-grub as root, and reboot.")
	if len(f.settings) == 0 {
		f.comment("", "This machine needs no kernel parameter.")
		return
	}
	f.comment("", "RHEL and derivatives: grubby --update-kernel=ALL --args="+remedies.Quote(strings.Join(parameters(f.settings, parameter), " "))+", and reboot.")
	f.reasons(f.settings, parameter)
	f.line(`GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX %s"`, strings.Join(parameters(f.settings, quotedForGRUB), " "))
}

func parameters(settings []plan.Setting, write func(plan.Setting) string) []string {
	var all []string
	for _, s := range settings {
		all = append(all, write(s))
	}
	return all
}

// quotedForGRUB is a parameter inside a double-quoted string of a shell, from which grub-mkconfig
// makes a line of GRUB's own language: there, a semicolon ends a command outside of quotes.
func quotedForGRUB(s plan.Setting) string {
	p := parameter(s)
	if !strings.ContainsFunc(p, func(r rune) bool { return !strings.ContainsRune(plainForGRUB, r) }) {
		return p
	}
	escaped := strings.NewReplacer(`\`, `\\\\`, `"`, `\\\"`, "$", `\\\$`, "`", "\\`").Replace(p)
	return `\"` + escaped + `\"`
}

// plainForGRUB are the characters that need no quotes.
const plainForGRUB = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=,.:_-+@/"

func writeUnit(f *file) {
	f.comment("", "Save it as /etc/systemd/system/SERVICE.service.d/gpudoctor.conf, then run systemctl daemon-reload and restart the service.")
	node := f.oneNode()
	if len(f.settings) == 0 && node < 0 {
		f.comment("", "A service needs no setting on this machine.")
		return
	}
	f.line("[Service]")
	for _, s := range f.settings {
		f.comment("", Why(s))
		switch s.Kind {
		case plan.Unset:
			f.line("UnsetEnvironment=%s", s.Name)
		case plan.Limit:
			name := map[string]string{"memlock": "LimitMEMLOCK", "nofile": "LimitNOFILE", "pids": "TasksMax"}[s.Name]
			f.line("%s=%s", name, strings.ReplaceAll(s.Value, "-1", "infinity"))
		default:
			f.line("Environment=%s", quotedForUnit(s.Name+"="+s.Value))
		}
	}
	if node >= 0 {
		f.comment("", "All GPUs are on this NUMA node.")
		f.line("NUMAPolicy=bind")
		f.line("NUMAMask=%d", node)
		f.line("CPUAffinity=numa")
	}
}

// oneNode is the NUMA node of all GPUs, where there are others; -1 where there is none.
func (f *file) oneNode() int {
	if !f.plan.Bind || slices.ContainsFunc(f.plan.Ranks, func(r plan.Rank) bool { return *r.Node != *f.plan.Ranks[0].Node }) {
		return -1
	}
	return *f.plan.Ranks[0].Node
}

// quotedForUnit quotes a value of a unit (systemd.syntax), where % begins a specifier.
func quotedForUnit(s string) string { return strings.ReplaceAll(strconv.Quote(s), "%", "%%") }

func writeSysctl(f *file) {
	f.comment("", "Save it as /etc/sysctl.d/90-gpudoctor.conf, and run sysctl --system as root.")
	if len(f.settings) == 0 {
		f.comment("", "This machine needs no kernel setting.")
	}
	for _, s := range f.settings {
		f.comment("", Why(s))
		f.line("%s = %s", s.Name, s.Value)
	}
}

func writeModprobe(f *file) {
	f.comment("", "Save it as /etc/modprobe.d/gpudoctor.conf. Rebuild the initial RAM disk (update-initramfs -u, or dracut -f), and reboot.")
	if len(f.settings) == 0 {
		f.comment("", "This machine needs no module option.")
	}
	for _, s := range f.settings {
		f.comment("", Why(s))
		f.line("options %s %s", s.Name, s.Value)
	}
}
