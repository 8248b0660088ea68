package rules

import (
	"encoding/json"
	"io/fs"
	"os"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/golden"
	"github.com/gpudoctor/gpudoctor/rules/internal/reach"
)

// TestGoldenIndex holds that rules.zip.zst has the files of the built-in rules, and that index.zip says
// what they say. Run make update after a change of a rule; it formats them as well.
func TestGoldenIndex(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: it enumerates, and nothing in it runs side by side")
	}
	files, err := regoFiles(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if formatted, err := formatRego(name, text); err == nil {
			files[name] = formatted
		}
	}
	s, err := load(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := indexOf(s, files)
	if err != nil {
		t.Fatal(err)
	}
	made, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	golden.Archive(t, "index.zip", map[string][]byte{indexFile: made})
	golden.Archive(t, "rules.zip.zst", files)
}

// wholeSet are the built-in rules, all of them parsed.
func wholeSet(tb testing.TB) *Set {
	tb.Helper()
	files, err := regoFiles(Files())
	if err != nil {
		tb.Fatal(err)
	}
	s, err := load(files, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestParts holds that each definition of each file, parsed alone, is the definition that
// the whole file has, on the same line.
func TestParts(t *testing.T) {
	t.Parallel()
	x, err := readIndex()
	if err != nil {
		t.Fatal(err)
	}
	whole := wholeSet(t).modules
	for file, m := range whole {
		text, err := fs.ReadFile(Files(), file)
		if err != nil {
			t.Fatal(err)
		}
		f := x.Parts.Files[file]
		if len(f.Definitions) != len(m.Rules) {
			t.Fatalf("%s: the index has %d definitions, the file %d", file, len(f.Definitions), len(m.Rules))
		}
		for n, want := range m.Rules {
			part, err := f.Text(text, []int{n})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			parsed, faults := parse(map[string][]byte{file: part}, false)
			if len(faults) > 0 {
				t.Fatalf("%s, definition %d: %v", file, n, faults)
			}
			got := parsed[file]
			if len(got.Rules) != 1 || got.Rules[0].String() != want.String() || got.Rules[0].Location.Row != want.Location.Row ||
				!got.Package.Equal(m.Package) || len(got.Imports) != len(m.Imports) {
				t.Errorf("%s:%d, parsed alone, is\n%v", file, want.Location.Row, got)
			}
		}
	}
}

// TestParsesWhatIsNeeded holds that each rule, asked alone on facts that lack any one
// thing, gets every name that it refers to, and less than everything.
func TestParsesWhatIsNeeded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("not with -short: it enumerates, and nothing in it runs side by side")
	}
	x, err := readIndex()
	if err != nil {
		t.Fatal(err)
	}
	whole := wholeSet(t)
	type place struct {
		file string
		row  int
	}
	refersTo := map[place][]reach.Global{}
	for rule, to := range reach.References(whole.modules) {
		refersTo[place{rule.Location.File, rule.Location.Row}] = to
	}
	total := 0
	for _, f := range x.Parts.Files {
		total += len(f.Definitions)
	}
	for r, rule := range whole.everything() {
		for i, lack := range append(x.Parts.Lacks, "nothing") {
			if (i+r)%8 > 0 { // Parsing takes its time: each rule lacks some things, and each thing is lacked by some.
				continue
			}
			l := newLazyModules(x)
			missing := func(lacked string) bool { return lacked == lack }
			modules, err := l.modulesOf([]Rule{rule}, "", missing)
			if err != nil {
				t.Fatal(err)
			}
			n, defined := 0, map[reach.Global]bool{}
			for _, m := range modules {
				n += len(m.Rules)
				for _, r := range m.Rules {
					defined[reach.Global{Package: reach.PackageName(m), Name: reach.HeadName(r)}] = true
				}
			}
			if n == 0 || n > total/2 {
				t.Errorf("%s without %s needs %d of %d definitions", rule.ID, lack, n, total)
			}
			for file, m := range modules {
				for _, r := range m.Rules {
					for _, to := range refersTo[place{file, r.Location.Row}] {
						if !defined[to] {
							t.Errorf("%s without %s: %s:%d refers to %v, which is missing", rule.ID, lack, file, r.Location.Row, to)
						}
					}
				}
			}
		}
	}
}
