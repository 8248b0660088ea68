package remedies

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Recheck is how the user called gpudoctor: what a command has to repeat to
// judge the same things again.
type Recheck struct {
	// Flags are those that decide what is examined and how it is judged, as
	// words of a command line: "--profile", "image". --only and --skip are not
	// among them.
	Flags []string
	// Files is true where it reads files, which do not change by themselves.
	Files bool
}

// Command is the command that judges these rules again.
func (r Recheck) Command(rules ...string) string {
	words := []string{"gpudoctor", "check"}
	for _, flag := range r.Flags {
		words = append(words, Quote(flag))
	}
	if len(rules) > 0 {
		words = append(words, "--only", Quote(strings.Join(rules, ",")))
	}
	return strings.Join(words, " ")
}

// Fresh says what the command needs in order to see a change; nothing on a live machine.
func (r Recheck) Fresh() string {
	if r.Files {
		return "with new evidence"
	}
	return ""
}

// bare matches what a POSIX shell takes as one word without quotes.
var bare = lazy.New(`^[A-Za-z0-9_./:=,@%+-]+$`)

// Quote makes one word for a POSIX shell.
func Quote(word string) string {
	if bare.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
