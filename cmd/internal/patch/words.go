package patch

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

type (
	word    = shell.Word
	command = shell.Command
)

// commandsOf splits a script into its commands. Texts behind "<<" are left out. whole is false where a part
// of it is no shell, so that nothing is certain. In an instruction of a Dockerfile, comments may stand
// between lines.
func commandsOf(text string, instruction bool) (commands []command, whole bool) {
	if instruction {
		text = commentLine.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)-1) + "\n" })
		text = strings.NewReplacer("\\\r\n", "   ", "\\\n", "  ", "\n", " ").Replace(text)
	}
	script := shell.Parse(text)
	return script.Commands, script.Whole
}

// commentLine is a comment between the lines of an instruction.
var commentLine = lazy.New(`(?m)^[ \t]*#.*\n`)
