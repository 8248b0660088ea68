package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Wanted is a text that would decide what could not be judged.
type Wanted struct {
	Section string   `json:"section"` // The section of the facts that the text provides.
	Send    string   `json:"send"`    // What to send, with the command that produces it.
	Settles []string `json:"settles"` // The rules that could be judged with the text, most severe first.
}

// wish is a text to ask for. It was sent if one of kinds is among the texts.
type wish struct {
	send  string
	kinds []string
}

const (
	logWish      = "the complete log of every rank from a run with NCCL_DEBUG=INFO"
	packagesWish = "pip list; dpkg -l | grep -e nccl -e nvidia, on every node"
)

// wishes are the texts to ask for, by the section that they give.
var wishes = map[string]wish{
	"logs":       {logWish, []string{"nccl-log"}},
	"kernel_log": {"sudo dmesg -T", []string{"kernel-log"}},
	"pci":        {"sudo lspci -vvv", []string{"lspci"}},
	"iommu":      {"cat /proc/cmdline; sudo dmesg | grep -i -e iommu -e DMAR -e AMD-Vi", []string{"kernel-command-line"}},
	"gpus":       {"nvidia-smi -q (or amd-smi static and amd-smi metric)", []string{"nvidia-smi-q", "nvidia-smi-xml", "amd-smi", "amd-smi-json"}},
	"links": {
		"nvidia-smi topo -m; nvidia-smi topo -p2p r (or amd-smi topology)",
		[]string{"nvidia-smi-topo", "amd-smi-topology", "rocm-smi-topology"},
	},
	"container":  {"df -h /dev/shm; ulimit -a; cat /proc/self/status, all of them where the job runs", []string{"limits", "shm"}},
	"env":        {"env | grep -e NCCL -e RCCL -e CUDA -e HIP -e HSA -e ROCR -e UCX -e FI_ -e TORCH, where the job runs", []string{"environment"}},
	"nics":       {"ibv_devinfo -v; show_gids; ip addr", []string{"ibv_devinfo", "ibstat"}},
	"launches":   {"the docker run line, compose file, pod spec or batch script of the job", []string{"manifest", "command-line", "sbatch", "docker-inspect"}},
	"software":   {packagesWish, []string{"packages", "pip-list", "pip-freeze"}},
	"libraries":  {packagesWish, []string{"packages", "pip-list", "pip-freeze"}},
	"numa":       {"lscpu; numactl --hardware", []string{"lscpu", "numactl"}},
	"benchmarks": {"all_reduce_perf -b 8 -e 1G -f 2 -g 8, with the number of GPUs for 8, of nccl-tests or rccl-tests", []string{"nccl-tests"}},
}

func (d *Document) sent(w wish) bool {
	return slices.ContainsFunc(d.Texts, func(t facts.Text) bool {
		return slices.ContainsFunc(t.Kinds, func(k facts.TextKind) bool { return slices.Contains(w.kinds, k.Kind) })
	})
}

// weights say how much a rule that could be judged is worth, by severity.
var weights = map[rules.Severity]int{rules.Critical: 8, rules.High: 4, rules.Medium: 2, rules.Low: 1}

const jobFailed = "job-failed"

// wanted lists the texts that would decide the rules that could not be judged, most useful first.
func (d *Document) wanted() []Wanted {
	severity := map[string]rules.Severity{}
	for _, r := range d.in.Rules {
		severity[r.ID] = r.Severity
	}
	worth := func(id string) int { return weights[severity[id]] }
	value, all := map[string]int{}, map[string]*Wanted{}
	for _, s := range d.Skipped {
		for _, lack := range s.Lacks {
			section := lack.Section()
			asked, ok := wishes[section]
			if !ok || d.sent(asked) {
				continue
			}
			if all[asked.send] == nil {
				all[asked.send] = &Wanted{Section: section, Send: asked.send}
			}
			if w := all[asked.send]; !slices.Contains(w.Settles, s.Rule) {
				w.Settles = append(w.Settles, s.Rule)
				value[asked.send] += worth(s.Rule)
			}
		}
	}
	for _, w := range all {
		slices.SortFunc(w.Settles, func(a, b string) int { return cmp.Or(worth(b)-worth(a), cmp.Compare(a, b)) })
	}
	if failed := slices.ContainsFunc(d.Findings, func(f rules.Finding) bool { return f.Rule == jobFailed }); failed {
		delete(all, logWish) // The log of the communication library says most about a failed job.
		if logs := d.in.Facts.Logs; logs == nil || len(logs.Communicators) == 0 {
			all[logWish], value[logWish] = &Wanted{Section: "logs", Send: logWish, Settles: []string{jobFailed}}, 1000
		}
	}
	list := make([]Wanted, 0, len(all))
	for _, w := range all {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Wanted) int { return cmp.Or(value[b.Send]-value[a.Send], cmp.Compare(a.Section, b.Section)) })
	return list
}

// Open reports whether something is wrong and no finding names its cause with some certainty.
func (d *Document) Open() bool {
	return d.in.TextsOnly && d.Verdict.State == Findings && !slices.ContainsFunc(d.Findings, func(f rules.Finding) bool {
		return atLeast(f.Severity, rules.Medium) && f.Confidence != rules.Possible
	})
}

// quotes are the lines of texts that led to findings, each once.
func (d *Document) quotes(findings []rules.Finding) []rules.Evidence {
	var all []rules.Evidence
	for _, f := range findings {
		for _, e := range f.Evidence {
			name, _ := splitLine(e.Source)
			if !d.isText(name) {
				continue
			}
			// Of one line the first fact is enough; a whole text may tell several.
			if !slices.ContainsFunc(all, func(o rules.Evidence) bool { return o.Source == e.Source && (name != e.Source || o.Fact == e.Fact) }) {
				all = append(all, e)
			}
		}
	}
	return all
}

func (d *Document) isText(name string) bool {
	return slices.ContainsFunc(d.Texts, func(t facts.Text) bool { return t.Name == name })
}

// quoted is a line of a text: where it stands, and what it says, or the fact that was read there.
func quoted(e evidence) string {
	if e.Text != e.Value && (strings.HasPrefix(e.Fact, "logs.") || strings.HasPrefix(e.Fact, "kernel_log.")) {
		return e.Source + "  " + e.Text
	}
	return e.Source + "  " + e.Fact + " = " + e.Value
}

// textsLine says which texts were recognized as what; others lists those that were not, the unread first.
func (d *Document) textsLine() (recognised, others []string) {
	var unread []string
	for _, t := range d.Texts {
		kinds := lines.Map(t.Kinds, func(k facts.TextKind) string { return k.Kind })
		if len(kinds) > 1 {
			kinds = lines.Filter(kinds, func(k string) bool { return k != "messages" })
		}
		if len(kinds) > 0 {
			recognised = append(recognised, fmt.Sprintf("%s (%s)", t.Name, strings.Join(kinds, ", ")))
		}
		switch said := t.Name + " (" + cmp.Or(t.Problem, "not recognized") + ")"; {
		case t.Unread != "":
			unread = append(unread, said)
		case len(kinds) == 0 || t.Problem != "":
			others = append(others, said)
		}
		if n := len(t.Past); n > 0 {
			others = append(others, fmt.Sprintf("%s (%s of past trouble, as %s shows)", t.Name, lines.Count(n, "line"), t.Past[0].Shown))
		}
	}
	return recognised, append(unread, others...)
}
