// Package remedies knows what can be done about findings: one YAML file per
// remedy. It ranks them and explains the rank of each.
package remedies

import (
	"github.com/gpudoctor/gpudoctor/rules"
)

// Kind says what sort of cure a remedy is.
type Kind string

// The kinds.
const (
	// Fix removes the cause.
	Fix Kind = "fix"
	// Workaround avoids the consequence at a cost.
	Workaround Kind = "workaround"
)

// Need is something that applying a remedy takes.
type Need string

// The needs, from the least effort.
const (
	NeedJobRestart       Need = "job-restart"
	NeedContainerRestart Need = "container-restart"
	NeedImageRebuild     Need = "image-rebuild"
	NeedRoot             Need = "root"
	NeedDriverReload     Need = "driver-reload"
	NeedReboot           Need = "reboot"
	NeedBIOS             Need = "bios"
	NeedHands            Need = "hands-on"
)

// Remedy is one thing that can be done, as its file describes it. Its strings
// may hold templates ({{.variable}}) that a finding's params fill.
type Remedy struct {
	ID string `yaml:"id" json:"id"`
	// FormOf is the remedy of which this is the form for one vendor or one situation: reset-gpu of reset-amd-gpu.
	// Advice has the name of that one, so that a program need not know every form.
	FormOf string `yaml:"form_of,omitempty" json:"form_of,omitempty"`
	// Vendor is the vendor of the GPUs that the form is for, "amd": on a machine with only those,
	// it replaces the general remedy.
	Vendor string `yaml:"vendor,omitempty" json:"vendor,omitempty"`
	// Scheduler is the scheduler that the form is for, "slurm": where a job runs under it, it replaces
	// the general remedy, unless a file of the user sets the variable that the general one removes.
	Scheduler string `yaml:"scheduler,omitempty" json:"scheduler,omitempty"`
	Title     string `yaml:"title" json:"title"`
	Kind      Kind   `yaml:"kind" json:"kind"`
	// Description says what it changes, in one or two sentences.
	Description string `yaml:"description" json:"description"`
	// Cost is what it costs: speed, isolation, downtime.
	Cost string `yaml:"cost" json:"cost"`
	// Needs is what applying it takes.
	Needs []Need `yaml:"needs" json:"needs"`
	// Risk is "none", "low", "medium" or "high": what may go wrong.
	Risk string `yaml:"risk" json:"risk"`
	// Lasts is "job", "boot" or "forever".
	Lasts string `yaml:"lasts" json:"lasts"`
	// Caution limits it: a remark on when it must not be used.
	Caution string `yaml:"caution,omitempty" json:"caution,omitempty"`
	Apply   Apply  `yaml:"apply" json:"apply"`
	// Undo says how to take it back.
	Undo string `yaml:"undo" json:"undo"`
	// Verify says how to see that it worked; gpudoctor's own command first.
	Verify string `yaml:"verify" json:"verify"`
	// Proof names the test of the probe whose success proves it: for nccl-p2p-disable "host-staged".
	Proof string `yaml:"proof,omitempty" json:"-"`
	// Sources are URLs or documents.
	Sources []string `yaml:"sources" json:"links"`
}

// Apply is how to apply a remedy, in machine-readable form. A field that does not apply stays empty. A list item that
// holds a template over a list param is repeated for each element ({{.each}}).
type Apply struct {
	// Environment has variables to set, Unset those to remove. The ways by which
	// Docker, Kubernetes and Slurm set what is in Environment are derived.
	Environment map[string]string `yaml:"environment,omitempty" json:"environment,omitempty"`
	Unset       []string          `yaml:"unset,omitempty" json:"unset,omitempty"`
	// Edits are lines to remove from files that set a variable to be removed.
	// No remedy's file holds any; they follow from the facts.
	Edits []Edit `yaml:"-" json:"edits,omitempty"`
	// Arguments are those of programs, by the name of the program: "vllm".
	Arguments map[string][]string `yaml:"arguments,omitempty" json:"arguments,omitempty"`
	// KernelCommandLine has parameters to add to the kernel command line.
	KernelCommandLine []string `yaml:"kernel_command_line,omitempty" json:"kernel_command_line,omitempty"`
	// Docker and Kubernetes are flags and a pod spec fragment.
	Docker     []string `yaml:"docker,omitempty" json:"docker,omitempty"`
	Kubernetes string   `yaml:"kubernetes,omitempty" json:"kubernetes,omitempty"`
	// Runtimes has the flags of other container runtimes where they are not those of Docker, by
	// the name of the runtime in the facts: "podman", "apptainer".
	Runtimes map[string][]string `yaml:"runtimes,omitempty" json:"runtimes,omitempty"`
	// Slurm is sbatch or slurm.conf settings.
	Slurm []string `yaml:"slurm,omitempty" json:"slurm,omitempty"`
	// Sysctl and Modprobe are settings for sysctl.d and modprobe.d.
	Sysctl   map[string]string `yaml:"sysctl,omitempty" json:"sysctl,omitempty"`
	Modprobe []string          `yaml:"modprobe,omitempty" json:"modprobe,omitempty"`
	// Commands are run in order.
	Commands []string `yaml:"commands,omitempty" json:"commands,omitempty"`
	// Steps are for people: BIOS menus, hands-on work, code.
	Steps []string `yaml:"steps,omitempty" json:"steps,omitempty"`
}

// Advice is a remedy for what was found here, with its rank.
type Advice struct {
	// Remedy is the id that "gpudoctor explain" takes, of the form that fits here if there are several.
	Remedy string `json:"remedy"`
	// FormOf is the remedy of which this is a form.
	FormOf string `json:"form_of,omitempty"`
	Title  string `json:"title"`
	Kind   Kind   `json:"kind"`
	// Cures are the findings that it cures: rule and subject.
	Cures []Cure `json:"cures"`
	// Why explains its rank.
	Why string `json:"why"`
	// Description, Cost, Needs, Risk, Lasts, Caution, Apply, Undo and Verify
	// are those of the remedy, with the templates filled. Cost is what was measured here, if it was.
	Description string   `json:"description"`
	Cost        string   `json:"cost"`
	Needs       []Need   `json:"needs"`
	Risk        string   `json:"risk"`
	Lasts       string   `json:"lasts"`
	Caution     string   `json:"caution,omitempty"`
	Apply       Apply    `json:"apply"`
	Undo        string   `json:"undo"`
	Verify      string   `json:"verify"`
	Proof       *Proof   `json:"proof,omitempty"`
	Links       []string `json:"links"`
}

// Withheld is something that a finding's remedy would do, and that is not advised here.
type Withheld struct {
	Remedy string `json:"remedy"`
	// Cures are the findings that name the remedy.
	Cures []Cure `json:"cures"`
	// Setting is what would be set, "NCCL_P2P_DISABLE=1", or removed, "NCCL_P2P_DISABLE".
	Setting string `json:"setting"`
	// Reason is "in-force" where it is set already: the fault still exists, or does no harm because of it. It is
	// "needed" where a finding of medium severity or above names the setting as its cure, and "opposed" where an advice
	// that ranks higher does the opposite.
	Reason string `json:"reason" jsonschema:"enum=in-force,enum=needed,enum=opposed"`
	// Where is the place at which it is set; for "in-force".
	Where *Place `json:"where,omitempty"`
	// By is the finding that needs it; for "needed".
	By *Cure `json:"by,omitempty"`
	// MeasuredCost says what collectives measured here of the setting.
	MeasuredCost string `json:"measured_cost,omitempty"`
}

// The reasons why something is withheld.
const (
	InForce = "in-force"
	Needed  = "needed"
	Opposed = "opposed"
)

// Cure names a finding that an advice cures.
type Cure struct {
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	// Object is what the finding is about, where files that describe several are judged.
	Object rules.Object `json:"object,omitzero"`
}

// CureOf names a finding.
func CureOf(f rules.Finding) Cure { return Cure{Rule: f.Rule, Subject: f.Subject, Object: f.Scope()} }

// Proof is what was measured here about a remedy.
type Proof struct {
	// Outcome is "proven" or "disproven".
	Outcome string `json:"outcome"`
	// Detail says what was measured.
	Detail string `json:"detail"`
}
