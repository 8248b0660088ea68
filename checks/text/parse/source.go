package parse

import (
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// Source says whether a text is what people write for programs to read.
type Source uint8

const (
	// NoSource is a log, the output of a command, or a ticket that mixes both with prose.
	NoSource Source = iota
	// Data is a manifest, or settings. It may also be the output of a command.
	Data
	// Program is a script or another program's source, or what is written for its users, such as a runbook.
	Program
)

var (
	dataExtensions    = []string{".yaml", ".yml", ".json", ".tf", ".toml", ".cfg", ".tfvars", ".hcl", ".env"}
	programExtensions = []string{
		".sh", ".bash", ".zsh", ".sbatch", ".slurm", ".srun", ".pbs", ".py", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".cu", ".cuh", ".ts", ".js",
		".ipynb", ".j2", ".tpl", ".dockerfile", ".containerfile", ".mk", ".rego", ".java", ".bat", ".ps1",
	}
	// mixedExtensions are those of texts in which anything may stand, whatever their first line is.
	mixedExtensions = []string{".log", ".txt", ".md", ".out", ".err"}
)

// SourceOf tells by its name and its text whether a text is a source.
func SourceOf(name, text string) Source {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, ":", "/")))
	extension, _, _ := strings.Cut(path.Ext(base), " ") // "pod.yaml (2)" is the second of that name.
	switch {
	case documentName.MatchString(base), documentTitle.MatchString(text):
		return Program
	case slices.Contains(mixedExtensions, extension):
		return NoSource
	case extension == ".dockerignore":
		return Data
	case strings.HasPrefix(base, "dockerfile"), strings.HasPrefix(base, "containerfile"), slices.Contains(programExtensions, extension):
		return Program
	case extension == ".json" && jsonLines.MatchString(text):
		return NoSource
	case slices.Contains(dataExtensions, extension):
		return Data
	case strings.HasPrefix(text, "#!"):
		return Program
	case objectBegins.MatchString(text) && yaml.Unmarshal([]byte(strings.SplitN(text, "\n---", 2)[0]), new(map[string]any)) == nil:
		return Data
	}
	return NoSource
}

var (
	// documentName and documentTitle are those of texts that tell what may happen, or did to others.
	documentName  = lazy.New(`^(?:runbook|playbook|changelog|faq|wiki|handbook|how-?to|known[-_. ]?issues|release[-_. ]?notes)\b`)
	documentTitle = lazy.New(`(?i)\A\s*#+ (?:[\w-]+ ){0,3}(?:runbook|playbook|changelog|faq|wiki|handbook|how-to|cheat ?sheet|known issues|release notes|post-?mortem|glossary|exam|quiz)\b`)
	// jsonLines is a log with an object on each line.
	jsonLines = lazy.New(`\A\s*\{.*\}[ \t\r]*\n\s*\{`)
	// objectBegins is how an object of Kubernetes begins.
	objectBegins = lazy.New(`\A(?:[ \t]*(?:#.*|---.*)?\r?\n)*(?:"?(?:apiVersion|kind)"?:|(\{)\s*"(?:apiVersion|kind)"\s*:)`)
	// toldByServer is a field in which a cluster or a container engine says what happened.
	toldByServer = lazy.New(`^\s*(?:- )?"?(?:message|reason|[Ee]rror|log)"?:\s`)
)

// BeginsObject tells whether a text begins as an object of Kubernetes does, and whether that is in JSON.
func BeginsObject(text string) (is, isJSON bool) {
	begins := objectBegins.FindStringSubmatch(text)
	return begins != nil, begins != nil && begins[1] != ""
}

// reads reports whether a kind is asked for a line of the text under way, or for blocks that begin there.
func (r *Reading) reads(k *Kind, line string) bool {
	switch {
	case r.Sink.source == NoSource || k.Files:
		return true
	case r.Sink.source == Program || strings.HasPrefix(strings.TrimSpace(line), "#"):
		return false
	}
	return !slices.ContainsFunc(k.Gives, func(section string) bool { return section == "logs" || section == "kernel_log" || section == "runs" })
}
