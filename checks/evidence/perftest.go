package evidence

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks"
)

// perftestKind reads ib_write_bw and its sisters of linux-rdma/perftest
// (src/perftest_parameters.h: RESULT_FMT and its kin).
var perftestKind = &Kind{
	Name:    "perftest",
	Title:   "RDMA bandwidth, from ib_write_bw and its sisters",
	Command: "ib_write_bw -d mlx5_0 -a --report_gbits <host>",
	Gives:   []string{"benchmarks", "nics"},
	Anchors: []string{"BW Test", "BW peak[", "BW average["},
	Begins: func(in *Lines) bool {
		l, _ := in.Peek()
		return perftestTitle.MatchString(l.Text) || strings.Contains(l.Text, "#bytes") && strings.Contains(l.Text, "BW average[")
	},
	Read: readPerftest,
}

var (
	perftestTitle   = regexp.MustCompile(`^\s*((?:RDMA_|Send |Atomic |Raw )\w*)\s*(?:Bidirectional )?BW Test`)
	perftestSetting = regexp.MustCompile(`(Device|Link type|Mtu|Transport type|GID index|Number of qps)\s*:\s*(\S+)`)
)

func readPerftest(s *Sink, in *Lines) {
	first, _ := in.Peek()
	b := checks.Benchmark{Tool: "perftest", Test: "ib_bw", What: "network", Source: s.Source(), Line: first.Number}
	if m := perftestTitle.FindStringSubmatch(first.Text); m != nil {
		b.Test = strings.TrimSpace(m[1]) + " BW"
	}
	port := checks.RDMAPort{Port: 1, Host: s.Host(), Source: s.Source(), Line: first.Number}
	gbits := false
	for rows := 0; ; {
		l, ok := in.Peek()
		if !ok || l.Number > first.Number+500 {
			break
		}
		text := strings.TrimSpace(l.Text)
		fields := strings.Fields(text)
		switch {
		case strings.Contains(text, "BW average["):
			gbits = strings.Contains(text, "Gb/sec")
		case len(fields) >= 4 && perftestRow(&b, fields, gbits, l):
			rows++
		case rows > 0 && strings.HasPrefix(text, "---"):
			b.Complete = true
			in.Next()
			goto done
		case rows > 0 && text != "":
			goto done
		}
		for _, m := range perftestSetting.FindAllStringSubmatch(text, -1) {
			switch m[1] {
			case "Device":
				port.Device = m[2]
			case "Link type":
				port.LinkLayer = map[string]string{"IB": "InfiniBand", "Ethernet": "Ethernet"}[m[2]]
			case "Mtu":
				port.MTU = number(strings.TrimSuffix(m[2], "[B]"))
			}
		}
		in.Next()
	}
done:
	addBenchmark(s, b)
	if port.Device != "" && len(s.NICs().RDMA) < maxEntries {
		s.NICs().RDMA = append(s.NICs().RDMA, port)
	}
}

// perftestRow reads "#bytes #iterations BW peak BW average MsgRate".
func perftestRow(b *checks.Benchmark, fields []string, gbits bool, l Line) bool {
	size, err := strconv.ParseInt(fields[0], 10, 64)
	_, errCount := strconv.ParseInt(fields[1], 10, 64)
	average, errRate := strconv.ParseFloat(fields[3], 64)
	if err != nil || errCount != nil || errRate != nil || size <= 0 || average < 0 {
		return false
	}
	rate := average / 1000 * 1.048576 // MB/sec of 2^20 bytes (perftest's default).
	if gbits {
		rate = average / 8
	}
	if len(b.Points) < maxEntries {
		b.Points = append(b.Points, checks.BenchmarkPoint{Bytes: size, GBps: &rate, Line: l.Number})
	}
	return true
}
