// Package parse is what readers of texts are built from: kinds of text, the lines that they take, and the sink that
// builds the facts. A reading offers each line to the kinds whose anchors it contains.
package parse

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Kind is one kind of text. Exactly one of Line and Read is set.
type Kind struct {
	// Name is its id: "lspci".
	Name string
	// Title is what it is, for people: "PCI devices, from lspci".
	Title string
	// Command produces it, as it is to be typed: "sudo lspci -vvv". It is empty for what no command gives.
	Command string
	// Gives are the sections of the facts that it fills.
	Gives []string
	// Anchors are literals, case and all: a line is offered to the kind only
	// if it holds one of them. The rarer they are in other texts the better.
	Anchors []string
	// Prose is true if it also takes each line of a text that a person may have written.
	Prose bool
	// Commands are beginnings of command lines ("lspci", "cat /proc/cmdline"): the first line after a
	// shell prompt with one is offered as well, whatever it holds. A pipe into grep may follow there.
	Commands []string
	// Skips, if set, is true of some lines that neither Line nor Begins takes. It sees each line
	// in which there is an anchor, keeps none of them, and runs beside Line, Begins and Read.
	Skips func(line []byte) bool
	// Files is true if it takes what scripts and other sources hold. No other kind is asked there: a
	// comment that quotes a log is no log.
	Files bool
	// Line takes one line by itself, for texts whose lines stand between those of others: logs, also inside
	// blocks. It reports whether it understood it.
	Line func(s *Sink, l Line) bool
	// Begins reports whether a block of this kind begins at the next line, in.First;
	// in may look ahead but takes nothing.
	Begins func(in *Lines) bool
	// Read takes the block from in: each line that belongs to it, and none
	// after it. It need not check for shell prompts: in ends before one.
	Read func(s *Sink, in *Lines)
}

// BeginsLike is the Begins of a kind whose first line has one of some forms.
func BeginsLike(forms ...*lazy.Regexp) func(in *Lines) bool {
	return func(in *Lines) bool {
		return slices.ContainsFunc(forms, func(form *lazy.Regexp) bool { return form.MatchString(in.First().Text) })
	}
}

// BeginsWith is the Begins of a kind that knows its first line by its text alone.
func BeginsWith(first func(text string) bool) func(in *Lines) bool {
	return func(in *Lines) bool { return first(in.First().Text) }
}

// LineLike is the Line of a kind that takes lines of one form, by what the form's groups match.
func LineLike(form *lazy.Regexp, take func(s *Sink, l Line, m []string) bool) func(s *Sink, l Line) bool {
	return func(s *Sink, l Line) bool {
		m := form.FindStringSubmatch(l.Text)
		return m != nil && take(s, l, m)
	}
}

// Family are kinds of text that belong together, for one reading: what they share of it is theirs.
type Family struct {
	Kinds []*Kind
	// End, if set, is called at the end of each text.
	End func(*facts.Text)
	// Finish, if set, puts what they kept into the facts, once all texts are read.
	Finish func()
}
