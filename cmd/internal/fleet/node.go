// Package fleet folds the reports of many nodes into one: which nodes are well, which causes they share, what those with
// a cause have that the others lack, and whose figures are far from those of like hardware.
package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/checks/probe/nodes"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/area"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Bounds of what is kept of one report: a report may say anything.
const (
	maxFindings  = 500
	maxFigures   = 200
	maxLinks     = 10_000
	maxNameParts = 8
	maxKept      = 400 // Traits: the table has 40, and NCCL reads 300 variables.
	maxRate      = 1e9 // GB/s.
)

// Node is what the report of one node says.
type Node struct {
	Name string `json:"name"`
	// State is that of the report's verdict, ExitCode its exit code.
	State    string    `json:"state"`
	ExitCode int       `json:"exit_code"`
	Findings []Finding `json:"findings,omitempty"` // Its findings, the most severe first, without their consequences.
	Hardware string    `json:"hardware,omitempty"` // The same for nodes whose figures can be compared.
	// Traits are what may distinguish it from other nodes: versions, and the parts of its name.
	Traits  map[string]string `json:"traits,omitempty"`
	Figures map[string]Figure `json:"figures,omitempty"` // What it measured.
	Source  string            `json:"source"`            // The file that its report is in.

	links   []link
	unnamed bool      // The report does not name it.
	written time.Time // When its report was.
}

// link is the rate of the transfers between two GPUs in one test. There are many, and their names are alike on like nodes.
type link struct {
	name unique.Handle[string]
	gbps float32
}

// Finding is a finding of a node in short.
type Finding struct {
	Rule     string         `json:"rule"`
	Title    string         `json:"title"`
	Severity rules.Severity `json:"severity"`
	Subject  string         `json:"subject,omitempty"`
	Remedy   string         `json:"remedy,omitempty"`
}

// document is as much of a report as a fleet needs; to read the rest as well would take twice the time.
type document struct {
	nodes.Report // Of probe nccl --nodes, with the schema of both.

	Version  string            `json:"version"`
	Host     report.Host       `json:"host"`
	Redacted report.Redaction  `json:"redacted"`
	Traits   map[string]string `json:"traits"`
	Verdict  report.Verdict    `json:"verdict"`
	Areas    []area.Line       `json:"areas"`
	Findings []struct {
		Rule, Title, Subject string
		Severity             rules.Severity
		Remedies             []string
	} `json:"findings"`
	Transfers   probe.Report      `json:"transfers"`
	Collectives probe.Collectives `json:"collectives"`
}

// states are those that a verdict can have, the worst first.
var states = []string{string(report.Findings), string(report.Inconclusive), string(report.Healthy)}

// node is the node that a report is of. The name of a host that stand-ins took the place of is the same in all reports:
// the file has to tell then. A report without a verdict proves nothing.
func (d *document) node(of input) *Node {
	short := func(text string) string { return escape.Printable(text, maxText) }
	n := &Node{State: string(d.Verdict.State), ExitCode: d.Verdict.ExitCode, Source: escape.Printable(of.source, maxPlace), written: of.written}
	if n.unnamed = d.Redacted == report.RedactedNames || d.Host.Hostname == ""; n.unnamed {
		d.Host.Hostname = of.name
	}
	n.Name = short(d.Host.Hostname)
	if !slices.Contains(states, n.State) {
		n.State, n.ExitCode = string(report.Inconclusive), exitUnknown
	}
	if n.ExitCode != 0 && n.ExitCode != exitFindings {
		n.ExitCode = exitUnknown
	}
	for _, f := range d.Findings[:min(len(d.Findings), maxFindings)] {
		own := Finding{Rule: short(f.Rule), Title: short(f.Title), Severity: f.Severity, Subject: short(f.Subject)}
		if len(f.Remedies) > 0 {
			own.Remedy = short(f.Remedies[0])
		}
		if own.Severity.Rank() > rules.Info.Rank() {
			own.Severity = rules.Info
		}
		n.Findings = append(n.Findings, own)
	}
	n.Hardware = short(strings.Join(slices.Sorted(slices.Values(report.Models(d.Host.GPUs))), ", "))
	n.Traits = d.traits(n)
	n.measure(d)
	return n
}

// traits are what the report says of the software and the hardware, and what the name shows of the place: "r12-n07" is in
// r12.
func (d *document) traits(n *Node) map[string]string {
	h := d.Host
	all := map[string]string{
		"driver": h.Driver, "CUDA": h.CUDA, "kernel": h.Kernel, "distribution": h.Distribution, "processor": h.CPU, "virtualization": h.Virtualization,
		"container": h.Container, "hardware": n.Hardware, "gpudoctor": d.Version,
	}
	for _, trait := range slices.Sorted(maps.Keys(d.Traits))[:min(len(d.Traits), maxKept)] {
		// Stand-ins of addresses are the same on all nodes.
		if d.Redacted != report.RedactedNames || !strings.HasPrefix(trait, rules.TraitSubnet) {
			all[escape.Printable(trait, maxText)] = d.Traits[trait]
		}
	}
	for _, a := range d.Areas {
		known := slices.Contains(rules.Areas(), a.Name)
		if known && (a.State == area.OK || a.State == area.Note) && !slices.Contains(passing, a.Name) { // A problem is a cause.
			all[string(a.Name)] = a.Summary
		}
	}
	for i, part := range nameParts(n.Name) {
		all[fmt.Sprintf("%s %d", partOfName, i+1)] = part
	}
	for key, value := range all {
		if all[key] = escape.Printable(value, maxText); value == "" {
			delete(all, key)
		}
	}
	return all
}

// passing are the areas whose summary tells what was measured, or what happened.
var passing = []rules.Area{rules.AreaPaths, rules.AreaKernelLog, rules.AreaJob}

// partOfName begins the name of a trait that is a part of the node's name.
const partOfName = "part of the name"

// nameParts are the parts of a node's name, up to its domain, but the last, which is the node's own.
func nameParts(name string) []string {
	host, _, _ := strings.Cut(name, ".")
	parts := strings.FieldsFunc(host, func(r rune) bool { return r == '-' || r == '_' })
	if len(parts) < 2 {
		return nil
	}
	return parts[:min(len(parts)-1, maxNameParts)]
}

// measure takes the rates of the transfers, the median of all with like paths and each pair, and those of the collectives. A
// rate that was disturbed says nothing.
func (n *Node) measure(d *document) {
	values := map[string][]float64{}
	add := func(name string, gbps *float64) bool {
		plausible := gbps != nil && *gbps > 0 && *gbps < maxRate
		if name = escape.Printable(name, maxText); plausible {
			values[name] = append(values[name], *gbps)
		}
		return plausible
	}
	for _, t := range d.Transfers.Transfers[:min(len(d.Transfers.Transfers), maxLinks)] {
		paths, path := "", ""
		if t.ExpectedGBps != nil {
			paths, path = fmt.Sprintf(", paths of %.0f GB/s", *t.ExpectedGBps), fmt.Sprintf(", a path of %.0f GB/s", *t.ExpectedGBps)
		}
		if (t.Outcome == probe.OK || t.Outcome == probe.Slow) && add(t.Test+paths, t.GBps) {
			name := escape.Printable(t.Test+" "+t.Source+" -> "+t.Destination+path, maxText)
			n.links = append(n.links, link{unique.Make(name), float32(*t.GBps)})
		}
	}
	if arms := d.Collectives.Arms; len(arms) > 0 {
		for _, o := range arms[0].Operations {
			add(o.Name, o.BusGBps)
		}
	}
	n.Figures = map[string]Figure{}
	for _, name := range slices.Sorted(maps.Keys(values))[:min(len(values), maxFigures)] {
		n.Figures[name] = Figure{Value: median(values[name]), Unit: "GB/s"}
	}
}
