package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

// output is where a report goes, and in which format.
type output struct {
	// file is empty for standard output.
	file   string
	format report.Format
}

// outputs reads --format and -o: files take their format from their names,
// standard output takes that of --format, and is left alone when there are
// files and it was not asked for.
func outputs(files []string, format string, formatSet bool) ([]output, error) {
	if err := oneOf("format", format, report.FormatAliases()...); err != nil {
		return nil, err
	}
	f, _ := report.FormatNamed(format)
	var all []output
	onStdout := len(files) == 0 || formatSet
	for _, file := range files {
		if file == "-" {
			onStdout = true
			continue
		}
		of, ok := report.FormatOf(file)
		if !ok {
			return nil, hinted(fmt.Errorf("-o %s: the name does not tell the format", quoteWord(file)), "end it in one of: "+join(report.Extensions()))
		}
		if err := writable(file); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o output) bool { return filepath.Clean(o.file) == filepath.Clean(file) }) {
			return nil, fmt.Errorf("-o %s is given twice", file)
		}
		all = append(all, output{file, of})
	}
	if onStdout {
		all = append(all, output{format: f})
	}
	return all, nil
}

// writable refuses, before any work is done, a file that could not be
// written after it.
func writable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err == nil && info.IsDir():
		return hinted(fmt.Errorf("-o %s: is a folder", file), "name a file in it")
	case err == nil && !info.Mode().IsRegular():
		return mayWrite(file, file)
	case err == nil:
		if target, err := filepath.EvalSymlinks(file); err == nil {
			return mayWrite(file, filepath.Dir(target)) // The new file takes the place of the old one.
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return hinted(fmt.Errorf("-o %s: %s", file, inWords(err, "file")), "name another file")
	}
	dir := filepath.Dir(file)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return hinted(fmt.Errorf("-o %s: there is no folder %s", file, dir), "make it, or name another")
	}
	return mayWrite(file, dir)
}

// mayWrite refuses a file that is to be written at a place where that is not
// allowed.
func mayWrite(file, at string) error {
	err := accessible(at)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return hinted(fmt.Errorf("-o %s: permission to write to %s denied", file, at), "name another folder, such as "+os.TempDir())
	}
	return hinted(fmt.Errorf("-o %s: %s: %w", file, at, err), "name another folder, such as "+os.TempDir())
}

// written says which files were written, and the verdict: a log that holds
// nothing else tells how it went. It is empty where there are none.
func written(all []output, v report.Verdict) string {
	var files, parts []string
	for _, o := range all {
		if o.file != "" {
			files = append(files, report.Printable(o.file, false))
		}
	}
	if len(files) == 0 {
		return ""
	}
	if v.State != report.Findings { // The counts say it.
		parts = append(parts, string(v.State))
	}
	if counts := v.Counts.String(); counts != "" {
		parts = append(parts, counts)
	}
	return fmt.Sprintf("gpudoctor: wrote %s: %s; exit %d", join(files), join(parts), v.ExitCode)
}

// sayWritten writes that line: on standard output where no report is written
// to it, or else for a person who looks on.
func sayWritten(all []output, v report.Verdict, stdout io.Writer) error {
	line := written(all, v)
	switch {
	case line == "":
		return nil
	case slices.ContainsFunc(all, func(o output) bool { return o.file == "" }):
		tell("%s", line)
		return nil
	}
	return toStdout(stdout, func(w io.Writer) error {
		_, err := io.WriteString(w, line+"\n")
		return err
	})
}

// writeReport writes the report to every output.
func writeReport(all []output, v *versions, s report.Style, stdout io.Writer) error {
	for _, o := range all {
		if o.file == "" {
			d := v.toStdout(stdout)
			if err := toStdout(stdout, func(w io.Writer) error { return o.format.Write(w, d, s) }); err != nil {
				return err
			}
			continue
		}
		plain := report.Style{Verbose: s.Verbose, Quiet: s.Quiet, ASCII: s.ASCII, Example: s.Example}
		d := v.toFile()
		if err := writeFile(o.file, func(w io.Writer) error { return o.format.Write(w, d, plain) }); err != nil {
			return err
		}
	}
	return nil
}

// toStdout writes to standard output. A reader that has gone has seen all
// that it wanted.
func toStdout(stdout io.Writer, write func(io.Writer) error) error {
	err := write(stdout)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// writeFile writes a file whole or not at all: into a new one beside it, which
// then takes its name. A device or a pipe is written to as it is.
func writeFile(file string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	name := filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+"."+rand.Text()[:8])
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, errors.Unwrap(err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", file, errors.Join(err, os.Remove(name)))
		}
	}()
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name, file)
}
