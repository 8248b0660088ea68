// Package parts knows the definitions of the built-in rules without parsing them: which
// ones there are, what each refers to, and which cannot apply on facts that lack a
// section. So only those are parsed that the facts at hand may need. Parsing takes most of
// what a start takes, and on a machine without logs half of the definitions have nothing
// to judge.
package parts

import (
	"hash/crc32"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
)

// Index describes the definitions of some files. It is made from the parsed files by Of,
// and read from JSON.
type Index struct {
	// Lacks are what facts may lack (see rules.lacksOf, and InProfile) without which some definition cannot apply.
	Lacks []string `json:"lacks"`
	// Names are the rules, with their packages, without "data.".
	Names []string `json:"names"`
	// Files are the definitions of each file, in its order.
	Files map[string]File `json:"files"`

	once   sync.Once
	byName map[string]int // Positions in Names.
	at     [][]place      // The definitions of each name.
}

// File is what an Index knows of a file.
type File struct {
	Package string `json:"package"`
	// Sum is the checksum of the text.
	Sum uint32 `json:"sum"`
	// Head is the offset of the package clause, which the imports follow, up to the first
	// definition.
	Head int `json:"head"`
	// Definitions are in the order of the file.
	Definitions []Definition `json:"definitions"`
}

// Definition is one definition of a rule: the offset of its first byte (it ends where the
// next one begins), the position of its name, whether it adds to an object under a key
// that is not written out (1) or not (0), of how many of Lacks it cannot apply without any,
// their positions, and the positions of the names that it refers to.
type Definition []int

const fixed = 4 // What stands before the positions in Lacks.

func (d Definition) offset() int      { return d[0] }
func (d Definition) name() int        { return d[1] }
func (d Definition) byVariable() bool { return d[2] == 1 }
func (d Definition) needs() []int     { return d[fixed : fixed+d[3]] }
func (d Definition) refersTo() []int  { return d[fixed+d[3]:] }

// place is where a definition is: its file, and its place among the file's definitions.
type place struct {
	file string
	n    int
}

// InProfile is what facts that are judged in another profile lack.
func InProfile(profile string) string { return profilePrefix + profile }

// Profile is the profile that InProfile names.
func Profile(lack string) (profile string, ok bool) { return strings.CutPrefix(lack, profilePrefix) }

const profilePrefix = "profile "

// Of describes the definitions of modules, made from texts, that roots need. Lacks are
// shapes of facts, by the name of what they lack.
func Of(modules map[string]*ast.Module, texts map[string][]byte, roots []reach.Global, lacks map[string]*reach.Shape) *Index {
	x := &Index{Files: map[string]File{}}
	names := map[string]bool{}
	for _, m := range modules {
		for _, rule := range m.Rules {
			names[nameOf(m, rule)] = true
		}
	}
	x.Names = slices.Sorted(maps.Keys(names))
	at := make(map[string]int, len(x.Names))
	for i, name := range x.Names {
		at[name] = i
	}
	without := map[start][]int{}
	for lack, dead := range left(modules, roots, lacks) {
		if len(dead) < few {
			continue
		}
		for _, definition := range dead {
			without[definition] = append(without[definition], len(x.Lacks))
		}
		x.Lacks = append(x.Lacks, lack)
	}
	references := reach.References(modules)
	for file, m := range modules {
		f := File{Package: reach.PackageName(m), Sum: crc32.ChecksumIEEE(texts[file]), Head: m.Package.Location.Offset}
		for _, rule := range m.Rules {
			needs := without[start{file, rule.Location.Offset}]
			d := append(Definition{rule.Location.Offset, at[nameOf(m, rule)], 0, len(needs)}, needs...)
			if reach.ByVariable(rule) {
				d[2] = 1
			}
			for _, to := range references[rule] {
				d = append(d, at[fullName(to.Package, to.Name)])
			}
			f.Definitions = append(f.Definitions, d)
		}
		x.Files[file] = f
	}
	return x
}

// few is how many definitions must be left out for a lack to be worth an entry.
const few = 3

// left yields what facts may lack, in order, with the definitions that cannot apply then.
func left(modules map[string]*ast.Module, roots []reach.Global, lacks map[string]*reach.Shape) iter.Seq2[string, []start] {
	names := slices.Sorted(maps.Keys(lacks))
	dead := make([][]start, len(names))
	next := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				dead[i] = deadOn(modules, roots, lacks[names[i]])
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	wg.Wait()
	return func(yield func(string, []start) bool) {
		for i, name := range names {
			if !yield(name, dead[i]) {
				return
			}
		}
	}
}

// deadOn are the definitions that cannot apply on facts of a shape.
func deadOn(modules map[string]*ast.Module, roots []reach.Global, shape *reach.Shape) []start {
	var dead []start
	some := reach.Specialised(modules, roots, shape)
	for file, m := range modules {
		alive := map[int]bool{}
		if some[file] != nil {
			for _, rule := range some[file].Rules {
				alive[rule.Location.Offset] = true
			}
		}
		for _, rule := range m.Rules {
			if !alive[rule.Location.Offset] {
				dead = append(dead, start{file, rule.Location.Offset})
			}
		}
	}
	return dead
}

// start is where a definition begins.
type start struct {
	file   string
	offset int
}

func nameOf(m *ast.Module, rule *ast.Rule) string {
	return fullName(reach.PackageName(m), reach.HeadName(rule))
}

func fullName(pkg, name string) string { return pkg + "." + name }
