package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/cmd/internal/complaint"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/docs"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "explain a rule, cause, remedy, exit code or term of the report",
		ArgsUsage: "ID",
		Flags:     []cli.Flag{policyFlag, asciiFlag},
		Action: func(c *cli.Context) error {
			id := c.Args().First()
			s := style(c)
			e := explanation{Page: lines.NewPage(s.Width, false), ascii: s.ASCII}
			found := findTerms(c.Args().Slice())
			if c.Args().Len() != 1 && len(found) == 0 {
				return complaint.Hinted(fmt.Errorf("explain takes one id, got %d", c.Args().Len()), "gpudoctor rules list shows the rules", "gpudoctor explain acs-redirect")
			}
			var err error
			if e.known, err = learn(c.String(policyFlag.Name)); err != nil {
				return err
			}
			e.terms(found)
			if !e.explain(id) && len(found) == 0 {
				return complaint.UnknownName("id", id, e.known.names(), append(meantAs(c), "gpudoctor rules list shows the rules")...)
			}
			return stdio.WriteText(c.App.Writer, e.B.String())
		},
	}
}

func (k knowledge) names() []string {
	names := slices.Concat(k.acceptable(), lines.Map(k.remedies.Remedies(), func(r remedies.Remedy) string { return r.ID }), termNames())
	slices.Sort(names)
	return slices.Compact(names)
}

type explanation struct {
	lines.Page
	known knowledge
	ascii bool
}

func (e *explanation) terms(found []reportTerm) {
	for _, t := range found {
		e.Line()
		e.line("%s %s", t.Kind, t.Name)
		e.part("means", t.Means)
		e.part("do", t.Do)
	}
}

// explain writes about the rules that bear the id or name it as their cause,
// and about the remedy of that id. It reports whether there is any.
func (e *explanation) explain(id string) bool {
	before := e.B.Len()
	if r, ok := e.known.rules.Rule(id); ok {
		e.rule(r)
	}
	others := lines.Filter(e.known.rules.Rules(), func(r rules.Rule) bool { return r.Cause == id && r.ID != id })
	if len(others) > 0 {
		e.Line()
		e.line("%s is the cause that these rules report:", id)
		for _, r := range others {
			e.part("", fmt.Sprintf("%s (%s): %s", r.ID, r.Severity, r.Title))
		}
	}
	if r, ok := e.known.remedies.Remedy(id); ok {
		e.remedy(r)
	}
	return e.B.Len() > before
}

func (e *explanation) rule(r rules.Rule) {
	e.Line()
	e.line("%s: %s", r.ID, r.Title)
	e.line("")
	e.text(r.Description)
	e.line("")
	e.part("severity", string(r.Severity))
	e.part("confidence", string(r.Confidence))
	if r.Cause != r.ID {
		e.part("cause", r.Cause)
	}
	e.part("cause of", strings.Join(r.Explains, ", "))
	var cures, sources []string
	for _, id := range r.Remedies {
		if remedy, ok := e.known.remedies.Remedy(id); ok {
			id += " (" + string(remedy.Kind) + "): " + remedy.Title
		}
		cures = append(cures, id)
	}
	for _, l := range r.Links {
		sources = append(sources, l.Ref, l.Description)
	}
	e.part("remedies", cures...)
	e.part("sources", sources...)
	e.part("rule", r.File+", since "+r.Since)
}

func (e *explanation) remedy(r remedies.Remedy) {
	e.Line()
	e.line("%s: %s (%s)", r.ID, remedies.Unfilled(r.Title), r.Kind)
	e.line("")
	e.text(remedies.Unfilled(r.Description))
	e.line("")
	e.part("costs", r.Cost)
	e.part("requires", remedies.Effort(r.Needs, r.Lasts))
	e.part("risk", r.Risk)
	e.part("caution", r.Caution)
	label := "apply"
	for _, l := range apply.Lines(r.Apply.WithForms()) {
		if strings.HasPrefix(l, "by hand: ") {
			e.part(label, l)
		} else {
			e.line("  %-12s%s", label, remedies.Unfilled(l))
		}
		label = ""
	}
	e.part("undo", r.Undo)
	e.part("verify", r.Verify)
	cures := lines.Filter(e.known.rules.Rules(), func(rule rules.Rule) bool { return slices.Contains(rule.Remedies, r.ID) })
	e.part("applies to", strings.Join(lines.Map(cures, func(rule rules.Rule) string { return rule.ID }), ", "))
	e.part("sources", r.Sources...)
}

func (e *explanation) line(format string, args ...any) {
	e.Line(lines.Printable(fmt.Sprintf(format, args...), e.ascii))
}

func (e *explanation) text(s string) {
	for _, l := range lines.Paragraphs(s, e.Width) {
		e.line("%s", l)
	}
}

// part writes a label and its texts, each on lines of its own. Those that are empty are left out.
func (e *explanation) part(label string, texts ...string) {
	for _, s := range texts {
		if s == "" {
			continue
		}
		for _, l := range lines.Paragraphs(remedies.Unfilled(s), e.Width-14) {
			e.line("  %-12s%s", label, l)
			label = ""
		}
	}
}

func rulesCommand() *cli.Command {
	return &cli.Command{
		Name:  "rules",
		Usage: "list rules, or test your own",
		Subcommands: []*cli.Command{{
			Name:  "list",
			Usage: "print one line for each rule",
			Flags: []cli.Flag{policyFlag},
			Action: func(c *cli.Context) error {
				known, err := learn(c.String(policyFlag.Name))
				if err != nil {
					return err
				}
				rows := [][]string{{"RULE", "SEVERITY", "PROFILES", "TITLE"}}
				for _, r := range known.rules.Rules() {
					names := lines.Map(r.Profiles, func(p rules.Profile) string { return string(p) })
					rows = append(rows, []string{r.ID, string(r.Severity), cmp.Or(strings.Join(names, ","), "all"), r.Title})
				}
				return stdio.WriteText(c.App.Writer, lines.Table(lines.Clean(rows, false)))
			},
		}, testPolicyCommand()},
	}
}

func textsCommand() *cli.Command {
	return &cli.Command{
		Name:  "texts",
		Usage: "list the kinds of text that check --from recognizes",
		Action: func(c *cli.Context) error {
			rows := [][]string{{"KIND", "PRODUCED BY", "WHAT IT IS"}}
			for _, k := range text.Kinds() {
				rows = append(rows, []string{k.Name, k.Command, k.Title})
			}
			rows = append(rows, []string{"messages", "", fmt.Sprintf("the %d known messages of programs, anywhere in a text", len(message.Statements()))})
			return stdio.WriteText(c.App.Writer, lines.Table(lines.Clean(rows, false)))
		},
	}
}

type reportTerm struct {
	Kind, Name string
	// Means says what it means, Do what a user does about it.
	Means, Do string
}

const exitCodeTerm = "exit code"

// everyTerm are the terms of docs/glossary.md, but for those of the program's own parts: rows of a kind, a word, its meaning
// and what to do, and rows of terms with their meaning.
func everyTerm() (all []reportTerm) {
	ofReports, _, _ := strings.Cut(docs.Glossary, "\n## gpudoctor\n")
	for line := range strings.Lines(ofReports) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		switch {
		case cells[0] == "---" || cells[0] == "kind" || cells[0] == "term":
		case len(cells) == 4:
			all = append(all, reportTerm{cells[0], cells[1], cells[2], cells[3]})
		case len(cells) == 2:
			for name := range strings.SplitSeq(cells[0], ", ") {
				all = append(all, reportTerm{Kind: "term", Name: name, Means: cells[1]})
			}
		}
	}
	return all
}

// termNames are the words that findTerms finds; "exit" stands for all exit codes.
func termNames() []string {
	words := lines.Filter(everyTerm(), func(t reportTerm) bool { return t.Kind != exitCodeTerm })
	return append([]string{"exit"}, lines.Map(words, func(t reportTerm) string { return t.Name })...)
}

// findTerms finds the terms that words name: "critical", "3", "exit 3", or "exit" for all exit codes.
func findTerms(words []string) []reportTerm {
	name := strings.ToLower(strings.Join(words, " "))
	code, ofExit := strings.CutPrefix(name, "exit")
	return lines.Filter(everyTerm(), func(t reportTerm) bool {
		return t.Kind == exitCodeTerm && ofExit && (code == "" || code == " "+t.Name) || strings.EqualFold(t.Name, name) || t.Kind == name
	})
}
