package evidence

import (
	"regexp"
	"strconv"
	"strings"
)

// The forms in which launchers and programs say who wrote a line.
var (
	// ncclSpeaker is NCCL's and RCCL's own: "host:pid:tid [dev] NCCL WARN"
	// (src/debug.cc of 2.4 to 2.30), with a file or a function between from
	// time to time.
	ncclSpeaker = regexp.MustCompile(`([A-Za-z0-9][\w.-]*):(\d+):\d+(?: \[(\d+)\])? `)
	// rankSpeaker are "[rank3]:" (PyTorch), "[Rank 3]", "Rank 3]:",
	// "(Worker_TP1 pid=382)", "(RayWorkerWrapper pid=12, ip=10.0.0.2, rank=3)".
	rankSpeaker = regexp.MustCompile(`\[[Rr]ank ?(\d+)[\]|]|\brank[=: ](\d+)\b|Worker_(?:DP\d+_)?(?:PP\d+_)?TP(\d+)`)
	// mpiSpeaker is Open MPI's --tag-output: "[1,3]<stdout>:".
	mpiSpeaker = regexp.MustCompile(`^\[\d+,(\d+)\]<std(?:out|err)>`)
	// slurmSpeaker is that of srun --label: "12: ".
	slurmSpeaker = regexp.MustCompile(`^ *(\d{1,6}): `)
	// pidSpeaker are "(Worker_TP0 pid=381)", "(raylet, ip=..., pid=12)".
	pidSpeaker = regexp.MustCompile(`\bpid=(\d+)`)
	// timeSpeaker are ISO times and those of NCCL 2.26 ("[2025-08-21 16:02:40]")
	// and DeepSpeed.
	timeSpeaker = regexp.MustCompile(`(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`)
)

// rankForms are those that tell a rank, in the order in which they are tried, with
// what is in every such line.
var rankForms = []struct {
	pattern *regexp.Regexp
	signs   []string
}{
	{mpiSpeaker, []string{"<std"}},
	{rankSpeaker, []string{"ank", "Worker_"}},
	{slurmSpeaker, []string{": "}},
}

// identify reads who wrote a line.
func identify(line string) speaker {
	line = line[:min(len(line), 400)]
	var s speaker
	if strings.Contains(line, "NCCL") {
		if m := ncclSpeaker.FindStringSubmatch(line); m != nil {
			s.host, s.pid, s.device = m[1], number(m[2]), optional(m[3])
		}
	}
	if s.pid == 0 && strings.Contains(line, "pid=") {
		if m := pidSpeaker.FindStringSubmatch(line); m != nil {
			s.pid = number(m[1])
		}
	}
	for _, form := range rankForms {
		// Looking for what is in each of them first is far quicker.
		if !containsAny(line, form.signs) {
			continue
		}
		if m := form.pattern.FindStringSubmatch(line); m != nil {
			s.rank = optional(strings.Join(m[1:], ""))
			break
		}
	}
	if m := timeSpeaker.FindStringSubmatch(line); m != nil {
		s.time = m[1] + "T" + strings.ReplaceAll(m[2], ",", ".")
	}
	return s
}

func number(s string) int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// optional returns nil for what is no number.
func optional(s string) *int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return nil
	}
	v := int(n)
	return &v
}
