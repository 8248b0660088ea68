package launch

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

const maxParts = 1024

// noteLine notes the line of a part of a launch, by the part's name: "shm_bytes", "variables[NCCL_DEBUG]". Line 0 is
// not known. A launch that one line describes has no such lines: all of it stands there.
func noteLine(l *facts.Launch, part string, line int) {
	if line > 0 && l.Lines[part] == 0 && len(l.Lines) <= maxParts {
		facts.Put(&l.Lines, part, line)
	}
}

// VariablePart names the part of a launch that is one of its variables.
func VariablePart(name string) string { return "variables[" + name + "]" }

// partWords are the options of container programs and of Slurm that set a part of a launch.
var partWords = map[string][]string{
	"shm_bytes":  {"--shm-size", "size="},
	"ipc":        {"--ipc"},
	"privileged": {"--privileged"},
	"runtime":    {"--runtime"},
	"devices":    {"--device"},
	"gpus":       {"--gpus", "--gres", "--gpus-per-node", "--gpus-per-task", "-G"},
	"network":    {"--network", "--net"},
	"user":       {"--user"},
	"processes":  {"--ntasks-per-node", "--nproc-per-node", "--nproc_per_node", "--tensor-parallel-size", "--ntasks"},

	"memlock_bytes": {"--ulimit"},
}

// findParts looks for the line that sets each part of a launch; one that also shows the value is better.
func findParts(l *facts.Launch, lines []parse.Line) {
	if len(lines) < 2 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
		noteLine(l, VariablePart(name), lineWith(lines, name, l.Variables[name]))
	}
	for part, words := range partWords {
		for _, word := range words {
			noteLine(l, part, lineWith(lines, word, ""))
		}
	}
	if len(l.Lines) == 0 { // So that nobody takes the first line for that of all.
		l.Lines = map[string]int{}
	}
}

// lineWith is the first line that holds a word followed by a value, or else only the word; 0 if no line does.
func lineWith(lines []parse.Line, word, value string) int {
	before := ""
	if variableName.MatchString(word) { // Not an option, nor a quotation.
		before = `\b`
	}
	form, first := regexp.MustCompile(before+regexp.QuoteMeta(word)+`(?:\W|$)`), 0
	for _, l := range lines {
		at := form.FindStringIndex(l.Text)
		switch {
		case at == nil:
		case strings.Contains(l.Text[at[0]+len(word):], value):
			return l.Number
		case first == 0:
			first = l.Number
		}
	}
	return first
}
