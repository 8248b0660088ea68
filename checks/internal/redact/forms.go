package redact

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

//go:embed forms.yaml
var formsYAML []byte

// table is forms.yaml, whose comments say what each list is.
type table struct {
	Parts                          map[string]string
	Secrets, Keys, Variables       []*form
	Names, Numbers, Addresses, KFD []*form

	Columns map[string]string

	Ordinary      alternatives
	SharedFolders alternatives `yaml:"shared_folders"`

	NoHost          []string `yaml:"no_host"`
	HostVariables   []string `yaml:"host_variables"`
	FileEnds        []string `yaml:"file_ends"`
	PublicDomains   []string `yaml:"public_domains"`
	SharedDomains   []string `yaml:"shared_domains"`
	PublicImages    []string `yaml:"public_images"`
	PublicBases     []string `yaml:"public_bases"`
	NumberedDevices []string `yaml:"numbered_devices"`

	SecretWords   alternatives `yaml:"secret_words"`
	Doubtful      alternatives
	KeyKinds      []string `yaml:"key_kinds"`
	NoSecretAfter []string `yaml:"no_secret_after"`
	SecretHints   []string `yaml:"secret_hints"`
	Harmless      alternatives
	Verdicts      []string

	OurWords []string `yaml:"our_words"`
	OurKeys  []string `yaml:"our_keys"`
	FreeKeys []string `yaml:"free_keys"`
	HostKeys []string `yaml:"host_keys"`
}

// form is what stands around a name, a number or a secret.
type form struct {
	Like    string
	Hints   []string
	Least   int
	pattern *lazy.Regexp
}

// alternatives are patterns of which a whole text is to match one.
type alternatives struct{ *lazy.Regexp }

// UnmarshalYAML reads the list of patterns.
func (a *alternatives) UnmarshalYAML(list *yaml.Node) error {
	var patterns []string
	if err := list.Decode(&patterns); err != nil {
		return fmt.Errorf("patterns: %w", err)
	}
	a.Regexp = lazy.New("^(?s:" + strings.Join(patterns, "|") + ")$")
	return nil
}

// known is the table, read on first use.
var known = sync.OnceValue(func() *table {
	t := &table{}
	decoder := yaml.NewDecoder(bytes.NewReader(formsYAML))
	decoder.KnownFields(true)
	if err := decoder.Decode(t); err != nil {
		panic(err) // It is part of the program, and a test reads it.
	}
	var parts []string
	for name, pattern := range t.Parts {
		parts = append(parts, "{"+name+"}", pattern)
	}
	named := strings.NewReplacer(parts...)
	for _, forms := range [][]*form{t.Secrets, t.Keys, t.Variables, t.Names, t.Numbers, t.Addresses, t.KFD} {
		for _, f := range forms {
			f.pattern = lazy.New(named.Replace(f.Like))
		}
	}
	return t
})

// apply replaces what stands where forms say by what standIn returns for it.
func apply(forms []*form, s string, standIn func(what, name, s string, from, to int) string) string {
	for _, f := range forms {
		if !f.hinted(s) {
			continue
		}
		groups := f.pattern.Get().SubexpNames()
		var out strings.Builder
		last := 0
		for _, m := range f.pattern.Get().FindAllStringSubmatchIndex(s, -1) {
			for g := 1; g < len(groups); g++ {
				from, to := m[2*g], m[2*g+1]
				if groups[g] == "" || from < last {
					continue
				}
				out.WriteString(s[last:from])
				out.WriteString(standIn(strings.TrimRight(groups[g], "0123456789"), s[from:to], s, from, to))
				last = to
			}
		}
		if last > 0 {
			s = out.String() + s[last:]
		}
	}
	return s
}

// hinted reports whether a text holds a hint often enough. Most lines hold none.
func (f *form) hinted(s string) bool {
	return slices.ContainsFunc(f.Hints, func(hint string) bool {
		return strings.Contains(s, hint) && (f.Least == 0 || strings.Count(s, hint) >= f.Least)
	})
}
