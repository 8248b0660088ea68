package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// maxJudged bounds the nodes that are judged: each takes some hundredths of a second.
const maxJudged = 10_000

// single adds what was read of a file, which is judged if it has no report.
func (r *Reading) single(ctx context.Context, one *Reading) {
	switch {
	case !one.foreign || one.copied || r.judge == nil:
	case one.isArchive:
		one.Problems, one.Unsaid = nil, 0
		one.lost(one.of.source, "holds no reports: unpack it, and name the folder, in which each node has one of its own")
	default:
		of := one.of
		of.name = strings.TrimSuffix(of.name, path.Ext(of.name))
		err := r.judged(ctx, of)
		if err == nil {
			return
		}
		one.Problems[0].Reason += "; as a recording: " + err.Error()
	}
	r.take(one)
}

// node adds what was read in a folder that may belong to one node. A report in it counts; without one, everything in it is judged together.
func (r *Reading) node(ctx context.Context, folder string, read []*Reading) {
	reports, recordings, texts := 0, 0, 0
	of := input{source: folder, name: filepath.Base(folder)}
	if whole, err := filepath.Abs(folder); err == nil {
		of.name = filepath.Base(whole)
	}
	for _, one := range read {
		reports += len(one.Nodes)
		if one.recording {
			recordings++
		}
		if one.foreign {
			texts++
		}
		if one.of.written.After(of.written) {
			of.written = one.of.written
		}
	}
	if texts == 0 || r.judge == nil || reports > 1 || reports == 0 && recordings > 1 {
		for _, one := range read {
			r.single(ctx, one)
		}
		return
	}
	if reports == 1 {
		r.problem(folder, "its report counts, and "+lines.Count(texts, "other file")+" beside it were not judged", false)
	} else if err := r.judged(ctx, of); err != nil {
		r.lost(folder, err.Error())
	}
	for _, one := range read {
		for _, n := range one.Nodes {
			if n.unnamed {
				n.Name = escape.Printable(of.name, maxText)
			}
		}
		if one.Problems = slices.DeleteFunc(one.Problems, func(p Problem) bool { return p.Reason == isEmpty }); !one.foreign {
			r.take(one)
		}
	}
}

// standInName is what a snapshot has instead of the name of its host.
var standInName = lazy.New(`^host-\d+$`)

// judged adds the node that a recording, texts or a folder of these is of.
func (r *Reading) judged(ctx context.Context, of input) error {
	if r.judgedNodes++; r.judgedNodes > maxJudged {
		r.lost(of.source, fmt.Sprintf("left out: more than %d have no report", maxJudged))
		return nil
	}
	raw, err := r.judge(ctx, of.source)
	var d document
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), of.source+": "))
	}
	if standInName.MatchString(d.Host.Hostname) {
		d.Host.Hostname = ""
	}
	r.add(d.node(of))
	return nil
}
