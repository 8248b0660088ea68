package texttest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"gopkg.in/yaml.v3"
)

// Noise is one thing that launchers, collectors of logs, terminals and people do to the lines of a text.
type Noise struct {
	// Do does it to a text.
	Do func(text string) string
	// Lines is true for what is done to logs alone: where each line stands by itself.
	Lines bool
	// Breaks is true for what breaks lines in the middle.
	Breaks bool
}

// Noises are those that a text is understood behind, by their names: what stands before lines, and all others.
var Noises = func() map[string]Noise {
	var prefixes struct{ Texts, Lines map[string]string }
	if err := yaml.Unmarshal(prefixesYAML, &prefixes); err != nil {
		panic(err) // It is part of the test.
	}
	all := maps.Clone(others)
	for name, prefix := range prefixes.Texts {
		all[name] = Noise{Do: before(prefix)}
	}
	for name, prefix := range prefixes.Lines {
		all[name] = Noise{Do: before(prefix), Lines: true}
	}
	return all
}()

//go:embed prefixes.yaml
var prefixesYAML []byte

var others = map[string]Noise{
	"json docker":         {Do: jsonOf(`{"log":%s,"stream":"stdout","time":"2025-08-21T16:02:40.1Z"}`, "\n")},
	"json message":        {Do: jsonLines(`{"message": %s}`)},
	"json msg":            {Do: jsonLines(`{"level":"info","ts":1755792160.1,"msg":%s}`)},
	"json journald":       {Do: jsonLines(`{"_HOSTNAME":"node7","PRIORITY":"6","MESSAGE":%s}`)},
	"ansi":                {Do: func(s string) string { return before("\x1b[36m")(strings.ReplaceAll(s, "\n", "\x1b[0m\n")) }},
	"ansi grep":           {Do: func(s string) string { return strings.ReplaceAll(s, "CCL", "\x1b[01;31m\x1b[KCCL\x1b[m\x1b[K") }},
	"fence":               {Do: func(s string) string { return "```\n" + s + "```\n" }},
	"fence lang":          {Do: func(s string) string { return "Some words:\n\n```bash\n" + s + "```\nMore words.\n" }},
	"fence quoted":        {Do: func(s string) string { return before("> ")("```\n" + s + "```\n") }},
	"fence same":          {Do: func(s string) string { return "```" + strings.TrimSuffix(s, "\n") + "```\n" }, Lines: true},
	"backticks":           {Do: func(s string) string { return before("`")(strings.ReplaceAll(s, "\n", "`\n")) }},
	"bullet ticks":        {Do: func(s string) string { return before("- `")(strings.ReplaceAll(s, "\n", "`\n")) }},
	"bold":                {Do: func(s string) string { return before("**")(strings.ReplaceAll(s, "\n", "**\n")) }},
	"html":                {Do: strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&quot;").Replace},
	"html 39":             {Do: strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&#34;", "'", "&#39;").Replace},
	"html pre":            {Do: func(s string) string { return "<pre>" + s + "</pre>\n" }},
	"html br":             {Do: func(s string) string { return strings.ReplaceAll(s, "\n", "<br>\n") }},
	"trailing":            {Do: func(s string) string { return strings.ReplaceAll(s, "\n", "   \n") }},
	"untabbed":            {Do: func(s string) string { return strings.ReplaceAll(s, "\t", "        ") }},
	"smart quotes":        {Do: curled, Lines: true},
	"nbsp":                {Do: func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }},
	"zero width":          {Do: func(s string) string { return strings.ReplaceAll(s, "/", "/\u200b") }},
	"blanks more":         {Do: func(s string) string { return strings.ReplaceAll(s, "  ", "    ") }, Lines: true},
	"80 mid":              {Do: screen(80), Lines: true, Breaks: true},
	"100 mid":             {Do: screen(100), Lines: true, Breaks: true},
	"120 mid":             {Do: screen(120), Lines: true, Breaks: true},
	"JSON, time and host": {Do: jsonLines(`{"__REALTIME_TIMESTAMP":"1755792160100000","_HOSTNAME":"node7","SYSLOG_IDENTIFIER":"train","MESSAGE":%s}`)},
	"JSON behind CRI":     {Do: func(s string) string { return before("2025-08-21T16:02:40.1Z stdout F ")(jsonLines(`{"msg":%s}`)(s)) }},
}

// eachLine does something to each line.
func eachLine(do func(line string) string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			b.WriteString(do(line))
		}
		return b.String()
	}
}

// before puts something before each line.
func before(prefix string) func(string) string {
	return eachLine(func(line string) string { return prefix + line })
}

// jsonLines makes an object of JSON of each line.
func jsonLines(form string) func(string) string { return jsonOf(form, "") }

// jsonOf is jsonLines with what stands behind each line.
func jsonOf(form, end string) func(string) string {
	return eachLine(func(line string) string {
		quoted, _ := json.Marshal(strings.TrimSuffix(line, "\n") + end) // A string is never an error.
		return fmt.Sprintf(form+"\n", quoted)
	})
}

// curled makes quotes those of a program for chat.
func curled(s string) string {
	var b strings.Builder
	open := map[rune]bool{}
	pairs := map[rune][2]string{'"': {"“", "”"}, '\'': {"‘", "’"}}
	for _, c := range s {
		if pair, ok := pairs[c]; !ok {
			b.WriteRune(c)
		} else if open[c] = !open[c]; open[c] {
			b.WriteString(pair[0])
		} else {
			b.WriteString(pair[1])
		}
	}
	return b.String()
}

// screen breaks lines where a screen of a width does.
func screen(width int) func(string) string {
	return eachLine(func(line string) string {
		pieces := ""
		for len(strings.TrimSuffix(line, "\n")) > width {
			pieces, line = pieces+line[:width]+"\n", line[width:]
		}
		return pieces + line
	})
}

// Filled breaks lines at blanks, as editors and mail programs do; no piece is as wide as
// the screen, which would be as if the line were broken there.
func Filled(s string, width int) string {
	return eachLine(func(line string) string {
		pieces := ""
		for len(strings.TrimSuffix(line, "\n")) > width {
			cut := strings.LastIndexByte(line[:width], ' ')
			if cut <= 0 {
				break
			}
			pieces, line = pieces+line[:cut]+"\n", line[cut+1:]
		}
		return pieces + line
	})(s)
}
