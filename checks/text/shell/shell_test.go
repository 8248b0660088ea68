package shell_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/shell"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// shown is the commands of a text: its line, "?" if it may not run, and the words.
func shown(commands []shell.Command) string {
	var list []string
	for _, c := range commands {
		maybe := ""
		if c.Maybe {
			maybe = "?"
		}
		list = append(list, fmt.Sprintf("%d%s %s", c.Line, maybe, strings.Join(c.Values(), "|")))
	}
	return strings.Join(list, "; ")
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"a b\\\n c":                               "1 a|b|c",
		"a 'b c' \"d $E\"f \\g":                   "1 a|b c|d $Ef|g",
		"A=1 B='2' a\nexport C=\"3 4\" D":         "1 A=1|B=2|a; 2 export|C=3 4|D",
		"a && b || c; d | e &":                    "1 a; 1? b; 1? c; 1? d; 1? e",
		"if a; then\n b\nelse\n c\nfi\nd":         "1? a; 2? b; 4? c; 6 d",
		"for x in 1; do y; done\nf() { z; }\n(a)": "1? read|x; 1? y; 2? z; 3? a",
		"case a in\nb) c ;;\nesac":                "2? c",
		"a <<E >f\nb 'c\nE\nd":                    "1 a; 4 d",
		"a $(b | c) `d e` ${F:-g h}":              "1 a|$(b | c)|`d e`|${F:-g h}",
		"a # b\n# c\nd":                           "1 a; 3 d",
		"A=(1 2)\nA+=3":                           "1 A=(1 2); 2 A+=3",
		"It's prose.\nexport A=1":                 "2 export|A=1",
		"{{ if x }}\na )\nb":                      "1 {{|if|x|}}; 3 b",
		"while a; do\n b )\nc":                    "3? c",
		"[[ -f a ]] && b":                         "1? b",
		"let A=1":                                 "1 let|A=1",
		"{{- if a }}\r\nexport A=1\r\n":           "1 {{-|if|a|}}; 2 export|A=1",
		strings.Repeat("a b\n", 20000) + "c":      strings.Repeat("", 0),
	} {
		got := shown(shell.Parse(text).Commands)
		if len(text) > 1000 {
			n := len(shell.Parse(text).Commands)
			expect.That(t, n == 20001 && strings.HasSuffix(got, "20001 c"), "%d commands, %s", n, got[len(got)-20:])
			continue
		}
		expect.Equal(t, want, got, "%q", text)
	}
	// A block that goes on behind what is parsed at a time is one block.
	s := shell.Parse("x\n" + ("if a; then\n" + strings.Repeat("b c\n", 12000)) + "fi\nd")
	expect.That(t, len(s.Blocks) == 1 && s.Blocks[0].First == 2 && s.Commands[len(s.Commands)-1].Maybe, "%+v", s.Blocks)
}

func TestWords(t *testing.T) {
	for line, want := range map[string]string{
		"a b": "a|b", "a 'b c": "a|b c", `a "b c`: "a|b c", "a; b": "a", "a 2>&1 | b": "a", "a <image> c": "a", "if a b; then": "a|b", "": "", "# a": "",
		"a {{ b }} c": "a|{{|b|}}|c", "it's a\"b": "its a\"b", "a && ": "a", ")": ")", "a (b) c": "a|(b)|c",
	} {
		expect.Equal(t, want, strings.Join(shell.Words(line), "|"), "%q", line)
	}
}

// placed checks that the places of words are within the text, in order.
func placed(t *testing.T, text string) {
	t.Helper()
	lines := strings.Count(text, "\n") + 1
	for _, c := range shell.Parse(text).Commands {
		expect.That(t, c.Line >= 1 && c.Line <= lines && c.Block <= c.Line, "%.100q: line %d, block %d", text, c.Line, c.Block)
		for _, w := range c.Words {
			expect.That(t, w.From >= 0 && w.From <= w.To && w.To <= len(text), "%.100q: %+v", text, w)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a 'b' \"$c\" <<E\nd\nE\n", "if a; then\nb\n", "f() { x; }", "A=1 B+=2 C[1]=3 let x", "case a in b) c;; esac", "it's\na )\nb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		placed(t, text)
		shell.Words(text)
	})
}

// TestDeep checks that deeply nested text neither exhausts the stack nor moves what is read.
func TestDeep(t *testing.T) {
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	for _, piece := range []string{"(", "$(", "{ ", "if ", "`", "${a:-", "\"$(", "((", "[[ (", "while x; do ", "a() ", "x | ", "x && ", "<(", "case a in b) ", "! ", "'\n", "$((", "time ", "a[", "a=(", "x <<A\n", "&& "} {
		placed(t, strings.Repeat(piece, 64<<10/len(piece)))
	}
}
