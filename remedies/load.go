package remedies

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Files are the files of the built-in remedies.
//
//go:embed *.yaml
var Files embed.FS

// Set is a set of remedies.
type Set struct {
	byID  map[string]Remedy
	forms map[string]string // A general remedy and its form for the GPUs' vendor or the scheduler.
}

// Load returns the built-in remedies. Nothing changes a set, so all share one.
var Load = sync.OnceValues(func() (*Set, error) { return load(nil) })

// LoadWith returns the built-in remedies and the user's own in the folder dir: *.yaml files, in folders of any depth,
// one remedy a file. The error joins one *rules.Problem for each fault.
func LoadWith(dir string) (*Set, error) {
	user, err := rules.ReadPolicyFolder(dir, aRemedy)
	if err != nil {
		return nil, err
	}
	return load(user)
}

func aRemedy(name string) bool { return path.Ext(name) == ".yaml" }

// load decodes the files, the built-in ones first, and rejects a duplicate id.
func load(user map[string][]byte) (*Set, error) {
	builtin, err := rules.ReadPolicy(Files, aRemedy)
	if err != nil {
		return nil, fmt.Errorf("read the built-in remedies: %w", err)
	}
	s := &Set{byID: make(map[string]Remedy, len(builtin)+len(user))}
	fileOf := map[string]string{} // By id.
	var faults []error
	for _, files := range []map[string][]byte{builtin, user} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			r, errs := decode(name, files[name])
			if first, taken := fileOf[r.ID]; taken && len(errs) == 0 {
				errs = append(errs, &rules.Problem{
					File: name, Reason: fmt.Sprintf("the remedy id %s is taken by %s", r.ID, first), Hint: "give it another name",
				})
			}
			if faults = append(faults, errs...); len(errs) == 0 {
				s.byID[r.ID], fileOf[r.ID] = r, name
			}
		}
	}
	for _, r := range s.Remedies() {
		if of, known := s.byID[r.FormOf]; r.FormOf != "" && (!known || of.FormOf != "") {
			faults = append(faults, &rules.Problem{
				File: fileOf[r.ID], Reason: fmt.Sprintf("form_of: %q is not a remedy, or is itself a form of one", r.FormOf), Hint: "name the general remedy",
			})
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return s, nil
}

// decode reads one remedy's file. An unknown key is an error, since it may be misspelt.
func decode(name string, text []byte) (Remedy, []error) {
	var r Remedy
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&r); err != nil {
		return r, yamlProblems(name, err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return r, []error{&rules.Problem{File: name, Line: more.Line, Reason: "more than one document", Hint: "write one remedy per file"}}
	}
	return r, check(name, &r)
}

// atLine is how yaml.v3 names the line of a fault.
var atLine = lazy.New(`^(?:yaml: )?line (\d+): `)

// yamlProblems turns an error of yaml.v3 into one problem for each fault.
func yamlProblems(name string, err error) []error {
	messages := []string{err.Error()}
	if errors.Is(err, io.EOF) {
		messages = []string{"the file is empty"}
	}
	if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
		messages = typed.Errors
	}
	faults := make([]error, 0, len(messages))
	for _, m := range messages {
		p := &rules.Problem{File: name, Hint: "see docs/remedies.md for the keys of a remedy"}
		said := strings.TrimPrefix(m, "yaml: ")
		if at := atLine.FindStringSubmatch(m); at != nil {
			p.Line, _ = strconv.Atoi(at[1]) // Digits only, by the pattern.
			said = strings.TrimPrefix(m, at[0])
		}
		p.Reason = strings.ReplaceAll(said, "remedies.", "")
		faults = append(faults, p)
	}
	return faults
}

// The values that a file may use, each list in ascending order.
var (
	kinds = []Kind{Fix, Workaround}
	needs = []Need{
		NeedJobRestart, NeedContainerRestart, NeedImageRebuild, NeedRoot, NeedDriverReload, NeedReboot, NeedBIOS, NeedHands,
	}
	risks = []string{"none", "low", "medium", "high"}
	lasts = []string{"job", "boot", "forever"}
)

// check checks a remedy against the contract of docs/remedies.md.
func check(name string, r *Remedy) []error {
	var faults []error
	fault := func(hint, format string, args ...any) {
		faults = append(faults, &rules.Problem{File: name, Reason: fmt.Sprintf(format, args...), Hint: hint})
	}
	if base := strings.TrimSuffix(path.Base(filepath.ToSlash(name)), ".yaml"); r.ID != base {
		fault("name the file <id>.yaml", "id %q differs from the file's name", r.ID)
	}
	for _, field := range []struct{ key, text string }{
		{"title", r.Title},
		{"description", r.Description},
		{"cost", r.Cost},
		{"undo", r.Undo},
		{"verify", r.Verify},
	} {
		if strings.TrimSpace(field.text) == "" {
			fault("", "%s is missing", field.key)
		}
	}
	checkWord(fault, "kind", kinds, r.Kind)
	checkWord(fault, "risk", risks, r.Risk)
	checkWord(fault, "lasts", lasts, r.Lasts)
	for _, need := range r.Needs {
		checkWord(fault, "needs", needs, need)
	}
	if len(r.Needs) == 0 {
		fault("name at least job-restart", "needs is missing")
	}
	if len(r.Sources) == 0 {
		fault("name at least one", "sources is missing")
	}
	r.walk(func(text string) {
		_, rest := conditionsOf(text)
		rest = placeholder.ReplaceAllString(rest, "")
		if strings.Contains(rest, "{{") || strings.Contains(rest, "}}") { // It looks like a placeholder.
			fault("write {{.name}} or {{.names | join \";\"}}", "placeholder %s is not understood", strings.TrimSpace(rest))
		}
	})
	empty := true
	r.Apply.walk(func(text string) { empty = empty && text == "" })
	if empty {
		fault("say what to set, run or do", "apply is empty")
	}
	checkUnknown(fault, r)
	return faults
}

// checkUnknown checks that a remedy also says what to do if a param is not known, so that no advice is left with a gap.
func checkUnknown(fault func(hint, format string, args ...any), r *Remedy) {
	for _, text := range r.prose() {
		for _, s := range slots(text) {
			if !s.hasElse {
				fault(fmt.Sprintf("write {{.%s | else \"...\"}}", s.name), "{{.%s}} has no text for when it is not known", s.name)
			}
		}
	}
	without := map[string]bool{}
	r.Apply.walk(func(text string) {
		conditions, _ := conditionsOf(text)
		for _, when := range conditions {
			without[when.name] = without[when.name] || when.without
		}
	})
	noted := map[string]bool{}
	r.Apply.walk(func(text string) {
		for _, s := range slots(text) {
			if s.hasElse || without[s.name] || without[derived[s.name]] || noted[s.name] {
				continue
			}
			noted[s.name] = true
			fault(
				fmt.Sprintf("add an item that begins with {{without .%s}}, or write {{.%s | else \"...\"}}", s.name, s.name),
				"apply does not say what to do when {{.%s}} is not known", s.name,
			)
		}
	})
}

func checkWord[T ~string](fault func(hint, format string, args ...any), key string, all []T, word T) {
	if !slices.Contains(all, word) {
		fault("", "%s: unknown word %q: one of %v", key, word, all)
	}
}

// Remedy returns the remedy of that id.
func (s *Set) Remedy(id string) (Remedy, bool) {
	r, ok := s.byID[id]
	return r, ok
}

// Remedies returns all remedies in order of id.
func (s *Set) Remedies() []Remedy {
	return slices.SortedFunc(maps.Values(s.byID), func(a, b Remedy) int { return cmp.Compare(a.ID, b.ID) })
}

// Check checks that every remedy that the rules name exists. The error joins one *rules.Problem for each that does not.
func (s *Set) Check(all []rules.Rule) error {
	var faults []error
	for _, rule := range all {
		for _, id := range rule.Remedies {
			if _, ok := s.Remedy(id); ok {
				continue
			}
			p := &rules.Problem{File: rule.File, Reason: fmt.Sprintf("unknown remedy %q", id), Hint: "put " + id + ".yaml next to the rule"}
			if near := rules.Nearest(id, slices.Sorted(maps.Keys(s.byID))); near != "" {
				p.Reason += "; did you mean " + near + "?"
			}
			faults = append(faults, p)
		}
	}
	return errors.Join(faults...)
}
