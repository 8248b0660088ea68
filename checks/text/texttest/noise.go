package texttest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Noise is one thing that launchers, collectors of logs, terminals and people do to the
// lines of a text.
type Noise struct {
	// Do does it to a text.
	Do func(text string) string
	// Lines is true for what is done to logs alone: where each line stands by itself.
	Lines bool
	// Breaks is true for what breaks lines in the middle.
	Breaks bool
}

// Noises are those that a text is understood behind, by their names.
var Noises = map[string]Noise{
	"mpirun":              {Do: before("[1,0]<stdout>:")},
	"mpirun5":             {Do: before("[prterun-node7-4021@1,0]<stderr>: ")},
	"mpirun time":         {Do: before("Thu Aug 21 16:02:40 2025[1,0]<stderr>:")},
	"sagemaker":           {Do: before("[1,mpirank:0,algo-1]<stderr>:")},
	"ompi node":           {Do: before("[node7:1234] ")},
	"hydra":               {Do: before("[0] ")},
	"srun":                {Do: before("3: ")},
	"srun wide":           {Do: before(" 3: ")},
	"pdsh":                {Do: before("node7: ")},
	"torchrun":            {Do: before("[default0]:")},
	"torchrun tr":         {Do: before("[trainer3]:")},
	"rank":                {Do: before("[rank3]: ")},
	"rank tight":          {Do: before("[rank3]:")},
	"kubectl":             {Do: before("[pod/train-0/pytorch] ")},
	"compose":             {Do: before("trainer-1  | ")},
	"compose v1":          {Do: before("trainer_1    | ")},
	"ray":                 {Do: before("(Worker pid=12, ip=10.0.0.2) ")},
	"ray class":           {Do: before("(RayTrainWorker pid=12) ")},
	"vllm":                {Do: before("(VllmWorker rank=3 pid=382) ")},
	"vllm engine":         {Do: before("(EngineCore_0 pid=382) ")},
	"syslog":              {Do: before("Aug 21 16:02:40 node7 train[123]: ")},
	"syslog iso":          {Do: before("2025-08-21T16:02:40.123456+00:00 node7 train[123]: ")},
	"cri":                 {Do: before("2025-08-21T16:02:40.123456789Z stdout F ")},
	"cri err":             {Do: before("2025-08-21T16:02:40.123456789+02:00 stderr F ")},
	"json docker":         {Do: jsonOf(`{"log":%s,"stream":"stdout","time":"2025-08-21T16:02:40.1Z"}`, "\n")},
	"json message":        {Do: jsonLines(`{"message": %s}`)},
	"json msg":            {Do: jsonLines(`{"level":"info","ts":1755792160.1,"msg":%s}`)},
	"json journald":       {Do: jsonLines(`{"_HOSTNAME":"node7","PRIORITY":"6","MESSAGE":%s}`)},
	"time iso":            {Do: before("2025-08-21T16:02:40.123Z ")},
	"time comma":          {Do: before("2025-08-21 16:02:40,123 ")},
	"time bracket":        {Do: before("[2025-08-21 16:02:40] ")},
	"time clock":          {Do: before("16:02:40.123 ")},
	"time [clock]":        {Do: before("[16:02:40] ")},
	"time slash":          {Do: before("2025/08/21 16:02:40 ")},
	"time level":          {Do: before("2025-08-21 16:02:40,123 INFO "), Lines: true},
	"time ts":             {Do: before("Aug 21 16:02:40 ")},
	"actions":             {Do: before("train\tRun tests\t2025-08-21T16:02:40.1234567Z ")},
	"ansi":                {Do: func(s string) string { return before("\x1b[36m")(strings.ReplaceAll(s, "\n", "\x1b[0m\n")) }},
	"ansi grep":           {Do: func(s string) string { return strings.ReplaceAll(s, "CCL", "\x1b[01;31m\x1b[KCCL\x1b[m\x1b[K") }},
	"quote":               {Do: before("> ")},
	"quote tight":         {Do: before(">"), Lines: true},
	"quote twice":         {Do: before("> > ")},
	"mail quote":          {Do: before(">> ")},
	"fence":               {Do: func(s string) string { return "```\n" + s + "```\n" }},
	"fence lang":          {Do: func(s string) string { return "Some words:\n\n```bash\n" + s + "```\nMore words.\n" }},
	"fence quoted":        {Do: func(s string) string { return before("> ")("```\n" + s + "```\n") }},
	"fence same":          {Do: func(s string) string { return "```" + strings.TrimSuffix(s, "\n") + "```\n" }, Lines: true},
	"indent":              {Do: before("    ")},
	"indent tab":          {Do: before("\t"), Lines: true},
	"bullet":              {Do: before("- ")},
	"bullet star":         {Do: before("* ")},
	"bullet num":          {Do: before("1. "), Lines: true},
	"backticks":           {Do: func(s string) string { return before("`")(strings.ReplaceAll(s, "\n", "`\n")) }},
	"bullet ticks":        {Do: func(s string) string { return before("- `")(strings.ReplaceAll(s, "\n", "`\n")) }},
	"bold":                {Do: func(s string) string { return before("**")(strings.ReplaceAll(s, "\n", "**\n")) }},
	"html":                {Do: strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&quot;").Replace},
	"html 39":             {Do: strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;", `"`, "&#34;", "'", "&#39;").Replace},
	"html pre":            {Do: func(s string) string { return "<pre>" + s + "</pre>\n" }},
	"html br":             {Do: func(s string) string { return strings.ReplaceAll(s, "\n", "<br>\n") }},
	"grep -n":             {Do: before("12:"), Lines: true},
	"grep file":           {Do: before("job.log:"), Lines: true},
	"grep file -n":        {Do: before("logs/job.log:12:"), Lines: true},
	"cat -n":              {Do: before("    12\t")},
	"trailing":            {Do: func(s string) string { return strings.ReplaceAll(s, "\n", "   \n") }},
	"untabbed":            {Do: func(s string) string { return strings.ReplaceAll(s, "\t", "        ") }},
	"smart quotes":        {Do: curled, Lines: true},
	"nbsp":                {Do: func(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }},
	"zero width":          {Do: func(s string) string { return strings.ReplaceAll(s, "/", "/\u200b") }},
	"blanks more":         {Do: func(s string) string { return strings.ReplaceAll(s, "  ", "    ") }, Lines: true},
	"double":              {Do: before("3: [rank3]: 2025-08-21 16:02:40,123 ")},
	"k8s mpi":             {Do: before("2025-08-21T16:02:40.123Z [pod/train-0/pytorch] [1,0]<stdout>:")},
	"80 mid":              {Do: screen(80), Lines: true, Breaks: true},
	"100 mid":             {Do: screen(100), Lines: true, Breaks: true},
	"120 mid":             {Do: screen(120), Lines: true, Breaks: true},
	"JSON, time and host": {Do: jsonLines(`{"__REALTIME_TIMESTAMP":"1755792160100000","_HOSTNAME":"node7","SYSLOG_IDENTIFIER":"train","MESSAGE":%s}`)},
	"JSON behind CRI":     {Do: func(s string) string { return before("2025-08-21T16:02:40.1Z stdout F ")(jsonLines(`{"msg":%s}`)(s)) }},
}

// before puts something before each line.
func before(prefix string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			b.WriteString(prefix + line)
		}
		return b.String()
	}
}

// jsonLines makes an object of JSON of each line.
func jsonLines(form string) func(string) string { return jsonOf(form, "") }

// jsonOf is jsonLines with what stands behind each line.
func jsonOf(form, end string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			quoted, _ := json.Marshal(strings.TrimSuffix(line, "\n") + end) // A string is never an error.
			fmt.Fprintf(&b, form+"\n", quoted)
		}
		return b.String()
	}
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
	return func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			for len(strings.TrimSuffix(line, "\n")) > width {
				b.WriteString(line[:width] + "\n")
				line = line[width:]
			}
			b.WriteString(line)
		}
		return b.String()
	}
}

// Filled breaks lines at blanks, as editors and mail programs do; no piece is as wide as
// the screen, which would be as if the line were broken there.
func Filled(s string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		for len(strings.TrimSuffix(line, "\n")) > width {
			cut := strings.LastIndexByte(line[:width], ' ')
			if cut <= 0 {
				break
			}
			b.WriteString(line[:cut] + "\n")
			line = line[cut+1:]
		}
		b.WriteString(line)
	}
	return b.String()
}
