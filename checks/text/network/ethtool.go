package network

import (
	"cmp"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ethtoolKind is what "ethtool eth0" prints (ethtool.c, do_gset): whether the interface has a link.
var ethtoolKind = &parse.Kind{
	Name: "ethtool", Title: "A network interface, from ethtool", Command: "ethtool eth0", Gives: []string{"nics"},
	Anchors:  []string{"Settings for "},
	Commands: []string{"ethtool"},
	Begins:   parse.BeginsLike(ethtoolHead),
	Read: func(s *parse.Sink, in *parse.Lines) {
		head, _ := in.Next()
		name := ethtoolHead.FindStringSubmatch(head.Text)[1]
		n := interfaceNamed(s, name, head)
		n.Kind = cmp.Or(n.Kind, network.KindOfName(name))
		ended := false
		in.While(func(l parse.Line) bool {
			if ended || !ethtoolItem.MatchString(l.Text) {
				return false
			}
			if linked := ethtoolLink.First(l.Text); linked != "" {
				s.Watch("nics.interfaces["+name+"]", n, l)
				n.Carrier = new(linked == "yes")
				ended = true // It is the last of all items.
			}
			return true
		})
	},
}

var (
	ethtoolHead = lazy.New(`^Settings for ([A-Za-z][\w.-]{0,14}):\s*$`)
	// ethtoolItem: all its lines but the first are indented, by a tab or, in what was pasted, by spaces.
	ethtoolItem = lazy.New(`^\s+\S`)
	// ethtoolLink may be followed by the cause: "no (No cable)".
	ethtoolLink = lazy.New(`^\s+Link detected: (yes|no)\b`)
)
