package rules

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Account names something that failed in the probe and that a finding reports:
// a transfer, a GPU that could not be initialized, or the probe as a whole.
type Account struct {
	// Test, Source, Destination and Way name a transfer.
	Test        string `json:"test"`
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Way         string `json:"way"`
	// Device is the address of a GPU.
	Device string `json:"device"`
	// Probe is true for the probe as a whole.
	Probe bool `json:"probe"`
}

// accounts are what the findings account for: what their rules say, and the GPUs and
// the fields of the probe in their evidence. A finding below high severity that mentions a
// failure does not account for it; a slow transfer may not be a fault.
func accounts(findings []Finding) (failed, slow map[Account]bool) {
	failed, slow = map[Account]bool{}, map[Account]bool{}
	var walk func([]Finding)
	walk = func(list []Finding) {
		for _, f := range list {
			for _, a := range slices.Concat(f.AccountsFor, citedBy(f.Evidence)) {
				slow[a] = true
				if f.Severity.Rank() <= High.Rank() {
					failed[a] = true
				}
			}
			walk(f.Explains)
		}
	}
	walk(findings)
	return failed, slow
}

// citedBy are the parts of the probe's report in the evidence: "transfers.devices[0000:06:00.0].outcome" and
// "transfers.error_code". The lists are no parts: what they hold is.
func citedBy(evidence []Evidence) []Account {
	var all []Account
	for _, e := range evidence {
		field, ok := strings.CutPrefix(e.Fact, "transfers.")
		if !ok {
			continue
		}
		name, rest, indexed := strings.Cut(field, "[")
		switch {
		case indexed && name == "devices":
			address, _, _ := strings.Cut(rest, "]")
			all = append(all, Account{Device: address})
		case name != "transfers" && name != "peers" && name != "devices" && name != "driver_version":
			all = append(all, Account{Probe: true})
		}
	}
	return all
}

// Unexplained is the part of a probe's report that failed, or was slow, and that no
// finding accounts for, consequences included; nil if there is no such part.
func Unexplained(report *probe.Report, findings []Finding) *probe.Report {
	if report == nil {
		return nil
	}
	failed, slow := accounts(findings)
	rest := *report
	rest.Transfers = slices.DeleteFunc(append([]probe.Transfer{}, report.Transfers...), func(t probe.Transfer) bool {
		a := Account{Test: t.Test, Source: t.Source, Destination: t.Destination, Way: t.Way}
		return (!t.Outcome.Failed() || failed[a]) && (t.Outcome != probe.Slow || slow[a])
	})
	rest.Devices = slices.DeleteFunc(append([]probe.Device{}, report.Devices...), func(d probe.Device) bool {
		return !d.Outcome.Failed() || failed[Account{Device: d.Address}]
	})
	whole := report.Outcome.Failed() && !failed[Account{Probe: true}]
	if !whole {
		rest.Outcome, rest.Stage, rest.GPU, rest.Signal, rest.ExitCode = probe.OK, "", "", "", nil
		rest.Reason, rest.Cause, rest.ErrorCode, rest.ErrorName, rest.Call = "", "", 0, "", ""
	}
	if !whole && len(rest.Transfers)+len(rest.Devices) == 0 {
		return nil
	}
	return &rest
}
