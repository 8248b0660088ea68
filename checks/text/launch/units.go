package launch

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// reading is what the kinds of this package share of one reading.
type reading struct {
	*parse.Sink
	// assigned is what a script assigns, and the text that it is.
	assigned struct {
		source string
		script *shell.Variables
	}
	// documents are those of a text that should be a manifest, up to the first that is broken, and why that is.
	documents struct {
		text  string
		nodes []*yaml.Node
		err   error
	}
	// block are the lines of the command that is being read, where it goes on over several.
	block []parse.Line
	// begin is the first launch of the text that is being read, parts are the lines of its launches that
	// are units of their own, and settings are what its scripts set.
	begin    int
	parts    []part
	settings []setting
}

type part struct{ first, last int }

func (p part) holds(line int) bool { return p.first <= line && line <= p.last }

// setting is a part of a launch that a script sets for what it runs: a variable, or the limit of locked
// memory. A value that is not known refers to it.
type setting struct {
	part, value string
	line        int
}

// alone are the kinds of launch that are units of their own: what starts them hands them nothing, or is not in the text.
var alone = map[string]bool{
	"kubernetes": true, "compose": true, "docker-inspect": true, "dockerfile": true, "docker-run": true, "apptainer": true,
}

// isDuplicate reports whether a launch says what an earlier one says that is certain to be the same. Logs
// repeat commands; in the files of jobs each stands for itself.
func (s *reading) isDuplicate(l *facts.Launch) bool {
	for i := range s.Facts.Launches {
		earlier, sameText := &s.Facts.Launches[i], i >= s.begin
		switch {
		case sameText && s.Form() != parse.NoSource && earlier.Line != l.Line, !sameText && (described[l.Kind] || s.Form() != parse.NoSource):
		case sameLaunch(earlier, l):
			return true
		}
	}
	return false
}

// units tells the launches of a text apart by what runs them, at its end.
func (s *reading) units() {
	scripts := scriptsIn(s.Source(), s.Text(), s.Form())
	s.shells(scripts)
	numbers, taken, last := map[part]int{}, map[int]bool{}, 0
	kept := s.Facts.Launches[:s.begin]
	for _, l := range s.Facts.Launches[s.begin:] {
		of := s.partOf(&l, scripts)
		number := numbers[of]
		if number == 0 || alone[l.Kind] && taken[number] { // Several containers may stand in one line.
			last++
			number = last
		}
		numbers[of] = cmp.Or(numbers[of], number)
		taken[number] = taken[number] || alone[l.Kind]
		l.Unit = number
		again := func(other facts.Launch) bool { return other.Unit == number && !alone[l.Kind] && sameLaunch(&other, &l) }
		if !slices.ContainsFunc(kept[s.begin:], again) {
			kept = append(kept, l)
		}
	}
	s.Facts.Launches = kept
	s.ignores(scripts)
	s.begin, s.parts, s.settings = len(kept), nil, nil
}

// partOf is the lines that are the unit of a launch: its own, those of its container, or those of its script.
func (s *reading) partOf(l *facts.Launch, scripts []part) part {
	if l.Kind == "slurm-node" {
		return part{}
	}
	if own := innermost(s.parts, l.Line); own.first == l.Line || !alone[l.Kind] && own != everything {
		return own
	}
	return innermost(scripts, l.Line)
}

var everything = part{1, 1 << 30}

func innermost(parts []part, line int) part {
	found := everything
	for _, p := range parts {
		if p.holds(line) && p.last-p.first < found.last-found.first {
			found = p
		}
	}
	return found
}

var (
	fence      = lazy.New("^\\s*(?:>\\s*)?(?:```|~~~)")
	hereBegins = lazy.New(`(?:^|[^<])<<-?\s*["']?\\?([A-Za-z_]\w*)["']?`)
)

// isMarkup reports whether prose stands around the commands of a text.
func isMarkup(name string) bool {
	return slices.Contains([]string{".md", ".mdx", ".markdown", ".rst", ".adoc", ".html"}, strings.ToLower(path.Ext(name)))
}

// scriptsIn are the parts of a text that are scripts by themselves: those that it writes to other files
// ("cat > x.sh <<EOF"), those that begin with "#!" or with another header of a batch job, the text of a
// key in YAML ("run: |"), and in prose each block of code.
func scriptsIn(name, text string, form parse.Source) []part {
	var parts []part
	lines := strings.Split(text, "\n")
	begun, header, commands := 1, false, false // Of the script under way: its first line, and whether it has a header, and commands.
	paragraph := 0
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines[i], "<pre>")) // As the page of a ticket shows it.
		end, another := i, false                                         // The last line of a part that begins below this one, and whether another script begins here.
		isComment := strings.HasPrefix(line, "#")
		var here []string
		if form != parse.Data && !isComment && strings.Contains(line, "<<") {
			here = hereBegins.FindStringSubmatch(line)
		}
		switch {
		case here != nil:
			end = below(lines, i, func(l string) bool { return strings.TrimSpace(l) == here[1] })
		case form == parse.NoSource && fence.MatchString(line):
			end = below(lines, i, fence.MatchString)
		case form == parse.Data && !isComment && strings.ContainsAny(line, "|>") && yamlLiteral.MatchString(lines[i]):
			indent := indentation(lines[i])
			end = below(lines, i, func(l string) bool { return strings.TrimSpace(l) != "" && indentation(l) <= indent })
			if end == i {
				end = len(lines)
			}
			end-- // The next key is no part of it.
		case form == parse.NoSource && isMarkup(name):
			if line == "" && paragraph > 0 {
				parts = append(parts, part{paragraph, i})
				paragraph = 0
			} else if line != "" && paragraph == 0 {
				paragraph = i + 1
			}
		case strings.HasPrefix(line, "#!") && form != parse.Data:
			another = commands || header
		case strings.HasPrefix(line, "#SBATCH"):
			another = header && commands
			header = true
		case line != "" && !isComment:
			commands = true
		}
		if another {
			parts = append(parts, part{begun, i}, part{i + 1, len(lines)})
			begun, header, commands = i+1, strings.HasPrefix(line, "#SBATCH"), false
		}
		if end > i {
			parts = append(parts, part{i + 2, end + 1})
			i = end
		}
	}
	return parts
}

// below is the first line after one that meets a condition; the line itself if there is none.
func below(lines []string, i int, holds func(string) bool) int {
	if n := slices.IndexFunc(lines[i+1:], holds); n >= 0 {
		return i + 1 + n
	}
	return i
}

func (s *reading) set(part, value string, line int) {
	if len(s.settings) < parse.MaxEntries {
		s.settings = append(s.settings, setting{part, value, line})
	}
}

// shells makes a launch of what each script sets. What is set twice, or in a branch, is not known.
func (s *reading) shells(scripts []part) {
	var shells []*facts.Launch
	byPart := map[part]*facts.Launch{}
	set := map[*facts.Launch]map[string]string{}
	for _, v := range s.settings {
		l := &facts.Launch{Kind: "shell", Line: v.line}
		of := s.partOf(l, scripts)
		if byPart[of] == nil {
			byPart[of], set[l], shells = l, map[string]string{}, append(shells, l)
		}
		l = byPart[of]
		switch before, again := set[l][v.part]; {
		case again && before != v.value:
			leaveOpen(l, "set in several lines", v.part)
		case !again && v.value != "" && s.Form() != parse.NoSource && s.script().Branches(v.line):
			leaveOpen(l, "set in a branch", v.part)
		}
		set[l][v.part] = v.value
		noteLine(l, v.part, v.line)
	}
	for _, l := range shells {
		for name, value := range set[l] {
			if variable, ok := strings.CutPrefix(name, "variables["); ok {
				setVariable(l, strings.TrimSuffix(variable, "]"), value)
			} else if !unresolved(l, name, value) {
				l.MemlockBytes = parse.Limit(value, 1024)
			}
		}
		keepLaunch(s, l, parse.Line{Number: l.Line}, nil)
	}
	for i := range s.Facts.Launches[s.begin:] { // Apptainer and enroot hand on the variables of the shell.
		l := &s.Facts.Launches[s.begin+i]
		shell := byPart[innermost(scripts, l.Line)]
		if l.Kind != "apptainer" || shell == nil {
			continue
		}
		for name, value := range shell.Variables {
			if l.Variables[name] == "" && shell.Lines[VariablePart(name)] < l.Line {
				setVariable(l, name, value)
				noteLine(l, VariablePart(name), shell.Lines[VariablePart(name)])
			}
		}
	}
}

// isExported reports whether a line hands a variable to the programs of a script: it exports it, or assigns
// what another line exports. A variable in front of a command is that of the command.
func (s *reading) isExported(name, line string) bool {
	isJSON := environmentJSON.MatchString(line) || environmentJSONPair.MatchString(line) // It belongs to what the object describes.
	if isJSON || s.Form() == parse.NoSource && !isMarkup(s.Source()) || startsLaunch(BareCommand(line)) {
		return false
	}
	alone := !slices.ContainsFunc(shell.Words(strings.TrimRight(line, "\\ \t")), func(w string) bool { _, _, ok := assignment(w); return !ok })
	return s.Form() != parse.Program || !alone || strings.HasSuffix(s.Source(), ".py") || s.script().Exports(name)
}

var ignoring = lazy.New(`(?:^|\s)#\s*gpudoctor:ignore\s+([a-z][a-z0-9-]{0,60})\s*(?::\s*(\S.*))?$`)

// ignores reads the comments that accept findings: for the launch at which they stand, or else for their document or script.
func (s *reading) ignores(scripts []part) {
	own := s.Facts.Launches[s.begin:]
	if len(own) == 0 || !strings.Contains(s.Text(), "gpudoctor:ignore") {
		return
	}
	lines := strings.Split(s.Text(), "\n")
	for i, text := range lines {
		m := ignoring.FindStringSubmatch(strings.TrimRight(text, "\r"))
		if m == nil {
			continue
		}
		line := i + 1
		if m[2] == "" {
			notUnderstood(s, fmt.Sprintf("line %d of %s ignores %s without a reason", line, s.Source(), m[1]), "write why: \"# gpudoctor:ignore "+m[1]+": REASON\"")
			continue
		}
		scope := innermost(s.parts, line)
		if begins := innermost(s.parts, line+1); scope == everything && begins.first == line+1 && indentation(text) <= indentation(lines[line]) {
			scope = begins
		} else if scope == everything && indentation(text) > 0 { // At the end of a container.
			scope = innermost(s.parts, line-1)
		}
		switch {
		case scope != everything:
		case s.Form() == parse.Data:
			scope = documentOf(lines, i)
		default:
			scope = innermost(scripts, line)
		}
		for j := range own {
			if l := &own[j]; len(l.Ignored) < maxList && (scope.holds(l.Line) || s.partOf(l, scripts) == scope) {
				l.Ignored = append(l.Ignored, facts.Ignored{Rule: m[1], Reason: escape.Printable(m[2], 300), Line: line})
			}
		}
	}
}

// documentOf is the document of YAML in which a line stands, by its index.
func documentOf(lines []string, i int) part {
	divides := func(l string) bool { return strings.HasPrefix(l, "---") }
	begin := i
	for begin > 0 && !divides(lines[begin]) {
		begin--
	}
	end := below(lines, i, divides)
	if end == i {
		end = len(lines)
	}
	return part{begin + 1, end}
}
