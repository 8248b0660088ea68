package machine

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
)

// recordingRedactor redacts recordings.
type recordingRedactor struct{ *redact.Redactor }

// memory redacts a recording: its paths, links, lists, files and answers.
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
		to.more = n.more
		to.stat = withError(r, n.stat)
		to.read = withError(r, n.read)
		to.read.value = r.File(name, n.read.value)
		to.link = withError(r, n.link)
		to.link.value = r.target(name, n.link.value)
		to.list = withError(r, n.list)
		to.list.value = make([]string, 0, len(n.list.value))
		for _, child := range n.list.value {
			to.list.value = append(to.list.value, path.Base(r.path(path.Join(name, child))))
		}
		slices.Sort(to.list.value)
	}
	for _, question := range slices.Sorted(maps.Keys(m.answers)) {
		out.setAnswer(r.question(question), r.answer(question, m.answers[question]))
	}
	return out
}

// withError redacts the failure of an outcome.
func withError[T any](r recordingRedactor, o outcome[T]) outcome[T] {
	o.err = r.failure(o.err)
	return o
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

// studyMemory learns from a recording the names that may occur anywhere in
// it.
func (r recordingRedactor) studyMemory(m *Memory) {
	var names Uname
	if a, ok := m.answers[AskUname]; ok && json.Unmarshal(a.raw, &names) == nil {
		r.Host(names.Node)
	}
	for _, name := range redact.HostFiles {
		if n := m.nodes[name]; n != nil {
			r.Host(string(n.read.value))
		}
	}
	var environ []string
	if a, ok := m.answers[AskEnviron]; ok && json.Unmarshal(a.raw, &environ) == nil {
		for _, entry := range environ {
			if home, ok := strings.CutPrefix(entry, "HOME="); ok {
				r.LearnHome(home)
			}
		}
	}
	r.Learning(func() {
		for _, question := range slices.Sorted(maps.Keys(m.answers)) {
			r.answer(question, m.answers[question])
		}
		for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
			r.path(name)
			r.File(name, m.nodes[name].read.value)
		}
	})
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

// target redacts where a link points. One that points into a folder whose
// name changes is made absolute.
func (r recordingRedactor) target(name, target string) string {
	if target == "" {
		return ""
	}
	if path.IsAbs(target) {
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

// answer redacts an answer.
func (r recordingRedactor) answer(question string, a answer) answer {
	if a.err != nil {
		return answer{err: r.failure(a.err)}
	}
	var v any
	decoder := json.NewDecoder(bytes.NewReader(a.raw))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return answer{err: &failure{text: "the answer is not JSON", is: fs.ErrInvalid}}
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
	raw, err := redact.EncodeJSON(v)
	return answer{raw: raw, err: err}
}
