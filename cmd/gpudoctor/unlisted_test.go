//go:build linux && cgo

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/fixtures/restricted"
)

// TestUnlisted checks that no command says that there is no GPU where the PCI devices cannot be listed, and that a check
// which asked for a probe then says that GPUs are unknown and fails.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	unknown := map[string]int{
		"check": exitUnproven, "check --probe off": exitOK, "check --profile image": exitOK, "facts": exitOK, "snapshot -o /dev/null": exitOK,
		"probe p2p": exitUnproven, "topo": exitOK, "advise": exitOK, "check --format json": exitUnproven, "check --verbose": exitUnproven,
		"check --format markdown": exitUnproven, "check --only gpu-fault": exitUnproven, "check --fail-on none": exitUnproven,
	}
	// What they say of what is known.
	allowed := strings.NewReplacer("no GPU is expected during an image build", "", "No GPU is known", "", "no GPU is visible here", "")
	for name, hidden := range map[string][]string{"sys": {"/sys"}, "proc": {"/proc"}, "neither": {"/sys", "/proc"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for line, want := range unknown {
				if night.Few() && line != "check" && line != "topo" {
					continue
				}
				listed := name == "proc" // No GPU is in the list.
				if listed && want == exitUnproven {
					want = exitOK
				}
				exit, out, said := restrictedTo(t, restricted.To{Hidden: hidden, Isolated: true}, os.Environ(), strings.Fields(line)...)
				expect.That(t, exit == want, "%s: exit code %d, want %d: %s%s", line, exit, want, out, said)
				words := strings.Join(strings.Fields(out+said), " ")
				expect.That(t, listed || !strings.Contains(strings.ToLower(allowed.Replace(words)), "no gpu"), "%s: it says that there is no GPU:\n%s", line, out)
				if line == "check" && !listed && (!strings.Contains(words, "GPUs not known") || strings.Count(words, "not known whether there is a GPU")+strings.Count(words, "; gpus (") < 2) {
					t.Errorf("%s: headline or closing line do not say that GPUs are unknown:\n%s", line, out)
				}
				checkDocument(t, line, out, listed)
			}
		})
	}
}

// checkDocument checks what the documents for programs say of GPUs.
func checkDocument(t *testing.T, line, out string, listed bool) {
	t.Helper()
	switch line {
	case "facts":
		var f facts.Facts
		err := json.Unmarshal([]byte(out), &f)
		expect.That(t, err == nil && f.GPUs != nil && (f.GPUs.Devices != nil) == listed, "facts: %v, %+v", err, f.GPUs)
	case "check --format json":
		var d report.Document
		err := json.Unmarshal([]byte(out), &d)
		expect.That(t, err == nil && d.Verdict.State == report.Inconclusive, "report: %v, %+v", err, d.Verdict)
		none := slices.ContainsFunc(d.Verdict.Reasons, func(r report.Reason) bool { return r.Code == report.ReasonNoGPU })
		expect.That(t, none == listed, "report: %+v", d.Verdict.Reasons)
	}
}

// TestUnlistedWithDrivers checks that GPUs are known where a library answers and the PCI devices cannot be listed.
func TestUnlistedWithDrivers(t *testing.T) {
	t.Parallel()
	needsNoGPU(t)
	for _, libraries := range [][]string{{"cuda"}, {"nvml"}, {"cuda", "nvml"}} {
		probed := slices.Contains(libraries, "cuda")
		want := map[bool]int{true: exitOK, false: exitUnproven}[probed]
		env := simulated{libraries: libraries}.environment(t)
		for _, line := range []string{"check", "probe p2p"} {
			exit, out, said := restrictedTo(t, restricted.To{Hidden: []string{"/sys"}, Isolated: true}, env, strings.Fields(line)...)
			expect.That(t, exit == want && !strings.Contains(strings.ToLower(out), "no gpu") && !strings.Contains(out, "GPUs not known") && (line != "check" || strings.Contains(out, "2 x ")), "%v: %s: exit code %d, want %d: %s%s", libraries, line, exit, want, out, said)
		}
	}
}
