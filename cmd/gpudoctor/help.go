package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

// The help pages. Columns are aligned by the tabs (text/tabwriter).
const (
	appHelp = `gpudoctor: {{.Usage}}

usage: gpudoctor COMMAND [flags]

commands:
{{range .VisibleCommands}}{{if ne .Name "help"}}  {{.Name}}{{"\t"}}{{.Usage}}{{"\n"}}{{end}}{{end}}
flags:
{{range .VisibleFlags}}{{.}}{{"\n"}}{{end}}
gpudoctor COMMAND --help shows what a command takes. It never changes the machine.
Start with: gpudoctor check
`
	commandHelp = `{{.HelpName}}: {{.Usage}}

usage: {{.HelpName}}{{if .ArgsUsage}} {{.ArgsUsage}}{{end}}{{if .VisibleFlags}} [flags]{{end}}
{{if .Description}}
{{.Description}}
{{end}}{{if .VisibleFlags}}
flags:
{{range .VisibleFlags}}{{.}}{{"\n"}}{{end}}{{end}}`
	groupHelp = `{{.HelpName}}: {{.Usage}}

usage: {{.HelpName}} COMMAND [flags]

commands:
{{range .VisibleCommands}}{{if ne .Name "help"}}  {{.Name}}{{"\t"}}{{.Usage}}{{"\n"}}{{end}}{{end}}`
)

// describeFlag writes a flag as one line of a help page: its names, what it
// takes (which stands in back quotes in its usage, at its beginning and before
// a colon if it is no part of the sentence), and what it does.
func describeFlag(f cli.Flag) string {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	usage, takes := doc.GetUsage(), ""
	if before, rest, ok := strings.Cut(usage, "`"); ok {
		word, after, _ := strings.Cut(rest, "`")
		usage, takes = before+word+after, " "+word
		if before == "" {
			usage = strings.TrimPrefix(after, ": ")
		}
	}
	var short, long []string
	for _, n := range f.Names() {
		if len(n) == 1 {
			short = append(short, "-"+n)
		} else {
			long = append(long, "--"+n)
		}
	}
	line := "  " + strings.Join(append(short, long...), ", ") + takes + "\t" + usage
	if v := doc.GetDefaultText(); doc.TakesValue() && v != "" && v != "0s" {
		line += " (default " + report.Printable(strings.Trim(v, `"`), false) + ")"
	}
	return line
}
