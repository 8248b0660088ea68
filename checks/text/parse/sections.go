package parse

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// People put the logs of several processes into one text, each under a heading. What such sections say has no order among
// them but by the times that their lines tell.

// headingSigns are in each line that may be a heading; promptSigns are in that of a command.
var headingSigns = []string{"=== ", "--- ", "### ", "*** ", "___ ", "+++ ", "~~~ ", "==> "}

// fence is how a block of Markdown begins and ends.
const fence = "```"

// fenceTaker is how far that taker is behind the one of prompts.
const fenceTaker = 2

// maxSections bounds the sections of a text.
const maxSections = 4096

// headed is a part of a text that begins with a heading, which names the process or the host whose output follows.
type headed struct {
	said, host string
	rank       *int
}

var (
	// ofProcess is what a heading names: the command that shows a log, a file of one, or a process or a machine with its number.
	ofProcess = lazy.New(`(?i)\b(?:logs|journalctl|dmesg|ssh) .|\b(?:pod|node|host|rank|worker|container|task|replica|server|client|machine|head|leader|launcher)[ _:#/-]{0,3}[\w.-]*\d|` +
		`[\w-]\.(?:log|out|err|txt)\b|\b(?:stdout|stderr)\b`)
	// logsOf are the commands that show the log of a container, with its name.
	logsOf = lazy.New(`\b(?:kubectl|oc|docker|podman|nerdctl|crictl|compose)(?: -n \S+| --namespace[= ]\S+)? logs (?:(?:-n|-c|--tail|--since) \S+ |-\S+ )*(?:pods?/)?(?P<name>[a-z0-9][\w.-]*)`)
	// numbered are a process or a machine with its name.
	numbered = lazy.New(`(?i)^(?:on )?(?:pod|node|host|machine|worker)[ :]+(?P<name>[a-z][\w.-]*\d)\b`)
)

// headingIn is what a heading says, without what is drawn around it; empty for another line.
func headingIn(line string) string {
	line = strings.TrimSpace(line)
	if len(line) < 8 || len(line) > 200 {
		return ""
	}
	if p, ok := PromptOf(line); ok {
		if m := logsOf.First(p.Command); m != "" {
			return p.Command
		}
		return ""
	}
	said := strings.TrimLeft(line, line[:1])
	if drawn := len(line) - len(said); strings.ContainsAny(line[:1], "=-#*~_+") && (drawn > 2 || strings.HasPrefix(line, "==>")) && ofProcess.MatchString(said) {
		return strings.Trim(said, line[:1]+" >:|<")
	}
	return ""
}

// heading notes that a section begins with a line, if it is a heading.
func (s *Sink) heading(l Line) {
	if s.source != NoSource || len(s.sections) >= maxSections {
		return
	}
	if said := headingIn(l.Text); said != "" {
		t := s.TextUnderWay()
		s.sections = append(s.sections, headed{said, cmp.Or(logsOf.First(said), numbered.First(said)), rankOfName(said)})
		t.Sections = append(t.Sections, l.Number)
	}
}

// endSections takes the sections of a text back where it has only one, or a heading that comes again: that is a line of one
// program.
func (s *Sink) endSections() {
	seen := map[string]bool{}
	for _, of := range s.sections {
		seen[of.said] = true
	}
	if len(s.sections) > 1 && len(seen) == len(s.sections) {
		return
	}
	s.TextUnderWay().Sections = nil
	for _, p := range s.processes.list {
		if p.Source == s.name {
			p.section = 0
		}
	}
}
