// Package lazy compiles regular expressions when they are first needed. The program has
// hundreds of them, one run needs a few, and most of these match few of the lines that they
// are tried on.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that is compiled on first use. Its methods are those of
// regexp.Regexp, and safe for concurrent use. FindStringSubmatch and MatchString try it only on
// texts that hold the literals that every match holds: searching for literals is many times faster.
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

func (r *Regexp) get() *regexp.Regexp {
	r.once.Do(func() { r.compiled = regexp.MustCompile(r.expression) })
	return r.compiled
}

// Find is regexp.Regexp.Find.
func (r *Regexp) Find(b []byte) []byte {
	return r.get().Find(b)
}

// FindAllString is regexp.Regexp.FindAllString.
func (r *Regexp) FindAllString(s string, n int) []string {
	return r.get().FindAllString(s, n)
}

// FindAllStringIndex is regexp.Regexp.FindAllStringIndex.
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.get().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is regexp.Regexp.FindAllStringSubmatch.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is regexp.Regexp.FindAllStringSubmatchIndex.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}

// FindString is regexp.Regexp.FindString.
func (r *Regexp) FindString(s string) string {
	return r.get().FindString(s)
}

// FindStringSubmatch is regexp.Regexp.FindStringSubmatch.
func (r *Regexp) FindStringSubmatch(s string) []string {
	if !r.May(s) {
		return nil
	}
	return r.get().FindStringSubmatch(s)
}

// FindStringSubmatchIndex is regexp.Regexp.FindStringSubmatchIndex.
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.get().FindStringSubmatchIndex(s)
}

// FindSubmatch is regexp.Regexp.FindSubmatch.
func (r *Regexp) FindSubmatch(b []byte) [][]byte {
	return r.get().FindSubmatch(b)
}

// Match is regexp.Regexp.Match.
func (r *Regexp) Match(b []byte) bool {
	return r.get().Match(b)
}

// MatchString is regexp.Regexp.MatchString.
func (r *Regexp) MatchString(s string) bool {
	return r.May(s) && r.get().MatchString(s)
}

// ReplaceAll is regexp.Regexp.ReplaceAll.
func (r *Regexp) ReplaceAll(src, repl []byte) []byte {
	return r.get().ReplaceAll(src, repl)
}

// ReplaceAllString is regexp.Regexp.ReplaceAllString.
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.get().ReplaceAllString(src, repl)
}

// ReplaceAllStringFunc is regexp.Regexp.ReplaceAllStringFunc.
func (r *Regexp) ReplaceAllStringFunc(src string, repl func(string) string) string {
	return r.get().ReplaceAllStringFunc(src, repl)
}

// SubexpIndex is regexp.Regexp.SubexpIndex.
func (r *Regexp) SubexpIndex(name string) int {
	return r.get().SubexpIndex(name)
}

// SubexpNames is regexp.Regexp.SubexpNames.
func (r *Regexp) SubexpNames() []string {
	return r.get().SubexpNames()
}
