package evidence

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// The lines in which the parts of a launch stand, by the parts' names:
// "shm_bytes", "variables[NCCL_DEBUG]". A launch that one line describes has
// none: all of it stands there.

// launchStands notes the line of a part. Line 0 is not known.
func launchStands(l *facts.Launch, part string, line int) {
	if line <= 0 || l.Lines[part] != 0 || len(l.Lines) > 4*launchMaxList {
		return
	}
	if l.Lines == nil {
		l.Lines = make(map[string]int)
	}
	l.Lines[part] = line
}

// launchLine is the line of a part: that of the whole where it is one line, and
// none where several lines describe the launch and it is not known which.
func launchLine(l *facts.Launch, part string, at Line) Line {
	if l.Lines != nil {
		at.Number = l.Lines[part]
	}
	return at
}

// launchVariable names the part of a launch that is one of its variables.
func launchVariable(name string) string { return "variables[" + name + "]" }

// launchPartWords are what a line says that sets a part of a launch, in the options
// of the container programs and in what docker inspect and ECS print.
var launchPartWords = map[string][]string{
	"shm_bytes":  {"--shm-size", `"ShmSize"`, `"sharedMemorySize"`, "size="},
	"ipc":        {"--ipc", `"IpcMode"`, `"ipcMode"`},
	"privileged": {"--privileged", `"Privileged"`, `"privileged"`},
	"runtime":    {"--runtime", `"Runtime"`},
	"devices":    {"--device", `"PathOnHost"`, `"hostPath"`},
}

// launchFind looks for the parts of a launch in the lines that describe it. The
// line of a part is the first one that says what sets it; one that also shows
// the value is better.
func launchFind(l *facts.Launch, lines []Line) {
	if len(lines) < 2 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
		launchStands(l, launchVariable(name), launchLineOf(lines, name, l.Variables[name]))
	}
	for part, words := range launchPartWords {
		for _, word := range words {
			launchStands(l, part, launchLineOf(lines, word, ""))
		}
	}
	if len(l.Lines) == 0 { // So that nobody takes the first line for that of all.
		l.Lines = map[string]int{}
	}
}

// launchLineOf is the first line that holds a word and a value behind it, or
// else the word alone; 0 where there is none.
func launchLineOf(lines []Line, word, value string) int {
	first := 0
	for _, l := range lines {
		at := launchWholeWord(l.Text, word)
		switch {
		case at < 0:
		case strings.Contains(l.Text[at+len(word):], value):
			return l.Number
		case first == 0:
			first = l.Number
		}
	}
	return first
}

// launchWholeWord is where a name begins in a line that is no part of a longer
// one; -1 where it does not stand there.
func launchWholeWord(text, name string) int {
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(name)
		if (i == 0 || !launchNameByte(text[i-1]) || !launchNameByte(name[0])) && (end == len(text) || !launchNameByte(text[end])) {
			return i
		}
		from = end
	}
}

func launchNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
