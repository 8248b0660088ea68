package text_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestGoldenDocs checks that docs/evidence.md lists every kind of text, and the messages by program.
func TestGoldenDocs(t *testing.T) {
	const path = "../../docs/evidence.md"
	want := replaceBetween(t, string(expect.Value(os.ReadFile(path))(t)), "kinds", kindsTable())
	want = replaceBetween(t, want, "messages", messagesTable())
	expect.Golden(t, path, []byte(want))
}

func replaceBetween(t *testing.T, text, name, table string) string {
	t.Helper()
	from, to := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	head, rest, ok := strings.Cut(text, from)
	_, tail, ok2 := strings.Cut(rest, to)
	expect.Must(t, ok && ok2, "the marks of %s are missing", name)
	return head + from + table + to + tail
}

func kindsTable() string {
	var b strings.Builder
	b.WriteString("| kind | what it is | produced by | sections of the facts |\n| --- | --- | --- | --- |\n")
	for _, k := range text.Kinds() {
		command := k.Command
		if command != "" {
			command = "`" + strings.ReplaceAll(command, "|", `\|`) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Title, command, strings.Join(k.Gives, ", "))
	}
	return b.String()
}

func messagesTable() string {
	count := make(map[string]map[string]int)
	for _, s := range message.Statements() {
		if count[s.Program] == nil {
			count[s.Program] = make(map[string]int)
		}
		count[s.Program][s.Role]++
	}
	var b strings.Builder
	b.WriteString("| program | states a cause | names a category | is a consequence | is a warning | states a setting |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, p := range slices.Sorted(maps.Keys(count)) {
		c := count[p]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", p, c["cause"], c["category"], c["consequence"], c["warning"], c["setting"])
	}
	return b.String()
}

// TestKinds checks that each kind is whole: it has an id of its own, a title,
// sections, anchors, and takes either lines or blocks.
func TestKinds(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range text.Kinds() {
		expect.That(t, !seen[k.Name], "%s stands twice", k.Name)
		expect.That(t, k.Name != "" && k.Title != "" && (len(k.Gives) != 0 || k.Name == facts.KindObject), "%s: name, title or sections are missing", k.Name)
		expect.That(t, len(k.Anchors)+len(k.Commands) != 0, "%s: neither anchors nor commands", k.Name)
		expect.That(t, (k.Line == nil) != (k.Read == nil) && (k.Read == nil) == (k.Begins == nil), "%s: it takes lines by Line, or blocks by Begins and Read", k.Name)
		seen[k.Name] = true
	}
}
