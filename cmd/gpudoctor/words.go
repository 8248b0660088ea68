package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// refused is what is wrong with a command line in itself: an argument of a command that says nothing of
// arguments, values that a flag does not take, and flags that exclude each other.
func refused(c *cli.Context) error {
	if c.Command.ArgsUsage == "" && c.Args().Present() {
		hints := append(meantAs(c), c.Command.HelpName+" --help describes its arguments")
		return complaint.Hinted(errors.New("unexpected argument: "+complaint.Quote(c.Args().First())), hints...)
	}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if value := c.String(name); name != armsFlag.Name && (value != "" || c.IsSet(name)) {
			if err := oneOf(c.Command, name, value); err != nil {
				return err
			}
		}
	}
	if c.Bool(redactFlag.Name) && c.Bool(noRedactFlag.Name) {
		return complaint.Hinted(errRedactBoth, "by default, names are replaced in files, and secrets everywhere")
	}
	if dir := c.String(policyFlag.Name); dir != "" {
		return checkPolicy(dir)
	}
	return nil
}

// meantAs says what unexpected arguments may have been meant as: files to examine, the
// file to write, or the value of a flag.
func meantAs(c *cli.Context) []string {
	words := c.Args().Slice()
	switch {
	case !slices.ContainsFunc(words, func(w string) bool { return !looksLikeSource(w) }):
		return filesMeant(c, words)
	case c.Command == nil:
		return nil
	}
	for _, f := range c.Command.Flags {
		if name := f.Names()[0]; slices.Contains(choices[name], words[0]) {
			return []string{"did you mean --" + name + " " + words[0] + "?"}
		}
	}
	return nil
}

// filesMeant says how to give files that were given without a flag.
func filesMeant(c *cli.Context, words []string) []string {
	var hints []string
	if c.Command != nil && hasFlag(c.Command, "output") && !hasFlag(c.Command, fromFlag.Name) {
		hints = append(hints, "to write to it: "+c.Command.HelpName+" -o "+remedies.Quote(words[0]))
	}
	command := "gpudoctor check"
	if c.Command != nil && hasFlag(c.Command, fromFlag.Name) {
		command = c.Command.HelpName
	}
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, examplePrefix); ok && !slices.Contains(fixtures.Examples(), name) {
			return append(hints, "to examine an example: "+command+" --from "+examplePrefix+cmp.Or(rules.Nearest(name, fixtures.Examples()), "NAME"))
		}
		command += " --from " + remedies.Quote(w)
	}
	return append(hints, "to examine it: "+command)
}

// hasFlag reports whether a command has a flag of that name.
func hasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == name })
}

// looksLikeSource reports whether a word is something to examine: an example,
// standard input, a file or a folder, or what is named like one.
func looksLikeSource(word string) bool {
	if word == standardInput || strings.HasPrefix(word, examplePrefix) || strings.ContainsAny(word, `/\`) {
		return true
	}
	if _, err := os.Stat(word); err == nil {
		return true
	}
	return len(filepath.Ext(word)) > 1 && !strings.HasPrefix(word, ".")
}
