package patch

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/cmd/internal/emit"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// envForm changes files of variables: those that a shell or a container engine reads, and
// NCCL's own.
type envForm struct {
	name string
	// exports is true if the lines are a shell's.
	exports bool
}

var (
	envLine = lazy.New(`^(\s*(?:export\s+)?)([A-Za-z_]\w*)(=)(.*?)(\s*)$`)
	unset   = lazy.New(`^\s*unset\s+[A-Za-z_]\w*\s*$`)
)

// configurations are the names of the files that NCCL and RCCL read.
var configurations = []string{"nccl.conf", ".nccl.conf", "rccl.conf", ".rccl.conf"}

// isEnvFile reports whether a file holds variables and nothing else: of communication, or
// by its name those of an environment.
func isEnvFile(f *file) bool {
	base := path.Base(filepath.ToSlash(f.Name))
	found := slices.Contains(configurations, base) || strings.Contains(strings.ToLower(base), "env")
	for _, l := range f.lines {
		switch t := strings.TrimSpace(l.text); {
		case t == "" || strings.HasPrefix(t, "#") || unset.MatchString(t):
		case envLine.MatchString(l.text):
			found = found || env.SteersCommunication(envLine.FindStringSubmatch(l.text)[2])
		default:
			return false
		}
	}
	return found
}

func newEnvForm(f *file) envForm {
	if slices.Contains(configurations, path.Base(filepath.ToSlash(f.Name))) {
		return envForm{name: "nccl.conf"}
	}
	e := envForm{name: "env"}
	for _, l := range f.lines {
		t := strings.TrimSpace(l.text)
		e.exports = e.exports || strings.HasPrefix(t, "export ") || strings.HasPrefix(t, "unset ") || strings.HasPrefix(t, "#!")
	}
	return e
}

func (e envForm) propose(f *file) error {
	target, _ := emit.Named(e.name)
	for k := range f.Wants {
		w := &f.Wants[k]
		if len(f.splices) > 0 {
			return nil
		}
		switch {
		case w.Kind == plan.Unset && len(w.Values) > 0:
			e.unset(f, w)
		case target.Sets(w.Setting) && (w.Kind == plan.Variable || e.exports):
			e.set(f, w)
		case w.Kind == plan.Unset:
			f.note("", words(w), "Such a file cannot remove a variable that is set elsewhere.")
		}
	}
	return nil
}

// unset removes the lines that give a variable a value.
func (e envForm) unset(f *file, w *Want) {
	for i, l := range f.lines {
		m := envLine.FindStringSubmatch(l.text)
		if m == nil || !w.removes(m[2], unquoted(m[4])) || !f.within(w, i+1, i+1) {
			continue
		}
		f.splice(f.removal(i, 1, w, ""))
		return
	}
}

// unquoted is a value without quotes around it.
func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// set gives a variable its value: the last line that sets it counts.
func (e envForm) set(f *file, w *Want) {
	last := -1
	for i, l := range f.lines {
		if m := envLine.FindStringSubmatch(l.text); m != nil && m[2] == w.Name {
			last = i
		} else if w.Kind == plan.Unset && slices.Equal(strings.Fields(l.text), []string{"unset", w.Name}) {
			return
		}
	}
	if w.Kind == plan.Unset && last >= 0 {
		return
	}
	value := w.Value
	if e.exports {
		value = remedies.Quote(value)
	} else if strings.ContainsAny(value, " \t#$'\"\\`") {
		f.byHand(w, "", max(last, 0), "programs that read such files disagree on how to quote it")
		return
	}
	change := w.remark("")
	bare := ""
	if e.name == "nccl.conf" {
		bare = "="
	}
	if last >= 0 {
		m := envLine.FindStringSubmatch(f.lines[last].text)
		old := m[4]
		switch {
		case same(unquoted(old), w.Value):
			return
		case !stated(old) || strings.ContainsAny(old, " \t"):
			f.byHand(w, "", last, "its value has another form there")
			return
		}
		f.splice(&splice{at: last, del: 1, ins: append(reason(w, "", bare), m[1]+m[2]+m[3]+value+m[5]), change: change})
		return
	}
	text := w.Name + "=" + value
	switch {
	case w.Kind == plan.Unset:
		text = "unset " + w.Name
	case e.exports:
		text = "export " + text
	}
	ins := []string{text}
	if f.said["env"] != w.comment() {
		ins = append(reason(w, "", bare), ins...)
	}
	if f.splice(&splice{at: len(f.lines), ins: ins, change: change}) {
		f.said["env"] = w.comment()
	}
}
