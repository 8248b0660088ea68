package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// writeTexts writes a table of the kinds of text.
func writeTexts(w io.Writer) error {
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

// writeRules writes a table of the rules.
func writeRules(w io.Writer, all []rules.Rule) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var b strings.Builder
	b.WriteString("RULE\tSEVERITY\tPROFILES\tTITLE\n")
	for _, r := range all {
		profiles := "all"
		if len(r.Profiles) > 0 {
			var names []string
			for _, p := range r.Profiles {
				names = append(names, string(p))
			}
			profiles = strings.Join(names, ",")
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", r.ID, r.Severity, profiles, lines.Printable(r.Title, false))
	}
	if _, err := io.WriteString(t, b.String()); err != nil {
		return err
	}
	return t.Flush()
}
