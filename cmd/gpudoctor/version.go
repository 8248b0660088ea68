package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// version is gpudoctor's own. That of a release is set by .ci/release.
var version = "0.1.0"

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version, the commit and the digest of the rules",
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return toStdout(c.App.Writer, printVersion)
		},
	}
}

// printVersion writes the version and what the program was built from.
func printVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "gpudoctor %s (%srules %s, %s %s/%s)\n", version, revision(), rulesDigest(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// digestDigits is how many digits of the digest are shown: those of a commit.
const digestDigits = 12

// rulesDigest is the digest of what gpudoctor judges by: the built-in rules, their tables,
// the messages of programs and the remedies.
var rulesDigest = sync.OnceValue(func() report.Digest {
	sum := sha256.New()
	for i, files := range []fs.FS{rules.Files(), data.Files(), message.Files(), remedies.Files()} {
		err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(files, name)
			fmt.Fprintf(sum, "%d %s %d\n", i, name, len(text))
			sum.Write(text)
			return err
		})
		if err != nil {
			panic(err) // The files are part of the program.
		}
	}
	return report.Digest(hex.EncodeToString(sum.Sum(nil))[:digestDigits])
})

// revision is the commit that the program was built from, if the toolchain
// noted it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	if commit == "" {
		return ""
	}
	return "commit " + commit + changed + ", "
}
