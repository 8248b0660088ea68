package text_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func encoded(e encoding.Encoding) func(string) string {
	return func(s string) string {
		out, err := e.NewEncoder().String(s)
		if err != nil {
			panic(err)
		}
		return out
	}
}

// progress is what a progress bar writes before a line.
const progress = "Loading checkpoint shards:  25%|##5       | 1/4 [00:01<00:03,  1.02s/it]\r"

// wrappings are forms in which the same text may come.
var wrappings = map[string]func(string) string{
	"CRLF":               func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
	"CR CR LF":           func(s string) string { return strings.ReplaceAll(s, "\n", "\r\r\n") },
	"CR":                 func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
	"no end":             func(s string) string { return strings.TrimSuffix(s, "\n") },
	"UTF-8 with a mark":  func(s string) string { return "\ufeff" + s },
	"UTF-16LE with mark": encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)),
	"UTF-16BE with mark": encoded(unicode.UTF16(unicode.BigEndian, unicode.UseBOM)),
	"UTF-16LE with CRLF": func(s string) string {
		return encoded(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM))(strings.ReplaceAll(s, "\n", "\r\n"))
	},
	"a zero byte before it":        func(s string) string { return "\x00" + s },
	"truncated under its writer":   func(s string) string { return strings.Repeat("\x00", 100_000) + s },
	"truncated again":              func(s string) string { return strings.ReplaceAll(s, "\n", "\n\x00\x00\x00\x00\x00") },
	"zero bytes before line feeds": func(s string) string { return strings.ReplaceAll(s, "\n", "\x00\x00\n") },
	"more zeros than a line may be": func(s string) string {
		return strings.Replace(s, "\n", "\n"+strings.Repeat("\x00", 3*parse.ChunkBytes), 1)
	},
	"UTF-16 appended to UTF-8":       appendedUTF16,
	"progress bars before each line": beforeLines(progress),
	"80 kB of progress bars":         func(s string) string { return "\r" + strings.Repeat(progress, 1100) + s },
}

// breaking are those of them that leave zero bytes in the text.
var breaking = []string{"truncated again", "zero bytes before line feeds", "UTF-16 appended to UTF-8"}

// beforeLines puts a prefix before the first twenty lines that are not empty.
func beforeLines(prefix string) func(string) string {
	return func(s string) string {
		lines := strings.SplitAfter(s, "\n")
		for i, done := 0, 0; i < len(lines) && done < 20; i++ {
			if strings.TrimSpace(lines[i]) != "" {
				lines[i] = prefix + lines[i]
				done++
			}
		}
		return strings.Join(lines, "")
	}
}

// appendedUTF16 is what a shell of Windows makes of ">>" to a file in UTF-8. It holds of ASCII.
func appendedUTF16(s string) string {
	half := strings.IndexByte(s, '\n') + 1
	for _, c := range s[half:] {
		if c >= 0x80 {
			return s
		}
	}
	var b strings.Builder
	b.WriteString(s[:half])
	for _, c := range utf16.Encode([]rune(s[half:])) {
		b.Write([]byte{byte(c), byte(c >> 8)})
	}
	return b.String()
}

// told is what a text tells, as JSON, but for its size in bytes, and without what is past and what it speaks of if it may be longer
// than what is read of that.
func told(tb testing.TB, said string, long bool) string {
	tb.Helper()
	got, err := text.Read(tb.Context(), []string{"-"}, text.Options{Stdin: strings.NewReader(said)})
	expect.Must(tb, got.Facts != nil, "%v", err)
	for i := range got.Facts.Texts {
		got.Facts.Texts[i].Bytes = 0
		if long {
			got.Facts.Texts[i].Past, got.Facts.Texts[i].Topics, got.Facts.Texts[i].GPU = nil, nil, ""
		}
	}
	return texttest.Indented(tb, got.Facts)
}

// TestWrappings checks that a text tells the same, of the same lines, in whatever
// encoding and with whatever around its lines it comes; by day, each text in some ways.
func TestWrappings(t *testing.T) {
	tried, try := 0, expect.EachNth(8)
	texts := texttest.EveryText(t)
	for _, name := range expect.SomeRows(8, slices.Sorted(maps.Keys(texts))) {
		text := texts[name]
		expect.Must(t, !strings.ContainsAny(text, "\r\x00"), "%s: holds what the wrappings add", name)
		want, wantOfLong := told(t, text, false), told(t, text, true)
		for _, how := range slices.Sorted(maps.Keys(wrappings)) {
			switch {
			case how == "80 kB of progress bars" && len(text) > 8<<10:
				continue // It is the same of all of them, and slow.
			case strings.HasPrefix(text, "#!") && (strings.Contains(how, "progress bars") || strings.Contains(how, "zeros")):
				continue // A script has none of them.
			case slices.Contains(breaking, how) && launch.IsManifest("", text):
				continue // A zero byte in YAML is an error.
			case !try("text "+name, how):
				continue
			}
			tried++
			wrapped, want := wrappings[how](text), want
			if len(wrapped) > parse.MaxWhole {
				want = wantOfLong
			}
			expect.NoDiff(t, want, told(t, wrapped, len(wrapped) > parse.MaxWhole), "%s: %s", name, how)
		}
	}
	t.Logf("%d texts in another form", tried)
}
