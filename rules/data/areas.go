package data

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Areas returns the table of areas of libraries.
var Areas = reader("areas", func(t *AreaTable) {
	for i := range t.Words {
		t.Words[i].like = lazy.New(t.Words[i].Like)
	}
	for _, library := range t.Files {
		for i := range library.Files {
			f := &library.Files[i]
			f.like = lazy.New(expression(f.Like))
		}
	}
})

// AreaTable says where in a library a message comes from, and how to find out what lies behind a failure there.
type AreaTable struct {
	Words []AreaByWords
	Files []AreaFiles
	// Decides says how to find out whether a cause applies, by cause: a command, and what it shows.
	Decides map[string]struct{ Command, Shows string }
}

// AreaByWords is the area of messages that contain some words.
type AreaByWords struct {
	Libraries []string
	Like      string
	Of        []string
	Area      string

	like *lazy.Regexp
}

// AreaFiles are the files, components or functions of one library, which are tried in order.
type AreaFiles struct {
	Library string
	Files   []AreaFile
}

// AreaFile is the area of files.
type AreaFile struct {
	Like []string
	Area string

	like *lazy.Regexp
}

// expression turns patterns of files into a regular expression.
func expression(like []string) string {
	e := regexp.QuoteMeta(strings.Join(like, "\n"))
	return `(?i)^(?:` + strings.NewReplacer("\n", "|", `\*\*`, ".*", `\*`, "[^/]*").Replace(e) + `)$`
}

// AreaOf is the area of a message: of a library's file, component or function, and of
// what the message says. It is empty for a library that the table does not have.
func AreaOf(library, file, line string) string {
	area := ""
	for _, of := range Areas().Files {
		if of.Library != library {
			continue
		}
		if i := slices.IndexFunc(of.Files, func(f AreaFile) bool { return f.like.MatchString(file) }); i >= 0 {
			area = of.Files[i].Area
		}
	}
	for _, w := range Areas().Words {
		isOf := len(w.Libraries) == 0 || slices.Contains(w.Libraries, library)
		if isOf && slices.Contains(w.Of, area) && w.like.MatchString(line) {
			return w.Area
		}
	}
	return area
}
