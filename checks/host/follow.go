package host

import (
	"errors"
	"path"
	"strings"
)

// maxLinks is MAXSYMLINKS of the kernel (include/linux/namei.h).
const maxLinks = 40

// ErrTooManyLinks is returned for a path whose symbolic links do not end.
var ErrTooManyLinks = errors.New("too many symbolic links")

// Follow returns the path that an absolute path leads to. link reports for each part whether it is a link to follow, and its
// target; rest are the parts after it. Its error ends the walk.
func Follow(name string, link func(at string, rest []string) (target string, is bool, err error)) (string, error) {
	rest := parts(name)
	at := "/"
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		target, is, err := link(next, rest)
		if err != nil {
			return "", err
		}
		if !is {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", ErrTooManyLinks
		}
		if path.IsAbs(target) {
			at = "/"
		}
		rest = append(parts(target), rest...)
	}
	return at, nil
}

func parts(name string) []string { return strings.Split(strings.Trim(name, "/"), "/") }
