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
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/host/rootfs"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

const (
	// maxReport bounds one report, and what is left out between two: one of a node with 16 GPUs has a quarter of a
	// megabyte.
	maxReport = 16 << 20
	// maxUnpacked bounds what a compressed file holds.
	maxUnpacked = 16 << 30
	// maxNodes and maxProblems bound what is kept.
	maxNodes = 100_000
	// maxFiles bounds the files of a folder or archive.
	maxFiles    = 1_000_000
	maxProblems = 1000
	// maxBroken bounds the parts of one input that are no reports.
	maxBroken = 1000
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
	// Networks are what jobs of probe nccl --nodes found.
	Networks []*nodes.Report
	// Unsaid is how many more problems there are.
	Unsaid int
	byName map[string]int
	judge  Judge
	// judgedNodes is how often the judge was asked.
	judgedNodes int
	part
}

// Judge makes the report of a node from a recording, from texts, or from a folder or an archive of these.
type Judge func(ctx context.Context, file string) ([]byte, error)

// input is where reports are read from.
type input struct {
	// source is what it is called, name the node whose report does not name it, and written when that was.
	source, name string
	written      time.Time
}

// Read reads reports from files, folders, tar archives (also compressed with gzip), and "-" for standard input, each of
// them one report or several after each other. If there is a judge, it judges what holds no report: a file, or each folder in
// a folder, as what is known of a node. What is no report and cannot be judged is a problem, and ends nothing.
func Read(ctx context.Context, paths []string, stdin io.Reader, judge Judge) (*Reading, error) {
	r := &Reading{byName: map[string]int{}, judge: judge}
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
			r.single(ctx, r.file(ctx, p))
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return r, err
		}
	}
	return r, context.Cause(ctx)
}

const isEmpty = "is empty"

var errDevice = errors.New("is a device")

// folder reads the files in a folder and those in it, but for hidden ones and other forms of a report beside it. Several are
// read at a time, and count in the order of their names.
func (r *Reading) folder(ctx context.Context, root string) error {
	root = filepath.Clean(root)
	names, err := r.list(ctx, root)
	read := make([]*Reading, len(names))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		workers.Go(func() error {
			if _, _, copied := rootfs.Split(below(root, name)); copied {
				read[i] = &Reading{part: part{of: input{source: name}, foreign: true, copied: true}}
				read[i].problem(Problem{Source: name, Reason: "is a copy of a machine's files, which is judged only in a folder of its own"})
				return nil
			}
			read[i] = r.file(ctx, name)
			return nil
		})
	}
	_ = workers.Wait() // None fails.
	r.nodes(ctx, root, read)
	return err
}

// list lists the files of a folder. Of the copy of a machine's /sys and /proc it lists one: no report is in it.
func (r *Reading) list(ctx context.Context, root string) (names []string, err error) {
	copies := map[string]bool{}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch of, _, copied := rootfs.Split(below(root, p)); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.lost(p, cause(err))
		case copied:
			if !copies[of] {
				copies[of] = true
				names = append(names, p)
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") || isCopy(p):
		case len(names) == maxFiles:
			r.lost(root, fmt.Sprintf("the rest is left out: more than %d files are in it", maxFiles))
			return fs.SkipAll
		default:
			names = append(names, p)
		}
		return nil
	})
	return names, err
}

// below is the name of a file relative to a folder.
func below(root, name string) string {
	at, err := filepath.Rel(root, name)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(at)
}

// take adds what was read elsewhere.
func (r *Reading) take(one *Reading) {
	for _, n := range one.Nodes {
		r.add(n)
	}
	for _, p := range one.Problems {
		r.problem(p)
	}
	r.Networks = append(r.Networks, one.Networks[:min(len(one.Networks), maxProblems-len(r.Networks))]...)
	r.Unsaid += one.Unsaid
}

// isCopy reports whether a file has a report in another format than JSON, beside it in JSON.
func isCopy(file string) bool {
	f, known := report.FormatOf(file)
	if !known || f.Name == "json" {
		return false
	}
	_, err := os.Stat(strings.TrimSuffix(file, filepath.Ext(file)) + ".json")
	return err == nil
}

// cause is an error without what it was done to.
func cause(err error) string {
	if in, ok := errors.AsType[*fs.PathError](err); ok {
		return in.Err.Error()
	}
	return err.Error()
}

// file reads the reports in a file.
func (r *Reading) file(ctx context.Context, name string) *Reading {
	one := &Reading{byName: map[string]int{}, part: part{of: input{source: name, name: nodeName(name)}}}
	f, err := files.Within(ctx, deadline.Silence, func() (*os.File, error) { return os.Open(name) }) //nolint:gosec // The user names it.
	if err != nil {
		one.lost(name, cause(err))
		return one
	}
	in := files.NewReader(ctx, f, deadline.Silence, f.Close)
	defer in.Close()
	regular := false
	if info, err := f.Stat(); err == nil {
		one.of.written, regular = info.ModTime(), info.Mode().IsRegular()
	}
	one.stream(ctx, one.of, in)
	one.foreign = one.foreign && regular && len(one.Nodes)+len(one.Networks) == 0
	return one
}

func nodeName(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".gz"), ".json")
}

func (r *Reading) stream(ctx context.Context, of input, from io.Reader) {
	in, isTar, err := unpack(from)
	switch {
	case err != nil:
		r.lost(of.source, err.Error())
	case isTar:
		r.tar(ctx, of, in)
	default:
		head, _ := in.Peek(1024)
		r.recording = host.IsRecording(head)
		r.reports(ctx, of, in)
	}
}

// unpack reads what may be compressed, and tells whether it is an archive.
func unpack(from io.Reader) (in *bufio.Reader, isTar bool, err error) {
	in = bufio.NewReaderSize(from, 64<<10)
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, false, err
		}
		in = bufio.NewReaderSize(io.LimitReader(unpacked, maxUnpacked), 64<<10)
	}
	head, _ := in.Peek(262)
	return in, len(head) == 262 && string(head[257:]) == "ustar", nil
}

func (r *Reading) tar(ctx context.Context, of input, in io.Reader) {
	r.isArchive = true
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
		if head.Typeflag != tar.TypeReg {
			continue
		}
		r.reports(ctx, input{source: of.source + ":" + head.Name, name: nodeName(head.Name), written: head.ModTime}, members)
	}
}

var errTooLong = fmt.Errorf("longer than %d MiB, more than a report has", maxReport>>20)

// pieces parts a stream at the lines that begin with a brace: a piece is a report, or several of them. Of one that is longer than
// maxReport, the rest is left out. The error is why the stream ended before its end.
func pieces(from io.Reader, take func(piece []byte) (more bool)) error {
	in := bufio.NewReaderSize(from, 64<<10)
	var piece []byte
	for begins := true; ; {
		line, err := in.ReadSlice('\n')
		if begins && bytes.HasPrefix(line, []byte("{")) && len(piece) > 0 {
			if !take(piece) {
				return nil
			}
			piece = piece[:0]
		}
		if len(piece) <= maxReport {
			piece = append(piece, line...)
		}
		begins = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			take(piece)
			return err
		}
	}
}

// reports reads reports after each other. Where one cannot be read, it goes on at the next line that begins with a brace.
func (r *Reading) reports(ctx context.Context, of input, from io.Reader) {
	n, broken := 0, 0
	err := pieces(from, func(piece []byte) bool {
		for in := json.NewDecoder(bytes.NewReader(piece)); ; {
			rest := bytes.TrimSpace(piece[in.InputOffset():])
			switch {
			case len(rest) == 0:
				return true
			case ctx.Err() != nil || broken == maxBroken:
				return false
			}
			at := of
			if n++; n > 1 {
				at.source, at.name = fmt.Sprintf("%s, report %d", of.source, n), fmt.Sprintf("%s report %d", of.name, n)
			}
			at.name = strings.TrimSpace(cmp.Or(at.name, "report 1"))
			isWhole, isReport := r.value(at, in, rest)
			if !isReport {
				broken++
			}
			if !isWhole {
				return true
			}
		}
	})
	switch {
	case ctx.Err() != nil:
	case broken == maxBroken:
		r.lost(of.source, fmt.Sprintf("the rest is left out: %d parts of it are no reports", broken))
	case !errors.Is(err, io.EOF):
		r.lost(of.source, err.Error())
	case n == 0:
		r.lost(of.source, isEmpty)
	}
}

// value reads the next value, with which the rest of a piece begins. What follows it can be read if it is whole.
func (r *Reading) value(at input, in *json.Decoder, rest []byte) (isWhole, isReport bool) {
	if len(rest) > maxReport {
		r.broken(at.source, rest[0], errTooLong)
		return false, false
	}
	var d document
	err := in.Decode(&d)
	_, isJSON := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err != nil && !isJSON:
		r.broken(at.source, rest[0], err)
		return false, false
	case err == nil && d.Schema == nodes.Schema && len(r.Networks) < maxProblems:
		r.Networks = append(r.Networks, &d.Report)
	case err != nil, d.Schema != report.Schema:
		r.refuse(at.source, d.Schema, err)
		return true, false
	default:
		r.add(d.node(at))
	}
	return true, true
}

// broken says why a value cannot be read. It may have been a report if it begins like one.
func (r *Reading) broken(source string, first byte, err error) {
	switch {
	case first != '{':
		r.foreign = true
		r.problem(Problem{Source: source, Reason: "is no JSON: " + err.Error()})
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.lost(source, "is cut off")
	case errors.Is(err, errTooLong):
		r.lost(source, err.Error())
	default:
		r.lost(source, "is cut off or damaged: "+err.Error())
	}
}

// refuse says why a document is not taken for a report.
func (r *Reading) refuse(source, schema string, err error) {
	kind, _, _ := strings.Cut(report.Schema, "/")
	switch {
	case strings.HasPrefix(schema, kind+"/") && schema != report.Schema:
		r.lost(source, fmt.Sprintf("a newer gpudoctor wrote it (%s): update this one", schema))
	case err != nil && schema == report.Schema:
		r.lost(source, err.Error())
	default:
		r.foreign = r.foreign || strings.HasPrefix(schema, "gpudoctor.facts/")
		r.problem(Problem{Source: source, Reason: fmt.Sprintf("is no report of check (schema %q); gpudoctor check -o FILE.json writes one", schema)})
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

func (r *Reading) lost(source, reason string) {
	r.problem(Problem{Source: source, Reason: reason, Lost: true})
}

// problem keeps a problem, or counts it once there are many.
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

// Names are the names of nodes in a list: separated by commas or white space, with ranges as Slurm writes them
// (n[01-03,7]). What is no range stays as it is.
func Names(list string) (all []string) {
	for word := range strings.FieldsSeq(list) {
		word = strings.Trim(word, ",")
		left := maxNodes - len(all)
		names := nodes.Expand(word, left)
		if names == nil {
			names = lines.NonEmpty(strings.Split(word, ",")...)
		}
		all = append(all, names[:min(len(names), left)]...)
	}
	return all
}
