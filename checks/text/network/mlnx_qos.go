package network

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// mlnxQoSKind is the flow control of an interface as mlnx_qos -i shows it (mlnx-tools, ofed_scripts/utils/mlnx_qos).
var mlnxQoSKind = &parse.Kind{
	Name: "mlnx_qos", Title: "flow control of an interface, from mlnx_qos",
	Command: "mlnx_qos -i INTERFACE", Gives: []string{"nics"},
	Anchors: []string{"DCBX mode:", "Priority trust state:", "PFC configuration:"},
	Begins:  parse.BeginsLike(mlnxQoSLine),
	Read:    mlnxQoSRead,
}

var (
	mlnxQoSLine     = lazy.New(`^\s*(DCBX mode|Priority trust state|default priority|dscp2prio mapping|Receive buffer size.*|Cable len|PFC configuration|priority|enabled|buffer|tc|prio|tsa|skprio|max_buffer_size)\b\s*:?\s*(.*?)\s*$`)
	mlnxQoSNumbers  = lazy.New(`^[\d\s.,:]+$`)
	mlnxQoSPriority = lazy.New(`^\d(?:\s+\d){0,7}$`)
)

func mlnxQoSRead(s *parse.Sink, in *parse.Lines) {
	q := facts.QoS{Source: s.Source(), Host: s.Host(), Interface: flag(in.Prompt().Command, "-i")}
	inPFC := false
	var pfcAt parse.Line
	var priorities []string
	in.While(func(l parse.Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return ahead(in, mlnxQoSLine.MatchString)
		}
		m := mlnxQoSLine.FindStringSubmatch(l.Text)
		if m == nil {
			return q.Line != 0 && mlnxQoSNumbers.MatchString(l.Text)
		}
		q.Line = cmp.Or(q.Line, l.Number)
		switch value := m[2]; m[1] {
		case "DCBX mode":
			if q.Line != l.Number { // The next interface.
				return false
			}
		case "PFC configuration":
			if q.PFC != nil {
				return false
			}
			inPFC = true
		case "priority":
			if inPFC && priorities == nil && mlnxQoSPriority.MatchString(value) {
				priorities = strings.Fields(value)
			}
		case "enabled":
			values := strings.Fields(value)
			if !inPFC || q.PFC != nil || !mlnxQoSPriority.MatchString(value) || len(values) != len(priorities) {
				break
			}
			pfcAt = l
			q.PFC = []int{}
			for i, v := range values {
				if n, ok := network.LeadingNumber(priorities[i]); ok && v == "1" {
					q.PFC = append(q.PFC, n)
				}
			}
		}
		return true
	})
	if nics := s.NICs(); q.PFC != nil && len(nics.QoS) < parse.MaxEntries {
		nics.QoS = append(nics.QoS, q)
		s.Told("nics.qos["+q.Interface+"].pfc", q.PFC, pfcAt)
	}
}
