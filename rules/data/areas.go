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

// AreaTable says where in a library a message comes from, and what may lie behind a
// failure there.
type AreaTable struct {
	Sources []string      `json:"sources"`
	Areas   []Area        `json:"areas"`
	Words   []AreaByWords `json:"words"`
	Files   []AreaFiles   `json:"files"`
	Hangs   []Hang        `json:"hangs"`
	// Decides says how to find out whether a cause applies, by cause.
	Decides map[string]Decision `json:"decides"`
}

// Hang is a path that the data of collectives takes, and what may block it.
type Hang struct {
	// Between is true for a path between hosts.
	Between bool `json:"between"`
	// Usual is true for the path to assume if a log shows no channel.
	Usual bool `json:"usual,omitempty"`
	// Kinds is a regular expression (RE2) for the kind of a channel and its network, with a
	// space between them; empty if no channel shows the path.
	Kinds string `json:"kinds,omitempty"`
	// Words follow "goes over".
	Words string `json:"words"`
	// Causes are ids of causes, the likeliest first.
	Causes []string `json:"causes"`
}

// Decision is a command and what it shows.
type Decision struct {
	Command string `json:"command,omitempty"`
	// Shows says what the command shows if it is the cause, as a clause.
	Shows string `json:"shows"`
}

// Area is a part of a library.
type Area struct {
	Name string `json:"name"`
	// Words follow "failed in".
	Words string `json:"words"`
	// Causes are ids of causes, the likeliest first; empty if the area names none.
	Causes []string `json:"causes"`
	// Variables control that code.
	Variables []string `json:"variables,omitempty"`
}

// AreaByWords is the area of messages that contain some words.
type AreaByWords struct {
	// Libraries are those to which it applies; all where there are none.
	Libraries []string `json:"libraries,omitempty"`
	// Like is a regular expression (RE2).
	Like string `json:"like"`
	// Of are the areas of the files to which it applies.
	Of   []string `json:"of"`
	Area string   `json:"area"`

	like *lazy.Regexp
}

// AreaFiles are the files, components or functions of one library.
type AreaFiles struct {
	Library string `json:"library"`
	// Files are tried in order.
	Files []AreaFile `json:"files"`
}

// AreaFile is the area of files.
type AreaFile struct {
	// Like are patterns: * stands for any part of a name, ** for any part of a path.
	Like []string `json:"like"`
	Area string   `json:"area"`

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
