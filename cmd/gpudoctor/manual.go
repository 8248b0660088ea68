package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

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

// manualDate is when what the page says by hand was last changed. The page is the same
// whenever it is made.
const manualDate = "November 22, 2026"

// manual is a page in the language mdoc (mdoc(7)).
type manual struct {
	strings.Builder
	commands []*cli.Command
}

// manualPage makes the manual page from the commands, their flags and the terms.
func manualPage(app *cli.App) string {
	m := &manual{commands: slices.DeleteFunc(slices.Clone(leaves(app.Commands)), func(c *cli.Command) bool { return c.Hidden || c.Name == "help" })}
	m.macro("Dd %s", manualDate)
	m.macro("Dt GPUDOCTOR 1")
	m.macro("Os")
	m.macro("Sh NAME")
	m.macro("Nm gpudoctor")
	m.macro("Nd %s", app.Usage)
	m.macro("Sh SYNOPSIS")
	for _, c := range m.commands {
		m.macro("Nm gpudoctor Cm %s", strings.Join(strings.Fields(c.HelpName)[1:], " "))
		if c.ArgsUsage != "" {
			m.macro("Ar %s", strings.ReplaceAll(c.ArgsUsage, "|", " | "))
		}
		if len(ownFlags(c)) > 0 {
			m.macro("Op Ar flags")
		}
	}
	m.macro("Sh DESCRIPTION")
	m.text(`gpudoctor reads the state of a machine's GPUs and the paths between them, moves verified data between the GPUs, applies rules to the results, and recommends what to change first. It never changes the machine. Flags and other arguments may be given in any order.`)
	m.macro("Sh COMMANDS")
	for _, c := range m.commands {
		m.command(c)
	}
	m.environment()
	m.files()
	m.macro("Sh EXIT STATUS")
	m.macro("Bl -tag -width Ds")
	for _, t := range allTerms {
		if t.Kind == exitCodeTerm {
			m.macro("It %s", t.Name)
			m.text(strings.ToUpper(t.Means[:1]) + t.Means[1:] + ".")
			m.text(t.Do)
		}
	}
	m.macro("El")
	m.macro("Sh EXAMPLES")
	for i, e := range [][2]string{
		{"Examine this machine:", "gpudoctor check"},
		{"Examine it together with the log of the job that failed, and write a report for the ticket:", "gpudoctor check --with job.log -o report.md"},
		{"Find the cause from files that somebody sent:", "gpudoctor check --from support.tar.gz"},
		{"Record a machine today, and show what changed tomorrow:", "gpudoctor snapshot -o today.txtar\ngpudoctor diff today.txtar tomorrow.txtar"},
		{"Explain a finding and an exit code:", "gpudoctor explain acs-redirect\ngpudoctor explain exit 3"},
	} {
		if i > 0 {
			m.macro("Pp")
		}
		m.text(e[0])
		m.literal(e[1])
	}
	m.macro("Sh SEE ALSO")
	m.macro("Xr dmesg 1 ,")
	m.macro("Xr nvidia-smi 1 ,")
	m.macro("Xr lspci 8")
	return m.String()
}

// command writes about one command.
func (m *manual) command(c *cli.Command) {
	m.macro("Ss %s", c.HelpName)
	m.text(strings.ToUpper(c.Usage[:1]) + c.Usage[1:] + ".")
	for paragraph := range strings.SplitSeq(c.Description, "\n\n") {
		switch {
		case paragraph == "":
		case strings.Contains(paragraph, "  ") || strings.HasPrefix(paragraph, "gpudoctor "): // Columns, or commands.
			m.literal(paragraph)
		default:
			m.macro("Pp")
			m.text(strings.ReplaceAll(paragraph, "\n", " "))
		}
	}
	if len(ownFlags(c)) == 0 {
		return
	}
	m.macro("Bl -tag -width Ds")
	for _, f := range ownFlags(c) {
		h, _ := helpOf(f)
		names := make([]string, len(h.Names))
		for i, n := range h.Names {
			names[i] = "Fl " + strings.TrimPrefix(n, "-")
		}
		item := strings.Join(names, " , ")
		if h.Takes != "" {
			item += " Ar " + h.Takes
		}
		m.macro("It %s", item)
		said := h.Usage
		if h.Default != "" {
			said += " (default " + h.Default + ")"
		}
		m.text(said)
	}
	m.macro("El")
}

// ownFlags are the flags of a command that help shows, without --help.
func ownFlags(c *cli.Command) []cli.Flag {
	return slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool {
		_, ok := helpOf(f)
		return !ok || isHidden(f) || f == cli.HelpFlag
	})
}

// environment writes about the variables.
func (m *manual) environment() {
	variables := map[string]string{}
	for _, c := range m.commands {
		for _, f := range c.Flags {
			if doc, ok := f.(cli.DocGenerationFlag); ok {
				for _, name := range doc.GetEnvVars() {
					variables[name] = "Sets --" + f.Names()[0] + "."
				}
			}
		}
	}
	variables["NO_COLOR"] = "If set, no colors are written unless --color always is given."
	variables["LC_ALL , LC_CTYPE , LANG"] = "If the first of them that is set does not name UTF-8, only ASCII is written."
	variables["XDG_CONFIG_HOME"] = "The user's configuration folder."
	names := make([]string, 0, len(variables))
	for name := range variables {
		names = append(names, name)
	}
	slices.Sort(names)
	m.macro("Sh ENVIRONMENT")
	m.text("A flag overrides a variable, and a variable overrides a file. An empty variable counts as unset.")
	m.macro("Bl -tag -width Ds")
	for _, name := range names {
		m.macro("It Ev %s", name)
		m.text(variables[name])
	}
	m.macro("El")
}

// files writes about the files of settings.
func (m *manual) files() {
	m.macro("Sh FILES")
	m.text("Both files are YAML. Each key is the name of a flag without its dashes, such as fail-on: medium. The file in the current directory takes precedence.")
	m.macro("Bl -tag -width Ds")
	m.macro("It Pa %s", settings.Here)
	m.text("Defaults for commands run in this directory. It cannot set " + strings.Join(ownOnly, ", ") + ", and it is ignored if it is a link, belongs to another user, or any user may write to it.")
	m.macro("It Pa $XDG_CONFIG_HOME/gpudoctor/config.yaml")
	m.text("The user's own defaults; ~/.config is used if XDG_CONFIG_HOME is not set.")
	m.macro("El")
	m.macro("Pp")
	m.text("In the file in the current directory, the key " + settings.WaiversKey + " lists findings that are accepted until a date (gpudoctor waive adds one).")
	m.text("Neither file can set which input is read or which file is written.")
}

// macro writes a line of a macro and its arguments.
func (m *manual) macro(format string, args ...any) {
	m.WriteString("." + fmt.Sprintf(format, args...) + "\n")
}

// text writes sentences, each on a line of its own.
func (m *manual) text(s string) {
	for sentence := range strings.SplitSeq(strings.ReplaceAll(s, ". ", ".\x00"), "\x00") {
		for _, line := range lines.Wrap(sentence, pageWidth) {
			m.WriteString(roff(line) + "\n")
		}
	}
}

// pageWidth is the longest line of text that mandoc -T lint takes, less the escapes.
const pageWidth = 74

// literal writes lines as they are.
func (m *manual) literal(s string) {
	m.macro("Bd -literal -offset indent")
	for line := range strings.SplitSeq(s, "\n") {
		m.WriteString(roff(line) + "\n")
	}
	m.macro("Ed")
}

// roff escapes what the language gives a meaning: back slashes, a point or an apostrophe
// at the beginning of a line, and hyphens that are to be copied as they are.
func roff(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\e`), "--", `\-\-`)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
