package network

import (
	"strconv"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// pings are what ping (iputils ping/ping.c, ping_common.c) shows of packets of different sizes to one host: where
// large ones are lost and small ones arrive, something on the path has a smaller MTU than the hosts.
type pings struct {
	to   string
	size int
	// arrived and lost are sizes of packets by host.
	arrived, lost map[string]int
}

var (
	pingBegins = lazy.New(`^PING \S+ \(([\w.:]+)\).*? (\d{1,5})(?:\(\d+\))? (?:data bytes|bytes of data)`)
	pingTyped  = lazy.New(`\bping6? (?:.* )?-s ?(\d{1,5}) (?:.* )?([\w.:]+)(?: ?[|;&].*)?$`)     // What a filter leaves of it does not say the size.
	pingShort  = lazy.New(`\bping6? .*-s ?(\d{1,5}) +([\w.:]+) +(?:[:=>-]+ *)?(\d+) received\b`) // As people shorten it to one line.
	pingReply  = lazy.New(`^(\d{1,5}) bytes from (?:\S+ \()?([\d.]+|[\da-fA-F]*:[\da-fA-F:]+)\)?:? icmp_seq`)
	pingEnds   = lazy.New(`^\d+ packets transmitted, \d+ received,.* ([\d.]+)% packet loss`)
)

func (p *pings) kind() *parse.Kind {
	return &parse.Kind{
		Name: "ping", Title: "which packets reach another host, from ping", Command: "ping -c 2 -M do -s 8972 PEER", Gives: []string{"logs"},
		Anchors: []string{"PING ", " packets transmitted, ", " received", " icmp_seq"},
		Line:    p.read,
	}
}

func (p *pings) read(s *parse.Sink, l parse.Line) bool {
	if m := pingBegins.FindStringSubmatch(l.Text); m != nil {
		p.to, p.size = m[1], parse.Number(m[2])
		return true
	}
	if m := pingReply.FindStringSubmatch(l.Text); m != nil {
		const header = 8 // of ICMP, which a reply counts and -s does not
		return p.tried(s, l, m[2], parse.Number(m[1])-header, true)
	}
	if m := pingShort.FindStringSubmatch(l.Text); m != nil {
		return p.tried(s, l, m[2], parse.Number(m[1]), m[3] != "0")
	}
	m := pingEnds.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	if typed := pingTyped.FindStringSubmatch(s.Prompt().Command); p.to == "" && typed != nil {
		p.to, p.size = typed[2], parse.Number(typed[1])
	}
	to := p.to
	p.to = ""
	return to != "" && (m[1] != "0" && m[1] != "100" || p.tried(s, l, to, p.size, m[1] == "0"))
}

// tried notes that packets of a size arrived at a host, or were lost.
func (p *pings) tried(s *parse.Sink, l parse.Line, to string, size int, arrived bool) bool {
	if len(p.arrived)+len(p.lost) > maxAddresses {
		return false
	}
	if arrived {
		p.arrived[to] = max(p.arrived[to], size)
	} else {
		p.lost[to] = size
	}
	if small, large := p.arrived[to], p.lost[to]; small > 0 && large > small {
		s.Message("ping-large-lost", map[string]string{"large": strconv.Itoa(large), "small": strconv.Itoa(small)}, l)
	}
	return true
}
