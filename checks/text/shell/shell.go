// Package shell reads the commands of shell scripts, and of texts that are scripts in parts: transcripts,
// templates, prose. It tells which values of variables they show.
package shell

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Word is a word of a command, by its bytes in the text.
type Word struct {
	From, To int
	// Value is the word without its quotes; what the shell replaces stays ("$A", "$(nproc)").
	Value string
	// Literal is true if the shell replaces nothing in the word.
	Literal bool
}

// Command is a simple command, or a declaration: its words, assignments among them.
type Command struct {
	Words []Word
	// Line is where it begins, from 1, and Block the first line of the branch, loop or function in which it
	// stands; 0 outside of any. Maybe is true if it may not run, or runs in a shell of its own.
	Line, Block int
	Maybe       bool
	// Piped is true if another command writes what it reads.
	Piped bool
}

// Values are the values of the words.
func (c *Command) Values() []string {
	list := make([]string, len(c.Words))
	for i, w := range c.Words {
		list[i] = w.Value
	}
	return list
}

// Span is some lines of a text, from 1.
type Span struct{ First, Last int }

// Script is what a text holds.
type Script struct {
	Commands []Command
	// Blocks are the branches, loops, functions and subshells that stand in no other.
	Blocks []Span
	// Whole is true if all of the text is a script.
	Whole bool
}

const (
	// MaxBytes bounds a script that is read, maxCommands its commands, maxWindow the bytes that are parsed at a time, maxErrors the places at which reading
	// begins again behind what is no shell, and maxDepth how deep commands are nested.
	MaxBytes    = 256 << 10
	maxCommands = 1 << 16
	maxWindow   = 32 << 10
	maxErrors   = 16
	maxDepth    = 100
)

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// Parse reads a script. Behind a line that is no shell it begins again.
func Parse(text string) *Script {
	if len(text) > MaxBytes {
		return &Script{}
	}
	s := &Script{Whole: true}
	w := walk{script: s, text: text}
	for tries := 0; w.base < len(text) && len(s.Commands) < maxCommands; {
		rest := window(text[w.base:], tries > maxErrors)
		cut := w.base+len(rest) < len(text)
		end := 0 // Of the last whole command.
		err := statements(rest, func(stmt *syntax.Stmt) {
			w.statement(stmt, 0, false)
			end = min(endOf(stmt), len(rest))
		})
		if err == nil {
			w.skip(len(rest))
			continue
		}
		if cut && end > 0 && syntax.IsIncomplete(err) { // It goes on behind the window.
			w.skip(end)
			continue
		}
		tries++
		s.Whole = false
		failed := strings.TrimLeft(rest[end:], " \t\r\n;&|")
		end = len(rest) - len(failed)
		fields := strings.Fields(failed[:min(len(failed), 100)])
		if w.doubt == 0 && len(fields) > 0 && opens[fields[0]] {
			w.doubt = w.line(end)
		}
		if len(fields) > 1 && fields[0] == "for" { // Its variable is not known.
			at := w.base + end
			s.Commands = append(s.Commands, Command{Words: []Word{{Value: "read", From: at, To: at}, {Value: fields[1], From: at, To: at}}, Line: w.line(end), Maybe: true})
		}
		line, _, _ := strings.Cut(failed, "\n")
		w.skip(min(end+len(line)+1, len(rest)))
	}
	if w.doubt > 0 {
		s.Blocks = append(s.Blocks, Span{w.doubt, strings.Count(text, "\n") + 1})
	}
	return s
}

// statements calls a function for each statement of a text, up to the first that is not one. It does not use
// Parser.Stmts, which panics where the parser finds a second error in the same place.
func statements(text string, call func(*syntax.Stmt)) (err error) {
	parser := parsers.Get().(*syntax.Parser)
	defer func() {
		if fault := recover(); fault != nil { // A defect of the parser: the text is no shell.
			err = fmt.Errorf("parse a script: %v", fault)
		} else {
			parsers.Put(parser)
		}
	}()
	parser.StmtsSeq(strings.NewReader(text))(func(stmt *syntax.Stmt, failed error) bool {
		if err == nil && failed == nil {
			call(stmt)
		}
		err = cmp.Or(err, failed)
		return err == nil
	})
	return err
}

// window is the beginning of a text up to the end of a line: the parser needs memory for each sign that may nest.
func window(text string, oneLine bool) string {
	head := text[:min(len(text), maxWindow)]
	next := strings.LastIndexByte(head, '\n')
	if oneLine {
		next = strings.IndexByte(head, '\n')
	}
	if next < 0 || len(head) == len(text) && !oneLine {
		return head
	}
	return head[:next+1]
}

// endOf is the byte behind a command, and the texts below it.
func endOf(stmt *syntax.Stmt) int {
	end := stmt.End()
	syntax.Walk(stmt, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil && r.Hdoc.End().After(end) {
			end = r.Hdoc.End()
		}
		return true
	})
	return int(end.Offset())
}

func (w *walk) skip(bytes int) {
	w.lines += strings.Count(w.text[w.base:w.base+bytes], "\n")
	w.base += bytes
}

// opens are words that begin what ends lines below. Where it is not read, what follows may not run.
var opens = map[string]bool{"if": true, "for": true, "while": true, "until": true, "case": true, "select": true, "function": true, "{": true}

type walk struct {
	script *Script
	text   string
	// base is the byte at which the text that is parsed begins, and lines how many are above it.
	base, lines int
	// block is the line of the outermost block under way, and doubt one from which nothing is certain.
	block, doubt int
}

func (w *walk) line(offset int) int {
	return w.lines + 1 + strings.Count(w.text[w.base:min(w.base+offset, len(w.text))], "\n")
}

func (w *walk) statement(stmt *syntax.Stmt, depth int, maybe bool) {
	if stmt == nil || depth > maxDepth || len(w.script.Commands) >= maxCommands {
		return
	}
	depth++
	maybe = maybe || stmt.Background || stmt.Coprocess
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		var words []Word
		for _, a := range c.Assigns {
			words = append(words, w.assignment(a))
		}
		for _, word := range c.Args {
			words = append(words, w.word(word.Pos(), word.End(), word.Parts))
		}
		w.command(c, words, maybe)
	case *syntax.DeclClause:
		words := []Word{w.word(c.Variant.Pos(), c.Variant.End(), []syntax.WordPart{c.Variant})}
		for _, a := range c.Args {
			words = append(words, w.assignment(a))
		}
		w.command(c, words, maybe)
	case *syntax.LetClause:
		words := []Word{{Value: "let", From: w.base + int(c.Pos().Offset()), To: w.base + int(c.Pos().Offset()) + len("let")}}
		for _, expression := range c.Exprs {
			words = append(words, w.asWritten(expression))
		}
		w.command(c, words, maybe)
	case *syntax.BinaryCmd:
		isPipe := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
		w.statement(c.X, depth, maybe || isPipe)
		first := len(w.script.Commands)
		w.statement(c.Y, depth, true)
		for i := first; i < len(w.script.Commands) && isPipe; i++ {
			w.script.Commands[i].Piped = true
		}
	case *syntax.TimeClause:
		w.statement(c.Stmt, depth, maybe)
	case *syntax.CoprocClause:
		w.statement(c.Stmt, depth, true)
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.Block, *syntax.Subshell, *syntax.FuncDecl:
		w.inBlock(c, depth)
	}
}

func (w *walk) inBlock(n syntax.Node, depth int) {
	if w.block == 0 {
		w.block = w.lines + int(n.Pos().Line())
		defer func() {
			w.script.Blocks = append(w.script.Blocks, Span{w.block, w.lines + int(n.End().Line())})
			w.block = 0
		}()
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch c := n.(type) {
		case *syntax.Stmt:
			w.statement(c, depth, true)
			return false
		case *syntax.Word: // What it replaces is no part of the block.
			return false
		case *syntax.WordIter:
			name := w.word(c.Name.Pos(), c.Name.End(), []syntax.WordPart{c.Name})
			w.command(c, []Word{{Value: "read", From: name.From, To: name.From}, name}, true)
		}
		return true
	})
}

func (w *walk) command(n syntax.Node, words []Word, maybe bool) {
	if len(words) > 0 && words[len(words)-1].To <= len(w.text) {
		w.script.Commands = append(w.script.Commands, Command{
			Words: words, Line: w.lines + int(n.Pos().Line()), Block: w.block, Maybe: maybe || w.doubt > 0,
		})
	}
}

// asWritten is a part of the text as one word.
func (w *walk) asWritten(n syntax.Node) Word {
	word := w.word(n.Pos(), n.End(), nil)
	word.Value = w.source(n.Pos(), n.End())
	return word
}

// assignment is "NAME=value" as one word.
func (w *walk) assignment(a *syntax.Assign) Word {
	if a.Value == nil || a.Index != nil || a.Array != nil { // "NAME", "-x", "NAME=(...)", "NAME[0]=1".
		return w.asWritten(a)
	}
	value := w.word(a.Value.Pos(), a.Value.End(), a.Value.Parts)
	value.Value = w.source(a.Pos(), a.Value.Pos()) + value.Value
	value.From = w.base + int(a.Pos().Offset())
	return value
}

func (w *walk) source(from, to syntax.Pos) string {
	begin := min(w.base+int(from.Offset()), len(w.text))
	return w.text[begin:max(min(w.base+int(to.Offset()), len(w.text)), begin)]
}

func (w *walk) word(from, to syntax.Pos, parts []syntax.WordPart) Word {
	word := Word{From: w.base + int(from.Offset()), To: w.base + int(to.Offset()), Literal: true}
	var b strings.Builder
	w.render(&b, &word, parts, false)
	word.Value = b.String()
	return word
}

func (w *walk) render(b *strings.Builder, word *Word, parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			unescape(b, p.Value, quoted)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			w.render(b, word, p.Parts, true)
		default:
			word.Literal = false
			b.WriteString(w.source(part.Pos(), part.End()))
		}
	}
}

// unescape writes a text without its backslashes. In quotes, they stand for themselves before most characters.
func unescape(b *strings.Builder, text string, quoted bool) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("\"\\$`\n", text[i+1]) >= 0) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
}

// Line reads the commands of one line, which may be a part of a script or of a sentence: a quotation that
// is open at its end is closed there, and what is no shell is read as words up to the first operator.
func Line(line string) []Command {
	if strings.HasPrefix(strings.TrimSpace(line), "<") { // A tag of HTML.
		return nil
	}
	for _, closing := range []string{"", `"`, "'", "\n:\nfi", "\n:\ndone"} {
		if s := Parse(line + closing); s.Whole {
			return s.Commands
		}
	}
	line = behind.ReplaceAllString(line, "")
	var c Command
	for field := range strings.FieldsSeq(strings.NewReplacer(`"`, "", "'", "").Replace(line)) {
		c.Words = append(c.Words, Word{Value: field})
	}
	if len(c.Words) == 0 {
		return nil
	}
	return []Command{c}
}

// behind is what stands behind a command: an operator, a comment, or where its output goes.
var behind = lazy.New(`(?s)(?:(?:^|\s)(?:#|\d+[<>])|[;|&<>]).*`)

// Words are the words of the first command of a line.
func Words(line string) []string {
	if !strings.ContainsAny(line, "\"'\\`$;|&<>#()\n") { // It is split at its blanks.
		return strings.Fields(line)
	}
	if all := Line(line); len(all) > 0 {
		return all[0].Values()
	}
	return nil
}
