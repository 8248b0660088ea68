package remedies

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/rules"
)

// placeholder is {{.name}} or {{.names | join ";"}}.
var placeholder = regexp.MustCompile(`\{\{\.([a-z][a-z0-9_]*)(?: \| join "([^"{}]*)")?\}\}`)

// badPlaceholders lists what looks like a placeholder and is none.
func badPlaceholders(text string) []string {
	rest := placeholder.ReplaceAllString(text, "")
	if strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
		return []string{strings.TrimSpace(rest)}
	}
	return nil
}

// safeValues are the forms of what may stand in a command. Params come from
// facts, which whoever wrote a log or named a file has had a hand in: nothing
// but these forms is substituted, none of which means anything to a shell.
var safeValues = []*regexp.Regexp{
	regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`), // A PCI address.
	regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$`),             // A name, number, version or UUID.
	regexp.MustCompile(`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?){0,63}$`),    // A list of CPUs or nodes.
	regexp.MustCompile(`^(/[A-Za-z0-9_+][A-Za-z0-9._+-]{0,79})+$`),       // A path without "..".
}

func isSafe(value string) bool {
	return slices.ContainsFunc(safeValues, func(form *regexp.Regexp) bool { return form.MatchString(value) })
}

// params are the values of each param that may stand in a command, in order.
type params map[string][]string

// add adds the values of a finding's params. An unsafe value is left out.
func (p params) add(from map[string]any) {
	for name, v := range from {
		values, ok := v.([]any)
		if !ok {
			values = []any{v}
		}
		for _, v := range values {
			text, ok := asText(v)
			if ok && isSafe(text) && !slices.Contains(p[name], text) {
				p[name] = append(p[name], text)
			}
		}
	}
}

// asText returns a plain value's text.
func asText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	default:
		return "", false
	}
}

// values returns the values that a placeholder stands for: of the list of
// that name with an s ("bridge" of "bridges"), else of the name itself, else of
// the name without its s ("nodes" of "node", which several findings give).
func (p params) values(name string) []string {
	for _, key := range []string{name + "s", name, strings.TrimSuffix(name, "s")} {
		if values := p[key]; len(values) > 0 {
			return values
		}
	}
	return nil
}

// paramsOf merges the params of findings. The ids of their rules, and of those
// whose findings they explain, stand as "rules", and the GPUs that suffer as
// "gpus", unless a param says which.
func paramsOf(findings []rules.Finding) params {
	p := params{}
	for _, f := range findings {
		p.add(map[string]any{"rules": f.Rule})
		for _, e := range f.Explains {
			p.add(map[string]any{"rules": e.Rule})
		}
		p.add(f.Params)
		if f.Params["gpu"] == nil && f.Params["gpus"] == nil {
			for _, address := range f.Affects {
				p.add(map[string]any{"gpus": address})
			}
		}
	}
	return p
}

// text fills a running text: several values are joined by ", ".
func (p params) text(s string) string {
	return placeholder.ReplaceAllStringFunc(s, func(found string) string {
		parts := placeholder.FindStringSubmatch(found)
		values, sep := p.values(parts[1]), ", "
		if strings.Contains(found, "join") {
			sep = parts[2]
		}
		if len(values) == 0 {
			return "<" + parts[1] + ">"
		}
		return strings.Join(values, sep)
	})
}

// filler fills the templates of one remedy for the findings that it cures.
type filler struct {
	merged params
	each   []params // The params of each finding.
}

func newFiller(findings []rules.Finding) filler {
	f := filler{merged: paramsOf(findings)}
	for _, finding := range findings {
		f.each = append(f.each, paramsOf([]rules.Finding{finding}))
	}
	return f
}

// list fills the items of a list. An item with {{.bridge}} is repeated for
// each value that a finding gives, so that values of one finding stay
// together; one with a join takes those of all findings at once. What comes
// twice stands once.
func (f filler) list(items []string) []string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, item := range items {
		repeated, ok := repeatedName(item)
		if !ok {
			add(f.merged.text(item))
			continue
		}
		found := false
		for _, p := range f.each {
			for _, value := range p.values(repeated) {
				one := maps.Clone(p)
				delete(one, repeated+"s")
				one[repeated] = []string{value}
				add(one.text(item))
				found = true
			}
		}
		if !found {
			add(f.merged.text(item))
		}
	}
	return out
}

// repeatedName returns the name in an item's first placeholder without join.
func repeatedName(item string) (string, bool) {
	for _, parts := range placeholder.FindAllStringSubmatch(item, -1) {
		if !strings.Contains(parts[0], "join") {
			return parts[1], true
		}
	}
	return "", false
}

// table fills the values of a table.
func (f filler) table(t map[string]string) map[string]string {
	if t == nil {
		return nil
	}
	out := make(map[string]string, len(t))
	for key, value := range t {
		out[key] = f.merged.text(value)
	}
	return out
}

// apply fills all of Apply.
func (f filler) apply(a Apply) Apply {
	return Apply{
		Environment: f.table(a.Environment), Unset: f.list(a.Unset),
		KernelCommandLine: f.list(a.KernelCommandLine),
		Docker:            f.list(a.Docker), Kubernetes: f.merged.text(a.Kubernetes), Slurm: f.list(a.Slurm),
		Sysctl: f.table(a.Sysctl), Modprobe: f.list(a.Modprobe),
		Commands: f.list(a.Commands), Steps: f.list(a.Steps),
	}
}

// walk gives every text of a remedy that may hold a placeholder to visit.
func (r *Remedy) walk(visit func(string) string) {
	for _, text := range []string{r.Title, r.Description, r.Cost, r.Caution, r.Undo, r.Verify} {
		visit(text)
	}
	r.Apply.walk(visit)
}

func (a *Apply) walk(visit func(string) string) {
	visit(a.Kubernetes)
	for _, list := range [][]string{a.Unset, a.KernelCommandLine, a.Docker, a.Slurm, a.Modprobe, a.Commands, a.Steps} {
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

// count writes "1 critical finding", "3 high findings".
func count(n int, adjective string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s finding", adjective)
	}
	return fmt.Sprintf("%d %s findings", n, adjective)
}
