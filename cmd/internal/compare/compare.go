// Package compare says what differs between two reports or two machines: findings, and the facts that were read.
package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Schema is the version of the JSON document. It changes when a field changes its
// meaning or goes away; a new optional field does not change it.
const Schema = "gpudoctor.diff/v1"

// Input is one of the two sides.
type Input struct {
	// Name is what the user called it, and Form what it is.
	Name string
	Form Form
	// Report is what was found. Facts are what was read; nil where only a report is there.
	Report *report.Document
	Facts  *facts.Facts
}

// Form is what a side was read from.
type Form string

// The forms.
const (
	FormReport    Form = "report"    // A report in JSON.
	FormRecording Form = "recording" // A snapshot, a facts file or an example, which is judged first.
)

// Difference is all that differs between two sides.
type Difference struct {
	Schema  string `json:"schema" jsonschema:"enum=gpudoctor.diff/v1"` // Always "gpudoctor.diff/v1".
	Version string `json:"version"`                                    // That of gpudoctor itself.
	// A is the first side, B the second.
	A     Side   `json:"a"`
	B     Side   `json:"b"`
	Same  bool   `json:"same"`  // True where nothing differs.
	Items []Item `json:"items"` // The differences, the most telling first.
	// Notes say what limits the comparison.
	Notes []string `json:"notes"`
}

// Side is one of the two documents.
type Side struct {
	// Name is the file or the example, Form what it is.
	Name    string        `json:"name"`
	Form    Form          `json:"form"`
	Version string        `json:"version"` // That of the gpudoctor which judged it.
	Profile rules.Profile `json:"profile"` // What it was judged for.
	Machine string        `json:"machine"` // The machine in one line.
	// State is the verdict in one word, Counts are the findings by severity.
	State  report.State  `json:"state"`
	Counts report.Counts `json:"counts"`
}

// Kind is what a difference is about.
type Kind string

// The kinds, the most telling first.
const (
	Finding Kind = "finding" // A finding of a rule.
	Part    Kind = "part"    // A GPU, a link, a path or an adapter, and whether it works.
	Version Kind = "version" // That of a driver, a library, firmware or the system.
	Setting Kind = "setting" // What somebody can set: a variable, a mode, a limit.
	Figure  Kind = "figure"  // A measured value or a counter.
	Fact    Kind = "fact"    // Any other fact.
	// Reading is a fact that is known on one side only, or a rule that is judged on one side only.
	Reading Kind = "reading"
)

var kinds = []Kind{Finding, Part, Version, Setting, Figure, Fact, Reading}

// Change says on which side something is.
type Change string

// The changes.
const (
	// New is only on side B.
	New Change = "new"
	// Gone is only on side A.
	Gone    Change = "gone"
	Changed Change = "changed" // On both sides, with different values.
)

// Item is one difference.
type Item struct {
	// Kind is what it is about, Change on which side it is.
	Kind   Kind   `json:"kind"`
	Change Change `json:"change"`
	// Path is where it is: "gpus.devices[0000:3b:00.0].mig". What stands in brackets names an element of a list.
	Path string `json:"path"`
	// Before is the value on side A and After that on side B; absent where it is not
	// there or not known. A finding has BeforeFinding and AfterFinding instead.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
	// BeforeFinding and AfterFinding are the two sides of a finding.
	BeforeFinding *Said    `json:"before_finding,omitempty"`
	AfterFinding  *Said    `json:"after_finding,omitempty"`
	Along         []string `json:"along,omitempty"` // The paths of what came or went along with a device.

	pattern string // Path without the names of elements.
	at      string // The names of elements.
}

// Said is what one side says of a finding.
type Said struct {
	Rule       string           `json:"rule"`
	Title      string           `json:"title"`
	Severity   rules.Severity   `json:"severity"`
	Confidence rules.Confidence `json:"confidence"`
	Subject    string           `json:"subject"`
	Message    string           `json:"message"`
	Under      string           `json:"under,omitempty"` // The rule whose finding explains this one.

	affects  []string // GPUs, by address.
	variable string
}

// Compare compares two sides.
func Compare(version string, a, b Input) *Difference {
	d := &Difference{Schema: Schema, Version: version, A: sideOf(a), B: sideOf(b), Items: []Item{}, Notes: []string{}}
	note := func(form string, args ...any) { d.Notes = append(d.Notes, fmt.Sprintf(form, args...)) }
	if a.Report.Version != b.Report.Version {
		note("A was judged by gpudoctor %s, B by gpudoctor %s; findings may differ because of this", a.Report.Version, b.Report.Version)
	} else if a.Report.RulesDigest != b.Report.RulesDigest {
		note("A and B were judged by different rules; findings may differ because of this")
	}
	if a.Report.Profile != b.Report.Profile {
		note("A was judged for the profile %s, B for the profile %s", a.Report.Profile, b.Report.Profile)
	}
	if a.Facts == nil || b.Facts == nil {
		note("A report contains few facts: only the GPUs, the system, the driver and the transfers were compared. " +
			"Compare two recordings for all facts (gpudoctor snapshot)")
		a.Facts, b.Facts = factsOf(a.Report), factsOf(b.Report)
	}
	d.Items = append(d.Items, slices.Concat(
		compareFindings(a.Report.AllFindings(), b.Report.AllFindings()),
		skippedOnly(New, b.Report, a.Report), skippedOnly(Gone, a.Report, b.Report), foldLost(compareFacts(a.Facts, b.Facts)),
	)...)
	slices.SortStableFunc(d.Items, Item.compare)
	d.Same = len(d.Items) == 0
	return d
}

func sideOf(in Input) Side {
	return Side{
		Name: in.Name, Form: in.Form, Version: in.Report.Version, Profile: in.Report.Profile, Machine: in.Report.Host.Summary,
		State: in.Report.Verdict.State, Counts: in.Report.Verdict.Counts,
	}
}

// rank orders differences: new critical and high findings first, then kind by kind, and
// within a kind what is new or gone before what changed.
func (i Item) rank() int {
	switch {
	case i.Kind != Finding:
		return 2 * slices.Index(kinds, i.Kind)
	case i.worse():
		return 0
	}
	return 3 // Behind Part.
}

// worse reports whether it is a critical or high finding that was not there, or not as severe.
func (i Item) worse() bool {
	after, before := i.AfterFinding, i.BeforeFinding
	return after != nil && after.Severity.Rank() <= rules.High.Rank() && (before == nil || after.Severity.Rank() < before.Severity.Rank())
}

// said are the sides that have the finding.
func (i Item) said() []*Said {
	return slices.DeleteFunc([]*Said{i.BeforeFinding, i.AfterFinding}, func(s *Said) bool { return s == nil })
}

// order is by what differences are ordered: rank, consequences of other findings last, the worse severity of the two sides, and the change.
func (i Item) order() []int {
	folded, severity, changes := 1, rules.Info.Rank()+1, []Change{New, Gone, Changed}
	for _, said := range i.said() {
		severity = min(severity, said.Severity.Rank())
		if said.Under == "" {
			folded = 0
		}
	}
	if i.Kind == Part {
		changes = []Change{Gone, New, Changed}
	}
	return []int{i.rank(), folded, severity, slices.Index(changes, i.Change)}
}

func (i Item) compare(other Item) int {
	return cmp.Or(slices.Compare(i.order(), other.order()), cmp.Compare(i.Path, other.Path))
}

// foldLost puts what came or went with a GPU or an adapter under it.
func foldLost(items []Item) []Item {
	var all []Item
	at := map[string]int{} // Of the device, by change and address.
	isDevice := func(i Item) bool { return i.Change != Changed && slices.Contains(devicePatterns, i.pattern) }
	for _, i := range items {
		if _, known := at[string(i.Change)+i.at]; isDevice(i) && !known {
			at[string(i.Change)+i.at] = len(all)
			all = append(all, i)
		}
	}
	for _, i := range items {
		device := -1
		for name := range strings.FieldsSeq(i.at) {
			if known, ok := at[string(i.Change)+name]; ok && strings.HasSuffix(i.pattern, "]") {
				device = known
			}
		}
		switch {
		case device < 0:
			all = append(all, i)
		case all[device].Path != i.Path:
			all[device].Along = append(all[device].Along, i.Path)
		}
	}
	return all
}

// devicePatterns are the lists of devices that take other facts with them, in the order in which they name the device.
var devicePatterns = []string{"gpus.devices[]", "pci.devices[]", "transfers.devices[]"}

// ErrNewer is returned for a report that only a newer gpudoctor understands.
var ErrNewer = errors.New("a newer gpudoctor wrote it")

// reportHead is how a report in JSON begins: its first field is the schema.
var reportHead = lazy.New(`^\s*\{\s*"schema"\s*:\s*"gpudoctor\.report/`)

// IsReport reports whether a file that begins so is a report in JSON.
func IsReport(head []byte) bool { return reportHead.Get().Match(head) }

// ReadReport decodes a report in JSON. Fields that it does not know are ignored: new optional
// ones may come at any time.
func ReadReport(name string, data []byte) (*report.Document, error) {
	d := &report.Document{}
	err := json.Unmarshal(data, d)
	_, isJSON := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case (err == nil || isJSON) && d.Schema != report.Schema:
		return nil, fmt.Errorf("read %s: %w: its schema is %q, and this one reads %q", name, ErrNewer, d.Schema, report.Schema)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return d, nil
}
