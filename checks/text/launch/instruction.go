package launch

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// Dockerfile is one that is read line by line.
type Dockerfile struct {
	instructions []instruction
	// more is true if the last instruction goes on below.
	more bool
	// end is the word that ends the text below an instruction ("RUN <<EOF").
	end string
}

// instruction is one of a Dockerfile: its lines behind its name, without comments and the signs at their ends. A text
// below it is left out.
type instruction struct {
	name  string
	lines []parse.Line
}

func (in *instruction) joined() string { return strings.TrimSpace(in.text("")) }

func (in *instruction) text(between string) string {
	var texts []string
	for _, l := range in.lines {
		texts = append(texts, l.Text)
	}
	return strings.Join(texts, between)
}

var (
	// Instruction is how an instruction begins, and instructionForm how one that is not known does as well.
	Instruction     = lazy.New(`^(?i)\s*(?:FROM|RUN|ENV|COPY|ADD|WORKDIR|ENTRYPOINT|CMD|ARG|LABEL|EXPOSE|USER|SHELL|VOLUME|HEALTHCHECK|STOPSIGNAL|ONBUILD)\s`)
	instructionForm = lazy.New(`^\s*[A-Za-z]+(?:\s+|$)`)
	belowForm       = lazy.New(`^(?is)(?:RUN|COPY|ADD)\s.*?<<-?\s*["']?([A-Za-z_]\w*)`)
)

// Line reads the next line, and reports whether it belongs to a Dockerfile, as comments and blank lines do.
func (f *Dockerfile) Line(l parse.Line) bool {
	text := strings.TrimSpace(l.Text)
	isBlank := text == "" || strings.HasPrefix(text, "#")
	belongs := true
	switch m := instructionForm.FindString(l.Text); {
	case f.end != "":
		if text == f.end {
			f.end = ""
		}
		return true
	case f.more && isBlank:
		text = ""
	case f.more:
		text = f.goesOn(l.Text)
	case m != "":
		belongs = Instruction.MatchString(l.Text)
		f.instructions = append(f.instructions, instruction{name: strings.ToUpper(strings.TrimSpace(m))})
		text = f.goesOn(l.Text[len(m):])
	default:
		return isBlank
	}
	in := &f.instructions[len(f.instructions)-1]
	in.lines = append(in.lines, parse.Line{Number: l.Number, Text: text})
	if !f.more {
		f.end = belowForm.First(in.name + " " + in.joined())
	}
	return belongs
}

func (f *Dockerfile) goesOn(text string) string {
	var before string
	before, f.more = strings.CutSuffix(strings.TrimRight(text, " \t\r"), `\`)
	if f.more {
		return before
	}
	return text
}

// words splits what follows the name of an instruction as a shell does; line is that of a word.
func (in *instruction) words() (words []shell.Word, line func(shell.Word) int) {
	text := in.text("\\\n")
	if commands := shell.Line(text); len(commands) > 0 {
		words = commands[0].Words
	}
	return words, func(w shell.Word) int { return in.lines[strings.Count(text[:w.From], "\n")].Number }
}
