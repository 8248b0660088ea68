// Package rules judges facts. Each rule is one Rego file with everything about it in its metadata. This package embeds
// them, compiles them once, evaluates them in one query, and turns what they return into findings.
package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how much a finding matters.
type Severity string

// The severities, from the worst.
const (
	// Critical means that communication fails or data is corrupted.
	Critical Severity = "critical"
	// High means that communication fails in likely conditions, or that more than half of the bandwidth is lost.
	High Severity = "high"
	// Medium means that a noticeable part of the bandwidth is lost, or that communication fails in
	// less likely conditions.
	Medium Severity = "medium"
	// Low means that it is worth knowing.
	Low Severity = "low"
	// Info means that no action is needed.
	Info Severity = "info"
)

// Confidence says how sure a finding is.
type Confidence string

// The confidences, from the surest.
const (
	// Confirmed means that the probe measured it or a program's own message says it.
	Confirmed Confidence = "confirmed"
	// Likely means that the facts imply it.
	Likely Confidence = "likely"
	// Possible means that the facts allow it.
	Possible Confidence = "possible"
)

// Profile says what the facts are judged for.
type Profile string

// The profiles.
const (
	// Training judges a machine that is about to train or serve a model.
	Training Profile = "training"
	// Image judges a container image under build: no GPU is expected.
	Image Profile = "image"
	// Launch judges the files that describe a job before it runs: pods, compose
	// files, batch scripts. No machine is expected.
	Launch Profile = "launch"
	// Fleet judges what the reports of many nodes say (gpudoctor fleet).
	Fleet Profile = "fleet"
)

// Rule is one rule, as its metadata describes it.
type Rule struct {
	// ID is kebab-case, the file's name and the package's last part.
	ID string `json:"id"`
	// Cause is the id of the cause that it reports; its own id by default.
	Cause string `json:"cause"`
	// Title and Description are for people.
	Title       string `json:"title"`
	Description string `json:"description"`
	// Severity and Confidence are those of its findings, unless a finding states another.
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	// Remedies are the ids of what cures it, the best first.
	Remedies []string `json:"remedies"`
	// Grades are the kinds of its findings, by id, that the metadata describe.
	Grades map[string]Grade `json:"-"`
	// Explains are the rules whose findings are consequences of this rule's findings: "rule",
	// "rule/id", or "own id > rule/id".
	Explains []string `json:"explains,omitempty"`
	// FirstOf are ids of findings: of those that hold, only the findings of the first are reported.
	FirstOf []string `json:"first_of,omitempty"`
	// LastResort is true for a rule that says only that something failed: it
	// is a consequence of whatever else was found.
	LastResort bool `json:"last_resort,omitempty"`
	// Symptom is true for a rule that reports a failure and not what causes it.
	Symptom bool `json:"symptom,omitempty"`
	// OwnLog is true for a rule that reports a failure in which the probe's own library wrote a
	// log: its findings are consequences of those that quote a cause from that log.
	OwnLog bool `json:"own_log,omitempty"`
	// Needs are the facts that must be known before it passes. A rule that finds nothing
	// while one of them is unknown is skipped.
	Needs []Need `json:"needs,omitempty"`
	// TextsOnly is true for a rule that judges only what texts say: without one it is not even compiled.
	TextsOnly bool `json:"texts_only,omitempty"`
	// Unexplained is true for a rule that judges only failures of the probe
	// that no finding of another rule accounts for. It is evaluated after them.
	Unexplained bool `json:"unexplained,omitempty"`
	// Areas are the parts of the machine that it judges.
	Areas []Area `json:"areas"`
	// Profiles are those in which it is judged; training and image unless its metadata names others.
	Profiles []Profile `json:"profiles,omitempty"`
	// Links are sources.
	Links []Link `json:"links"`
	// Since is the version of gpudoctor that had it first.
	Since string `json:"since"`
	// File is its path: "pcie/acs_redirect.rego", or the user's path.
	File string `json:"file"`
}

// Link is a source.
type Link struct {
	Ref         string `json:"ref"`
	Description string `json:"description,omitempty"`
}

// Finding is a fault that a rule found.
type Finding struct {
	Rule string `json:"rule"`
	// ID is the kind of the finding among those of its rule, if the rule distinguishes them.
	ID         string     `json:"-"`
	Cause      string     `json:"cause"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	// OfCause is the confidence in the cause alone, where Confidence is that of what
	// the cause led to; empty where they are one.
	OfCause Confidence `json:"-"`
	// Symptom is true if the finding reports a failure and not what causes it.
	Symptom bool   `json:"-"`
	Title   string `json:"title"`
	// Subject is what it is about: a PCI address, a pair "a -> b", a variable, "host".
	Subject string `json:"subject"`
	// Object is the job, container or service that the finding is about, where files that describe several are judged.
	Object *Object `json:"object,omitempty"`
	// Affects are the PCI addresses of the affected GPUs; empty means the whole host.
	Affects []string `json:"affects,omitempty"`
	// Nodes are the nodes of a fleet that it is about.
	Nodes []string `json:"-"`
	// Message says in one or two sentences what was seen and what it means.
	Message string `json:"message"`
	// Evidence is what led to it.
	Evidence []Evidence `json:"evidence"`
	// Steps are what to look at, in order, if several causes are possible and the facts do not decide.
	Steps []Step `json:"steps,omitempty"`
	// Candidates are the possible causes of a finding that does not prove one, the likeliest first.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Explains are the findings that are consequences of this one.
	Explains []Finding `json:"explains,omitempty"`
	// Remedies are the ids of what cures it, the best first.
	Remedies []string `json:"remedies"`
	// Params fill the templates of the remedies: "bridges", "variable", ...
	Params map[string]any `json:"params,omitempty"`
	// AccountsFor are the transfers that it reports on, if it judges single ones.
	AccountsFor []Account `json:"-"`
	// Order is the index of the message that led to it among all messages of the logs: of findings that are equally
	// severe and sure, what was said first comes first. nil if no log led to it.
	Order *int `json:"-"`
	// OwnLog is true if its evidence is a message, from the log of the probe's own library, that states a cause.
	OwnLog bool `json:"-"`
	// Past is true if all trouble that it rests on is past.
	Past bool `json:"-"`
}

// Object is a part of a file that is judged by itself.
type Object struct {
	File string `json:"file"`
	// Line is where it begins.
	Line int `json:"line"`
	// Name is what declares it, from the outside inwards: "Job/train/main", "service/web"; empty for a script.
	Name string `json:"name,omitempty"`
}

// String names the object for people: "deploy/train.yaml Job/train/main".
func (o Object) String() string { return strings.TrimSuffix(o.File+" "+o.Name, " ") }

// Place names the object with its line: "deploy/train.yaml:3 Job/train/main".
func (o Object) Place() string {
	return strings.TrimSuffix(fmt.Sprintf("%s:%d %s", o.File, o.Line, o.Name), " ")
}

// About is the subject of a finding about an object, with the object before it.
func (o Object) About(subject string) string {
	return strings.TrimPrefix(o.String()+": "+subject, ": ")
}

// In is the finding as one about an object, with its consequences.
func (f Finding) In(o *Object) Finding {
	f.Object = o
	f.Explains = slices.Clone(f.Explains)
	for i := range f.Explains {
		f.Explains[i] = f.Explains[i].In(o)
	}
	return f
}

// About is the subject, with the object that it is about before it.
func (f Finding) About() string { return f.Scope().About(f.Subject) }

// Scope is the object that the finding is about; empty for a machine.
func (f Finding) Scope() Object {
	if f.Object == nil {
		return Object{}
	}
	return *f.Object
}

// Evidence is one fact that led to a finding.
type Evidence struct {
	// Fact is its path in the facts: "pci.devices[0000:40:01.1].acs.control".
	Fact string `json:"fact"`
	// Value is what it holds.
	Value any `json:"value"`
	// Source is the file, call or log line that it comes from.
	Source string `json:"source"`
}

// Step is one thing to look at.
type Step struct {
	// Look says what to look at and what it should be.
	Look string `json:"look"`
	// Command shows it; gpudoctor does not run it. It may be empty.
	Command string `json:"command,omitempty"`
}

// Candidate is a possible cause of a finding.
type Candidate struct {
	// Cause is its id, and Title that of the rule that judges it.
	Cause string `json:"cause"`
	Title string `json:"title"`
	// For is the evidence for it, and Against the evidence against it, if any.
	For     string `json:"for"`
	Against string `json:"against,omitempty"`
	// Command shows whether it is the cause, and Shows says how. gpudoctor does not run it.
	Command string `json:"command,omitempty"`
	Shows   string `json:"shows,omitempty"`
}

// Skipped is a rule that could not be judged.
type Skipped struct {
	Rule string
	// Missing lists what it lacked.
	Missing []Missing
	// Fault is true if the rule itself is at fault: it failed while it
	// ran, or what it returned is malformed. Missing says how.
	Fault bool
}

// Missing is one thing that a rule lacked.
type Missing struct {
	// Fact is the path of the fact that it needs: "pci.devices[].acs". It is empty if the rule named no fact.
	Fact string `json:"fact,omitempty"`
	// Reason is why the fact is not known, as the facts state it.
	Reason string `json:"reason,omitempty"`
	// Words are what the rule says about it.
	Words string `json:"words,omitempty"`
}

// String is all of it on one line: "pci.devices[].acs: which bits are set is
// not known (config space beyond 64 bytes needs root)".
func (m Missing) String() string {
	said := cmp.Or(m.Words, m.Reason)
	if m.Words != "" && m.Reason != "" && m.Words != m.Reason {
		said += " (" + m.Reason + ")"
	}
	switch {
	case m.Fact == "":
		return said
	case said == "":
		return m.Short()
	}
	return m.Fact + ": " + said
}

// Short is why the rule could not be judged, as briefly as possible: the reason of the facts, or else the rule's words.
func (m Missing) Short() string { return cmp.Or(m.Reason, m.Words, m.Fact+" is not known") }

// Result is what the rules say about one machine.
type Result struct {
	// Findings are the causes, consequences folded under them, the worst first.
	Findings []Finding
	// Passed are the rules that found nothing wrong.
	Passed []string
	// Skipped are the rules that could not be judged.
	Skipped []Skipped
	// NotApplicable are the rules that have nothing to judge here, with the reason.
	NotApplicable map[string]string
}
