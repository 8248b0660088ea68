package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Wanted is a text that would settle what could not be concluded.
type Wanted struct {
	// Section is the section of the facts that it gives.
	Section string `json:"section"`
	// Send is what to send, with the command that produces it.
	Send string `json:"send"`
	// Settles are the rules that could be judged with it, the gravest first.
	Settles []string `json:"settles"`
}

// wish is a text to ask for: what is easiest to produce, without root where
// that is enough. One of kinds among the texts means that it was sent.
type wish struct {
	send  string
	kinds []string
}

const (
	logWish      = "the whole log of every rank of a run with NCCL_DEBUG=INFO"
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

// sent reports whether a text of a wish's kinds is among the texts.
func (d *Document) sent(w wish) bool {
	return slices.ContainsFunc(d.Texts, func(t facts.Text) bool {
		return slices.ContainsFunc(t.Kinds, func(k facts.TextKind) bool { return slices.Contains(w.kinds, k.Kind) })
	})
}

// weights say how much a rule that could be judged is worth, by severity.
var weights = map[rules.Severity]int{rules.Critical: 8, rules.High: 4, rules.Medium: 2, rules.Low: 1}

// jobFailed is the rule that says that something failed, and not why.
const jobFailed = "job-failed"

// wanted lists what would settle the rules that could not be judged, what
// settles most first.
func (d *Document) wanted(severity map[string]rules.Severity, f *facts.Facts) []Wanted {
	value := map[string]int{}
	all := map[string]*Wanted{}
	for _, s := range d.Skipped {
		for _, lack := range s.Lacks {
			section := lack.Section()
			asked, ok := wishes[section]
			if !ok || d.sent(asked) {
				continue
			}
			w := all[asked.send]
			if w == nil {
				w = &Wanted{Section: section, Send: asked.send}
				all[asked.send] = w
			}
			if !slices.Contains(w.Settles, s.Rule) {
				w.Settles = append(w.Settles, s.Rule)
				value[asked.send] += weights[severity[s.Rule]]
			}
		}
	}
	list := make([]Wanted, 0, len(all))
	for _, w := range all {
		slices.SortFunc(w.Settles, func(a, b string) int {
			return cmp.Or(-cmp.Compare(weights[severity[a]], weights[severity[b]]), cmp.Compare(a, b))
		})
		list = append(list, *w)
	}
	if failed := slices.ContainsFunc(d.Findings, func(f rules.Finding) bool { return f.Rule == jobFailed }); failed {
		// Nothing tells as much of a job that failed as what its library says.
		list = slices.DeleteFunc(list, func(w Wanted) bool { return w.Section == "logs" })
		if f.Logs == nil || len(f.Logs.Communicators) == 0 {
			list = append(list, Wanted{Section: "logs", Send: logWish, Settles: []string{jobFailed}})
			value[logWish] = 1000
		}
	}
	slices.SortFunc(list, func(a, b Wanted) int {
		return cmp.Or(-cmp.Compare(value[a.Send], value[b.Send]), cmp.Compare(a.Section, b.Section))
	})
	return list
}

// open reports whether something is wrong and no finding names its cause with
// some certainty.
func (d *Document) open() bool {
	return d.textsOnly && d.Verdict.State == Findings && !d.concluded()
}

// concluded reports whether a finding names a cause with some certainty.
func (d *Document) concluded() bool {
	return slices.ContainsFunc(d.Findings, func(f rules.Finding) bool {
		return atLeast(f.Severity, rules.Medium) && f.Confidence != rules.Possible
	})
}

// lineOfText is a line of a text: "nccl.log:12".
var lineOfText = lazy.New(`^(.+):(\d+)$`)

// withOrigins gives evidence the line of the text that its fact was read from.
// A line is given only for the fact itself, never for what stands around it: two
// facts of one GPU may come from two texts. What no line tells keeps the source
// that the rule names.
func withOrigins(findings []rules.Finding, f *facts.Facts) []rules.Finding {
	p := placesOf(f)
	var walk func([]rules.Finding)
	walk = func(list []rules.Finding) {
		for i := range list {
			for j := range list[i].Evidence {
				e := &list[i].Evidence[j]
				if source := p.of(*e); source != "" {
					e.Source = source
				}
			}
			walk(list[i].Explains)
		}
	}
	walk(findings)
	return findings
}

// places say where the facts of texts were read.
type places struct {
	facts *facts.Facts
	// at are the lines of facts by their paths, and below are those of the
	// parts of a fact that has none of its own.
	at    map[string]told
	below map[string][]string
	// events are the lines of kernel logs, by what they say.
	events map[string]string
}

// told is where a fact was read, and its value; that is empty where the facts
// come from a file.
type told struct{ source, value string }

// sameValue reports whether a value that a text told is the one that evidence
// shows, be it in another order or, of a list, as one text.
func sameValue(told string, shown any) bool {
	words := func(text string) []string {
		list := strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(text))
		for i, word := range list {
			if n, err := strconv.ParseFloat(word, 64); err == nil {
				list[i] = strconv.FormatFloat(n, 'g', -1, 64)
			}
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(words(told), words(fmt.Sprint(shown)))
}

func placesOf(f *facts.Facts) places {
	p := places{facts: f, at: make(map[string]told, len(f.Origins)), below: make(map[string][]string), events: make(map[string]string)}
	for _, o := range f.Origins {
		path, source := plainPath(o.Fact), lineAt(o.Source, o.Line)
		if p.at[path].source == "" {
			p.at[path] = told{source, o.Value}
		}
		for i := strings.LastIndexByte(path, '.'); i > 0; i = strings.LastIndexByte(path[:i], '.') {
			p.below[path[:i]] = append(p.below[path[:i]], source)
		}
	}
	if f.KernelLog != nil {
		for _, e := range f.KernelLog.Events {
			if e.Line > 0 && p.events[e.Message] == "" {
				p.events[e.Message] = lineAt(e.Source, e.Line)
			}
		}
	}
	return p
}

// lineAt names a line, or where that is not known the text alone.
func lineAt(source string, line int) string {
	if line <= 0 {
		return source
	}
	return source + ":" + strconv.Itoa(line)
}

// plainPath writes the path of a fact with dots alone, as rules name some parts
// "a[b].c" and others "a.b.c".
func plainPath(fact string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(fact)
}

// of is where a piece of evidence stands; empty where no text tells.
func (p *places) of(e rules.Evidence) string {
	switch section, _, _ := strings.Cut(e.Fact, "."); {
	case section == "kernel_log":
		said, _ := e.Value.(string)
		return p.events[said]
	case section == "env":
		return p.variable(e)
	case strings.HasPrefix(section, "launches["):
		return p.launch(e)
	case strings.HasPrefix(section, "benchmarks"):
		return p.benchmark(e)
	}
	path := plainPath(e.Fact)
	if t, ok := p.at[path]; ok {
		if t.value != "" && !sameValue(t.value, e.Value) { // The rule has it from elsewhere.
			return ""
		}
		return t.source
	}
	if lineOfText.MatchString(e.Source) { // An entry of a list, which bears its own place.
		return ""
	}
	lines := slices.Compact(slices.Sorted(slices.Values(p.below[path])))
	if len(lines) == 1 {
		return lines[0]
	}
	var texts []string
	for _, line := range lines {
		texts = append(texts, lineOfText.ReplaceAllString(line, "$1"))
	}
	if texts = slices.Compact(texts); len(texts) == 1 { // Several lines of one text.
		return texts[0]
	}
	return ""
}

// variable is where a variable has the value that is shown: it may be set twice.
func (p *places) variable(e rules.Evidence) string {
	if p.facts.Env == nil {
		return ""
	}
	for _, v := range p.facts.Env.Variables {
		if e.Fact == "env.variables["+v.Name+"]" && e.Value == any(v.Value) && p.isText(v.Source) {
			return lineAt(v.Source, v.Line)
		}
	}
	return ""
}

// launch is where a part of a launch stands, which the rule names by the line in
// which it begins.
func (p *places) launch(e rules.Evidence) string {
	_, part, ok := strings.Cut(e.Fact, "].")
	if !ok {
		return ""
	}
	if name, ok := strings.CutPrefix(part, "variables."); ok {
		part = "variables[" + name + "]"
	}
	for _, l := range p.facts.Launches {
		if line := l.Lines[part]; line > 0 && e.Source == lineAt(l.Source, l.Line) {
			return lineAt(l.Source, line)
		}
	}
	return ""
}

// benchmark is where a part of a table stands, which the rule names by the line
// in which the table begins.
func (p *places) benchmark(e rules.Evidence) string {
	_, part, _ := strings.Cut(e.Fact, "].")
	number, isNumber := plainNumber(e.Value)
	for _, b := range p.facts.Benchmarks {
		switch {
		case e.Source != lineAt(b.Source, b.Line):
			continue
		case b.Lines[part] > 0:
			return lineAt(b.Source, b.Lines[part])
		case part == "" && isNumber && b.Wrong != nil && float64(*b.Wrong) == number && b.Lines["wrong"] > 0:
			return lineAt(b.Source, b.Lines["wrong"])
		case part != "points" || !isNumber:
			continue
		}
		for _, point := range b.Points {
			if point.Line > 0 && (point.GBps != nil && *point.GBps == number || point.Microseconds != nil && *point.Microseconds == number) {
				return lineAt(b.Source, point.Line)
			}
		}
	}
	return ""
}

// plainNumber is a number of the findings, which are JSON.
func plainNumber(value any) (float64, bool) {
	switch n := value.(type) {
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	case float64:
		return n, true
	case int:
		return float64(n), true
	default:
		return 0, false
	}
}

// isText reports whether a source is one of the texts that were given.
func (p *places) isText(source string) bool {
	return slices.ContainsFunc(p.facts.Texts, func(t facts.Text) bool { return t.Name == source })
}

// quotes are the lines of texts that led to the findings of a group, each
// once.
func (d *Document) quotes(g group) []rules.Evidence {
	var all []rules.Evidence
	for _, f := range g.findings {
		for _, e := range f.Evidence {
			name := lineOfText.ReplaceAllString(e.Source, "$1")
			if !slices.ContainsFunc(d.Texts, func(t facts.Text) bool { return t.Name == name }) {
				continue
			}
			// Of one line the first fact is enough; a text alone may tell several.
			if !slices.ContainsFunc(all, func(o rules.Evidence) bool { return o.Source == e.Source && (name != e.Source || o.Fact == e.Fact) }) {
				all = append(all, e)
			}
		}
	}
	return all
}

// quoted is a line of a text as a person reads it: where it stands, and what it
// says, or what the fact is that was read there.
func quoted(e rules.Evidence) string {
	if said, ok := e.Value.(string); ok && (strings.HasPrefix(e.Fact, "logs.") || strings.HasPrefix(e.Fact, "kernel_log.")) {
		return e.Source + "  " + said
	}
	return e.Source + "  " + e.Fact + " = " + valueOf(e.Value)
}

// textsLine says which texts were recognised as what; others lists those in
// which nothing was.
func (d *Document) textsLine() (recognised, others []string) {
	for _, t := range d.Texts {
		if len(t.Kinds) == 0 || t.Problem != "" {
			others = append(others, t.Name+" ("+cmp.Or(t.Problem, "not recognised")+")")
		}
		if len(t.Kinds) == 0 {
			continue
		}
		var kinds []string
		for _, k := range t.Kinds {
			if k.Kind != "messages" || len(t.Kinds) == 1 {
				kinds = append(kinds, k.Kind)
			}
		}
		recognised = append(recognised, fmt.Sprintf("%s (%s)", t.Name, strings.Join(kinds, ", ")))
	}
	return recognised, others
}

// Bounds of what the text shows of texts.
const (
	maxTexts  = 6 // Texts that are listed.
	maxQuotes = 3 // Lines that are quoted under a finding.
	maxWanted = 4 // Texts that are asked for.
)

// texts writes what was read as what.
func (t *text) texts() {
	if len(t.d.Texts) == 0 {
		return
	}
	recognised, others := t.d.textsLine()
	list := func(label string, names []string, right string) {
		if len(names) == 0 {
			return
		}
		shown := names
		if len(shown) > maxTexts && !t.style.Verbose {
			shown = append(slices.Clone(shown[:maxTexts]), fmt.Sprintf("and %d more", len(names)-maxTexts))
		}
		t.entry(label, t.clean(strings.Join(shown, "; ")), right)
	}
	list("read", recognised, took(t.d.Timing.TotalMS))
	list("note", others, "")
}

// quotes writes the lines that led to a finding.
func (t *text) quotes(margin string, g group) {
	all := t.d.quotes(g)
	for i, e := range all {
		if i == maxQuotes && !t.style.Verbose {
			t.hanging(margin, "", dim, fmt.Sprintf("and %d more lines (--verbose)", len(all)-i))
			break
		}
		t.hanging(margin, "seen", dim, t.clean(quoted(e)))
	}
}

// wanted writes what to send where nothing could be concluded.
func (t *text) wanted() {
	if t.d.textsOnly && t.d.Verdict.State == Inconclusive {
		t.wrapped("", dim, "If the job still fails, send "+logWish+", or run gpudoctor check on the machine")
		return
	}
	if !t.d.open() || len(t.d.Wanted) == 0 {
		return
	}
	t.wrapped("", plain, "What would settle it, the most telling first:")
	for i, w := range t.d.Wanted {
		if i == maxWanted && !t.style.Verbose {
			break
		}
		t.hanging("  ", "send", plain, t.clean(w.Send))
	}
	t.wrapped("  ", dim, "or, on the machine itself: gpudoctor check, or gpudoctor snapshot -o host.txtar to send")
}
