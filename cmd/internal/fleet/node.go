// Package fleet folds the reports of many nodes into one: which nodes are well, which causes they share, what those with
// a cause have that the others lack, and whose figures are far from those of like hardware.
package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Node is what the report of one node says.
type Node struct {
	Name string `json:"name"`
	// State is that of the report's verdict, ExitCode its exit code.
	State    string `json:"state"`
	ExitCode int    `json:"exit_code"`
	// Findings are its findings, the most severe first, without their consequences.
	Findings []Finding `json:"findings,omitempty"`
	// Hardware is the same for nodes whose figures can be compared.
	Hardware string `json:"hardware,omitempty"`
	// Traits are what may distinguish it from other nodes: versions, and the parts of its name.
	Traits map[string]string `json:"traits,omitempty"`
	// Figures are what it measured.
	Figures map[string]Figure `json:"figures,omitempty"`
	// Source is the file that its report is in.
	Source string `json:"source"`
}

// Finding is a finding of a node in short.
type Finding struct {
	Rule     string         `json:"rule"`
	Title    string         `json:"title"`
	Severity rules.Severity `json:"severity"`
	Subject  string         `json:"subject,omitempty"`
	Remedy   string         `json:"remedy,omitempty"`
}

// document is as much of a report as a fleet needs; the rest is not kept in memory.
type document struct {
	Host     report.Host `json:"host"`
	Redacted string      `json:"redacted"`
	Verdict  struct {
		State    string `json:"state"`
		ExitCode int    `json:"exit_code"`
	} `json:"verdict"`
	Findings []struct {
		Rule, Title, Subject string
		Severity             rules.Severity
		Remedies             []string
	} `json:"findings"`
	Transfers struct {
		Transfers []struct {
			Test, Basis string
			Expected    *float64 `json:"expected_gbps"`
			GBps        *float64 `json:"gbps"`
		} `json:"transfers"`
	} `json:"transfers"`
	Collectives struct {
		Arms []struct {
			Operations []struct {
				Name string   `json:"name"`
				GBps *float64 `json:"bus_gbps"`
			} `json:"operations"`
		} `json:"arms"`
	} `json:"collectives"`
}

// node is the node that a report is of. The name of a host that stand-ins took the place of is the same in all reports:
// the file has to tell then.
func (d *document) node(source, name string) *Node {
	if d.Redacted != string(report.RedactedNames) && d.Host.Hostname != "" {
		name = d.Host.Hostname
	}
	n := &Node{Name: name, State: d.Verdict.State, ExitCode: d.Verdict.ExitCode, Hardware: d.hardware(), Source: source}
	for _, f := range d.Findings {
		short := Finding{Rule: f.Rule, Title: f.Title, Severity: f.Severity, Subject: f.Subject}
		if len(f.Remedies) > 0 {
			short.Remedy = f.Remedies[0]
		}
		n.Findings = append(n.Findings, short)
	}
	n.Traits, n.Figures = d.traits(name), d.figures()
	return n
}

// hardware names the GPUs: "8 x NVIDIA H200".
func (d *document) hardware() string {
	models := map[string]int{}
	for _, g := range d.Host.GPUs {
		models[g.Name]++
	}
	var parts []string
	for model, n := range models {
		parts = append(parts, fmt.Sprintf("%d x %s", n, cmp.Or(model, "GPU")))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// traits are what the report says of the software and the hardware, and what the name shows of the place: "r12-n07" is in
// r12.
func (d *document) traits(name string) map[string]string {
	h := d.Host
	all := map[string]string{
		"driver": h.Driver, "CUDA": h.CUDA, "kernel": h.Kernel, "distribution": h.Distribution, "processor": h.CPU, "virtualization": h.Virtualization,
		"container": h.Container, "hardware": d.hardware(),
	}
	for i, part := range nameParts(name) {
		all[fmt.Sprintf("%s %d", partOfName, i+1)] = part
	}
	for key, value := range all {
		if value == "" {
			delete(all, key)
		}
	}
	return all
}

// partOfName begins the name of a trait that is a part of the node's name.
const partOfName = "part of the name"

// nameParts are the parts of a node's name, up to its domain, but the last, which is the node's own.
func nameParts(name string) []string {
	host, _, _ := strings.Cut(name, ".")
	parts := strings.FieldsFunc(host, func(r rune) bool { return r == '-' || r == '_' })
	if len(parts) < 2 {
		return nil
	}
	return parts[:len(parts)-1]
}

// figures are the rates of the transfers by test and path, and those of the collectives: the median of all pairs, and the
// lowest, in which one bad link shows.
func (d *document) figures() map[string]Figure {
	values := map[string][]float64{}
	for _, t := range d.Transfers.Transfers {
		if t.GBps == nil {
			continue
		}
		name := t.Test
		if t.Expected != nil {
			name = fmt.Sprintf("%s, paths of %.0f GB/s", t.Test, *t.Expected)
		}
		values[name] = append(values[name], *t.GBps)
	}
	if arms := d.Collectives.Arms; len(arms) > 0 {
		for _, o := range arms[0].Operations {
			if o.GBps != nil {
				values[o.Name] = append(values[o.Name], *o.GBps)
			}
		}
	}
	all := map[string]Figure{}
	for name, of := range values {
		middle := median(of)
		all[name] = Figure{Value: middle, Unit: "GB/s"}
		if len(of) > 2 {
			var away []float64
			for _, v := range of {
				away = append(away, math.Abs(v-middle))
			}
			all[name+", lowest"] = Figure{Value: slices.Min(of), Spread: madToSigma * median(away), Unit: "GB/s"}
		}
	}
	return all
}
