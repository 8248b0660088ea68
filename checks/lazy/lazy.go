// Package lazy compiles regular expressions when they are first needed. The program has hundreds of them, one run
// needs a few, and most of these match few of the lines that they are tried on.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled on first use, safe for concurrent use. FindStringSubmatch and MatchString
// try it only on texts that hold the literals that every match holds: searching for literals is many times faster.
type Regexp struct {
	expression string
	once       sync.Once
	compiled   *regexp.Regexp
	parse      sync.Once
	// needs are lists of literals: each match holds one of every list.
	needs []literals
}

// New returns a regular expression. One that does not compile panics on first use; a
// test compiles those of all packages.
func New(expression string) *Regexp { return &Regexp{expression: expression} }

// Get is the regular expression, for the methods that are seldom needed.
func (r *Regexp) Get() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.expression) })
	return r.compiled
}

// FindAllString is regexp.Regexp.FindAllString.
func (r *Regexp) FindAllString(s string, n int) []string { return r.Get().FindAllString(s, n) }

// FindAllStringSubmatch is regexp.Regexp.FindAllStringSubmatch.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.Get().FindAllStringSubmatch(s, n)
}

// FindString is regexp.Regexp.FindString.
func (r *Regexp) FindString(s string) string { return r.Get().FindString(s) }

// FindStringSubmatch is regexp.Regexp.FindStringSubmatch.
func (r *Regexp) FindStringSubmatch(s string) []string {
	if !r.May(s) {
		return nil
	}
	return r.Get().FindStringSubmatch(s)
}

// First is the first group of the first match; it is empty if there is no match.
func (r *Regexp) First(s string) string {
	if m := r.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// MatchString is regexp.Regexp.MatchString.
func (r *Regexp) MatchString(s string) bool { return r.May(s) && r.Get().MatchString(s) }

// ReplaceAllString is regexp.Regexp.ReplaceAllString.
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.Get().ReplaceAllString(src, repl)
}
