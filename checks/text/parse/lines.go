package parse

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// MaxLine bounds a line, in bytes; what is longer is cut.
const MaxLine = 64 << 10

// Size is a number of bytes for people.
func Size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }

// Line is one line of a text, without its end and without terminal escapes.
type Line struct {
	// Text is what it holds, without what launchers put before it (see prefixesLen); a tab stays a tab.
	Text string
	// whole is the line with its sure prefixes, without what follows it (see withoutSuffix); empty if it has none.
	whole string
	// bare is the line without its sure prefixes.
	bare string
	// said is what the line says in the form of a program's own line, where it quotes one in another form.
	said string
	// Number counts from 1, as editors do: a line feed ends a line, and so does a
	// carriage return in a text that has no line feeds.
	Number int
	// takers are those that have an anchor in the line.
	takers []uint16
	// prompt is true if it may be a shell prompt.
	prompt bool
	// joins are the lines that it may be the first piece of, and index is its place in
	// the chunk, where that is all of the text.
	joins []join
	index int
	// piece is all of the line where a screen may have broken it: it goes on in the next one.
	piece string
}

// of sets what a line holds.
func (l *Line) of(text string) {
	n := prefixesLen(text)
	l.Text = withoutSuffix(text[n:])
	l.whole, l.bare = "", l.Text
	if n > 0 {
		l.whole = text[:n] + l.Text
	}
}

// Whole is the line with what a launcher put before it.
func (l Line) Whole() string { return cmp.Or(l.whole, l.bare, l.Text) }

// Quoted is how many times a line is quoted, as Markdown and e-mail do it, and how far it is indented.
func (l Line) Quoted() (times, indented int) {
	if l.bare == "" || !strings.ContainsRune(" \t>", rune(l.bare[0])) && !strings.Contains(l.bare[:min(len(l.bare), prefixBytes)], ">") {
		return 0, 0
	}
	for _, p := range prefixesOf(l.bare) {
		switch {
		case p.form == nil:
			indented += len(p.sign)
		case strings.HasPrefix(p.sign, ">"):
			times += len(p.sign)
		}
	}
	return times, indented
}

// Label is what stands before the line that tells which process wrote it: its prefixes, or the
// label of a task ("3: "); empty if it has neither.
func (l Line) Label() string {
	if n := len(l.whole) - len(l.bare); n > 0 {
		return l.whole[:n]
	}
	_, label := labels.trim(l.bare)
	return label
}

// Unbroken is the first of some lines as it was before a screen broke it into pieces, with
// how many of the lines these are.
func Unbroken(lines []Line) (whole Line, pieces int) {
	whole, pieces = lines[0], 1
	var text strings.Builder
	for pieces < min(len(lines), mostPieces) && lines[pieces-1].piece != "" {
		text.WriteString(lines[pieces-1].piece)
		pieces++
	}
	if pieces > 1 {
		text.WriteString(lines[pieces-1].Whole())
		whole.of(text.String())
	}
	return whole, pieces
}

// Prompt is a shell prompt with the command that was typed there.
type Prompt struct {
	// Command is the line behind the prompt: "lspci -vvv | grep ACSCtl".
	Command string
	// Host is the host's name, where the prompt shows it.
	Host string
	// Line is the prompt's own line.
	Line int
}

// Lines hands out the lines of one text, up to the end of the text or to the next shell prompt.
type Lines struct {
	name   string
	prompt Prompt
	// prompted are the prefixes that were taken off the line of the prompt.
	prompted []prefix
	// first is the line with which the block begins.
	first Line
	// fetch returns the next line of the text; it is called once for each.
	fetch func() (Line, bool)
	// reached is told the number of the next line whenever a reader looks at it.
	reached func(int)
	ahead   []Line
	// buffer is where ahead begins once it is empty.
	buffer []Line
	// prefixes are taken off each line: those of the block that is being read.
	prefixes []prefix
	ended    bool
	taken    int
}

// Name is the text's name.
func (in *Lines) Name() string { return in.name }

// Prompt is the last shell prompt before the next line; its Command is empty where there was none.
func (in *Lines) Prompt() Prompt { return in.prompt }

// After reports whether the next line is the first one after the prompt of one of these commands.
func (in *Lines) After(commands ...string) bool {
	next, ok := in.Peek()
	return ok && in.prompt.Command != "" && next.Number == in.prompt.Line+1 &&
		slices.ContainsFunc(commands, func(c string) bool { return HasCommand(in.prompt.Command, c) })
}

// First is the line with which the block begins, or may begin.
func (in *Lines) First() Line { return in.first }

// Peek returns the next line without taking it.
func (in *Lines) Peek() (Line, bool) {
	if ahead := in.Ahead(1); len(ahead) > 0 {
		return ahead[0], true
	}
	return Line{}, false
}

// Ahead returns the next n lines, or fewer, without taking them. n is at most
// 200.
func (in *Lines) Ahead(n int) []Line {
	if len(in.ahead) == 0 {
		in.ahead = in.buffer[:0]
	}
	for len(in.ahead) < min(n, 200) && !in.ended {
		l, ok := in.fetch()
		if !ok {
			in.ended = true
			break
		}
		if len(in.prefixes) > 0 {
			l.Text = withoutPrefixes(l.bare, in.prefixes)
		}
		in.ahead = append(in.ahead, l)
		if cap(in.ahead) > cap(in.buffer) {
			in.buffer = in.ahead[:0]
		}
	}
	if len(in.ahead) > 0 {
		in.reached(in.ahead[0].Number)
	}
	lines := in.ahead[:min(n, len(in.ahead))]
	for i, l := range lines {
		if l.prompt {
			if _, ok := PromptOf(l.Text); ok {
				return lines[:i]
			}
		}
	}
	return lines
}

// strip sets what is taken off the lines that come.
func (in *Lines) strip(prefixes []prefix) {
	if len(prefixes) == 0 && len(in.prefixes) == 0 {
		return
	}
	in.prefixes = prefixes
	for i := range in.ahead {
		in.ahead[i].Text = withoutPrefixes(in.ahead[i].bare, prefixes)
	}
}

// linesShared is how many lines below one tell whether its prefixes are theirs as well.
const linesShared = 6

// shared is how many of the prefixes of the next line those below it have as well; 0 where there are none.
func (in *Lines) shared(prefixes []prefix) int {
	in.strip(nil)
	below := in.Ahead(1 + linesShared)
	common, seen := len(prefixes), false
	for _, l := range below[min(1, len(below)):] {
		if strings.TrimSpace(l.bare) != "" {
			common, seen = min(common, commonPrefixes(prefixes, l.bare)), true
		}
	}
	if !seen {
		return 0
	}
	return common
}

// Next takes the next line.
func (in *Lines) Next() (Line, bool) {
	l, ok := in.Peek()
	if ok {
		in.ahead = in.ahead[1:]
		in.taken++
	}
	return l, ok
}

// While takes lines as long as they belong to a block.
func (in *Lines) While(belongs func(Line) bool) []Line {
	var lines []Line
	for {
		l, ok := in.Peek()
		if !ok || !belongs(l) {
			return lines
		}
		lines = append(lines, l)
		in.Next()
	}
}

// skip takes a line, be it a prompt or not.
func (in *Lines) skip() bool {
	in.Ahead(1)
	if len(in.ahead) == 0 {
		return false
	}
	l := in.ahead[0]
	in.ahead = in.ahead[1:]
	if !l.prompt {
		return true
	}
	if p, prefixes, ok := promptIn(l.bare); ok {
		p.Line = l.Number
		in.prompt, in.prompted = p, prefixes
	} else if strings.HasPrefix(l.Text, "*** ls: ") && in.prompt.Line == l.Number-1 {
		in.prompt.Line = l.Number // It belongs to the heading above; see headingOf.
	}
	return true
}

// plain reports whether a line consists only of printable ASCII and tabs.
func plain(line []byte) bool {
	for _, c := range line {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// promptForms are shell prompts before a command: "$ cmd", "user@host:~/dir$ cmd", "[root@host dir]# cmd",
// "host:~$ cmd", "(env) user@host:~$ cmd", "user@host ~ % cmd".
var promptForms = lazy.New(`^(?:\([\w.-]+\) ?)?(?:\[?(?:[\w.-]+@)?(?P<host>[A-Za-z][\w.-]*)(?::[^\s$#%>]*|[ ][^\s$#%>\]]+)?\]?)? ?(?P<sign>[$#%]) (?P<command>[A-Za-z./~_].*)$`)

// bareCommands are commands behind a bare "#", which may as well begin a comment.
var bareCommands = lazy.New(`^(?:sudo |env |[A-Z_]+=\S* )*(?:\./|/)?[\w./-]*\b(?:lspci|dmesg|journalctl|ping|nc|iperf3?|ss|iptables|ufw|rdma|opensm|sminfo|cat|grep|egrep|awk|ls|lsmod|modinfo|modprobe|nvidia-smi|nvidia-bug-report\.sh|amd-smi|rocm-smi|rocminfo|ibv_devinfo|ibv_devices|ibstat|ibstatus|ibdev2netdev|show_gids|ip|ifconfig|ethtool|ulimit|df|free|lscpu|numactl|lstopo|docker|podman|kubectl|uname|dmidecode|fi_info|ofed_info|mlnx_qos|sysctl|env|printenv|echo|pip|pip3|conda|dpkg|rpm|apt|python|python3|systemctl|gdscheck|gdscheck\.py|setpci|lsb_release|mount|findmnt|srun|sbatch|mpirun|torchrun|\w+_perf|p2pBandwidthLatencyTest|nvbandwidth|ib_\w+_bw|ib_\w+_lat|nvidia-imex-ctl|find|head|tail|cut|strings|ldd|ldconfig|hostname|id|mst|mlxconfig|mlxlink|lsof|ps|top|TransferBench|rocm_agent_enumerator)(?:\s|$)`)

// headingOf reads a line that names the file whose content follows, as
// nvidia-bug-report.sh ("*** /proc/driver/nvidia/./version", with a line
// "*** ls: ..." below it) and head and tail ("==> /proc/cmdline <==") write it.
func headingOf(line string) (Prompt, bool) {
	path, ok := strings.CutPrefix(line, "*** /")
	if !ok {
		if path, ok = strings.CutPrefix(line, "==> /"); ok {
			path, ok = strings.CutSuffix(path, " <==")
		}
	}
	path = "/" + strings.ReplaceAll(strings.TrimSpace(path), "/./", "/")
	if !ok || len(path) > 4096 || strings.ContainsAny(path, " \t") {
		return Prompt{}, false
	}
	return Prompt{Command: "cat " + path}, true
}

// PromptOf reads a shell prompt, or what stands in its place.
func PromptOf(line string) (Prompt, bool) {
	if strings.HasPrefix(line, "*** /") || strings.HasPrefix(line, "==> /") {
		return headingOf(line)
	}
	if len(line) < 3 || len(line) > 4096 || !strings.ContainsAny(line[:min(len(line), 200)], "$#%") {
		return Prompt{}, false
	}
	m := promptForms.FindStringSubmatch(line)
	if m == nil {
		return Prompt{}, false
	}
	host, sign, command := m[1], m[2], m[3]
	labelled, label := strings.CutSuffix(line, sign+" "+command)
	if (host == "" || label && !strings.Contains(labelled, "@") && isLabel(labelled)) && sign != "$" && !bareCommands.MatchString(command) {
		return Prompt{}, false
	}
	if before, _, _ := strings.Cut(line, sign); host != "" && !strings.ContainsAny(before, "@:~[") && !bareCommands.MatchString(command) &&
		(sign != "$" || !strings.HasPrefix(command, "export ")) {
		return Prompt{}, false
	}
	return Prompt{Command: strings.TrimSpace(command), Host: host}, true
}

// isLabel reports whether a text is all what a launcher or grep puts before a line: "node7: ",
// "[node7:1234] " and "job.log:" before "# Using devices" are no prompt.
func isLabel(text string) bool {
	inner, _, ok := stripPrefix(text)
	return ok && inner == ""
}

// promptIn reads a shell prompt that may be quoted or indented.
func promptIn(line string) (p Prompt, prefixes []prefix, ok bool) {
	for range maxPrefixes {
		if p, ok = PromptOf(line); ok {
			return p, prefixes, true
		}
		inner, l, more := stripPrefix(line)
		if !more {
			break
		}
		line, prefixes = inner, append(prefixes, l)
	}
	return Prompt{}, nil, false
}

// runners are programs that carry out the command which stands further behind in
// their line: in a job, on another machine, in a container.
var runners = map[string]bool{
	"srun": true, "ssh": true, "pdsh": true, "clush": true, "docker": true, "podman": true, "nerdctl": true, "kubectl": true, "oc": true, "crictl": true,
	"apptainer": true, "singularity": true, "enroot": true, "bash": true, "sh": true, "mpirun": true, "mpiexec": true, "timeout": true, "nsenter": true, "chroot": true,
}

// runs reports whether words hold a command behind a runner: between blanks or
// quotes ("srun --gres=gpu:4 bash -c 'ulimit -l'").
func runs(words, command string) bool {
	for at := 0; ; {
		i := strings.Index(words[at:], command)
		if i < 0 {
			return false
		}
		i += at
		at = i + len(command)
		if i > 0 && strings.IndexByte(" /\"'", words[i-1]) >= 0 && (at == len(words) || strings.IndexByte(" |\"'", words[at]) >= 0) {
			return true
		}
	}
}

// HasCommand reports whether a command line runs command, with or without its path: at its beginning, or
// behind sudo, variables or a runner.
func HasCommand(line, command string) bool {
	for part := range strings.SplitSeq(line, ";") {
		words := strings.Fields(part)
		for len(words) > 0 && (words[0] == "sudo" || words[0] == "env" || strings.Contains(words[0], "=") || words[0] == "-n" || words[0] == "-E") {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		words[0] = words[0][strings.LastIndexByte(words[0], '/')+1:]
		rest := strings.Join(words, " ")
		if rest == command || strings.HasPrefix(rest, command+" ") || strings.HasPrefix(rest, command+"|") || runners[words[0]] && runs(rest, command) {
			return true
		}
	}
	return false
}
