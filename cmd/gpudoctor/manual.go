package main

import (
	_ "embed"
	"io"
	"strings"
	"text/template"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/settings"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page",
		Description: `gpudoctor man | man -l -
gpudoctor man >/usr/local/share/man/man1/gpudoctor.1`,
		Action: func(c *cli.Context) error {
			return stdio.Write(c.App.Writer, func(w io.Writer) error { return writeManual(w, c.App) })
		},
	}
}

//go:embed templates/gpudoctor.1.tmpl
var manualText string

// writeManual writes the manual page of the commands, their flags and the exit codes.
func writeManual(w io.Writer, app *cli.App) error {
	page := template.Must(template.New("manual").Funcs(template.FuncMap{
		"text": mdocText, "example": mdocExample, "flags": shownFlags, "replace": strings.ReplaceAll,
		"sentence":   func(s string) string { return mdocText(strings.ToUpper(s[:1]) + s[1:] + ".") },
		"paragraphs": func(s string) []string { return lines.NonEmpty(strings.Split(s, "\n\n")...) },
		"literal": func(paragraph string) bool { // Columns, or commands.
			return strings.Contains(paragraph, "  ") || strings.HasPrefix(paragraph, "gpudoctor ")
		},
	}).Parse(manualText))
	commands := visible(leaves(app.Commands))
	return page.Execute(w, map[string]any{
		"App": app, "Commands": commands, "Variables": variablesOf(commands), "Here": settings.Here, "PerCall": join(perCall),
		"ExitCodes": lines.Filter(allTerms, func(t reportTerm) bool { return t.Kind == exitCodeTerm }),
	})
}

// shownFlags are what help says of the flags of a command, without --help.
func shownFlags(c *cli.Command) []flagHelp {
	return lines.Map(lines.Filter(c.Flags, func(f cli.Flag) bool { return f != cli.HelpFlag }), helpOf)
}

// variablesOf says of each variable that is read what it does.
func variablesOf(commands []*cli.Command) map[string]string {
	all := map[string]string{
		"NO_COLOR":                 "If set, no colors are written unless --color always is given.",
		"LC_ALL , LC_CTYPE , LANG": "If the first of them that is set does not name UTF-8, only ASCII is written.",
	}
	for _, c := range commands {
		for _, f := range c.Flags {
			for _, name := range docOf(f).GetEnvVars() {
				all[name] = "Sets --" + f.Names()[0] + "."
			}
		}
	}
	return all
}

// mdocText is sentences, each on a line of its own and none longer than mandoc -T lint takes, less the escapes.
func mdocText(s string) string {
	const width = 74
	var all []string
	for sentence := range strings.SplitSeq(strings.ReplaceAll(s, ". ", ".\x00"), "\x00") {
		all = append(all, lines.Wrap(sentence, width)...)
	}
	return mdocLines(all)
}

func mdocExample(s string) string {
	return ".Bd -literal -offset indent\n" + mdocLines(strings.Split(s, "\n")) + ".Ed\n"
}

// mdocLines escapes what the language gives a meaning: back slashes, a point or an apostrophe
// at the beginning of a line, and hyphens that are to be copied as they are.
func mdocLines(all []string) string {
	var b strings.Builder
	for _, l := range all {
		l = strings.NewReplacer(`\`, `\e`, "--", `\-\-`).Replace(l)
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			l = `\&` + l
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}
