// Package message is the catalogue of messages: the forms of lines by which programs
// state what bears on the communication of GPUs, and what they mean by themselves.
package message

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/internal/pattern"
	"gopkg.in/yaml.v3"
)

//go:embed *.yaml
var messageFiles embed.FS

// Statement is one row of the catalogue of messages: a form of line by which
// a program states something that bears on the communication of GPUs.
type Statement struct {
	// ID is kebab-case and begins with the program: "nccl-shm-extend-failed".
	ID string `yaml:"id"`
	// Program is who writes it: "nccl", "rccl", "pytorch", "cuda", "hip",
	// "ofi", "libibverbs", "gloo", "vllm", "ray", "docker", "kubelet", ...
	Program string `yaml:"program"`
	// Says is what the line states, in one phrase, as a sentence without its
	// full stop: "NCCL could not enlarge its file in /dev/shm".
	Says string `yaml:"says"`
	// Role is "cause", "category", "consequence" or "setting"; see
	// facts.Message.
	Role string `yaml:"role"`
	// Anchors are literals: every such line holds one of them, and few other
	// lines do.
	Anchors []string `yaml:"anchors"`
	// Like is a pattern (RE2) that the line must match somewhere; its named
	// groups are the message's fields. Without it an anchor is enough.
	Like string `yaml:"like,omitempty"`
	// Unlike is a pattern that the line must not match.
	Unlike string `yaml:"unlike,omitempty"`
	// Verdict is what the message means by itself; nil where a rule decides.
	Verdict *Verdict `yaml:"verdict,omitempty"`
	// Source is where the form is from: a file of the program at a version,
	// or a page.
	Source string `yaml:"source"`
	// Examples are lines that match, of our own making.
	Examples []string `yaml:"examples"`

	// like and unlike are the patterns; nil where the row has none.
	like, unlike *pattern.Pattern
}

// roles are the values of Statement.Role.
var roles = []string{"cause", "category", "consequence", "setting"}

// Statements is the catalogue, in the order in which a line is compared: the
// first row that matches counts.
var Statements = sync.OnceValue(func() []*Statement {
	all, err := readStatements(messageFiles)
	if err != nil {
		panic(err) // A test holds that the catalogue is right.
	}
	return all
})

func readStatements(files fs.FS) ([]*Statement, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*Statement
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		d := yaml.NewDecoder(bytes.NewReader(raw))
		d.KnownFields(true)
		var rows []*Statement
		if err := d.Decode(&rows); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, row := range rows {
			if err := row.prepare(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, row.ID, err)
			}
		}
		all = append(all, rows...)
	}
	return all, shareVerdicts(all)
}

// prepare checks of a row what a machine can check.
func (t *Statement) prepare() error {
	switch {
	case t.ID == "" || t.Program == "" || t.Says == "" || t.Source == "":
		return errors.New("id, program, says or source is missing")
	case !slices.Contains(roles, t.Role):
		return fmt.Errorf("the role %q is none of %q", t.Role, roles)
	case len(t.Anchors) == 0 || len(t.Examples) == 0:
		return errors.New("anchors or examples are missing")
	}
	if t.Verdict != nil && t.Verdict.As == "" {
		if err := t.Verdict.check(t); err != nil {
			return err
		}
	}
	if t.Like != "" {
		t.like = pattern.New(t.Like)
	}
	if t.Unlike != "" {
		t.unlike = pattern.New(t.Unlike)
	}
	for _, a := range t.Anchors {
		if len(a) < 5 {
			return fmt.Errorf("the anchor %q is shorter than 5 bytes", a)
		}
	}
	return nil
}

// Match returns the fields of a line that is of this form.
func (t *Statement) Match(line string) (fields map[string]string, ok bool) {
	if t.like != nil && !t.like.May(line) || t.unlike != nil && t.unlike.Match(line) {
		return nil, false
	}
	if t.like == nil {
		return nil, true
	}
	m := t.like.Find(line)
	if m == nil {
		return nil, false
	}
	for i, name := range t.like.Names() {
		if value := strings.TrimSpace(m[i]); name != "" && value != "" {
			if fields == nil {
				fields = make(map[string]string)
			}
			fields[name] = value
		}
	}
	return fields, true
}
