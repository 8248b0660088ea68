package launch

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nodeKind takes the nodes of slurm.conf and gres.conf that have GPUs: "NodeName=n[1-4]
// Gres=gpu:h100:8" and "NodeName=n[1-4] Name=gpu File=/dev/nvidia[0-7]".
func nodeKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "slurm-conf", Title: "GPUs of nodes, in slurm.conf or gres.conf", Gives: []string{"launches"},
		Anchors: []string{"NodeName=", "Name=gpu"},
		Line: func(_ *parse.Sink, l parse.Line) bool {
			if strings.HasPrefix(strings.TrimSpace(l.Text), "#") || !nodeLine.MatchString(l.Text) {
				return false
			}
			fields := keyValues(strings.FieldsSeq(l.Text))
			found := &facts.Launch{Kind: "slurm-node", Name: fields["nodename"]}
			switch gres := gpuOfGres.FindString(fields["gres"]); {
			case gres != "":
				found.GPUs = gresCount(gres)
			case fields["name"] == "gpu" && fields["file"] != "":
				found.GPUs = new(filesOf(fields["file"]))
			case fields["name"] == "gpu" && fields["count"] != "":
				found.GPUs = parseCount(fields["count"])
			}
			for _, key := range []string{"gres", "file", "count"} {
				unresolved(found, "gpus", fields[key])
			}
			if found.Unknown == nil && (found.GPUs == nil || *found.GPUs < 1) {
				return false
			}
			keepLaunch(s, found, l, nil)
			return true
		},
	}
}

var (
	nodeLine  = lazy.New(`^\s*(?:NodeName=\S+\s+.*(?:\bGres=\S*gpu|\bName=gpu\b)|Name=gpu\s.*(?:File|Count)=)`)
	gpuOfGres = lazy.New(`\bgpus?\b(?:(?::[\w.-]+)?:\d{1,4})?`)
	// fileRange is the range of a list of device files: "[0-7]", "[0,2]".
	fileRange = lazy.New(`\[([\d,-]{1,200})\]`)
)

// filesOf counts the files of "/dev/nvidia[0-3,6],/dev/nvidia7"; 0 where it cannot tell.
func filesOf(list string) int {
	within := fileRange.First(list)
	n, ok := affinity.CommonCPUs(within, within)
	switch {
	case within == "":
		return strings.Count(list, ",") + 1
	case !ok:
		return 0
	}
	return n + strings.Count(list, ",") - strings.Count(within, ",") // And those outside of the brackets.
}

// shellKind takes the limit of locked memory that a script sets. What "ulimit -l" prints is for ulimitKind.
func shellKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "shell-limit", Title: "The limit of locked memory that a script sets", Gives: []string{"launches"},
		Anchors: []string{"ulimit -"},
		Line: func(_ *parse.Sink, l parse.Line) bool {
			limit := shellLimit.First(l.Text)
			if limit == "" || s.isDockerfile() {
				return false
			}
			s.set("memlock_bytes", limit, l.Number)
			return true
		},
	}
}

var shellLimit = lazy.New(`^\s*(?:print\s+)?ulimit\s+-(?:[SH]*l[SH]*|[SH] -l)\s+(\d{1,15}|unlimited|["']?(?:\$|\{\{)\S{1,100})\s*(?:[;#|&].*)?$`)
