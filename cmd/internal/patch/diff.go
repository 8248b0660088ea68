package patch

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Unified is the difference to the text before, as patch -p1 and git apply take it.
func (r *Result) Unified(name, before string) (string, error) {
	return udiff.ToUnified(quotedName("a/"+name), quotedName("b/"+name), before, udiff.Lines(before, r.Text), udiff.DefaultContextLines)
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
