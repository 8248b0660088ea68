package lines

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Span is a piece of a sentence.
type Span struct {
	Text string
	// Code is true for what can be typed or found in a file as it is.
	Code bool
}

// programs are the programs that sentences name.
var programs = strings.Fields(`
all_reduce_perf amd-smi apt-get cat compute-sanitizer df dkms dmesg dnf docker dpkg dracut env fi_info firewall-cmd fuser gpasswd gpudoctor grep
grubby ib_write_bw ibportstate ibqueryerrors ibstat ibv_devinfo ip journalctl kubectl ldconfig ldd lscpu lsmod lspci mlnx_qos modinfo modprobe mount
mpirun nc numactl nv-fabricmanager nvidia-bug-report.sh nvidia-ctk nvidia-smi ping pip python rdma readlink rocm-smi rocminfo sbatch setpci show_gids
sminfo srun sysctl systemctl torchrun ulimit unset update-grub update-initramfs usermod`)

// operands are the words beside options, paths and values that belong to a command of theirs.
var operands = strings.Fields(`
addr all amdgpu bash build cdi check configure daemon-reload describe diff disable do dscp efa enable explain facts full generate get ib_umad install
libnccl-net.so link list metric mig mtu node nvidia nvidia-fabricmanager nvidia-peermem nvidia-smi nvlink opensm pod probe quick r render reset
restart route run runtime rw set snapshot start static status stop tmpfs topo topology torch ubuntu up video`)

// english are programs whose names are words: alone they are none.
var english = []string{"cat", "df", "docker", "env", "grep", "ip", "mount", "ping", "pip", "python", "rdma", "unset"}

// code matches what can be typed or found in a file, from a blank and what opens to what closes and a blank: a command, an option, a variable, a
// kernel or module parameter, or a path. What is quoted in a command, and $(ulimit -Hn), belongs to it. So does any word behind a pipe, and
// behind options that take a word.
var code = sync.OnceValue(func() *regexp.Regexp {
	anyOf := func(words []string) string { return strings.Join(Map(words, regexp.QuoteMeta), "|") }
	const (
		opens, closes = `[("'\x60\[{]`, `[.,;:?!)"'\x60\]}]`
		last          = `[^ .,;:?!)"'\x60\]}]` // Of a word.
		first         = `[^ ("'\x60\[{]`
		rest          = `(?:[^ ]*` + last + `)?`
		value         = `(?:=(?:"[^"]*"|[^ ]*` + last + `))?`
		name          = `[A-Za-z0-9_.:*+-]`
	)
	operand := `(?: (?:` + strings.Join([]string{
		`"[^"]*"`, `\$\([^)]*\)`, `(?:\||--(?:from|only|policy|probe|profile|with)) (?:` + first + `[^ ]*)?` + last, `(?:` + anyOf(operands) + `)\b`,
		`-[^ ]*` + last, `(?:` + first + `[^ ]*)?[/=_*$|0-9]` + rest, `[A-Z][A-Z-]{2,}\b`,
	}, "|") + `))`
	others := slices.DeleteFunc(slices.Clone(programs), func(p string) bool { return slices.Contains(english, p) })
	return regexp.MustCompile(`(?:^| )` + opens + `*(` + strings.Join([]string{
		`(?:` + anyOf(english) + `)` + operand + `+`,
		`(?:` + anyOf(others) + `)` + operand + `*`,
		`--?[A-Za-z][A-Za-z0-9_-]*` + value,
		`[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+` + value,
		`[a-z][a-z0-9_.]*=[A-Za-z0-9=@]` + rest,
		`/(?:dev|etc|opt|proc|run|sys|tmp|usr|var)(?:/` + name + `+)*/` + name + `*[A-Za-z0-9_*+-]/?`,
	}, "|") + `)` + closes + `*(?: |$)`)
})

// Spans are the pieces of a sentence, which joined give the sentence.
func Spans(s string) (spans []Span) {
	add := func(text string, code bool) {
		if text != "" {
			spans = append(spans, Span{text, code})
		}
	}
	for {
		m := code().FindStringSubmatchIndex(s)
		if m == nil {
			add(s, false)
			return spans
		}
		add(s[:m[2]], false)
		add(s[m[2]:m[3]], true)
		s = s[m[3]:]
	}
}
