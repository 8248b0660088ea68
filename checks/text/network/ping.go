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
	pingTyped  = lazy.New(`\bping6? (?:.* )?-s ?(\d{1,5}) (?:.* )?([\w.:]+)(?: ?[|;&].*)?$`) // What a filter leaves of it does not say the size.
	pingEnds   = lazy.New(`^\d+ packets transmitted, \d+ received,.* ([\d.]+)% packet loss`)
)

func (p *pings) kind() *parse.Kind {
	return &parse.Kind{
		Name: "ping", Title: "which packets reach another host, from ping", Command: "ping -c 2 -M do -s 8972 PEER", Gives: []string{"logs"},
		Anchors: []string{"PING ", " packets transmitted, "},
		Line:    p.read,
	}
}

func (p *pings) read(s *parse.Sink, l parse.Line) bool {
	if m := pingBegins.FindStringSubmatch(l.Text); m != nil {
		p.to, p.size = m[1], parse.Number(m[2])
		return true
	}
	m := pingEnds.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	if typed := pingTyped.FindStringSubmatch(s.Prompt().Command); p.to == "" && typed != nil {
		p.to, p.size = typed[2], parse.Number(typed[1])
	}
	if p.to == "" || len(p.arrived)+len(p.lost) > maxAddresses {
		return false
	}
	switch m[1] {
	case "0":
		p.arrived[p.to] = max(p.arrived[p.to], p.size)
	case "100":
		p.lost[p.to] = p.size
	}
	if small, large := p.arrived[p.to], p.lost[p.to]; small > 0 && large > small {
		s.Message("ping-large-lost", map[string]string{"large": strconv.Itoa(large), "small": strconv.Itoa(small)}, l)
	}
	p.to = ""
	return true
}
