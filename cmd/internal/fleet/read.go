package fleet

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

const (
	// maxReport bounds one report: one of a node with 16 GPUs has a quarter of a megabyte.
	maxReport = 16 << 20
	// maxNodes and maxProblems bound what is kept.
	maxNodes    = 100_000
	maxProblems = 1000
)

// Problem is an input that is no report of a node, or not one that counts.
type Problem struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
}

// Reading is what was read: the nodes in the order of the input, each once.
type Reading struct {
	Nodes    []*Node
	Problems []Problem
	// Networks are what jobs of probe nccl --nodes found.
	Networks []*nodes.Report
	byName   map[string]int
}

// Read reads reports from files, folders, tar archives (also compressed with gzip), and "-" for standard input, each of
// them one report or several after each other. What is no report is a problem, and ends nothing.
func Read(ctx context.Context, paths []string, stdin io.Reader) (*Reading, error) {
	r := &Reading{byName: map[string]int{}}
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if p == "-" {
			r.stream("standard input", "", stdin)
			continue
		}
		info, err := os.Stat(p)
		switch {
		case err != nil:
			return r, err
		case info.IsDir():
			err = r.folder(ctx, p)
		default:
			err = r.file(p)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Reading) folder(ctx context.Context, root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			r.problem(p, cause(err))
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		return r.file(p)
	})
}

// cause is an error without what it was done to.
func cause(err error) string {
	var in *fs.PathError
	if errors.As(err, &in) {
		return in.Err.Error()
	}
	return err.Error()
}

func (r *Reading) file(name string) error {
	f, err := os.Open(name) //nolint:gosec // The user names it.
	if err != nil {
		r.problem(name, cause(err))
		return nil
	}
	defer f.Close() //nolint:errcheck // Only read.
	r.stream(name, strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".gz"), ".json"), f)
	return nil
}

// stream reads an archive, or reports after each other.
func (r *Reading) stream(source, name string, from io.Reader) {
	in := bufio.NewReaderSize(from, 64<<10)
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			r.problem(source, err.Error())
			return
		}
		in = bufio.NewReaderSize(unpacked, 64<<10)
	}
	if head, _ := in.Peek(262); len(head) == 262 && string(head[257:]) == "ustar" {
		r.tar(source, in)
		return
	}
	r.reports(source, name, in)
}

func (r *Reading) tar(source string, in io.Reader) {
	members := tar.NewReader(in)
	for {
		head, err := members.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.problem(source, err.Error())
			return
		}
		if head.Typeflag == tar.TypeReg {
			r.reports(source+":"+head.Name, strings.TrimSuffix(path.Base(head.Name), ".json"), members)
		}
	}
}

// limited is a reader that fails where one value of a stream is too long.
type limited struct {
	from io.Reader
	left int
}

var errTooLong = fmt.Errorf("longer than %d MiB, more than a report has", maxReport>>20)

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLong
	}
	n, err := l.from.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// reports reads reports after each other.
func (r *Reading) reports(source, name string, from io.Reader) {
	in := &limited{from: from}
	decoder := json.NewDecoder(in)
	for n := 1; ; n++ {
		in.left = maxReport
		var d struct {
			document
			nodes.Report
		}
		err := decoder.Decode(&d)
		at := source
		if n > 1 {
			at = fmt.Sprintf("%s, report %d", source, n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case errors.Is(err, io.ErrUnexpectedEOF):
			r.problem(at, "is cut off")
			return
		case err != nil:
			r.problem(at, err.Error())
			return
		case d.Schema == nodes.Schema && len(r.Networks) < maxProblems:
			r.Networks = append(r.Networks, &d.Report)
			continue
		case d.Schema != report.Schema:
			r.problem(at, "is no report of check (schema "+escape.Printable(fmt.Sprintf("%q", d.Schema), 60)+"); gpudoctor check -o FILE.json writes one")
			continue
		}
		of := name
		if of == "" || n > 1 {
			of = fmt.Sprintf("%s report %d", name, n)
		}
		r.add(d.node(at, strings.TrimSpace(of)))
	}
}

// add takes a node. Of several reports of one node the last counts.
func (r *Reading) add(n *Node) {
	if i, known := r.byName[n.Name]; known {
		r.problem(r.Nodes[i].Source, "counts no more: "+n.Source+" is a later report of "+n.Name)
		r.Nodes[i] = n
		return
	}
	if len(r.Nodes) >= maxNodes {
		r.problem(n.Source, fmt.Sprintf("left out: there are more than %d nodes", maxNodes))
		return
	}
	r.byName[n.Name] = len(r.Nodes)
	r.Nodes = append(r.Nodes, n)
}

func (r *Reading) problem(source, reason string) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, Problem{escape.Printable(source, 300), escape.Printable(reason, 300)})
	}
}

// Unreported are the names of a list that no report is of.
func (r *Reading) Unreported(expected []string) []string {
	var all []string
	for _, name := range expected {
		_, whole := r.byName[name]
		short := slices.ContainsFunc(r.Nodes, func(n *Node) bool {
			host, _, _ := strings.Cut(n.Name, ".")
			return host == name
		})
		if !whole && !short {
			all = append(all, name)
		}
	}
	return all
}
