package network

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// lsmodKind is the list of loaded kernel modules, whole or through grep.
var lsmodKind = &parse.Kind{
	Name: "lsmod", Title: "loaded kernel modules, from lsmod",
	Command: "lsmod", Gives: []string{"nics"},
	Anchors:  []string{"Used by", "nvidia_peermem", "nv_peer_mem", "ib_core", "ib_uverbs", "mlx5_ib", "mlx5_core", "gdrdrv", "nvidia_fs", "amdgpu", "nvidia_uvm", "rdma_cm", "rdma_ucm", "ib_umad", "ib_ipoib"},
	Commands: []string{"lsmod", "cat /proc/modules"},
	Begins:   parse.BeginsLike(lsmodHead, lsmodRow),
	Read:     lsmodRead,
}

// lsmodPromptKind takes a prompt with lsmod. A filter that matches nothing prints nothing, which is also an answer.
var lsmodPromptKind = &parse.Kind{
	Name: "lsmod-prompt", Title: "a search in the loaded kernel modules",
	Gives:   []string{"nics"},
	Anchors: []string{"lsmod"},
	Line: func(s *parse.Sink, l parse.Line) bool {
		p, ok := parse.PromptOf(l.Text)
		if !ok || !parse.HasCommand(p.Command, "lsmod") || !lsmodShowsPeerMemory(p.Command) {
			return false
		}
		if nics := s.NICs(); nics.Modules == nil || nics.ModulesPartial {
			nics.Modules, nics.ModulesPartial = append([]string{}, nics.Modules...), false
			s.Told("nics.modules", nics.Modules, l)
		}
		return true
	},
}

var (
	lsmodHead = lazy.New(`^\s*Module\s+Size\s+Used\s+by\s*$`)
	// lsmodRow is "name size users [user,user]"; the users may be a count
	// followed by [permanent], and a listing that was folded may end early.
	lsmodRow = lazy.New(`^\s*([a-z][a-z0-9_]{1,63})\s+(\d{3,10})\s+(-?\d+)(?:\s+([a-z0-9_,.-]+|\[permanent\](?:,[a-z0-9_,.-]*)?))?\s*$`)
)

func lsmodRead(s *parse.Sink, in *parse.Lines) {
	// Without its head a list may be a part of one.
	partial := !in.After("lsmod", "cat /proc/modules") || !lsmodShowsPeerMemory(in.Prompt().Command)
	nics := s.NICs()
	if nics.Modules == nil {
		nics.Modules = []string{}
		nics.ModulesPartial = true
	}
	note := func(name string) {
		if slices.Contains(network.Modules, name) && !slices.Contains(nics.Modules, name) {
			nics.Modules = append(nics.Modules, name)
		}
	}
	begin, _ := in.Peek()
	in.While(func(l parse.Line) bool {
		if lsmodHead.MatchString(l.Text) {
			partial = partial && strings.Contains(in.Prompt().Command, "|")
			return l.Number == begin.Number // Else it is another list.
		}
		m := lsmodRow.FindStringSubmatch(l.Text)
		if m == nil {
			return false
		}
		note(m[1])
		for user := range strings.SplitSeq(m[4], ",") { // What uses a module is loaded as well.
			note(user)
		}
		return true
	})
	nics.ModulesPartial = nics.ModulesPartial && partial
	s.Told("nics.modules", nics.Modules, begin) // The list begins there.
}

// lsmodShowsPeerMemory reports whether a command line of lsmod would have shown the modules of GPUDirect RDMA, were
// they loaded: it has no filter, or one whose words they hold.
func lsmodShowsPeerMemory(command string) bool {
	parts := strings.Split(command, "|")
	// An alternative "a|b" or "a\|b" of a pattern is no pipe.
	pattern := strings.Join(parts[1:], "|")
	switch {
	case len(parts) == 1:
		return true
	case strings.Contains(pattern, "-v") || !strings.Contains(pattern, "grep"):
		return false
	}
	const module = "nvidia_peermem" // grep lets it through if a pattern is a part of its name, or holds "peer".
	return slices.ContainsFunc(lsmodWord.FindAllString(strings.ToLower(pattern), -1), func(word string) bool {
		return strings.Contains(module, word) || strings.Contains(word, "peer")
	})
}

// lsmodWord is a pattern of grep that is long enough to say something.
var lsmodWord = lazy.New(`[a-z0-9_]{3,}`)
