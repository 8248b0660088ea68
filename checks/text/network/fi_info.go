package network

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// fiInfoKind is the output of fi_info (libfabric, util/info.c): the providers
// found, or the error by which fi_getinfo says that it found no provider.
var fiInfoKind = &parse.Kind{
	Name: "fi-info", Title: "Providers of libfabric, from fi_info", Command: "fi_info -p efa", Gives: []string{"nics"},
	Anchors:  []string{"provider: ", "fi_getinfo: -"},
	Commands: []string{"fi_info"},
	Begins: func(in *parse.Lines) bool {
		next := in.Ahead(2)
		first := next[0].Text
		return fiInfoError.MatchString(first) ||
			fiInfoProvider.MatchString(first) && (in.After("fi_info") || len(next) == 2 && fiInfoItem.MatchString(next[1].Text))
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		for _, l := range in.While(fiInfoBelongs) {
			nics := s.NICs()
			if nics.Providers == nil {
				nics.Providers = []string{}
			}
			m := fiInfoProvider.FindStringSubmatch(l.Text)
			if m != nil && len(nics.Providers) < maxInterfaces && !slices.Contains(nics.Providers, m[1]) {
				nics.Providers = append(nics.Providers, m[1])
			}
		}
		s.Told("nics.providers", s.NICs().Providers, in.First()) // The list begins there.
	},
}

var (
	fiInfoProvider = lazy.New(`^\s*provider: ([\w;-]{1,40})\s*$`)
	fiInfoItem     = lazy.New(`^\s+(?:fabric|domain|version|type|protocol): ?\S*`)
	fiInfoError    = lazy.New(`^\s*fi_getinfo: (-\d{1,5})\b ?\(?([^)]*)\)?\s*$`)
)

func fiInfoBelongs(l parse.Line) bool {
	return fiInfoProvider.MatchString(l.Text) || fiInfoItem.MatchString(l.Text) || fiInfoError.MatchString(l.Text)
}
