package fleet

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/host/rootfs"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

const (
	// maxHeld bounds what is held of one node of an archive while it is judged.
	maxHeld = 64 << 20
	// maxJudged bounds the nodes that are judged: each takes some hundredths of a second.
	maxJudged = 10_000
)

// part is what is known of a file beside its reports.
type part struct {
	of input
	// foreign is true if there is no report in it, and what may be a recording or a text; recording if it begins like one.
	foreign, recording bool
	// copied is true of a copy of /sys or /proc, which was not read.
	copied bool
	// members are the files of an archive.
	members []member
}

// member is a file in an archive.
type member struct {
	name      string
	recording bool
}

// isCopied reports whether a file is a part of a copy of /sys or /proc.
func isCopied(name string) bool {
	_, _, copied := rootfs.Split(name)
	return copied
}

// nodes adds what was read of a folder. A file in it is of one node or has reports of several. A folder in it is of one node,
// unless there are several reports or recordings in that.
func (r *Reading) nodes(ctx context.Context, root string, read []*Reading) {
	top := func(one *Reading) (name string, nested bool) {
		name, _, nested = strings.Cut(below(root, one.of.source), "/")
		return name, nested
	}
	if slices.ContainsFunc(read, func(one *Reading) bool {
		of, _, copied := rootfs.Split(below(root, one.of.source))
		return copied && of == "" // The folder itself is of a machine.
	}) {
		r.node(ctx, root, read)
		return
	}
	for len(read) > 0 && ctx.Err() == nil {
		name, nested := top(read[0])
		n := 1
		for nested && n < len(read) {
			if other, is := top(read[n]); !is || other != name {
				break
			}
			n++
		}
		if nested {
			r.node(ctx, filepath.Join(root, name), read[:n])
		} else {
			r.single(ctx, read[0])
		}
		read = read[n:]
	}
}

// single adds what was read of a file, which is judged if it has no report.
func (r *Reading) single(ctx context.Context, one *Reading) {
	switch tops, several := one.perNode(); {
	case !one.foreign || one.copied || r.judge == nil:
	case several:
		r.archive(ctx, one.of, tops)
		one.Problems = slices.DeleteFunc(one.Problems, func(p Problem) bool { return !p.Lost || p.Reason == isEmpty })
		if len(one.Problems) < maxProblems { // None that counts is unsaid.
			one.Unsaid = 0
		}
	default:
		of := one.of
		of.name = strings.TrimSuffix(of.name, path.Ext(of.name))
		err := r.judged(ctx, of, of.source, nil)
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
	} else if err := r.judged(ctx, of, folder, nil); err != nil {
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
func (r *Reading) judged(ctx context.Context, of input, file string, in io.Reader) error {
	if r.judgedNodes++; r.judgedNodes > maxJudged {
		r.lost(of.source, fmt.Sprintf("left out: more than %d have no report", maxJudged))
		return nil
	}
	raw, err := r.judge(ctx, file, in)
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

// perNode tells whether an archive without reports is of several nodes, and under how many folders these are. It is if the same file
// is in several of its folders, or if it has several recordings; else it is of one node.
func (p *part) perNode() (under int, several bool) {
	for ; ; under++ {
		first := ""
		for i, m := range p.members {
			parts := strings.Split(m.name, "/")
			if len(parts) < under+2 || i > 0 && parts[under] != first {
				first = ""
				break
			}
			first = parts[under]
		}
		if first == "" {
			break
		}
	}
	recordings, tops := 0, map[string]string{}
	for _, m := range p.members {
		parts := strings.Split(m.name, "/")
		if of, _, copied := rootfs.Split(m.name); copied && of == strings.Join(parts[:under], "/") {
			return 0, false
		}
		if len(parts) == under+1 {
			if m.recording {
				recordings++
			}
			continue
		}
		top := parts[under]
		at := strings.Join(parts[under+1:], "/")
		for _, at := range []string{at, strings.ReplaceAll(at, top, "*")} { // n1/nccl-n1.log is n2/nccl-n2.log.
			if other, known := tops[at]; known && other != top {
				several = true
			}
			tops[at] = top
		}
	}
	return under, several || recordings > 1
}

// archive judges each folder or file of an archive as those of a folder, one at a time, in memory. Under is how many folders they lie in.
func (r *Reading) archive(ctx context.Context, of input, under int) {
	f, err := files.Within(ctx, deadline.Silence, func() (*os.File, error) { return os.Open(of.source) }) //nolint:gosec // The user names it.
	if err != nil {
		r.lost(of.source, cause(err))
		return
	}
	from := files.NewReader(ctx, f, deadline.Silence, f.Close)
	defer from.Close()
	in, _, err := unpack(from)
	if err != nil {
		r.lost(of.source, err.Error())
		return
	}
	members := tar.NewReader(in)
	var node held
	for ctx.Err() == nil {
		head, err := members.Next()
		if err == nil && head.Typeflag != tar.TypeReg && head.Typeflag != tar.TypeSymlink {
			continue
		}
		if err != nil { // If it is not the end, that was said before.
			r.release(ctx, of, &node)
			return
		}
		parts := strings.Split(strings.TrimPrefix(path.Clean("/"+head.Name), "/"), "/")
		last := min(under, len(parts)-1)
		if name := path.Join(parts[:last+1]...); name != node.name {
			r.release(ctx, of, &node)
			node = held{name: name}
		}
		node.nested = len(parts) > last+1
		node.add(head, path.Join(parts[min(last+1, len(parts)-1):]...), members)
	}
}

// held is what is held of one node of an archive: again an archive.
type held struct {
	name    string
	nested  bool
	written time.Time
	err     error
	raw     bytes.Buffer
	to      *tar.Writer
}

// add adds a file.
func (h *held) add(head *tar.Header, at string, from io.Reader) {
	if h.to == nil {
		h.to = tar.NewWriter(&h.raw)
	}
	if head.ModTime.After(h.written) {
		h.written = head.ModTime
	}
	if h.err == nil && int64(h.raw.Len())+head.Size > maxHeld {
		h.err = fmt.Errorf("more than %d MiB in an archive: unpack it", maxHeld>>20)
	}
	if h.err != nil {
		return
	}
	err := h.to.WriteHeader(&tar.Header{Typeflag: head.Typeflag, Name: at, Linkname: head.Linkname, Size: head.Size, Mode: 0o600, ModTime: head.ModTime})
	if err == nil {
		_, err = io.Copy(h.to, from) //nolint:gosec // Its size is bounded above.
	}
	h.err = err
}

// release judges what is held of a node.
func (r *Reading) release(ctx context.Context, of input, h *held) {
	if h.to == nil {
		return
	}
	node := input{source: of.source + ":" + h.name, name: path.Base(h.name), written: h.written}
	if !h.nested {
		node.name = strings.TrimSuffix(nodeName(node.name), path.Ext(nodeName(node.name)))
	}
	err := h.err
	if err == nil {
		err = h.to.Close()
	}
	if err == nil {
		err = r.judged(ctx, node, "-", &h.raw)
	}
	if err != nil {
		r.problem(Problem{Source: node.source, Reason: err.Error(), Lost: h.nested})
	}
}
