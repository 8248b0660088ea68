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

// part is what is known of a file beside its reports.
type part struct {
	of input
	// foreign is true if there is no report in it, and what may be a recording or a text; recording if it begins like one.
	foreign, recording bool
	// copied is true of a copy of /sys or /proc, which was not read.
	copied bool
	// isArchive is true of an archive.
	isArchive bool
}

// nodes adds what was read of a folder. A file in it is of one node or has reports of several. A folder in it is of one node,
// unless there are several reports or recordings in that.
func (r *Reading) nodes(ctx context.Context, root string, read []*Reading) {
	unit := func(one *Reading) string { // The folder in the root, or the file.
		if name, _, nested := strings.Cut(below(root, one.of.source), "/"); nested {
			return filepath.Join(root, name)
		}
		return one.of.source
	}
	for _, alike := range lines.Grouped(read, unit) {
		switch folder := unit(alike[0]); {
		case ctx.Err() != nil:
			return
		case folder != alike[0].of.source:
			r.node(ctx, folder, alike)
		default:
			r.single(ctx, alike[0])
		}
	}
}

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
		err := r.judged(ctx, of, of.source)
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
		r.problem(Problem{Source: folder, Reason: "its report counts, and " + lines.Count(texts, "other file") + " beside it were not judged"})
	} else if err := r.judged(ctx, of, folder); err != nil {
		r.problem(Problem{Source: folder, Reason: err.Error(), Lost: true})
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
func (r *Reading) judged(ctx context.Context, of input, file string) error {
	if r.judgedNodes++; r.judgedNodes > maxJudged {
		r.lost(of.source, fmt.Sprintf("left out: more than %d have no report", maxJudged))
		return nil
	}
	raw, err := r.judge(ctx, file)
	var d document
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), file+": "))
	}
	if standInName.MatchString(d.Host.Hostname) {
		d.Host.Hostname = ""
	}
	r.add(d.node(of))
	return nil
}
