package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page",
		Description: `gpudoctor man | man -l -
gpudoctor man >/usr/local/share/man/man1/gpudoctor.1`,
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return stdio.Write(c.App.Writer, func(w io.Writer) error {
				_, err := io.WriteString(w, manualPage(c.App))
				return err
			})
		},
	}
}
