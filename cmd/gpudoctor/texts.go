package main

import (
	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

func textsCommand() *cli.Command {
	return &cli.Command{
		Name:  "texts",
		Usage: "list the kinds of text that check --from recognizes",
		Description: `Each kind is recognized by its content, alone or among others in one file, in a
folder, in an archive (.gz, .bz2, .tar, .zip, .txtar) or from a pipe.`,
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return stdio.Write(c.App.Writer, writeTexts)
		},
	}
}
