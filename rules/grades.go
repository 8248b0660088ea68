package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Grade is what a kind of finding has in common: what it says, and what is not as the rule's metadata say it for all.
type Grade struct {
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence"`
	Remedies   []string   `json:"remedies"`
	// Text is the message, with slots for the values of the finding: fill says how. A grade may be the text alone.
	Text string `json:"text"`
}

// check says what is wrong with a grade of a rule with some remedies.
func (g Grade) check(remedies []string) error {
	if g.Severity != "" && !slices.Contains(severities, g.Severity) {
		return fmt.Errorf("severity is %s", g.Severity)
	}
	if g.Confidence != "" && !slices.Contains(confidences, g.Confidence) {
		return fmt.Errorf("confidence is %s", g.Confidence)
	}
	for _, id := range g.Remedies {
		if !slices.Contains(remedies, id) {
			return fmt.Errorf("remedies: %s is not in custom.remedies", id)
		}
	}
	if _, err := fill(g.Text, nil); err != nil && !lacksValue(err) {
		return fmt.Errorf("text: %w", err)
	}
	return nil
}

// grade completes a finding by its grade: the one that it names, or that of its id. What the finding says itself counts.
func (f *Finding) grade(rule Rule, name string, about map[string]any) error {
	grade, known := rule.Grades[cmp.Or(name, f.ID)]
	if name != "" && !known {
		return fmt.Errorf("grade is %q, which the metadata lack", name)
	}
	f.Severity = cmp.Or(f.Severity, grade.Severity, rule.Severity)
	f.Confidence = cmp.Or(f.Confidence, grade.Confidence, rule.Confidence)
	if f.Remedies == nil {
		f.Remedies = rule.Remedies
		if grade.Remedies != nil {
			f.Remedies = grade.Remedies
		}
	}
	if f.Message != "" || grade.Text == "" {
		return nil
	}
	var err error
	f.Message, err = fill(grade.Text, func(name string) any {
		if value, ok := about[name]; ok || name != "subject" {
			return value
		}
		return f.Subject
	})
	if err != nil {
		return fmt.Errorf("the text of %s: %w", cmp.Or(name, f.ID), err)
	}
	return nil
}

// unknownSlot says that a text has a slot that no value fills.
type unknownSlot struct{ name string }

func (e unknownSlot) Error() string { return fmt.Sprintf("{%s} is not known", e.name) }

func lacksValue(err error) bool {
	_, is := err.(unknownSlot) //nolint:errorlint // fill returns it as it is.
	return is
}

// slot is {name}, {name:form} or {name|words}.
var slot = lazy.New(`^\{([a-z_]+)(?::(\.\df|[A-Za-z][A-Za-z /-]*))?(\|[^{}]*)?\}`)

// fill fills the slots of a text. {name} is the value of that name, a list as "a, b and c". {name:form} has another form: "few" the
// first of a long list, "comma" a list in its order without "and", "bytes" a size, ".1f" as fmt has it, and any other
// word counts things: {n:GPU} is "1 GPU" or "2 GPUs", {n:is/are} the word alone. {name|words} has words where the value is not known. A part in [brackets] is
// left out where a value in it is not known or empty. {{ and [[ are the characters themselves.
func fill(text string, value func(name string) any) (string, error) {
	filled, rest, err := fillTo(text, value, false)
	if err == nil && rest != "" {
		err = fmt.Errorf("%q closes nothing", rest[:1])
	}
	return filled, err
}

// fillTo fills a text up to the bracket that closes the part, and returns what follows. Of a part with something
// unknown the error is an unknownSlot, and the rest is still right.
func fillTo(text string, value func(name string) any, inPart bool) (filled, rest string, lacks error) {
	var b strings.Builder
	for text != "" {
		switch {
		case strings.HasPrefix(text, "{{"), strings.HasPrefix(text, "[["):
			b.WriteByte(text[0])
			text = text[2:]
		case text[0] == '{':
			m := slot.FindStringSubmatch(text)
			if m == nil {
				return "", "", fmt.Errorf("%q is no slot", text[:min(len(text), 20)])
			}
			text = text[len(m[0]):]
			words, err := m[3], error(nil)
			if v := present(m[1], value); v != nil {
				words, err = inForm(v, m[2])
			} else if words != "" {
				words = words[1:]
			} else {
				err = unknownSlot{m[1]}
			}
			if err != nil && !lacksValue(err) {
				return "", "", fmt.Errorf("{%s}: %w", m[1], err)
			}
			lacks = cmp.Or(lacks, err)
			b.WriteString(words)
		case text[0] == '[':
			part, after, err := fillTo(text[1:], value, true)
			if err != nil && !lacksValue(err) {
				return "", "", err
			}
			text = after
			if err == nil {
				b.WriteString(part)
			}
		case text[0] == ']':
			if !inPart {
				return "", text, nil
			}
			return b.String(), text[1:], lacks
		default:
			b.WriteByte(text[0])
			text = text[1:]
		}
	}
	if inPart {
		return "", "", fmt.Errorf("a part in brackets does not end")
	}
	return b.String(), "", lacks
}

// present is a value that is known and not empty, or nil.
func present(name string, value func(name string) any) any {
	if value == nil {
		return nil
	}
	v := value(name)
	if list, isList := v.([]any); v == "" || isList && len(list) == 0 {
		return nil
	}
	return v
}

// inForm writes a value as a slot in a text asks for it.
func inForm(v any, form string) (string, error) {
	switch v := v.(type) {
	case []any:
		names := make([]string, 0, len(v))
		for _, one := range v {
			names = append(names, fmt.Sprint(one))
		}
		return listed(names, form), nil
	case map[string]any:
		return "", fmt.Errorf("an object has no words")
	case int64:
		switch {
		case form == "":
		case form == "bytes":
			return bytesOf(v), nil
		case form[0] == '.':
			return fmt.Sprintf("%"+form, float64(v)), nil
		default:
			return counted(int(v), form), nil
		}
		return strconv.FormatInt(v, 10), nil
	case float64:
		if strings.HasPrefix(form, ".") {
			return fmt.Sprintf("%"+form, v), nil
		}
		return fmt.Sprint(v), nil
	default:
		if form != "" {
			return "", fmt.Errorf("%v has no form %q", v, form)
		}
		return fmt.Sprint(v), nil
	}
}

// counted is a number of things: "2 GPUs" of GPU. Of a form with a slash it is the word for one, or for several: is/are.
func counted(n int, form string) string {
	one, several, both := strings.Cut(form, "/")
	switch {
	case !both:
		return english.Plural(n, form, "")
	case n == 1:
		return one
	}
	return several
}

// most is how many names a sentence lists before it counts the rest.
const most = 4

func listed(names []string, form string) string {
	switch {
	case form == "comma":
		return strings.Join(names, ", ")
	case form != "" && form != "few":
		return counted(len(names), form)
	}
	slices.Sort(names)
	if form == "few" && len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), len(names)-most+1)
	}
	return english.WordSeries(names, "and")
}

// bytesOf writes a size for people: "64 MiB", "1.5 GiB", and "unlimited" for -1 as the kernel means it.
func bytesOf(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		switch size := int64(1) << (30 - 10*i); {
		case n < size:
		case n%size == 0:
			return fmt.Sprintf("%d %s", n/size, unit)
		default:
			return fmt.Sprintf("%.1f %s", float64(n)/float64(size), unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
