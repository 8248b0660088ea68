package patch

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// instructions are a Dockerfile that is changed: lines that set one variable are changed or removed, and others go behind the last ENV.
type instructions struct {
	*file
	image *launch.Image
	// from is the line where the last stage begins, and behind the last one of its last ENV, or of FROM; 0 without a stage.
	from, behind int
}

func (d *instructions) read() {
	var read launch.Dockerfile
	for i, l := range d.lines {
		read.Line(parse.Line{Number: i + 1, Text: l})
	}
	d.image = read.Image()
	d.from, d.behind = read.LastStage()
}

// proposeDockerfile changes the variables that an image sets.
func proposeDockerfile(f *file) error {
	d := &instructions{file: f}
	d.read()
	if d.from == 0 || !slices.ContainsFunc(f.launches, func(l facts.Launch) bool { return l.Kind == "dockerfile" }) {
		return ErrKind
	}
	f.write("", func(w *Want) {
		v, isSet := d.image.Variables[w.Name]
		switch {
		case w.Kind == plan.Unset:
			for isSet && len(w.Values) > 0 && w.removes(w.Name, v.Value) && d.set(v.Line, "") { // Below it, another may be in force.
				v, isSet = d.image.Variables[w.Name]
			}
		case w.Kind != plan.Variable || !w.IsFor("docker") || isSet && same(v.Value, w.Value) || !w.within(1, len(f.lines)):
		case isSet && !stated(v.Value):
			f.byHand(v.Line-1, "its value refers to a variable")
		case isSet && v.Line >= d.from && settingLine.MatchString(d.lines[v.Line-1]):
			d.set(v.Line, remedies.Quote(w.Value))
		default:
			d.insert(d.behind, append(d.comment(d.behind, "", true), "ENV "+w.Name+"="+remedies.Quote(w.Value)))
			d.apply(d.behind-1, d.says(), unread)
			d.read()
		}
	})
	return nil
}

// set changes the value on a line, counted from 1, or removes the line.
func (d *instructions) set(line int, value string) bool {
	ok := d.setLine(line-1, value, d.says())
	d.read()
	return ok
}

// says reports whether the image, which is read for it, then sets the same as now but for the variable.
func (d *instructions) says() func() bool {
	isOther := func(name string, _ launch.Variable) bool { return name == d.want.Name }
	isSame := func(a, b launch.Variable) bool { return a.Value == b.Value }
	was := maps.Clone(d.image.Variables)
	maps.DeleteFunc(was, isOther)
	return func() bool {
		d.read()
		others := maps.Clone(d.image.Variables)
		maps.DeleteFunc(others, isOther)
		return maps.EqualFunc(others, was, isSame) && (d.want.Kind == plan.Unset || strings.EqualFold(d.image.Variables[d.want.Name].Value, d.want.Value))
	}
}
