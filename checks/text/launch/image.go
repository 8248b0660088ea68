package launch

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/dockerfile"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/place"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// dockerfileKind takes Dockerfiles: the base image and the variables that
// they set.
func dockerfileKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "dockerfile", Title: "A Dockerfile", Gives: []string{"launches", "env"}, Anchors: []string{"FROM "},
		Begins: func(in *parse.Lines) bool {
			return begins(in, dockerfileFrom) && (s.isDockerfile() || follows(in, 40, dockerfileInstruction))
		},
		Read: func(_ *parse.Sink, in *parse.Lines) {
			first, _ := in.Peek()
			goesOn, here := false, ""
			lines := in.While(func(l parse.Line) bool {
				text := strings.TrimSpace(l.Text)
				switch {
				case s.isDockerfile():
					return true
				case here != "":
					if text == here {
						here = ""
					}
					return true
				case goesOn && (text == "" || strings.HasPrefix(text, "#")): // They do not end an instruction.
					return true
				}
				here = dockerfile.TextBelow(text)
				belongs := goesOn || text == "" || strings.HasPrefix(text, "#") || dockerfileInstruction.MatchString(text)
				goesOn = goesOnBelow(text)
				return belongs
			})
			keepLaunch(s, ofImage(dockerfile.Read(append(linesAbove(s, first), lines...))), first, lines)
		},
	}
}

// linesAbove are those above the first stage: ARG, whose values the stages may take.
func linesAbove(s *reading, first parse.Line) []parse.Line {
	var lines []parse.Line
	for text := range strings.SplitSeq(s.Text(), "\n") {
		if len(lines)+1 >= first.Number {
			break
		}
		lines = append(lines, parse.Line{Number: len(lines) + 1, Text: strings.TrimRight(text, "\r")})
	}
	return lines
}

// ofImage is what a Dockerfile sets in its image.
func ofImage(image *dockerfile.Image) *facts.Launch {
	found := &facts.Launch{Kind: "dockerfile", Image: image.Base, Object: "stage/" + cmp.Or(escape.Printable(image.Stage, 100), "final"), Lines: map[string]int{}}
	for name, v := range image.Variables {
		if env.SteersCommunication(name) {
			setVariable(found, name, ownPath.ReplaceAllString(v.Value, ""))
			found.Lines[place.Variable(name)] = v.Line
		}
	}
	if image.User != "" && !unresolved(found, "user", image.User) {
		found.User = escape.Printable(image.User, 300)
		found.Lines["user"] = image.UserLine
	}
	for _, run := range image.Runs {
		var install installation
		for _, l := range run {
			install.read(found, l)
		}
	}
	return found
}

var (
	dockerfileFrom = lazy.New(`^\s*FROM\s+(?:--platform=\S+\s+)?["']?([\w./:@$}{-]+)["']?(?:\s+(?:AS|as)\s+(\S+))?\s*$`)
	// ownPath is the value that LD_LIBRARY_PATH has before.
	ownPath               = lazy.New(`:?\$(?:\{LD_LIBRARY_PATH(?:[^{}]|\$\{[^{}]*\})*\}|LD_LIBRARY_PATH\b)`)
	dockerfileStart       = lazy.New(`(?mi)^\s*FROM[ \t]+\S`)
	dockerfileSetting     = lazy.New(`(?i)^\s*ENV\s`)
	dockerfileInstruction = lazy.New(`(?i)^\s*(?:FROM|RUN|ENV|COPY|ADD|WORKDIR|ENTRYPOINT|CMD|ARG|LABEL|EXPOSE|USER|SHELL|VOLUME|HEALTHCHECK|STOPSIGNAL|ONBUILD)\s`)
)

// installation reads the packages that RUN installs, over the lines that it goes on.
type installation struct {
	// words are those of the command under way, python is true of one that installs packages of Python, and
	// installing once it names packages. skip is true for the value of an option.
	manager, python, installing, skip bool
}

func (r *installation) read(l *facts.Launch, line parse.Line) {
	text := strings.TrimSpace(line.Text)
	if strings.HasPrefix(text, "#") {
		return
	}
	if len(text) > 4 && strings.EqualFold(text[:4], "RUN ") {
		text = text[4:]
	}
	for word := range strings.FieldsSeq(strings.NewReplacer("&&", " ; ", ";", " ; ", "||", " ; ").Replace(strings.TrimSuffix(strings.TrimRight(text, " \t"), `\`))) {
		switch skip := r.skip; {
		case word == ";":
			*r = installation{}
		case skip:
			r.skip = false
		case managers[baseName(word)]:
			r.manager = true
		case pythonManagers.MatchString(baseName(word)):
			r.manager, r.python = true, true
		case word == "install" || word == "add" && r.python:
			r.installing = r.manager
		case r.installing && r.python && strings.HasPrefix(word, "-"):
			r.skip = pythonValued[word]
		case r.installing && r.python && pythonPackage.MatchString(word):
			name := strings.Trim(word, `"'`)
			appendTo(&l.PythonPackages, name)
			place.Note(l, "python_packages["+name+"]", line.Number)
		case r.installing && !r.python && packageName.MatchString(word):
			name := packageName.FindStringSubmatch(word)[1]
			appendTo(&l.Packages, name)
			place.Note(l, "packages["+name+"]", line.Number)
		}
	}
}

// pythonManagers install packages of Python, and pythonValued are those of their options that take a value.
var (
	pythonManagers = lazy.New(`^(?:pip[\d.]*|pipx|uv|conda|mamba|micromamba)$`)
	pythonValued   = map[string]bool{
		"-r": true, "--requirement": true, "-c": true, "--constraint": true, "-i": true, "--index-url": true, "--extra-index-url": true, "-f": true,
		"--find-links": true, "-t": true, "--target": true, "--python": true, "-n": true, "--name": true, "-p": true, "--prefix": true, "--channel": true,
		"--index-strategy": true, "--torch-backend": true, "--root": true, "--cache-dir": true, "--trusted-host": true,
	}
	// pythonPackage is a requirement: a name, with extras and versions or without.
	pythonPackage = lazy.New(`^["']?[A-Za-z][A-Za-z0-9._-]{0,98}(?:\[[\w,.-]*\])?(?:[=<>~!]=?[^"'\s]*)?["']?$`)
)

// managers install packages of the distribution.
var managers = map[string]bool{"apt-get": true, "apt": true, "dnf": true, "microdnf": true, "yum": true, "zypper": true, "tdnf": true}

// packageName is a package as apt, dnf and zypper name it, with a version or
// without.
var packageName = lazy.New(`^["']?([A-Za-z0-9][A-Za-z0-9.+_-]{0,98})(?:[=<>~!*:].*)?["']?$`)
