package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
)

// flagHelp is what help says of a flag.
type flagHelp struct {
	Names []string // With dashes, letters first.
	// Takes is the word that stands for its value, Usage what it does, Default the value
	// without it; empty where there is none.
	Takes, Usage, Default string
}

// About is what the flag does, and its default.
func (h flagHelp) About() string {
	if h.Default == "" {
		return h.Usage
	}
	return h.Usage + " (default " + h.Default + ")"
}

// helpOf takes the description of a flag apart. What the flag takes stands in back quotes
// at the beginning of its usage, before a colon.
func helpOf(f cli.Flag) flagHelp {
	doc := docOf(f)
	h := flagHelp{Usage: doc.GetUsage()}
	if rest, quoted := strings.CutPrefix(h.Usage, "`"); quoted {
		h.Takes, h.Usage, _ = strings.Cut(rest, "`: ")
	}
	var long []string
	for _, n := range f.Names() {
		if len(n) == 1 {
			h.Names = append(h.Names, "-"+n)
		} else {
			long = append(long, "--"+n)
		}
	}
	h.Names = append(h.Names, long...)
	if v := doc.GetDefaultText(); doc.TakesValue() && v != "" && v != "0s" {
		h.Default = lines.Printable(strings.Trim(v, `"`), false)
	}
	return h
}

// docOf is the description of a flag, which each kind of flag of the library has.
func docOf(f cli.Flag) cli.DocGenerationFlag {
	return f.(cli.DocGenerationFlag) //nolint:forcetypeassert // See above.
}

// dashed writes a flag as it is typed: with one dash if it is a letter.
func dashed(name string) string {
	name = strings.TrimLeft(name, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
