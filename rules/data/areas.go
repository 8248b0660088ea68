package data

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Areas returns the table of areas of libraries.
var Areas = reader[AreaTable]("areas")

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
}

// placer is the table, ready for look-ups.
type placer struct {
	files map[string][]fileArea
	words []wordArea
}

type fileArea struct {
	like *regexp.Regexp
	area string
}

type wordArea struct {
	like      *regexp.Regexp
	libraries []string
	of        []string
	area      string
}

// placers are compiled when the first message is placed.
var placers = sync.OnceValue(func() *placer {
	p := &placer{files: map[string][]fileArea{}}
	for _, library := range Areas().Files {
		for _, f := range library.Files {
			forms := make([]string, len(f.Like))
			for i, like := range f.Like {
				forms[i] = expression(like)
			}
			// A test compiles each.
			like := regexp.MustCompile(`(?i)^(?:` + strings.Join(forms, "|") + `)$`)
			p.files[library.Library] = append(p.files[library.Library], fileArea{like, f.Area})
		}
	}
	for _, w := range Areas().Words {
		p.words = append(p.words, wordArea{regexp.MustCompile(w.Like), w.Libraries, w.Of, w.Area})
	}
	return p
})

// expression turns a pattern of files into a regular expression.
func expression(like string) string {
	e := regexp.QuoteMeta(like)
	e = strings.ReplaceAll(e, `\*\*`, ".*")
	return strings.ReplaceAll(e, `\*`, "[^/]*")
}

// AreaOf is the area of a message: of a library's file, component or function, and of
// what the message says. It is empty for a library that the table does not have.
func AreaOf(library, file, line string) string {
	p := placers()
	area := ""
	for _, f := range p.files[library] {
		if f.like.MatchString(file) {
			area = f.area
			break
		}
	}
	for _, w := range p.words {
		if len(w.libraries) > 0 && !slices.Contains(w.libraries, library) {
			continue
		}
		if slices.Contains(w.of, area) && w.like.MatchString(line) {
			return w.area
		}
	}
	return area
}
