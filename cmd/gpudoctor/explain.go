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
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/apply"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/cmd/internal/stdio"
	"github.com/gpudoctor/gpudoctor/cmd/internal/waivers"
	"github.com/gpudoctor/gpudoctor/docs"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "explain a rule, cause, remedy, exit code or term of the report",
		ArgsUsage: "ID",
		Description: `gpudoctor explain acs-redirect   a rule, a cause or a remedy, by its id
gpudoctor explain exit 3         an exit code, or all of them without a number
gpudoctor explain likely         a severity, a confidence or a verdict
gpudoctor explain IMEX           a term that reports use`,
		Flags: []cli.Flag{policyFlag, asciiFlag},
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
		e.apart()
		e.line("%s %s", t.Kind, t.Name)
		e.part("means", t.Means)
		e.part("do", t.Do)
	}
}

// apart leaves a line free below what is written already.
func (e *explanation) apart() {
	if e.B.Len() > 0 {
		e.line("")
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
		e.apart()
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
	e.apart()
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
	e.apart()
	e.line("%s: %s (%s)", r.ID, remedies.Unfilled(r.Title), r.Kind)
	e.line("")
	e.text(remedies.Unfilled(r.Description))
	e.line("")
	e.part("costs", r.Cost)
	e.part("requires", apply.Effort(r.Needs, r.Lasts))
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
				return stdio.WriteText(c.App.Writer, rulesTable(known.rules.Rules()))
			},
		}, testPolicyCommand()},
	}
}

func textsTable() string {
	rows := [][]string{{"KIND", "PRODUCED BY", "WHAT IT IS"}}
	for _, k := range text.Kinds() {
		rows = append(rows, []string{k.Name, k.Command, k.Title})
	}
	rows = append(rows, []string{"messages", "", fmt.Sprintf("the %d known messages of programs, anywhere in a text", len(message.Statements()))})
	return lines.Table(lines.Clean(rows, false))
}

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

type termKind string

const (
	exitCodeTerm   termKind = "exit code"
	severityTerm   termKind = "severity"
	confidenceTerm termKind = "confidence"
	verdictTerm    termKind = "verdict"
	remedyTerm     termKind = "kind of remedy"
	waiverTerm     termKind = "waiver"
	glossaryTerm   termKind = "term"
)

type reportTerm struct {
	Kind termKind
	Name string
	// Means says what it means, Do what a user does about it.
	Means, Do string
}

// allTerms are the terms, those of a kind in their order.
var allTerms = []reportTerm{
	{
		exitCodeTerm, "0",
		"no finding at or above --fail-on (default high), and neither a transfer nor the probe failed",
		"Nothing needs to be done. With --strict, everything that the verdict needs was also examined. For diff: no differences.",
	},
	{
		exitCodeTerm, "1",
		"a finding at or above --fail-on",
		"Read the first finding of the report and apply its first remedy. --fail-on sets another severity. For diff: there are differences.",
	},
	{
		exitCodeTerm, "2",
		"wrong usage, input that cannot be read, input in which nothing was recognized (the report says what to send), a report that could not be written, a resource limit (ulimit) that is too low, or an internal error",
		"Read the error message and its hints on standard error.",
	},
	{
		exitCodeTerm, "3",
		"no finding at or above --fail-on, but transfers failed (--fail-on none, --skip), the probe was requested but failed, or a file of a job is broken; with --strict, also if anything that the verdict needs could not be examined",
		"Read the last lines of the report: they name what failed or is missing. --verbose says why.",
	},
	{
		exitCodeTerm, "128 and above",
		"stopped by a signal: 128 plus the signal number (129 SIGHUP, 130 SIGINT, 131 SIGQUIT, 143 SIGTERM)",
		"Run it again. If the time limit of a job or of CI stopped it, set a shorter --deadline.",
	},
	{severityTerm, string(rules.Critical), "communication fails, or data is corrupted", "Do not start a job until it is fixed."},
	{severityTerm, string(rules.High), "communication fails under likely conditions, loses more than half of the bandwidth, or made a job fail", "Fix it, or apply the workaround, before the next job."},
	{severityTerm, string(rules.Medium), "a noticeable part of the bandwidth is lost, or communication fails under less likely conditions", "Plan the fix."},
	{severityTerm, string(rules.Low), "little performance is lost", "Fix it when convenient."},
	{severityTerm, string(rules.Info), "nothing needs to be done", "Nothing."},
	{confidenceTerm, string(rules.Confirmed), "the probe measured it, or a program's own message says it", "After \"cause\": apply the remedy. After \"symptom\": only the failure is certain; the rest of the words says how sure the cause is."},
	{confidenceTerm, string(rules.Likely), "the facts imply it", "Apply the remedy; its verification shows whether this was the cause."},
	{confidenceTerm, string(rules.Possible), "the facts allow it", "Check first: the finding says what to look at."},
	{verdictTerm, string(report.Healthy), "everything that the profile requires was examined, and nothing of medium severity or above was found", "Nothing."},
	{verdictTerm, string(report.Findings), "something of medium severity or above was found, waived or not", "Start with the first finding: findings are sorted by severity."},
	{verdictTerm, string(report.Inconclusive), "nothing of medium severity or above was found, but something failed or was not examined", "Read the last lines of the report: they name what is missing and how to examine it."},
	{remedyTerm, string(remedies.Fix), "it removes the cause", "Prefer it if you can accept what it requires."},
	{remedyTerm, string(remedies.Workaround), "it avoids the consequence, at a cost", "Use it until the fix is in place, and remove it afterwards."},
	{waiverTerm, "waived", "a waiver accepts the finding until a date: it is listed, and does not count for the exit code", "Fix it before the waiver expires. Its consequences count unless they are waived themselves."},
	{waiverTerm, waivers.Expired, "a waiver is past its last day: what it waived counts again", "Fix what it waived, or set a later date and review the reason; otherwise remove the waiver."},
}

func everyTerm() []reportTerm {
	all := slices.Clone(allTerms)
	hardwareAndSoftware, _, _ := strings.Cut(docs.Glossary, "\n## gpudoctor\n")
	for line := range strings.Lines(hardwareAndSoftware) {
		names, means, isRow := strings.Cut(strings.Trim(line, "| \n"), " | ")
		for name := range strings.SplitSeq(names, ", ") {
			if isRow && name != "term" && name != "---" {
				all = append(all, reportTerm{Kind: glossaryTerm, Name: name, Means: means})
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
		return t.Kind == exitCodeTerm && ofExit && (code == "" || code == " "+t.Name) || strings.EqualFold(t.Name, name) || string(t.Kind) == name
	})
}
