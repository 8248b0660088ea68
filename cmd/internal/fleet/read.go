package fleet

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
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
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

const (
	// maxReport bounds one report, and what is left out between two: one of a node with 16 GPUs has a quarter of a
	// megabyte.
	maxReport = 16 << 20
	// maxUnpacked bounds what a compressed file holds.
	maxUnpacked = 16 << 30
	// maxNodes and maxProblems bound what is kept.
	maxNodes    = 100_000
	maxProblems = 1000
	// maxText bounds a text of a report in bytes, maxPlace the place and the reason of a problem.
	maxText  = 255
	maxPlace = 300
)

// Problem is an input that is no report of a node, or not one that counts.
type Problem struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	// Lost is true where the report of a node may be lost.
	Lost bool `json:"lost,omitempty"`
}

// Reading is what was read: the nodes in the order of the input, each once.
type Reading struct {
	Nodes    []*Node
	Problems []Problem
	// Unsaid is how many more problems there are.
	Unsaid int
	byName map[string]int
}

// input is where reports are read from.
type input struct {
	// Source is what it is called, name the node whose report does not name it, and written when that was.
	source, name string
	written      time.Time
}

// Read reads reports from files, folders, tar archives (also compressed with gzip), and "-" for standard input, each of
// them one report or several after each other. What is no report is a problem, and ends nothing.
func Read(ctx context.Context, paths []string, stdin io.Reader) (*Reading, error) {
	r := &Reading{byName: map[string]int{}}
	for _, p := range paths {
		if p == "-" {
			in := files.NewReader(ctx, stdin, 0, nil)
			r.stream(ctx, input{source: "standard input", written: time.Now()}, in)
			in.Close()
			continue
		}
		info, err := files.Within(ctx, deadline.Silence, func() (fs.FileInfo, error) { return os.Stat(p) })
		switch {
		case err != nil:
			return r, err
		case info.IsDir():
			err = r.folder(ctx, p)
		case info.Mode()&fs.ModeDevice != 0:
			err = &fs.PathError{Op: "read", Path: p, Err: errDevice}
		default:
			r.file(ctx, p)
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return r, err
		}
	}
	return r, context.Cause(ctx)
}

var errDevice = errors.New("is a device")

// folder reads the files in a folder and those in it, but for hidden ones and those in which check writes a report for
// people or other programs.
func (r *Reading) folder(ctx context.Context, root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		of, isReport := report.FormatOf(p)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.lost(p, cause(err))
		case d.Type().IsRegular() && !strings.HasPrefix(d.Name(), ".") && (!isReport || of.Name == "json"):
			r.file(ctx, p)
		}
		return nil
	})
}

// cause is an error without what it was done to.
func cause(err error) string {
	if in, ok := errors.AsType[*fs.PathError](err); ok {
		return in.Err.Error()
	}
	return err.Error()
}

func (r *Reading) file(ctx context.Context, name string) {
	f, err := files.Within(ctx, deadline.Silence, func() (*os.File, error) { return os.Open(name) }) //nolint:gosec // The user names it.
	if err != nil {
		r.lost(name, cause(err))
		return
	}
	in := files.NewReader(ctx, f, deadline.Silence, f.Close)
	defer in.Close()
	of := input{source: name, name: nodeName(name)}
	if info, err := f.Stat(); err == nil {
		of.written = info.ModTime()
	}
	r.stream(ctx, of, in)
}

// nodeName is what a file's name says of the node.
func nodeName(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".gz"), ".json")
}

// stream reads an archive, or reports after each other.
func (r *Reading) stream(ctx context.Context, of input, from io.Reader) {
	in := bufio.NewReaderSize(from, 64<<10)
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			r.lost(of.source, err.Error())
			return
		}
		in = bufio.NewReaderSize(io.LimitReader(unpacked, maxUnpacked), 64<<10)
	}
	if head, _ := in.Peek(262); len(head) == 262 && string(head[257:]) == "ustar" {
		r.tar(ctx, of, in)
		return
	}
	r.reports(ctx, of, in)
}

func (r *Reading) tar(ctx context.Context, of input, in io.Reader) {
	members := tar.NewReader(in)
	for ctx.Err() == nil {
		head, err := members.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.lost(of.source, err.Error())
			return
		}
		if head.Typeflag == tar.TypeReg {
			r.reports(ctx, input{of.source + ":" + head.Name, nodeName(head.Name), head.ModTime}, members)
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

// reports reads reports after each other. Where one cannot be read, it goes on at the next line that begins with a brace.
func (r *Reading) reports(ctx context.Context, of input, from io.Reader) {
	in := &limited{from: from}
	decoder := json.NewDecoder(in)
	for n := 1; ctx.Err() == nil; n++ {
		in.left = maxReport
		at := of
		if n > 1 {
			at.source, at.name = fmt.Sprintf("%s, report %d", of.source, n), fmt.Sprintf("%s report %d", of.name, n)
		}
		at.name = strings.TrimSpace(cmp.Or(at.name, "report 1"))
		var d document
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			if n == 1 {
				r.lost(of.source, "is empty")
			}
			return
		}
		if wrongType, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			r.refuse(at.source, &d, wrongType)
			continue // The decoder stands behind it.
		}
		if err != nil {
			in.left = maxReport
			rest := bufio.NewReader(io.MultiReader(decoder.Buffered(), in))
			r.broken(at.source, rest, err)
			if !skip(rest) {
				return
			}
			in = &limited{from: rest}
			decoder = json.NewDecoder(in)
			continue
		}
		if d.Schema != report.Schema {
			r.refuse(at.source, &d, nil)
			continue
		}
		r.add(d.node(at))
	}
}

// broken says why a value cannot be read. It may have been a report if it begins like one.
func (r *Reading) broken(source string, rest *bufio.Reader, err error) {
	reason := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "is cut off"
	}
	head, _ := rest.Peek(64)
	if bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
		r.lost(source, reason)
		return
	}
	r.problem(Problem{Source: source, Reason: "is no JSON: " + reason})
}

// skip leaves out the first line, and those up to one that begins with a brace; it is false if there is none.
func skip(in *bufio.Reader) bool {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return false
		}
		if head, _ := in.Peek(1); bytes.HasSuffix(line, []byte("\n")) && string(head) == "{" {
			return true
		}
	}
}

// refuse says why a document is not taken for a report.
func (r *Reading) refuse(source string, d *document, err error) {
	kind, _, _ := strings.Cut(report.Schema, "/")
	switch {
	case strings.HasPrefix(d.Schema, kind+"/") && d.Schema != report.Schema:
		r.lost(source, fmt.Sprintf("a newer gpudoctor wrote it (%s): update this one", d.Schema))
	case err != nil && d.Schema == report.Schema:
		r.lost(source, err.Error())
	default:
		r.problem(Problem{Source: source, Reason: fmt.Sprintf("is no report of check (schema %q); gpudoctor check -o FILE.json writes one", d.Schema)})
	}
}

// add takes a node. Of several reports of one node the one that was written last counts, or else the last. A name that is
// only that of the file is no proof that two nodes are one.
func (r *Reading) add(n *Node) {
	if i, known := r.byName[n.Name]; known {
		older := r.Nodes[i]
		switch {
		case n.unnamed && older.unnamed && n.Source != older.Source:
			n.Name = n.Source
		case n.written.Before(older.written):
			older, n = n, older
			fallthrough
		default:
			r.Nodes[i] = n
			r.problem(Problem{Source: older.Source, Reason: "does not count: " + n.Source + " is a later report of " + n.Name})
			return
		}
	}
	if len(r.Nodes) >= maxNodes {
		r.lost(n.Source, fmt.Sprintf("left out: there are more than %d nodes", maxNodes))
		return
	}
	r.byName[n.Name] = len(r.Nodes)
	r.Nodes = append(r.Nodes, n)
}

// lost is a problem with what may have been the report of a node.
func (r *Reading) lost(source, reason string) {
	r.problem(Problem{Source: source, Reason: reason, Lost: true})
}

func (r *Reading) problem(p Problem) {
	if len(r.Problems) >= maxProblems {
		r.Unsaid++
		return
	}
	p.Source, p.Reason = escape.Printable(p.Source, maxPlace), escape.Printable(p.Reason, maxPlace)
	r.Problems = append(r.Problems, p)
}

// Unreported are the names of a list that no report is of. A name with a domain and the same without one are of one node.
func (r *Reading) Unreported(expected []string) []string {
	hosts := map[string]bool{}
	for _, n := range r.Nodes {
		host, _, _ := strings.Cut(n.Name, ".")
		hosts[host] = true
	}
	var all []string
	seen := map[string]bool{}
	for _, name := range expected {
		name = escape.Printable(name, maxText)
		host, _, isWhole := strings.Cut(name, ".")
		_, reported := r.byName[name]
		if isWhole && !reported {
			_, reported = r.byName[host]
		}
		if !reported && (isWhole || !hosts[name]) && !seen[name] {
			all = append(all, name)
		}
		seen[name] = true
	}
	slices.Sort(all)
	return all
}
