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
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// Bounds of what is read and kept.
const (
	maxReport   = 16 << 20 // Of one report, and of what is left out between two: one of a node with 16 GPUs has a quarter of a megabyte.
	maxUnpacked = 16 << 30 // Of what a compressed file holds.
	maxNodes    = 100_000
	maxFiles    = 1_000_000 // Of a folder.
	maxProblems = 1000
	maxBroken   = 1000 // Parts of one input that are no reports.
	maxText     = 255  // Bytes of a text of a report.
	maxPlace    = 300  // Bytes of the place and the reason of a problem.
)

// Problem is an input that is no report of a node, or not one that counts.
type Problem struct {
	Source string `json:"source"`
	Reason string `json:"reason"`
	Lost   bool   `json:"lost,omitempty"` // True where the report of a node may be lost.
}

// Reading is what was read, of one file or of all: the nodes in the order of the input, each once.
type Reading struct {
	Nodes    []*Node
	Problems []Problem
	Networks []*nodes.Report // What jobs of probe nccl --nodes found.
	Unsaid   int             // How many more problems there are.

	byName map[string]int
	judge  Judge

	// Of a file: foreign is true if there is no report in it, and what may be a recording or a text; recording if it begins like one;
	// copied of a copy of /sys or /proc, which was not read.
	of                                    input
	foreign, recording, copied, isArchive bool
}

// Judge makes the report of a node from a recording, from texts, or from a folder of these.
type Judge func(ctx context.Context, file string) ([]byte, error)

// input is where reports are read from: what it is called, the name of a node whose report does not name it, and when it was written.
type input struct {
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
			err = r.folder(ctx, filepath.Clean(p))
		case info.Mode()&fs.ModeDevice != 0:
			err = &fs.PathError{Op: "read", Path: p, Err: errDevice}
		default:
			r.single(ctx, readFile(ctx, p))
		}
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return r, err
		}
	}
	return r, context.Cause(ctx)
}

const isEmpty = "is empty"

var errDevice = errors.New("is a device")

// folder reads the files in a folder and those in it, several at a time. They count in the order of their names: a file in it is of one
// node or has reports of several; a folder in it is of one node, unless there are several reports or recordings in that.
func (r *Reading) folder(ctx context.Context, root string) error {
	names, err := r.list(ctx, root)
	read := make([]*Reading, len(names))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		workers.Go(func() error {
			if _, _, copied := rootfs.Split(below(root, name)); copied {
				read[i] = &Reading{of: input{source: name}, foreign: true, copied: true}
				read[i].problem(name, "is a copy of a machine's files, which is judged only in a folder of its own", false)
			} else {
				read[i] = readFile(ctx, name)
			}
			return nil
		})
	}
	_ = workers.Wait()                  // None fails.
	unit := func(one *Reading) string { // The folder in the root, or the file.
		if name, _, nested := strings.Cut(below(root, one.of.source), "/"); nested {
			return filepath.Join(root, name)
		}
		return one.of.source
	}
	for _, alike := range lines.Grouped(read, unit) {
		switch folder := unit(alike[0]); {
		case ctx.Err() != nil:
		case folder != alike[0].of.source:
			r.node(ctx, folder, alike)
		default:
			r.single(ctx, alike[0])
		}
	}
	return err
}

// list lists the files of a folder, but for hidden ones and other forms of a report beside it. Of the copy of a machine's /sys and /proc
// it lists one: no report is in it.
func (r *Reading) list(ctx context.Context, root string) (names []string, err error) {
	copies := map[string]bool{}
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch of, _, copied := rootfs.Split(below(root, p)); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.lost(p, complaint.Bare(err).Error())
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

func below(root, name string) string {
	at, err := filepath.Rel(root, name)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(at)
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

func readFile(ctx context.Context, name string) *Reading {
	r := &Reading{byName: map[string]int{}, of: input{source: name, name: nodeName(name)}}
	f, err := files.Within(ctx, deadline.Silence, func() (*os.File, error) { return os.Open(name) }) //nolint:gosec // The user names it.
	if err != nil {
		r.lost(name, complaint.Bare(err).Error())
		return r
	}
	in := files.NewReader(ctx, f, deadline.Silence, f.Close)
	defer in.Close()
	regular := false
	if info, err := f.Stat(); err == nil {
		r.of.written, regular = info.ModTime(), info.Mode().IsRegular()
	}
	r.stream(ctx, r.of, in)
	r.foreign = r.foreign && regular && len(r.Nodes)+len(r.Networks) == 0
	return r
}

func nodeName(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path.Base(filepath.ToSlash(file)), ".gz"), ".json")
}

// stream reads reports, or an archive of them, that may be compressed.
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
	head, _ := in.Peek(1024)
	if len(head) < 262 || string(head[257:262]) != "ustar" {
		r.recording = host.IsRecording(head)
		r.reports(ctx, of, in)
		return
	}
	r.isArchive = true
	for members := tar.NewReader(in); ctx.Err() == nil; {
		head, err := members.Next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.lost(of.source, err.Error())
			return
		case head.Typeflag == tar.TypeReg:
			r.reports(ctx, input{source: of.source + ":" + head.Name, name: nodeName(head.Name), written: head.ModTime}, members)
		}
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
		for piece = bytes.TrimSpace(piece); len(piece) > 0; piece = bytes.TrimSpace(piece) {
			if ctx.Err() != nil || broken == maxBroken {
				return false
			}
			at := of
			if n++; n > 1 {
				at.source, at.name = fmt.Sprintf("%s, report %d", of.source, n), fmt.Sprintf("%s report %d", of.name, n)
			}
			at.name = strings.TrimSpace(cmp.Or(at.name, "report 1"))
			var isReport bool
			if piece, isReport = r.value(at, piece); !isReport {
				broken++
			}
		}
		return true
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

// value reads the value with which a piece begins, and returns what follows it, as far as that can be read. A value may have been
// a report if it begins like one.
func (r *Reading) value(at input, piece []byte) (rest []byte, isReport bool) {
	var d document
	in, err := json.NewDecoder(bytes.NewReader(piece)), errTooLong
	if len(piece) <= maxReport {
		err = in.Decode(&d)
	}
	_, isJSON := errors.AsType[*json.UnmarshalTypeError](err)
	kind, _, _ := strings.Cut(report.Schema, "/")
	switch {
	case err == nil && d.Schema == nodes.Schema && len(r.Networks) < maxProblems:
		r.Networks = append(r.Networks, &d.Report)
		return piece[in.InputOffset():], true
	case err == nil && d.Schema == report.Schema:
		r.add(d.node(at))
		return piece[in.InputOffset():], true
	case err != nil && !isJSON:
		switch {
		case piece[0] != '{':
			r.foreign = true
			r.problem(at.source, "is no JSON: "+err.Error(), false)
		case errors.Is(err, io.ErrUnexpectedEOF):
			r.lost(at.source, "is cut off")
		case errors.Is(err, errTooLong):
			r.lost(at.source, err.Error())
		default:
			r.lost(at.source, "is cut off or damaged: "+err.Error())
		}
		return nil, false
	case d.Schema == report.Schema:
		r.lost(at.source, err.Error())
	case strings.HasPrefix(d.Schema, kind+"/"):
		r.lost(at.source, fmt.Sprintf("a newer gpudoctor wrote it (%s): update this one", d.Schema))
	default:
		r.foreign = r.foreign || strings.HasPrefix(d.Schema, "gpudoctor.facts/")
		r.problem(at.source, fmt.Sprintf("is no report of check (schema %q); gpudoctor check -o FILE.json writes one", d.Schema), false)
	}
	return piece[in.InputOffset():], false
}

// take adds what was read elsewhere.
func (r *Reading) take(one *Reading) {
	for _, n := range one.Nodes {
		r.add(n)
	}
	for _, p := range one.Problems {
		r.problem(p.Source, p.Reason, p.Lost)
	}
	r.Networks = append(r.Networks, one.Networks[:min(len(one.Networks), maxProblems-len(r.Networks))]...)
	r.Unsaid += one.Unsaid
}

// add takes a node. Of several reports of one node the one that was written last counts, or else the last. A name that is
// only that of the file is no proof that two nodes are one.
func (r *Reading) add(n *Node) {
	if i, known := r.byName[n.Name]; known {
		older := r.Nodes[i]
		if n.unnamed && older.unnamed && n.Source != older.Source {
			n.Name = n.Source
		} else {
			if n.written.Before(older.written) {
				older, n = n, older
			}
			r.Nodes[i] = n
			r.problem(older.Source, "does not count: "+n.Source+" is a later report of "+n.Name, false)
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

func (r *Reading) lost(source, reason string) { r.problem(source, reason, true) }

// problem keeps a problem, or counts it once there are many.
func (r *Reading) problem(source, reason string, lost bool) {
	if len(r.Problems) >= maxProblems {
		r.Unsaid++
		return
	}
	r.Problems = append(r.Problems, Problem{escape.Printable(source, maxPlace), escape.Printable(reason, maxPlace), lost})
}

// unreported are the names of a list that no report is of. A name with a domain and the same without one are of one node.
func (r *Reading) unreported(expected []string) []string {
	known := map[string]bool{}
	for _, n := range r.Nodes {
		host, _, _ := strings.Cut(n.Name, ".")
		known[n.Name], known[host+"."] = true, true
	}
	names := lines.Unique(lines.Map(expected, func(name string) string { return escape.Printable(name, maxText) }))
	all := lines.Filter(names, func(name string) bool {
		host, _, _ := strings.Cut(name, ".")
		return !known[name] && !known[name+"."] && !known[host]
	})
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
