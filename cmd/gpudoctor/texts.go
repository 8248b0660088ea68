package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
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
			return stdio.Write(c.App.Writer, listTexts)
		},
	}
}

// listTexts writes a table of the kinds of text.
func listTexts(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var b strings.Builder
	b.WriteString("KIND\tPRODUCED BY\tWHAT IT IS\n")
	for _, k := range text.Kinds() {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", k.Name, lines.Printable(k.Command, false), lines.Printable(k.Title, false))
	}
	fmt.Fprintf(&b, "messages\t\tthe %d known messages of programs, anywhere in a text\n", len(message.Statements()))
	if _, err := io.WriteString(t, b.String()); err != nil {
		return err
	}
	return t.Flush()
}
