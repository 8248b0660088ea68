package main

import (
	"errors"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/remedies"
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
		return complaint.Hinted(errors.New("--redact and --no-redact cannot be used together"), "by default, names are replaced in files, and secrets everywhere")
	}
	if dir := c.String(policyFlag.Name); dir != "" {
		return checkPolicy(dir)
	}
	return nil
}

// meantAs says how to examine files that were given without a flag: what exists, or has the form of a path.
func meantAs(c *cli.Context) []string {
	word := c.Args().First()
	if _, err := os.Stat(word); err != nil && word != standardInput && !strings.HasPrefix(word, examplePrefix) && !strings.ContainsAny(word, `./\`) {
		return nil
	}
	return []string{"to examine it: gpudoctor check --from " + remedies.Quote(word)}
}
