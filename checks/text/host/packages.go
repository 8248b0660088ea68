package host

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

//go:embed packages.yaml
var packagesYAML []byte

// packages are how package managers and programs tell the versions of software.
var packages = lazy.Table[struct {
	Python, System string
	Kinds          []struct {
		parse.Kind `yaml:",inline"`
		Forms      []struct{ Package, Manager, Among, Like string }
	}
	Commands []packageCommand
}](packagesYAML)

// packageCommand is a command whose output is a version and nothing else.
type packageCommand struct{ Holds, Package, Manager string }

// packageForm is a form of line that tells the version of a package, which it names if among says which packages matter.
type packageForm struct {
	name, manager string
	isPython      bool
	among, like   *lazy.Regexp
}

// packageKinds are the kinds of text whose lines each tell the version of a package.
var packageKinds = sync.OnceValue(func() (kinds []*parse.Kind) {
	const version = `([0-9][\w.+:~-]*)`
	abbreviations := strings.NewReplacer("{version}", version, "{listed}", `([A-Za-z][\w.-]*)(?: {2,}| *\t+)`+version)
	among := map[string]*lazy.Regexp{"python": lazy.New(packages().Python), "system": lazy.New(packages().System)}
	for _, row := range packages().Kinds {
		var forms []packageForm
		for _, f := range row.Forms {
			forms = append(forms, packageForm{f.Package, f.Manager, f.Among == "python", among[f.Among], lazy.New(abbreviations.Replace(f.Like))})
		}
		k := row.Kind
		k.Gives, k.Skips = []string{"software"}, parse.OfNCCL
		k.Line = func(s *parse.Sink, l parse.Line) bool { return takePackage(s, l, forms) }
		kinds = append(kinds, &k)
	}
	return kinds
})

// takePackage reads a line in the first of some forms that it has.
func takePackage(s *parse.Sink, l parse.Line, forms []packageForm) bool {
	for _, f := range forms {
		m := f.like.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		name, version := f.name, strings.TrimRight(m[len(m)-1], ".")
		if f.among != nil {
			name = m[1]
		}
		if f.isPython { // As the index writes it (PEP 503).
			name = strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
		}
		if version == "" || f.among != nil && !f.among.MatchString(name) {
			return false
		}
		s.Package(name, version, "", f.manager, l)
		return true
	}
	return false
}

// packageBare is a version alone in its line, also in quotes or as Python prints a tuple: "(2, 20, 5)".
var packageBare = lazy.New(`^\s*['"(]?([0-9]+(?:\.|, )[0-9]+[\w.+ ,-]*?)['")]?:?\s*$`)

// packagesPrinted takes what a command prints whose output is a version.
var packagesPrinted = &parse.Kind{
	Name: "version-command", Title: "a version that a command printed", Command: "python -c 'import torch; print(torch.cuda.nccl.version())'", Gives: []string{"software"},
	Commands: []string{"python", "python3", "hipconfig", "cat", "cut", "head"},
	Begins: func(in *parse.Lines) bool {
		return packageCommandOf(in.Prompt().Command) != nil && packageBare.MatchString(in.First().Text)
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		command := packageCommandOf(in.Prompt().Command)
		l, _ := in.Next()
		version := packageBare.FindStringSubmatch(l.Text)[1]
		s.Package(command.Package, strings.ReplaceAll(strings.TrimSpace(version), ", ", "."), "", command.Manager, l)
	},
}

func packageCommandOf(line string) *packageCommand {
	return facts.Find(packages().Commands, func(c *packageCommand) bool { return strings.Contains(line, c.Holds) })
}
