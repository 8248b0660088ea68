package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/files"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/image"
	"github.com/gpudoctor/gpudoctor/checks/image/registry"
	"github.com/gpudoctor/gpudoctor/checks/text"
	nccltext "github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/fixtures"
)

// source is what is examined: this machine when from is empty, else recordings and texts.
type source struct {
	// from are recordings, texts, folders and archives; "-" is standard input.
	from []string
	// with are logs of the machine that is examined.
	with  []string
	stdin io.Reader
	// image is true where the one of them is a container image.
	image bool
	// remote is where the image is in a registry; nil where it is a file or a folder.
	remote *registry.Reference
	// platform is the one of an image that is examined, and plainHTTP is true where its
	// registry is reached without encryption.
	platform  image.Platform
	plainHTTP bool
	// target is a recording of the machine that files of a job are for; empty where none was given.
	target string
	// exclude are patterns of files in folders that are not read.
	exclude []string
	// maxBytes bounds what is read of texts; 0 is the default.
	maxBytes int64
	// system is where the files are; nil is this machine.
	system files.System
}

// excludes reports whether a file or folder in a folder is not to be read.
func (s source) excludes(name string) bool {
	return slices.ContainsFunc(s.exclude, func(pattern string) bool { return waivers.Matches(strings.TrimSuffix(pattern, "/"), name) })
}

func (s source) files() files.System {
	if s.system == nil {
		return files.OS{}
	}
	return s.system
}

// The prefix of a name of a recording that comes with gpudoctor, and what stands for standard input.
const (
	examplePrefix = "example:"
	standardInput = "-"
)

func (s source) names() []string {
	if len(s.from) == 0 {
		return append([]string{"this machine"}, s.with...)
	}
	return s.inputs()
}

// inputs are the files that are read.
func (s source) inputs() []string { return slices.Concat(s.from, s.with, lines.NonEmpty(s.target)) }

// folder is the folder that was examined, if it was one and nothing else: the names of its texts are relative to it.
func (s source) folder() string {
	all := slices.Concat(s.from, s.with)
	if len(all) != 1 {
		return ""
	}
	if info, err := s.files().Stat(all[0]); err != nil || !info.IsDir() {
		return ""
	}
	return all[0]
}

const (
	takesTexts = "--from takes logs, command output, job descriptions, copies of /sys and /proc, folders and archives of these, and files that gpudoctor snapshot or gpudoctor facts wrote"
	takesKinds = "gpudoctor texts lists what is recognized and how to produce it"
)

// gathered is what was read, and how long each check took.
type gathered struct {
	facts *facts.Facts
	took  map[string]time.Duration
	// textsOnly is true where no machine was examined, live or recorded.
	textsOnly bool
	// err may come with facts: that of texts in which nothing was recognized.
	err error
}

func collectShown(ctx context.Context, s source, opts gather.Options, quiet bool) gathered {
	p := newProgress(quiet, &opts)
	defer p.Done()
	return collect(ctx, s, opts)
}

// collect reads the facts of this machine, or those of recordings and texts.
func collect(ctx context.Context, s source, opts gather.Options) gathered {
	start := time.Now()
	opts.ReadLog = nccltext.Read
	g := s.machine(ctx, opts)
	if g.err != nil {
		return g
	}
	texts := s.with
	if g.facts == nil {
		texts = slices.Concat(s.from, s.with)
	}
	if len(texts) == 0 {
		return g
	}
	if f, ok := s.stdin.(*os.File); ok && slices.Contains(texts, standardInput) && term.IsTerminal(int(f.Fd())) {
		tell("gpudoctor: reading standard input; press Ctrl-D to end it")
	}
	var stdin io.Reader
	if s.stdin != nil {
		stdin = io.MultiReader(s.stdin) // It reads nothing behind the first end of file: a terminal would wait again.
	}
	reading := ctx
	if opts.Whole > 0 {
		var stop context.CancelFunc
		reading, stop = context.WithDeadline(ctx, start.Add(deadline.Within(opts.Whole)))
		defer stop()
	}
	read, err := text.Read(reading, texts, text.Options{
		Stdin: stdin, Gather: opts, Progress: opts.Progress, MaxBytes: s.maxBytes, Files: s.system, Excluded: s.excludes,
	})
	switch {
	case ctx.Err() != nil:
		return gathered{err: context.Cause(ctx)}
	case errors.Is(err, text.ErrDeadline):
		return gathered{err: complaint.Hinted(err, "--deadline sets another limit, "+opts.Whole.String()+" was this one")}
	case errors.Is(err, text.ErrMaxBytes):
		return gathered{err: complaint.Hinted(err, "--max-bytes sets another limit")}
	case errors.Is(err, text.ErrNothing):
		g := gathered{err: complaint.Hinted(err, takesTexts, takesKinds)}
		if slices.ContainsFunc(read.Facts.Texts, func(t facts.Text) bool { return t.Problem == "" }) {
			g.facts, g.textsOnly = read.Facts, true // The report says what to send in its place.
			if slices.ContainsFunc(read.Facts.Texts, func(t facts.Text) bool { return t.Unread != "" }) {
				g.err = nil // Others were not read: the input is not known to be wrong.
			}
		}
		return g
	case errors.Is(err, text.ErrSeveral):
		return gathered{err: complaint.Hinted(err, "examine one at a time: --from with its folder or its archive; unpack an archive that holds several")}
	case err != nil:
		return gathered{err: unusable(err)}
	case g.facts != nil:
		read.Facts = text.Join(g.facts, read.Facts)
	}
	return gathered{facts: read.Facts, took: g.took, textsOnly: g.facts == nil && read.Recording == ""}
}

// machine gathers what is known of a machine itself: this one, or the one that
// a recording shows. There are no facts where the sources are texts.
func (s source) machine(ctx context.Context, opts gather.Options) gathered {
	var h *host.Host
	var f *facts.Facts
	var err error
	switch {
	case len(s.from) == 0:
		h, err = live()
	case s.image:
		return s.gatherImage(ctx, opts)
	case strings.HasPrefix(s.from[0], examplePrefix), len(s.from) == 1 && s.isRecording(ctx, s.from[0]):
		h, f, err = s.openRecording(ctx, s.from[0])
	case slices.ContainsFunc(s.from, isRemoteImage):
		err = complaint.Hinted(errors.New("--from "+registry.Scheme+"...: only images are read from a registry"), "gpudoctor image REF")
	default:
		return gathered{}
	}
	if err != nil || f != nil {
		return gathered{facts: f, err: err}
	}
	f, took := checks.Gather(ctx, h, opts)
	return gathered{facts: f, took: took, err: context.Cause(ctx)}
}

// liveSystem is the system that this program runs on; tests change it.
var liveSystem = runtime.GOOS

// live is this machine. Only Linux has the files that it is read from.
func live() (*host.Host, error) {
	if liveSystem != "linux" {
		return nil, complaint.Hinted(fmt.Errorf("only a machine with Linux can be examined, and this one runs %s", liveSystem),
			"on the machine with the GPUs: gpudoctor snapshot -o machine.txtar; then here: gpudoctor check --from machine.txtar",
			takesTexts)
	}
	return host.Live(), nil
}

// isRecording reports whether a file is one of gpudoctor's own. Files of /proc,
// which have no size, are not: reading some takes away what was read.
func (s source) isRecording(ctx context.Context, path string) bool {
	return s.begins(ctx, path, host.IsRecording)
}

func (s source) begins(ctx context.Context, path string, is func(head []byte) bool) bool {
	if path == standardInput {
		return false
	}
	does, err := files.Within(ctx, deadline.Silence, func() (bool, error) {
		if info, err := s.files().Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			return false, err
		}
		f, err := s.files().Open(path)
		if err != nil {
			return false, err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		head := make([]byte, 1024)
		n, _ := io.ReadFull(f, head)
		return is(head[:n]), nil
	})
	return does && err == nil // Why it cannot be read is found when it is read.
}

// openRecording opens an example, a snapshot or a facts file.
func (s source) openRecording(ctx context.Context, path string) (*host.Host, *facts.Facts, error) {
	if name, ok := strings.CutPrefix(path, examplePrefix); ok {
		raw, err := fixtures.Example(name)
		if err != nil {
			return nil, nil, err
		}
		return host.OpenRecording(path, bytes.NewReader(raw))
	}
	f, err := files.Within(ctx, deadline.Silence, func() (files.File, error) { return s.files().Open(path) })
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path, err)
	}
	r := files.NewReader(ctx, f, deadline.Silence, f.Close)
	defer r.Close()
	h, doc, err := host.OpenRecording(path, r)
	return h, doc, unusable(err)
}

// unusable adds to the error of input what else to do.
func unusable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, host.ErrNewer):
		return complaint.Hinted(err, "it was written by a newer gpudoctor: update this one")
	}
	return complaint.Hinted(err, takesTexts)
}

// check rejects sources that cannot be combined or cannot be read, before any work is done.
func (s source) check(ctx context.Context) error {
	var seen []named
	for i, name := range slices.Concat(s.from, s.with) {
		flag := "--" + fromFlag.Name
		if i >= len(s.from) {
			flag = "--" + withFlag.Name
		}
		switch {
		case strings.HasPrefix(name, examplePrefix) && i >= len(s.from):
			return complaint.Hinted(fmt.Errorf("%s %s: an example is a machine, not a log", flag, complaint.Quote(name)), "--from "+name)
		case strings.HasPrefix(name, examplePrefix) && len(s.from) > 1:
			return complaint.Hinted(errors.New("--from: an example cannot be combined with other input"), "to examine a log together with it: --with FILE")
		case strings.HasPrefix(name, examplePrefix):
			if err := knownExample(name); err != nil {
				return err
			}
		case isRemoteImage(name):
			if _, err := findImage(ctx, name); err != nil {
				return err
			}
		case name != standardInput:
			info, err := files.Within(ctx, deadline.Silence, func() (fs.FileInfo, error) { return s.readable(name) })
			if errors.Is(err, files.ErrSilent) && len(s.from)+len(s.with) > 1 {
				continue // The report says so, and the others are read.
			}
			if err != nil {
				return cannotRead(flag+" ", name, err, flag+strings.TrimPrefix(takesTexts, "--from"))
			}
			if j := slices.IndexFunc(seen, func(n named) bool { return os.SameFile(n.info, info) }); j >= 0 {
				return complaint.Hinted(fmt.Errorf("%s %s is the same as %s", flag, complaint.Quote(name), complaint.Quote(seen[j].name)), "name it once")
			}
			seen = append(seen, named{name, info})
		}
	}
	if n := len(slices.DeleteFunc(slices.Concat(s.from, s.with), func(name string) bool { return name != standardInput })); n > 1 {
		return fmt.Errorf("standard input (-) is named %d times", n)
	}
	return nil
}

type named struct {
	name string
	info fs.FileInfo
}

func knownExample(from string) error {
	if all := prefixed(examplePrefix, fixtures.Examples()); !slices.Contains(all, from) {
		return complaint.UnknownName("example", from, all, "examples: "+join(fixtures.Examples()))
	}
	return nil
}

// readable reports what a file or a folder is, or why it cannot be read. A pipe is not opened, which would wait for its
// writer. A folder is only looked at: what of it can be read is found when it is read.
func (s source) readable(name string) (fs.FileInfo, error) {
	info, err := s.files().Stat(name)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return info, err
	}
	f, err := s.files().Open(name)
	if err != nil {
		return info, err
	}
	return info, f.Close()
}

// cannotRead says why a file cannot be read, behind the flag that names it, and what is taken.
func cannotRead(flag, name string, err error, takes string) error {
	if errors.Is(err, fs.ErrPermission) {
		takes = makeReadable
	}
	return complaint.Hinted(fmt.Errorf("%s%s: %s", flag, complaint.Quote(name), complaint.Reason(err, "file")), takes)
}

// makeReadable is the hint for what this user may not read.
const makeReadable = "make it readable for this user, or run gpudoctor as a user who can read it"
