package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
	"github.com/gpudoctor/gpudoctor/rules"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// exampleFacts are the facts of a recorded machine.
func exampleFacts(t *testing.T, name string) *facts.Facts {
	t.Helper()
	g := source{from: []string{examplePrefix + name}}.machine(t.Context(), gather.Options{})
	if g.err != nil {
		t.Fatal(g.err)
	}
	return g.facts
}

// oneGPU is a machine that has lost all GPUs but the first.
func oneGPU(f *facts.Facts) *facts.Facts {
	one := *f
	gpus, links, transfers, tree := *f.GPUs, *f.Links, *f.Transfers, *f.PCI
	first := gpus.Devices[0].Address
	gpus.Devices, gpus.P2P, transfers.Devices = gpus.Devices[:1], []facts.GPUPeer{}, transfers.Devices[:1]
	transfers.Peers, transfers.Transfers = []probe.Peer{}, []probe.Transfer{}
	links.Pairs = slices.DeleteFunc(slices.Clone(links.Pairs), func(p facts.Pair) bool { return p.Kind == "gpu-gpu" })
	tree.Devices = slices.DeleteFunc(slices.Clone(tree.Devices), func(d facts.PCIDevice) bool { return d.Kind == "gpu" && d.Address != first })
	one.GPUs, one.Links, one.Transfers, one.PCI = &gpus, &links, &transfers, &tree
	return &one
}

// healthyFacts are those of what is healthy, by profile.
func healthyFacts(t *testing.T) map[rules.Profile]map[string]*facts.Facts {
	t.Helper()
	pair := exampleFacts(t, "h200x2")
	folder, _ := judgedFiles(t, filepath.Join("..", "..", "fixtures", "launches", "pod-rdma-healthy.txtar"), "")
	return map[rules.Profile]map[string]*facts.Facts{
		rules.Training: {
			"two GPUs": pair, "four GPUs": exampleFacts(t, "h200x4"), "one GPU": oneGPU(pair), "eight GPUs of AMD's": exampleFacts(t, "model-mi300x8"),
			"a container": exampleFacts(t, "model-p5"),
		},
		rules.Image:  {"an image": judgeImage(t, imagetest.Write(t, goodImages[0].img, imagetest.Docker), nil).Facts()},
		rules.Launch: {"files of a job": folder.Facts()},
	}
}

// holders are the objects of a document that hold the last part of a path.
func holders(at any, path []string) []map[string]any {
	switch at := at.(type) {
	case []any:
		var all []map[string]any
		for _, one := range at {
			all = append(all, holders(one, path)...)
		}
		return all
	case map[string]any:
		switch {
		case len(path) > 1:
			return holders(at[path[0]], path[1:])
		case path[0] == "verified" && at["test"] != probe.TestCopy: // Of the others, less is required.
			return nil
		}
		return []map[string]any{at}
	}
	return nil
}

// removing calls a function with documents that lack the fact at a path in one place, the first
// and the last, or its whole section.
func removing(t *testing.T, f *facts.Facts, path string, do func(how string, f *facts.Facts)) {
	t.Helper()
	keys := strings.Split(strings.ReplaceAll(path, "[]", ""), ".")
	name := keys[len(keys)-1]
	try := func(how string, change func(document map[string]any) bool) {
		document := decoded[map[string]any](t, expect.Value(json.Marshal(f))(t))
		if !change(document) {
			return
		}
		do(how, decoded[*facts.Facts](t, expect.Value(json.Marshal(document))(t)))
	}
	for i, all := 0, len(holders(decoded[map[string]any](t, expect.Value(json.Marshal(f))(t)), keys)); i < all; i += max(1, all-1) { // The first and the last.
		for _, left := range []any{nil, string(probe.Unknown)} {
			try(fmt.Sprintf("%s of %d: %v", name, i, left), func(document map[string]any) bool {
				holder := holders(document, keys)[i]
				old := holder[name]
				switch {
				case name == "sm_tests": // It says why something is missing.
					holder[name], old = "no PTX compiler", left
				case left == nil:
					delete(holder, name)
				case name == "outcome":
					holder[name] = left
				default:
					return false
				}
				return old != nil
			})
		}
	}
	for _, said := range []bool{false, true} {
		try("whole section", func(document map[string]any) bool {
			delete(document, keys[0])
			if said {
				document["unknown"] = []any{map[string]any{"section": keys[0], "reason": "permission denied"}}
			}
			return true
		})
	}
}

// TestRequiredFacts checks that what is healthy is so as it stands, and in no way in which
// one of the facts is missing that the table requires.
func TestRequiredFacts(t *testing.T) {
	t.Parallel()
	k := learnt(t)
	tried, try := map[string]int{}, night.Every(1)
	for profile, machines := range healthyFacts(t) {
		for name, f := range machines {
			s := selection{name: name, profile: profile, failOn: report.Threshold(rules.High)}
			if d := judge(t, k, f, s); d.Verdict.State != report.Healthy {
				t.Errorf("%s is %s: %v", name, d.Verdict.State, d.Verdict.Reasons)
				continue
			}
			for _, r := range data.Required().Required {
				if !slices.Contains(r.Profiles, string(profile)) || r.If == "nvidia-found" && name == "eight GPUs of AMD's" {
					continue
				}
				removing(t, f, r.Fact, func(how string, f *facts.Facts) {
					if !try(r.Fact) {
						return
					}
					tried[r.Fact]++
					expect.That(t, judge(t, k, f, s).Verdict.State != report.Healthy, "%s without %s (%s) is healthy", name, r.Fact, how)
				})
			}
		}
	}
	for _, r := range data.Required().Required {
		expect.That(t, tried[r.Fact] != 0, "%s was never missing", r.Fact)
	}
	t.Logf("%v", slices.Sorted(maps.Values(tried)))
}

// TestNVMLIsRequired checks that no answer of NVML but a complete one lets a machine with NVIDIA GPUs be healthy.
func TestNVMLIsRequired(t *testing.T) {
	t.Parallel()
	k, pair := learnt(t), exampleFacts(t, "h200x2")
	for name, base := range map[string]*facts.Facts{"two GPUs": pair, "one GPU": oneGPU(pair)} {
		for _, outcome := range []string{"", "hang", "crashed", "ended", "not-found", "not-built", "error", "not-asked", "new word"} {
			f, gpus := *base, *base.GPUs
			gpus.NVML = outcome
			f.GPUs = &gpus
			d := judge(t, k, &f, selection{profile: rules.Training, failOn: report.Threshold(rules.High)})
			expect.That(t, d.Verdict.State != report.Healthy, "%s, NVML %q: healthy", name, outcome)
		}
	}
}
