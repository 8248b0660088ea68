package patch

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// word is a word of a shell command, by the bytes of the text.
type word struct {
	from, to int
	// value is the word without its quotes.
	value string
	// plain is true if the value is written as it is, without quotes or expansions.
	plain bool
}

// command is a simple command: its words, assignments among them.
type command struct {
	words []word
	// first is true if nothing precedes it on its line, and last if nothing follows.
	first, last bool
}

// commandsOf splits a script into its commands. Texts behind "<<" are left out. whole is false where a part
// of it is no shell, so that nothing is certain. In an instruction of a Dockerfile, comments may stand
// between lines.
func commandsOf(text string, instruction bool) (commands []command, whole bool) {
	if instruction {
		text = commentLine.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)-1) + "\n" })
		text = strings.NewReplacer("\\\r\n", "   ", "\\\n", "  ", "\n", " ").Replace(text)
	}
	script := shell.Parse(text)
	for _, c := range script.Commands {
		own := command{first: c.First, last: c.Last}
		for _, w := range c.Words {
			own.words = append(own.words, word{w.From, w.To, w.Value, w.Plain})
		}
		commands = append(commands, own)
	}
	return commands, script.Whole
}

// commentLine is a comment between the lines of an instruction.
var commentLine = lazy.New(`(?m)^[ \t]*#.*\n`)
