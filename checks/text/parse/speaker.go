package parse

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// The forms in which launchers say who wrote a line.
var (
	// rankSpeaker are "[rank3]:" (PyTorch), "[Rank 3]", "Rank 3]:",
	// "(Worker_TP1 pid=382)", "(RayWorkerWrapper pid=12, ip=10.0.0.2, rank=3)"; not XLA's "for rank 3".
	rankSpeaker = lazy.New(`\bfor rank \d|\[[Rr]ank ?(\d+)[\]|]|\brank[=: ](\d+)\b|Worker_(?:DP\d+_)?(?:PP\d+_)?TP(\d+)`)
	// mpiSpeaker is Open MPI's --tag-output: "[1,3]<stdout>:", since 5.0
	// "[prterun-node7-4021@1,3]<stdout>:"; SageMaker has "[1,mpirank:3,algo-1]<stdout>:".
	mpiSpeaker = lazy.New(`\[(?:[\w.-]+@)?\d+,(?:mpirank:)?(\d+)(?:,[\w.-]+)?\]<std(?:out|err)>`)
	// pidSpeaker are "(Worker_TP0 pid=381)", "(raylet, ip=..., pid=12)".
	pidSpeaker = lazy.New(`\bpid=(\d+)`)
	// torchSpeaker is PyTorch's "[rank3]:"; of several, with times between them, the last counts.
	torchSpeaker = lazy.New(`(?:\[rank(\d+)\]:[ \d:.,TZ-]*)+`)
	// slurmSpeaker is the label of srun --label: "12: ". More digits are a time or an address.
	slurmSpeaker = lazy.New(`^ *(\d{1,6}): `)
	// ncclSpeaker is how NCCL and RCCL begin their lines: "host:pid:tid [dev] NCCL WARN"
	// (src/debug.cc of 2.4 to 2.30), with a file or a function between from time to time.
	ncclSpeaker = lazy.New(`([A-Za-z0-9][\w.-]*):(\d+):\d+(?: \[(\d+)\])? `)
	// clockForm is a time that looks like a host and two numbers: "16:02:40 ".
	clockForm = lazy.New(`^(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d $`)
	// timeForm is an ISO time, as NCCL 2.26 ("[2025-08-21 16:02:40]") and DeepSpeed write it.
	timeForm = lazy.New(`(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`)
)

// Speaker is the process that wrote a line, as far as the line tells.
type Speaker struct {
	Host string
	// Device is the CUDA ordinal of the process's GPU that the line names; nil for none.
	Device *int
	pid    int
	rank   *int
	time   string
}

// key distinguishes processes.
func (s Speaker) key() processKey {
	key := processKey{host: s.Host, pid: s.pid, rank: -1}
	if s.rank != nil {
		key.rank = *s.rank
	}
	return key
}

// Identify reads who wrote a line.
func Identify(line string) Speaker {
	line = line[:min(len(line), 400)]
	var s Speaker
	if strings.Contains(line, "NCCL") {
		if host, pid, device, ok := ncclSpeakerOf(line); ok {
			s.Host, s.pid, s.Device = host, Number(pid), Optional(device)
		}
	}
	if s.pid == 0 {
		s.pid = Number(pidSpeaker.First(line))
	}
	s.rank = rankOf(line)
	for i := range max(0, len(line)-3) { // Few lines hold a date, and the form takes longer to say so.
		if line[i] != '-' || line[i+3] != '-' {
			continue
		}
		if m := timeForm.FindStringSubmatch(line); m != nil {
			s.time = m[1] + "T" + strings.ReplaceAll(m[2], ",", ".")
		}
		break
	}
	return s
}

// rankOf reads the rank that wrote a line. What the process itself put before it tells it
// better than its launcher does, of which there may be one on each host.
func rankOf(line string) *int {
	for _, form := range []*lazy.Regexp{torchSpeaker, mpiSpeaker, rankSpeaker, slurmSpeaker} {
		if m := form.FindStringSubmatch(line); m != nil && strings.Join(m[1:], "") != "" {
			return Optional(strings.Join(m[1:], ""))
		}
	}
	return nil
}

// ncclSpeakerOf reads who wrote a line of NCCL.
func ncclSpeakerOf(line string) (host, pid, device string, ok bool) {
	for {
		m := ncclSpeaker.Get().FindStringSubmatchIndex(line)
		if m == nil {
			return "", "", "", false
		}
		host, pid = line[m[2]:m[3]], line[m[4]:m[5]]
		if m[6] >= 0 {
			return host, pid, line[m[6]:m[7]], true
		}
		if !clockForm.MatchString(line[m[0]:m[1]]) {
			return host, pid, "", true
		}
		line = line[m[3]+1:]
	}
}

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// Number is the number that a text is; 0 for what is not a number of 32 bits.
func Number(s string) int { return *cmp.Or(Optional(s), new(int)) }

// Optional is Number, but nil for what is not a number.
func Optional(s string) *int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return nil
	}
	return new(int(n))
}

// HostByte reports whether a byte may stand in the name of a host.
func HostByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_'
}
