package text_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

func each(prefix string) func(string) string {
	return func(s string) string {
		lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
		for i := range lines {
			lines[i] = prefix + lines[i]
		}
		return strings.Join(lines, "\n") + "\n"
	}
}

func jsonLog(form string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
			q, _ := json.Marshal(line)
			fmt.Fprintf(&b, form+"\n", q)
		}
		return b.String()
	}
}

func jsonLogNL(form string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
			q, _ := json.Marshal(line + "\n")
			fmt.Fprintf(&b, form+"\n", q)
		}
		return b.String()
	}
}

var noise = map[string]func(string) string{
	"mpirun":        each("[1,0]<stdout>:"),
	"mpirun5":       each("[prterun-node7-4021@1,0]<stderr>: "),
	"mpirun time":   each("Thu Aug 21 16:02:40 2025[1,0]<stderr>:"),
	"sagemaker":     each("[1,mpirank:0,algo-1]<stderr>:"),
	"ompi node":     each("[node7:1234] "),
	"hydra":         each("[0] "),
	"srun":          each("3: "),
	"srun wide":     each(" 3: "),
	"pdsh":          each("node7: "),
	"torchrun":      each("[default0]:"),
	"torchrun tr":   each("[trainer3]:"),
	"rank":          each("[rank3]: "),
	"rank tight":    each("[rank3]:"),
	"kubectl":       each("[pod/train-0/pytorch] "),
	"compose":       each("trainer-1  | "),
	"compose v1":    each("trainer_1    | "),
	"ray":           each("(Worker pid=12, ip=10.0.0.2) "),
	"ray class":     each("(RayTrainWorker pid=12) "),
	"vllm":          each("(VllmWorker rank=3 pid=382) "),
	"vllm engine":   each("(EngineCore_0 pid=382) "),
	"syslog":        each("Aug 21 16:02:40 node7 train[123]: "),
	"syslog iso":    each("2025-08-21T16:02:40.123456+00:00 node7 train[123]: "),
	"cri":           each("2025-08-21T16:02:40.123456789Z stdout F "),
	"cri err":       each("2025-08-21T16:02:40.123456789+02:00 stderr F "),
	"json docker":   jsonLogNL(`{"log":%s,"stream":"stdout","time":"2025-08-21T16:02:40.1Z"}`),
	"json message":  jsonLog(`{"message": %s}`),
	"json msg":      jsonLog(`{"level":"info","ts":1755792160.1,"msg":%s}`),
	"json journald": jsonLog(`{"_HOSTNAME":"node7","PRIORITY":"6","MESSAGE":%s}`),
	"time iso":      each("2025-08-21T16:02:40.123Z "),
	"time comma":    each("2025-08-21 16:02:40,123 "),
	"time bracket":  each("[2025-08-21 16:02:40] "),
	"time clock":    each("16:02:40.123 "),
	"time [clock]":  each("[16:02:40] "),
	"time slash":    each("2025/08/21 16:02:40 "),
	"time level":    each("2025-08-21 16:02:40,123 INFO "),
	"time ts":       each("Aug 21 16:02:40 "),
	"actions":       each("train\tRun tests\t2025-08-21T16:02:40.1234567Z "),
	"ansi":          func(s string) string { return each("\x1b[36m")(strings.ReplaceAll(s, "\n", "\x1b[0m\n")) },
	"ansi grep":     func(s string) string { return strings.ReplaceAll(s, "CCL", "\x1b[01;31m\x1b[KCCL\x1b[m\x1b[K") },
	"quote":         each("> "),
	"quote tight":   each(">"),
	"quote twice":   each("> > "),
	"mail quote":    each(">> "),
	"fence":         func(s string) string { return "```\n" + s + "```\n" },
	"fence lang":    func(s string) string { return "Some words:\n\n```bash\n" + s + "```\nMore words.\n" },
	"fence quoted":  func(s string) string { return each("> ")("```\n" + s + "```\n") },
	"fence same":    func(s string) string { return "```" + strings.TrimSuffix(s, "\n") + "```\n" },
	"indent":        each("    "),
	"indent tab":    each("\t"),
	"bullet":        each("- "),
	"bullet star":   each("* "),
	"bullet num":    each("1. "),
	"backticks":     func(s string) string { return each("`")(strings.ReplaceAll(s, "\n", "`\n")) },
	"bullet ticks":  func(s string) string { return each("- `")(strings.ReplaceAll(s, "\n", "`\n")) },
	"bold":          func(s string) string { return each("**")(strings.ReplaceAll(s, "\n", "**\n")) },
	"html":          strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&quot;").Replace,
	"html 39":       strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&#34;", "'", "&#39;").Replace,
	"html pre":      func(s string) string { return "<pre>" + s + "</pre>\n" },
	"html br":       func(s string) string { return strings.ReplaceAll(s, "\n", "<br>\n") },
	"grep -n":       each("12:"),
	"grep file":     each("job.log:"),
	"grep file -n":  each("logs/job.log:12:"),
	"cat -n":        each("    12\t"),
	"trailing":      func(s string) string { return strings.ReplaceAll(s, "\n", "   \n") },
	"untabbed":      func(s string) string { return strings.ReplaceAll(s, "\t", "        ") },
	"smart quotes":  func(s string) string { return smart(s) },
	"nbsp":          func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") },
	"zero width":    func(s string) string { return strings.ReplaceAll(s, "/", "/\u200b") },
	"blanks more":   func(s string) string { return strings.ReplaceAll(s, "  ", "    ") },
	"double":        each("3: [rank3]: 2025-08-21 16:02:40,123 "),
	"k8s mpi":       each("2025-08-21T16:02:40.123Z [pod/train-0/pytorch] [1,0]<stdout>:"),
	"80 mid":        wrapAt(80, false),
	"100 mid":       wrapAt(100, false),
	"120 mid":       wrapAt(120, false),
	"80 blank":      wrapAt(80, true),
	"100 blank":     wrapAt(100, true),
	"120 blank":     wrapAt(120, true),
}

func smart(s string) string {
	var b strings.Builder
	open := map[rune]bool{}
	for _, c := range s {
		switch c {
		case '"':
			b.WriteString(map[bool]string{false: "“", true: "”"}[open[c]])
			open[c] = !open[c]
		case '\'':
			b.WriteString(map[bool]string{false: "‘", true: "’"}[open[c]])
			open[c] = !open[c]
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func wrapAt(width int, blank bool) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for line := range strings.SplitSeq(strings.TrimSuffix(s, "\n"), "\n") {
			for len(line) > width {
				cut, next := width, width
				if blank {
					if i := strings.LastIndexByte(line[:width+1], ' '); i > 0 {
						cut, next = i, i+1
					}
				}
				b.WriteString(line[:cut] + "\n")
				line = line[next:]
			}
			b.WriteString(line + "\n")
		}
		return b.String()
	}
}

// said is which messages a text holds, with their fields.
func said(content string) []string {
	f := texttest.Parse("job.log", content)
	var all []string
	if f.Logs == nil {
		return nil
	}
	for _, m := range f.Logs.Messages {
		raw, _ := json.Marshal(m.Fields)
		all = append(all, m.ID+" "+string(raw))
	}
	return all
}

func TestNoiseRows(t *testing.T) {
	only := os.Getenv("NOISE")
	fails := map[string]int{}
	for _, row := range message.Statements() {
		for _, example := range row.Examples {
			if strings.Contains(example, "\n") {
				continue
			}
			want := said(example + "\n")
			for how, wrap := range noise {
				if only != "" && how != only {
					continue
				}
				if got := said(wrap(example + "\n")); !slices.Equal(got, want) {
					fails[how]++
					if only != "" {
						t.Errorf("%s: %q: got %q, want %q", how, example, got, want)
					}
				}
			}
		}
	}
	for _, how := range slices.Sorted(maps.Keys(fails)) {
		t.Errorf("%s: %d", how, fails[how])
	}
}

// bare takes out of facts what tells where a line stood and who wrote it.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"texts", "origins", "text", "line", "lines", "time", "rank", "ranks", "pid", "host", "order", "prompt"} {
			delete(v, key)
		}
		for key := range v {
			v[key] = bare(v[key])
			if where, ok := v[key].(string); ok && key == "source" {
				v[key], _, _ = strings.Cut(where, ":")
			}
		}
	case []any:
		for i := range v {
			v[i] = bare(v[i])
		}
	}
	return v
}

func toldBare(tb testing.TB, content string) string {
	tb.Helper()
	raw, err := json.Marshal(texttest.Parse("job.log", content))
	if err != nil {
		tb.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		tb.Fatal(err)
	}
	raw, _ = json.MarshalIndent(bare(v), "", " ")
	return string(raw)
}

func TestNoiseTexts(t *testing.T) {
	only := os.Getenv("NOISE")
	texts := texttest.EveryText(t)
	delete(texts, "messages")
	fails := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		want := toldBare(t, texts[name])
		for how, wrap := range noise {
			if only != "" && how != only {
				continue
			}
			if got := toldBare(t, wrap(texts[name])); got != want {
				fails[how] = append(fails[how], name)
				if only != "" {
					t.Errorf("%s: %s: %s", how, name, texttest.Difference(got, want))
				}
			}
		}
	}
	for _, how := range slices.Sorted(maps.Keys(fails)) {
		t.Errorf("%s: %d of %d: %.200s", how, len(fails[how]), len(texts), strings.Join(fails[how], " "))
	}
}
