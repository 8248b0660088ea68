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

// flagHelp is what help says of a flag.
type flagHelp struct {
	names []string // With dashes, letters first.
	// takes is the word that stands for its value, usage what it does, byDefault the
	// value without it; empty where there is none.
	takes, usage, byDefault string
}

// helpOf takes the description of a flag apart. What the flag takes stands in back quotes
// in its usage: at its beginning and before a colon if it is no part of the sentence.
func helpOf(f cli.Flag) (h flagHelp, ok bool) {
	doc, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return h, false
	}
	h.usage = doc.GetUsage()
	if before, rest, quoted := strings.Cut(h.usage, "`"); quoted {
		word, after, _ := strings.Cut(rest, "`")
		h.takes, h.usage = word, before+word+after
		if before == "" {
			h.usage = strings.TrimPrefix(after, ": ")
		}
	}
	var long []string
	for _, n := range f.Names() {
		if len(n) == 1 {
			h.names = append(h.names, "-"+n)
		} else {
			long = append(long, "--"+n)
		}
	}
	h.names = append(h.names, long...)
	if v := doc.GetDefaultText(); doc.TakesValue() && v != "" && v != "0s" {
		h.byDefault = report.Printable(strings.Trim(v, `"`), false)
	}
	return h, true
}

// hidden reports whether a flag is an old name that no help shows.
func hidden(f cli.Flag) bool {
	visible, hides := f.(cli.VisibleFlag)
	return hides && !visible.IsVisible()
}

// describeFlag writes a flag as one line of a help page: its names, what it takes and
// what it does.
func describeFlag(f cli.Flag) string {
	h, ok := helpOf(f)
	if !ok {
		return ""
	}
	line := "  " + strings.Join(h.names, ", ")
	if h.takes != "" {
		line += " " + h.takes
	}
	line += "\t" + h.usage
	if h.byDefault != "" {
		line += " (default " + h.byDefault + ")"
	}
	return line
}
