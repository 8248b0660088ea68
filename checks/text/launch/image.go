package launch

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// dockerfileKind takes Dockerfiles: the base image and the variables that they set.
func dockerfileKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "dockerfile", Title: "A Dockerfile", Gives: []string{"launches", "env"}, Anchors: []string{"FROM "},
		Begins: func(in *parse.Lines) bool {
			return begins(in, dockerfileFrom) && (s.isDockerfile() || follows(in, 40, Instruction))
		},
		Read: func(_ *parse.Sink, in *parse.Lines) {
			var file Dockerfile
			above := strings.Split(s.Text(), "\n") // Of the first stage: ARG, whose values the stages may take.
			for i, text := range above[:min(len(above), in.First().Number-1)] {
				file.Line(parse.Line{Number: i + 1, Text: strings.TrimRight(text, "\r")})
			}
			lines := in.While(func(l parse.Line) bool { return file.Line(l) || s.isDockerfile() })
			keepLaunch(s, ofImage(file.Image()), in.First(), lines)
		},
	}
}

func ofImage(image *Image) *facts.Launch {
	found := &facts.Launch{Kind: "dockerfile", Image: image.Base, Object: "stage/" + cmp.Or(escape.Printable(image.Stage, 100), "final"), Lines: map[string]int{}}
	for name, v := range image.Variables {
		if env.SteersCommunication(name) {
			setVariable(found, name, ownPath.ReplaceAllString(v.Value, ""))
			found.Lines[VariablePart(name)] = v.Line
		}
	}
	if image.User != "" && !unresolved(found, "user", image.User) {
		found.User = escape.Printable(image.User, 300)
		found.Lines["user"] = image.UserLine
	}
	for _, run := range image.Runs {
		installed(found, run)
	}
	return found
}

var (
	dockerfileFrom = lazy.New(`^\s*FROM\s+(?:--platform=\S+\s+)?["']?([\w./:@$}{-]+)["']?(?:\s+(?:AS|as)\s+(\S+))?\s*$`)
	// ownPath is the value that LD_LIBRARY_PATH has before.
	ownPath           = lazy.New(`:?\$(?:\{LD_LIBRARY_PATH(?:[^{}]|\$\{[^{}]*\})*\}|LD_LIBRARY_PATH\b)`)
	dockerfileStart   = lazy.New(`(?mi)^\s*FROM[ \t]+\S`)
	dockerfileSetting = lazy.New(`(?i)^\s*ENV\s`)
)

func installed(l *facts.Launch, run []parse.Line) {
	var manager, python, installing bool // Of the command under way.
	for _, line := range run {
		for word := range strings.FieldsSeq(betweenCommands.Replace(line.Text)) {
			switch {
			case word == ";":
				manager, python, installing = false, false, false
			case managers[baseName(word)]:
				manager = true
			case pythonManagers.MatchString(baseName(word)):
				python = true
			case word == "install":
				installing = manager
			case python && pythonNCCL.MatchString(word):
				name := strings.Trim(word, `"'`)
				appendTo(&l.PythonPackages, name)
				noteLine(l, "python_packages["+name+"]", line.Number)
			case installing && packageName.MatchString(word):
				name := packageName.FindStringSubmatch(word)[1]
				appendTo(&l.Packages, name)
				noteLine(l, "packages["+name+"]", line.Number)
			}
		}
	}
}

var betweenCommands = strings.NewReplacer("&&", " ; ", ";", " ; ", "||", " ; ")

// pythonManagers install packages of Python, of which only those of NCCL count.
var (
	pythonManagers = lazy.New(`^(?:pip[\d.]*|pipx|uv|conda|mamba|micromamba)$`)
	pythonNCCL     = lazy.New(`^["']?nvidia[-_]nccl[A-Za-z0-9._-]{0,60}(?:[=<>~!]=?[^"'\s]*)?["']?$`)
)

// managers install packages of the distribution.
var managers = map[string]bool{"apt-get": true, "apt": true, "dnf": true, "microdnf": true, "yum": true, "zypper": true, "tdnf": true}

// packageName is a package as apt, dnf and zypper name it, with a version or without.
var packageName = lazy.New(`^["']?([A-Za-z0-9][A-Za-z0-9.+_-]{0,98})(?:[=<>~!*:].*)?["']?$`)
