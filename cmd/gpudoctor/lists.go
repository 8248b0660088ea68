package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/rules"
)

// textsTable is a table of the kinds of text.
func textsTable() string {
	rows := [][]string{{"KIND", "PRODUCED BY", "WHAT IT IS"}}
	for _, k := range text.Kinds() {
		rows = append(rows, []string{k.Name, k.Command, k.Title})
	}
	rows = append(rows, []string{"messages", "", fmt.Sprintf("the %d known messages of programs, anywhere in a text", len(message.Statements()))})
	return lines.Table(lines.Clean(rows, false))
}

// rulesTable is a table of the rules.
func rulesTable(all []rules.Rule) string {
	rows := [][]string{{"RULE", "SEVERITY", "PROFILES", "TITLE"}}
	for _, r := range all {
		names := lines.Map(r.Profiles, func(p rules.Profile) string { return string(p) })
		rows = append(rows, []string{r.ID, string(r.Severity), cmp.Or(strings.Join(names, ","), "all"), r.Title})
	}
	return lines.Table(lines.Clean(rows, false))
}

func textsCommand() *cli.Command {
	return &cli.Command{
		Name:  "texts",
		Usage: "list the kinds of text that check --from recognizes",
		Description: `Each kind is recognized by its content, alone or among others in one file, in a
folder, in an archive (.gz, .bz2, .tar, .zip, .txtar) or from a pipe.`,
		Action: func(c *cli.Context) error {
			return stdio.WriteText(c.App.Writer, textsTable())
		},
	}
}
