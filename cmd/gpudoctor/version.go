package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/build"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
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
			return stdio.Write(c.App.Writer, printVersion)
		},
	}
}

// printVersion writes the version and what the program was built from.
func printVersion(w io.Writer) error {
	commit := build.Revision()
	if commit != "" {
		commit = "commit " + commit + ", "
	}
	_, err := fmt.Fprintf(w, "gpudoctor %s (%srules %s, %s %s/%s)\n", version, commit, build.RulesDigest(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
