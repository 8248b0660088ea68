package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
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
			return stdio.Write(c.App.Writer, printVersion)
		},
	}
}

func printVersion(w io.Writer) error {
	commit := lines.After(lines.Behind("commit ", revision()), ", ")
	_, err := fmt.Fprintf(w, "gpudoctor %s (%srules %s, %s %s/%s)\n", version, commit, rulesDigest(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// digestDigits is how many digits of the digest are shown: those of a commit.
const digestDigits = 12

// rulesDigest is the digest of what gpudoctor judges by, by name and content: the built-in rules but for their tests, their tables,
// the messages of programs and the remedies.
var rulesDigest = sync.OnceValue(func() report.Digest {
	sum := sha256.New()
	for i, files := range []fs.FS{rules.Files, data.Files, message.Files, remedies.Files} {
		err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.rego") {
				return err
			}
			text, err := fs.ReadFile(files, name)
			sum.Write(fmt.Appendf(nil, "%d %q %d\n", i, name, len(text))) // It never fails (hash.Hash).
			sum.Write(text)
			return err
		})
		if err != nil {
			panic(err) // The files are part of the program.
		}
	}
	return report.Digest(hex.EncodeToString(sum.Sum(nil))[:digestDigits])
})

// revision is the commit that the program was built from, if the toolchain noted it, else empty.
func revision() string {
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	commit := settings["vcs.revision"]
	commit = commit[:min(len(commit), digestDigits)]
	if commit != "" && settings["vcs.modified"] == "true" {
		commit += " with changes"
	}
	return commit
}
