package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
)

type recordingRedactor struct{ *redact.Redactor }

func (r recordingRedactor) memory(m *Memory) *Memory {
	r.studyMemory(m)
	out := &Memory{partial: m.partial}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		n := m.nodes[name]
		if absentFrom(n) {
			out.addGone(r.path(name))
			continue
		}
		to := out.node(r.path(name))
		for op, o := range n.outcomes {
			if o != nil {
				to.outcomes[op] = r.outcome(name, o)
			}
		}
	}
	for _, question := range slices.Sorted(maps.Keys(m.answers)) {
		raw, err := r.answer(question, m.answers[question])
		out.setAnswer(r.question(question), raw, err)
	}
	return out
}

func (r recordingRedactor) outcome(name string, o *outcome) *outcome {
	switch v := o.value.(type) {
	case content:
		return &outcome{value: content{r.File(name, v.data), v.more}}
	case string:
		return &outcome{value: r.target(name, v)}
	case []string:
		names := make([]string, len(v))
		for i, child := range v {
			names[i] = path.Base(r.path(path.Join(name, child)))
		}
		slices.Sort(names)
		return &outcome{value: names}
	}
	return &outcome{o.value, r.failure(o.err)}
}

// failure redacts the text of an error, and keeps its class.
func (r recordingRedactor) failure(err error) error {
	if err == nil {
		return nil
	}
	word, text := classify(err)
	if text == "" {
		return err
	}
	return declassify(word, r.Text(text))
}

// studyMemory learns from a recording the names that may occur anywhere in it.
func (r recordingRedactor) studyMemory(m *Memory) {
	var names Uname
	if m.answered(AskUname, &names) {
		r.Host(names.Node)
	}
	for _, name := range redact.HostFiles {
		if c, ok := valueOf[content](m.nodes[name], read); ok {
			r.Host(string(c.data))
		}
	}
	var environ []string
	if m.answered(AskEnviron, &environ) {
		for _, entry := range environ {
			if home, ok := strings.CutPrefix(entry, "HOME="); ok {
				r.LearnHome(home)
			}
		}
	}
	r.Learning(func() {
		for _, question := range slices.Sorted(maps.Keys(m.answers)) {
			_, _ = r.answer(question, m.answers[question]) // Only what it has learned counts.
		}
		for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
			r.path(name)
			c, _ := valueOf[content](m.nodes[name], read)
			r.File(name, c.data)
		}
	})
}

func (m *Memory) answered(question string, answer any) bool {
	raw, err := m.Ask(context.Background(), question, nil)
	return err == nil && json.Unmarshal(raw, answer) == nil
}

// path redacts the path of a file. What the kernel shows contains no names,
// but words that names may consist of: /sys/devices/system/node/node1.
func (r recordingRedactor) path(name string) string {
	if hasPrefix(name, []string{"/sys/", "/proc/", "/dev/"}) {
		return absolute(r.Numbers(name, true))
	}
	return absolute(r.Content(name, true))
}

// question redacts a question, which may end in a path.
func (r recordingRedactor) question(question string) string {
	if about, name, ok := strings.Cut(question, ":/"); ok {
		return about + ":" + r.path("/"+name)
	}
	return r.Text(question)
}

// target redacts where a link points. One into a folder whose name changes is made absolute.
func (r recordingRedactor) target(name, target string) string {
	if target == "" || path.IsAbs(target) {
		return r.Text(target)
	}
	full := path.Join(path.Dir(name), target)
	if to := r.path(full); to != full {
		if text := r.Text(target); path.Join(path.Dir(r.path(name)), text) == to {
			return text
		}
		return to
	}
	return target
}

func (r recordingRedactor) answer(question string, a *outcome) (json.RawMessage, error) {
	if a.err != nil {
		return nil, r.failure(a.err)
	}
	var v any
	raw, _ := a.value.(json.RawMessage)
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return nil, &failure{text: "the answer is not JSON", is: fs.ErrInvalid}
	}
	if names, ok := v.(map[string]any); ok && question == AskUname {
		if node, ok := names["node"].(string); ok {
			names["node"] = r.Host(node)
		}
	}
	if list, ok := v.([]any); ok && question == AskEnviron {
		for i := range list {
			if entry, ok := list[i].(string); ok {
				list[i] = r.Environ(entry)
			}
		}
	} else {
		v = redact.Value(r.Redactor, v)
	}
	return redact.EncodeJSON(v)
}
