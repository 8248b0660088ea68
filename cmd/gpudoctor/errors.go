package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
)

// hintedError is an error with what a person can do about it.
type hintedError struct {
	error
	hints []string
}

func (e hintedError) Unwrap() error { return e.error }

// hinted adds hints to an error.
func hinted(err error, hints ...string) error { return hintedError{err, hints} }

// verdictError makes the program end with the code of a verdict. There is
// nothing to say: the report has said it.
type verdictError struct{ code int }

func (e verdictError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// verdict is the error of an exit code, nil for 0.
func verdict(code int) error {
	if code == exitOK {
		return nil
	}
	return verdictError{code}
}

// complain writes an error on one line and its hints on a line each.
func complain(w io.Writer, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "gpudoctor: %s\n", report.Printable(err.Error(), false))
	var h hintedError
	for errors.As(err, &h) {
		for _, hint := range h.hints {
			fmt.Fprintf(&b, "hint: %s\n", report.Printable(hint, false))
		}
		err = h.error
	}
	// There is nobody left to tell that standard error is closed.
	_, _ = io.WriteString(w, b.String())
}

// usageError turns an error of the flag parser into one line with a hint.
func usageError(c *cli.Context, err error, _ bool) error {
	help := "gpudoctor --help lists the flags"
	if c.Command != nil && c.Command.HelpName != "" {
		help = c.Command.HelpName + " --help lists the flags"
	}
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return unknownName("flag", dashed(name), flagNames(c), help)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return hinted(fmt.Errorf("%s needs a value", dashed(name)), help)
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		hints := []string{help}
		if m[2] == waitFlag.Name {
			hints = []string{"a time has a unit: 30s, 2m"}
		}
		return hinted(fmt.Errorf("%s does not take %s", dashed(m[2]), m[1]), hints...)
	}
	return hinted(err, help)
}

// badValue is how the flag parser refuses a value (package flag).
var badValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): `)

// dashed writes a flag as it is typed: with one dash if it is a letter.
func dashed(name string) string {
	name = strings.TrimLeft(name, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// flagNames lists the flags of a command as they are typed.
func flagNames(c *cli.Context) []string {
	var names []string
	flags := c.App.Flags
	if c.Command != nil && c.Command.Name != "" {
		flags = c.Command.Flags
	}
	for _, f := range flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, "--"+n)
			}
		}
	}
	return names
}

// unknownName says that there is no such command, flag or id, and which one
// may have been meant.
func unknownName(kind, name string, known []string, help string) error {
	hints := []string{help}
	if near := nearest(name, known); near != "" {
		hints = append([]string{"did you mean " + near + "?"}, hints...)
	}
	return hinted(fmt.Errorf("unknown %s %s", kind, quoteWord(name)), hints...)
}

// quoteWord shows a word of the command line as it is, or in quotes where it
// would be misread.
func quoteWord(word string) string {
	if q := strconv.Quote(word); word == "" || strings.ContainsAny(word, " \t") || q != `"`+word+`"` {
		return q
	}
	return word
}

// oneOf checks a flag's value.
func oneOf(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return unknownName("value of --"+flag+":", value, known, "--"+flag+" takes one of: "+strings.Join(known, ", "))
}

// nearest is the known name that is most like a given one, or empty if none
// is alike.
func nearest(name string, known []string) string {
	best, least := "", 1+len(name)/3 // More changes than that make another word.
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d <= least && (best == "" || d < least) {
			best, least = k, d
		}
	}
	if best == "" && len(name) > 2 {
		for _, k := range known {
			if strings.HasPrefix(k, name) {
				return k
			}
		}
	}
	return best
}

// distance counts the changes of single bytes that make one word of another,
// swapping two neighbours being one (Levenshtein, Damerau).
func distance(a, b string) int {
	before, above := []int(nil), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}
