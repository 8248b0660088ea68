package patch

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Unified is the difference to the text before, as patch -p1 and git apply take it.
func (r *Result) Unified(name, before string) (string, error) {
	old := slices.Collect(strings.Lines(before))
	var edits []udiff.Edit
	var pending strings.Builder
	next, at := 0, 0 // The line of the original that comes next, and where it begins.
	flush := func(to int) {
		from := at
		for ; next < to; next++ {
			at += len(old[next])
		}
		if pending.Len() > 0 || at > from {
			edits = append(edits, udiff.Edit{Start: from, End: at, New: pending.String()})
			pending.Reset()
		}
	}
	for i, l := range r.lines {
		text := l.text + l.eol
		if i == 0 {
			text = r.prefix + text
		}
		if l.origin == 0 || old[l.origin-1] != text {
			pending.WriteString(text)
			continue
		}
		flush(l.origin - 1)
		at += len(text)
		next++
	}
	flush(len(old))
	return udiff.ToUnified(quotedName("a/"+name), quotedName("b/"+name), before, edits, udiff.DefaultContextLines)
}

// PathOf is the name of a file in a patch and the folder in which to apply it: the one in
// which the program runs if the file is there, else the root.
func PathOf(file, folder string) (name, from string) {
	whole, err := filepath.Abs(file)
	if err != nil {
		return filepath.ToSlash(file), "."
	}
	if relative, err := filepath.Rel(folder, whole); err == nil && filepath.IsLocal(relative) {
		return filepath.ToSlash(relative), "."
	}
	volume := filepath.VolumeName(whole)
	return strings.TrimLeft(filepath.ToSlash(whole[len(volume):]), "/"), volume + string(filepath.Separator)
}

// quotedName writes a name as git does: one with a space ends in a tab, and one with a
// character that would end the line is quoted.
func quotedName(name string) string {
	switch q := strconv.QuoteToASCII(name); {
	case strings.ContainsAny(name, "\"\\") || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return q
	case strings.Contains(name, " "):
		return name + "\t"
	}
	return name
}
