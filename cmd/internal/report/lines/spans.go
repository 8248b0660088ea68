package lines

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
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

var (
	option   = lazy.New(`^--?[A-Za-z][A-Za-z0-9_-]*(?:=\S+)?$`)
	variable = lazy.New(`^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:=\S+)?$`)
	setting  = lazy.New(`^[a-z][a-z0-9_.]*=[A-Za-z0-9=@].*$`) // A kernel or module parameter.
	path     = lazy.New(`^/(?:dev|etc|opt|proc|run|sys|tmp|usr|var)(?:/[A-Za-z0-9_.:*+-]+)+/?$`)
	argument = lazy.New(`[/=_*$|0-9]|^-.|^[A-Z][A-Z-]{2,}$`)
)

// valued are options behind which any word is a value.
var valued = []string{"--from", "--only", "--policy", "--probe", "--profile", "--with"}

// closing is the punctuation behind code.
const closing = ".,;:?!)\"'`]}"

// word is one of a sentence: what is in front of it and behind it is punctuation.
type word struct{ before, core, after string }

func wordOf(s string) word {
	core := strings.TrimLeft(s, "(\"'`[{")
	w := word{before: s[:len(s)-len(core)]}
	w.core = strings.TrimRight(core, closing)
	w.after = core[len(w.core):]
	return w
}

// isCode reports whether a word is code by itself.
func (w word) isCode() bool {
	return option.MatchString(w.core) || variable.MatchString(w.core) || setting.MatchString(w.core) || path.MatchString(w.core)
}

// Spans are the pieces of a sentence, which joined give the sentence.
func Spans(s string) []Span {
	var spans []Span
	add := func(text string, code bool) {
		if text == "" {
			return
		}
		if n := len(spans); n > 0 && !code && !spans[n-1].Code {
			spans[n-1].Text += text
			return
		}
		spans = append(spans, Span{text, code})
	}
	tokens := strings.Split(s, " ")
	for i := 0; i < len(tokens); i++ {
		if i > 0 {
			add(" ", false)
		}
		w := wordOf(tokens[i])
		n := 0
		if slices.Contains(programs, w.core) {
			n = command(tokens[i:])
		} else if w.isCode() {
			n = 1
		}
		if n == 0 {
			add(tokens[i], false)
			continue
		}
		whole, after := end(strings.Join(tokens[i:i+n], " ")[len(w.before):])
		add(w.before, false)
		add(whole, true)
		add(after, false)
		i += n - 1
	}
	return spans
}

// end parts code from the punctuation behind it. What is quoted in it, and what closes
// $(ulimit -Hn), belongs to it.
func end(s string) (code, after string) {
	if i := strings.LastIndex(s, `"`); strings.Count(s, `"`) == 2 {
		return s[:i+1], s[i+1:]
	}
	code = strings.TrimRight(s, closing)
	if strings.Contains(code, "$(") && !strings.Contains(code, ")") && strings.HasPrefix(s[len(code):], ")") {
		code += ")"
	}
	return code, s[len(code):]
}

// quotation is how many of the tokens stand in one pair of quotes; 0 if the first does not
// begin with a quote.
func quotation(tokens []string) int {
	if !strings.HasPrefix(tokens[0], `"`) {
		return 0
	}
	for i, w := range tokens {
		if strings.Contains(wordOf(w).after, `"`) {
			return i + 1
		}
	}
	return 0
}

// command is how many of the tokens are a command; the first is a program.
func command(tokens []string) int {
	first := wordOf(tokens[0])
	n := 1
	for last := first; last.after == "" && n < len(tokens); n++ {
		w := wordOf(tokens[n])
		if quoted := quotation(tokens[n:]); quoted > 0 {
			n += quoted - 1
			last = wordOf(tokens[n])
			last.after = strings.TrimPrefix(last.after, `"`)
			continue
		}
		open := n > 1 && tokens[n-1] == "|" || slices.Contains(valued, tokens[n-1])
		if w.before != "" || w.core == "" || !slices.Contains(operands, w.core) && !argument.MatchString(w.core) && !open {
			break
		}
		last = w
	}
	if n == 1 && slices.Contains(english, first.core) {
		return 0
	}
	return n
}
