package remedies

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/rules"
)

// A template may hold these:
//
//	{{.name}}                   the values of a param
//	{{.names | join ";"}}       all of them, with what stands between them
//	{{.name | else "words"}}    words where the param is not known
//	{{with .name}}              at the beginning of a list item: it stands only
//	                            where the param is known
//	{{without .name}}           the same, where it is not
//	{{check}}                   the command that judges the same rules again
var (
	placeholder = lazy.New(`\{\{(?:\.([a-z][a-z0-9_]*)(?: \| join "([^"{}]*)")?(?: \| else "([^"{}]*)")?|(check))\}\}`)
	condition   = lazy.New("^" + aCondition)
	// anyConditions are conditions anywhere in a text.
	anyConditions = lazy.New("(?:" + aCondition + ")+")
)

const aCondition = `\{\{with(out)? \.([a-z][a-z0-9_]*)\}\}`

// when is a parsed condition: a param is known, or is not.
type when struct {
	name    string
	without bool
}

// conditionsOf reads the conditions that a template begins with, all of which must hold, and what is behind them.
func conditionsOf(template string) (all []when, rest string) {
	for {
		m := condition.FindStringSubmatch(template)
		if m == nil {
			return all, template
		}
		all = append(all, when{m[2], m[1] != ""})
		template = template[len(m[0]):]
	}
}

// slot is a placeholder in a template.
type slot struct {
	name string
	// join is true if all values are written, with sep between them.
	join bool
	sep  string
	// orElse is written if there is no value and hasElse is true.
	orElse  string
	hasElse bool
	check   bool
}

func slotOf(found string) slot {
	parts := placeholder.FindStringSubmatch(found)
	return slot{
		name: parts[1], join: strings.Contains(found, " | join "), sep: parts[2],
		orElse: parts[3], hasElse: strings.Contains(found, " | else "), check: parts[4] != "",
	}
}

// slots are the placeholders of a template that name a param.
func slots(template string) []slot {
	var all []slot
	for _, found := range placeholder.FindAllString(template, -1) {
		if s := slotOf(found); !s.check {
			all = append(all, s)
		}
	}
	return all
}

// Unfilled shows a template without a finding to fill it from:
// each placeholder by the name of what it will hold.
func Unfilled(template string) string {
	template = anyConditions.Get().ReplaceAllStringFunc(template, func(found string) string {
		all, _ := conditionsOf(found)
		var unknown []string
		for _, when := range all {
			if when.without {
				unknown = append(unknown, when.name)
			}
		}
		if len(unknown) == 0 {
			return ""
		}
		return "where " + strings.Join(unknown, " and ") + map[bool]string{true: " are", false: " is"}[len(unknown) > 1] + " not known: "
	})
	template = placeholder.Get().ReplaceAllStringFunc(template, func(found string) string {
		if s := slotOf(found); !s.check {
			return "<" + s.name + ">"
		}
		return Recheck{}.Command() + " --only <rules>"
	})
	return quoted.ReplaceAllString(template, "$1")
}

// quoted is the name of a param in the quotes that a shell needs for it.
var quoted = lazy.New(`'(<[a-z_]+>)'`)

// safeValues are the forms of values that may be put into a command. Params come from facts, which the author of a log
// or the name of a file can influence: nothing but these forms is substituted, none of which has a meaning to a shell.
var safeValues = []*lazy.Regexp{
	lazy.New(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`), // A PCI address.
	lazy.New(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$`),             // A name, number, version or UUID.
	lazy.New(`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?){0,63}$`),    // A list of CPUs or nodes.
	lazy.New(`^(/[A-Za-z0-9_+][A-Za-z0-9._+-]{0,79})+$`),       // A path without "..".
}

// params are the values of each param that may be put into a command, in order.
type params map[string][]string

// add adds the values of a finding's params. An unsafe value is left out, and
// so is a param's own name in capitals, with which a rule says that the value is not known.
func (p params) add(from map[string]any) {
	for name, v := range from {
		values, ok := v.([]any)
		if !ok {
			values = []any{v}
		}
		for _, v := range values {
			switch v.(type) {
			case string, int64, int, float64:
				text := fmt.Sprint(v)
				isSafe := slices.ContainsFunc(safeValues, func(form *lazy.Regexp) bool { return form.MatchString(text) })
				if isSafe && text != strings.ToUpper(strings.TrimSuffix(name, "s")) {
					p[name] = appendNew(p[name], text)
				}
			}
		}
	}
}

// values returns the values that a placeholder stands for: of the list of that name with an s ("bridge" of "bridges"),
// else of the name itself, else of the name without its s ("nodes" of "node", which several findings give).
func (p params) values(name string) []string {
	for _, key := range []string{name + "s", name, strings.TrimSuffix(name, "s")} {
		if values := p[key]; len(values) > 0 {
			return values
		}
	}
	return nil
}

// derived are the params that follow from others: "gpu_ids" are GPUs as nvidia-smi takes them, by PCI address or by
// index, and "driver_branch" is a driver's major version. "device" is a GPU if no param says which.
var derived = map[string]string{"gpu_id": "gpu", "gpu_ids": "gpus", "driver_branch": "driver"}

// indexName is the name of a GPU of which only the index is known.
var indexName = lazy.New(`^GPU([0-9]{1,4})$`)

// paramsOf merges the params of findings. The ids of their rules, and of those whose findings they explain, become
// "rules", each rule has a param of its own ("rule_app_mismatch"), and the affected GPUs become "gpus", unless a param
// says which; the subject takes their place if it is a GPU. What follows from other params is in derived.
func paramsOf(findings []rules.Finding) params {
	p := params{}
	for _, f := range findings {
		p.add(map[string]any{"rules": f.Rule, "rule_" + strings.ReplaceAll(f.Rule, "-", "_"): "yes"})
		for _, e := range f.Explains {
			p.add(map[string]any{"rules": e.Rule})
		}
		p.add(f.Params)
		own := params{}
		own.add(f.Params)
		if len(own.values("gpu")) == 0 {
			for _, address := range gpusOf(f) {
				p.add(map[string]any{"gpus": address})
			}
		}
	}
	gpus := slices.Concat(p["gpus"], p["gpu"])
	if len(p.values("device")) == 0 {
		p["device"] = gpus
	}
	for _, gpu := range gpus {
		p.add(map[string]any{"gpu_ids": indexName.ReplaceAllString(gpu, "$1")})
	}
	for _, version := range p["driver"] {
		branch, _, _ := strings.Cut(version, ".")
		p.add(map[string]any{"driver_branch": branch})
	}
	return p
}

// gpusOf are the GPUs that a finding is about.
func gpusOf(f rules.Finding) []string {
	if len(f.Affects) == 0 && gpuName.MatchString(f.Subject) {
		return []string{f.Subject}
	}
	return f.Affects
}

// gpuName is a PCI address, or the name of a GPU of which only the index is known.
var gpuName = lazy.New(`^(?:[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|GPU[0-9]{1,4})$`)

// filler fills the templates of one remedy for the findings that it cures.
type filler struct {
	merged params
	each   []params // The params of each finding.
	check  string   // The command that judges the findings' rules again.
}

func newFiller(findings []rules.Finding, again Recheck) filler {
	f := filler{merged: paramsOf(findings)}
	f.check = again.Command(f.merged["rules"]...)
	for _, finding := range findings {
		f.each = append(f.each, paramsOf([]rules.Finding{finding}))
	}
	return f
}

// fill fills a template with the values of p. ok is false if one is not known and has no text for that case.
func (f filler) fill(template string, p params) (text string, ok bool) {
	ok = true
	conditions, template := conditionsOf(template)
	for _, when := range conditions {
		ok = ok && when.without == (len(f.merged.values(when.name)) == 0)
	}
	text = placeholder.Get().ReplaceAllStringFunc(template, func(found string) string {
		s := slotOf(found)
		if s.check {
			return f.check
		}
		values, sep := p.values(s.name), ", "
		if s.join {
			sep = s.sep
		}
		if len(values) == 0 {
			ok = ok && s.hasElse
			return s.orElse
		}
		return strings.Join(values, sep)
	})
	return text, ok
}

// text fills a running text, each placeholder of which has a text for
// an unknown value: check enforces that. Several values are joined by ", ".
func (f filler) text(template string) string {
	text, _ := f.fill(template, f.merged)
	return text
}

// list fills the items of a list. An item with {{.bridge}} is repeated for each value that a finding gives, so that
// values of one finding stay together; one with a join takes those of all findings at once. Duplicates are removed. An
// item with an unknown value is left out.
func (f filler) list(items []string) []string {
	var out []string
	add := func(template string, p params) {
		if text, ok := f.fill(template, p); ok {
			out = appendNew(out, text)
		}
	}
	for _, item := range items {
		all := slots(item)
		first := slices.IndexFunc(all, func(s slot) bool { return !s.join })
		if first < 0 || len(f.merged.values(all[first].name)) == 0 {
			add(item, f.merged)
			continue
		}
		repeated := all[first].name
		for _, p := range f.each {
			for _, value := range p.values(repeated) {
				one := maps.Clone(p)
				delete(one, repeated+"s")
				one[repeated] = []string{value}
				add(item, one)
			}
		}
	}
	return out
}

// table fills the keys and values of a table, for each finding from its own params. If two findings give a key
// different values, the first one wins. An entry with an unknown value is left out.
func (f filler) table(t map[string]string) map[string]string {
	out := make(map[string]string, len(t))
	for _, p := range f.each {
		for _, key := range slices.Sorted(maps.Keys(t)) {
			name, ok := f.fill(key, p)
			value, known := f.fill(t[key], p)
			if _, taken := out[name]; ok && known && !taken {
				out[name] = value
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (f filler) lists(t map[string][]string) map[string][]string {
	var out map[string][]string
	for key, items := range t {
		if filled := f.list(items); len(filled) > 0 {
			facts.Put(&out, key, filled)
		}
	}
	return out
}

func (f filler) apply(a Apply) Apply {
	kubernetes, ok := f.fill(a.Kubernetes, f.merged)
	if !ok {
		kubernetes = ""
	}
	return Apply{
		Environment: f.table(a.Environment), Unset: f.list(a.Unset),
		Arguments: f.lists(a.Arguments), KernelCommandLine: f.list(a.KernelCommandLine),
		Docker: f.list(a.Docker), Kubernetes: kubernetes, Runtimes: f.lists(a.Runtimes), Slurm: f.list(a.Slurm),
		Sysctl: f.table(a.Sysctl), Modprobe: f.list(a.Modprobe),
		Commands: f.list(a.Commands), Steps: f.list(a.Steps),
	}
}

// WithForms adds to the variables of Environment the ways by which a container runtime and a scheduler set them.
func (a Apply) WithForms() Apply {
	if len(a.Environment) == 0 {
		return a
	}
	var settings, entries []string
	for _, name := range slices.Sorted(maps.Keys(a.Environment)) {
		value := a.Environment[name]
		settings = append(settings, name+"="+value)
		a.Docker = append(slices.Clone(a.Docker), "-e "+name+"="+value)
		entries = append(entries, fmt.Sprintf("  - {name: %s, value: %q}\n", name, value))
	}
	a.Kubernetes += "env:\n" + strings.Join(entries, "")
	a.Slurm = append(slices.Clone(a.Slurm), "#SBATCH --export=ALL,"+strings.Join(settings, ","))
	return a
}

// walk calls visit for every text of a remedy that may hold a placeholder.
func (r *Remedy) walk(visit func(string)) {
	for _, text := range r.prose() {
		visit(text)
	}
	r.Apply.walk(visit)
}

// prose are the texts of a remedy that are written whatever is known.
func (r *Remedy) prose() []string {
	return []string{r.Title, r.Description, r.Cost, r.Caution, r.Undo, r.Verify}
}

func (a *Apply) walk(visit func(string)) {
	if a.Kubernetes != "" {
		visit(a.Kubernetes)
	}
	lists := [][]string{a.Unset, a.KernelCommandLine, a.Docker, a.Slurm, a.Modprobe, a.Commands, a.Steps}
	lists = slices.AppendSeq(lists, maps.Values(a.Arguments))
	for _, list := range slices.AppendSeq(lists, maps.Values(a.Runtimes)) {
		for _, text := range list {
			visit(text)
		}
	}
	for _, table := range []map[string]string{a.Environment, a.Sysctl} {
		for key, text := range table {
			visit(key + "=" + text)
		}
	}
}
