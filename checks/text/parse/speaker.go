package parse

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/internal/pattern"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// The forms in which launchers say who wrote a line.
var (
	// rankSpeaker are "[rank3]:" (PyTorch), "[Rank 3]", "Rank 3]:",
	// "(Worker_TP1 pid=382)", "(RayWorkerWrapper pid=12, ip=10.0.0.2, rank=3)".
	rankSpeaker = pattern.New(`\[[Rr]ank ?(\d+)[\]|]|\brank[=: ](\d+)\b|Worker_(?:DP\d+_)?(?:PP\d+_)?TP(\d+)`)
	// mpiSpeaker is Open MPI's --tag-output: "[1,3]<stdout>:", since 5.0
	// "[prterun-node7-4021@1,3]<stdout>:"; SageMaker has "[1,mpirank:3,algo-1]<stdout>:".
	mpiSpeaker = pattern.New(`\[(?:[\w.-]+@)?\d+,(?:mpirank:)?(\d+)(?:,[\w.-]+)?\]<std(?:out|err)>`)
	// pidSpeaker are "(Worker_TP0 pid=381)", "(raylet, ip=..., pid=12)".
	pidSpeaker = pattern.New(`\bpid=(\d+)`)
)

// Identify reads who wrote a line.
func Identify(line string) Speaker {
	line = line[:min(len(line), 400)]
	var s Speaker
	if strings.Contains(line, "NCCL") {
		if host, pid, device, ok := ncclSpeaker(line); ok {
			s.Host, s.pid, s.device = host, Number(pid), Optional(device)
		}
	}
	if s.pid == 0 {
		if m := pidSpeaker.Find(line); m != nil {
			s.pid = Number(m[1])
		}
	}
	s.rank, s.time = rankOf(line), timeOf(line)
	return s
}

// Device is the CUDA ordinal of the process's GPU that the line names; nil for none.
func (s Speaker) Device() *int { return s.device }

// rankOf reads the rank that wrote a line. What the process itself put before it tells it
// better than its launcher does, of which there may be one on each host.
func rankOf(line string) *int {
	if rank := torchRank(line); rank != "" {
		return Optional(rank)
	}
	for _, form := range []*pattern.Pattern{mpiSpeaker, rankSpeaker} {
		if m := form.Find(line); m != nil {
			return Optional(strings.Join(m[1:], ""))
		}
	}
	return Optional(slurmRank(line))
}

// torchRank reads PyTorch's "[rank3]:"; of several, with times between them, the last.
func torchRank(line string) (rank string) {
	_, rest, found := strings.Cut(line, "[rank")
	for found {
		n, behind := leadingDigits(rest)
		if behind, found = strings.CutPrefix(behind, "]:"); !found || n == "" {
			break
		}
		rank = n
		rest, found = strings.CutPrefix(strings.TrimLeft(behind, " 0123456789-:.,TZ"), "[rank")
	}
	return rank
}

// ncclSpeaker reads how NCCL and RCCL begin their lines: "host:pid:tid [dev] NCCL WARN"
// (src/debug.cc of 2.4 to 2.30), with a file or a function between from time to time.
func ncclSpeaker(line string) (host, pid, device string, ok bool) {
	for colon := range len(line) {
		if line[colon] != ':' {
			continue
		}
		pid, rest := leadingDigits(line[colon+1:])
		rest, ok := strings.CutPrefix(rest, ":")
		if pid == "" || !ok {
			continue
		}
		tid, rest := leadingDigits(rest)
		host := hostBefore(line[:colon])
		if tid == "" || host == "" || !strings.HasPrefix(rest, " ") {
			continue
		}
		if device = bracketed(rest); device == "" && isClock(host, pid, tid) {
			continue
		}
		return host, pid, device, true
	}
	return "", "", "", false
}

// clockForm is a time that looks like a host and two numbers: "16:02:40".
var clockForm = lazy.New(`^(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d$`)

// isClock reports whether what looks like a host and two numbers is a time.
func isClock(host, pid, tid string) bool { return clockForm.MatchString(host + ":" + pid + ":" + tid) }

// hostBefore is the name of a host at the end of a text.
func hostBefore(text string) string {
	start := len(text)
	for start > 0 && HostByte(text[start-1]) {
		start--
	}
	return strings.TrimLeft(text[start:], "._-")
}

// bracketed is the number in " [3] " at the beginning of a text.
func bracketed(text string) string {
	rest, ok := strings.CutPrefix(text, " [")
	if !ok {
		return ""
	}
	n, rest := leadingDigits(rest)
	if !strings.HasPrefix(rest, "] ") {
		return ""
	}
	return n
}

// slurmRank reads the label of srun --label: "12: ".
func slurmRank(line string) string {
	const most = 6 // A label is a task's number; more digits are a time or an address.
	n, rest := leadingDigits(strings.TrimLeft(line, " "))
	if len(n) > most || !strings.HasPrefix(rest, ": ") {
		return ""
	}
	return n
}

// leadingDigits takes the digits off the front of a text.
func leadingDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && IsDigit(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// timeForm is an ISO time, as NCCL 2.26 ("[2025-08-21 16:02:40]") and DeepSpeed
// write it: 0 is any digit, and a T may stand instead of the blank.
const timeForm = "0000-00-00 00:00:00"

// timeOf reads the first time of a line.
func timeOf(line string) string {
	const firstDash = 4
	for i := firstDash; i < len(line); i++ {
		if line[i] != '-' || !isTime(line[i-firstDash:]) {
			continue
		}
		from := line[i-firstDash:]
		date, clock := from[:len("0000-00-00")], from[len("0000-00-00 "):len(timeForm)]
		return date + "T" + clock + fraction(from[len(timeForm):])
	}
	return ""
}

// isTime reports whether a text begins with a time.
func isTime(text string) bool {
	if len(text) < len(timeForm) {
		return false
	}
	for i := range len(timeForm) {
		switch want, c := timeForm[i], text[i]; want {
		case '0':
			if !IsDigit(c) {
				return false
			}
		case ' ':
			if c != ' ' && c != 'T' {
				return false
			}
		default:
			if c != want {
				return false
			}
		}
	}
	return true
}

// fraction reads the part of a second behind a time: ",123456" or ".123".
func fraction(text string) string {
	const most = 9 // Nanoseconds.
	if text == "" || text[0] != '.' && text[0] != ',' {
		return ""
	}
	digits, _ := leadingDigits(text[1:])
	if digits == "" {
		return ""
	}
	return "." + digits[:min(len(digits), most)]
}

// Number is the number that a text is; 0 for what is not a number of 32 bits.
func Number(s string) int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// Optional is Number, but nil for what is not a number.
func Optional(s string) *int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return nil
	}
	v := int(n)
	return &v
}

// HostByte reports whether a byte may stand in the name of a host.
func HostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_'
}
