package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// The help pages. Columns are aligned by the tabs (text/tabwriter).
const (
	appHelp = `gpudoctor: {{.Usage}}

usage: gpudoctor COMMAND [flags]

commands:
{{range .VisibleCommands}}{{if ne .Name "help"}}  {{.Name}}{{"\t"}}{{.Usage}}{{"\n"}}{{end}}{{end}}
flags:
{{range .VisibleFlags}}{{.}}{{"\n"}}{{end}}
gpudoctor COMMAND --help describes a command. gpudoctor never changes the machine.
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

// describeFlag writes a flag as one line of a help page: its names, what it takes and
// what it does.
func describeFlag(f cli.Flag) string {
	h := helpOf(f)
	line := "  " + strings.Join(h.Names, ", ")
	if h.Takes != "" {
		line += " " + h.Takes
	}
	return line + "\t" + h.About()
}
