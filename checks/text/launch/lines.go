package launch

import (
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

// commandKind takes command lines that stand by themselves, and those that go on over several lines.
func commandKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "command-line", Title: "How a container or a job is started", Gives: []string{"launches", "env"},
		Anchors: programs().anchors(), Commands: append(slices.Collect(maps.Keys(byName())), "python", "python3"),
		Begins: func(in *parse.Lines) bool {
			at, text, isAbove := firstLine(in)
			_, prompted := parse.PromptOf(strings.TrimSpace(at.Text)) // The command of an indented prompt may end in its line.
			return (isAbove || !prompted) && startsLaunch(text)
		},
		Read: func(_ *parse.Sink, in *parse.Lines) { readLines(s, in) },
	}
}

// promptKind takes commands behind a prompt that end in the same line, and those that a log says it runs.
func promptKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "command", Title: "A command that starts a container or a job", Gives: []string{"launches", "env"},
		Anchors: programs().anchors(),
		Line: func(_ *parse.Sink, l parse.Line) bool {
			if s.Form() != parse.NoSource {
				return false
			}
			if p, ok := parse.PromptOf(l.Text); ok {
				return !goesOnBelow(p.Command) && startsLaunch(p.Command) && takeCommand(s, p.Command, l)
			}
			command := loggedCommand.First(l.Text)
			return startsLaunch(command) && takeCommand(s, command, l)
		},
	}
}

// loggedCommand is how programs write what they run: DeepSpeed's "cmd = ...".
var loggedCommand = lazy.New(`\b(?:cmd|CMD|[Cc]ommand|[Rr]unning|[Ee]xecuting|[Ll]aunching)(?: line| command)? ?[:=] *(\S.*)$`)

func startsLaunch(text string) bool { return !outcome.MatchString(text) && len(started(text, 0)) > 0 }

// outcome is how a script says how a program ended: "torchrun exit status: 0".
var outcome = lazy.New(`^\s*[\w./-]+ exit(?:ed)?\b`)

// goesOnBelow reports whether a line ends in a backslash, a blank behind which is overlooked.
func goesOnBelow(text string) bool {
	text = strings.TrimRight(text, " \t")
	return strings.HasSuffix(text, `\`) && !strings.HasSuffix(text, `\\`)
}

// BareCommand takes off a line what is not the command: blanks, the plus of "set -x", the shell's second prompt, a lone
// sign of a prompt, and the mark of quoted or listed text.
func BareCommand(text string) string {
	text = strings.TrimSpace(text)
	for _, prefix := range []string{"+++ ", "++ ", "+ ", "> ", "$ ", "# $ ", "- "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.TrimSpace(strings.Trim(text, "`"))
}

const maxLines = 300

// firstLine is the line at which a command begins, and the command: the next one, or that above it, behind a prompt.
func firstLine(in *parse.Lines) (at parse.Line, command string, isAbove bool) {
	at, _ = in.Peek()
	if p := in.Prompt(); p.Line > 0 && at.Number == p.Line+1 && goesOnBelow(p.Command) {
		at.Number = p.Line
		return at, p.Command, true
	}
	return at, BareCommand(at.Text), false
}

func readLines(s *reading, in *parse.Lines) {
	at, text, isAbove := firstLine(in)
	if !isAbove {
		in.Next()
	}
	var b strings.Builder
	lines := []parse.Line{{Text: text, Number: at.Number}}
	for len(lines) <= maxLines && goesOnBelow(text) && b.Len() <= parse.MaxLine {
		b.WriteString(strings.TrimSuffix(strings.TrimRight(text, " \t"), `\`) + " ")
		text = ""
		l, ok := in.Next()
		if !ok {
			break
		}
		lines = append(lines, l)
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.Text), "> "))
		if strings.HasPrefix(text, "#") { // A comment between: the shell would end here, the author does not mean it.
			text = `\`
		}
	}
	b.WriteString(text)
	s.block = lines
	takeCommand(s, b.String(), at)
	s.block = nil
}

// argumentsKind takes the arguments that servers and launchers print of themselves: vLLM's "Initializing an LLM engine
// ... tensor_parallel_size=2" and "non-default args: {'tensor_parallel_size': 2}", SGLang's "server_args=ServerArgs(...
// tp_size=2", DeepSpeed's "nnodes=1, num_local_procs=4".
func argumentsKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "arguments", Title: "The arguments that a server or a launcher printed", Gives: []string{"launches"},
		Anchors: []string{"tensor_parallel_size", "tp_size=", "num_local_procs="},
		Line: func(_ *parse.Sink, l parse.Line) bool {
			found := &facts.Launch{Kind: "command"}
			text := l.Text[:min(len(l.Text), 16<<10)]
			for _, m := range printedArgument.FindAllStringSubmatch(text, 32) {
				set(found, programs().Ranks["--"+strings.ReplaceAll(m[1], "_", "-")], m[2])
			}
			if found.TensorParallel == nil && found.Processes == nil {
				return false
			}
			keepLaunch(s, found, l, nil)
			return true
		},
	}
}

var printedArgument = lazy.New(`\b(tensor_parallel_size|pipeline_parallel_size|data_parallel_size|tp_size|pp_size|dp_size|num_local_procs|nnodes)['"]?[=:] ?(\d{1,7})\b`)

// scriptKind takes the #SBATCH lines of a batch script. What else stands in the script is read by itself.
func scriptKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "sbatch", Title: "A batch script of Slurm", Gives: []string{"launches"}, Anchors: []string{"#SBATCH"},
		Begins: parse.BeginsLike(sbatchLine),
		Read: func(_ *parse.Sink, in *parse.Lines) {
			lines := in.While(func(l parse.Line) bool {
				text := strings.TrimSpace(l.Text)
				return text == "" || strings.HasPrefix(text, "#")
			})
			found := &facts.Launch{Kind: "slurm"}
			var words []string
			for _, l := range lines {
				if rest, ok := strings.CutPrefix(strings.TrimSpace(l.Text), "#SBATCH"); ok && len(words) < maxWords {
					words = append(words, shell.Words(rest)...)
				}
			}
			// A value that stands alone is not a program here.
			for len(words) > 0 {
				if words = readSlurm(found, words); len(words) > 0 {
					words = words[1:]
				}
			}
			findParts(found, lines)
			keepLaunch(s, found, in.First(), nil)
		},
	}
}

var sbatchLine = lazy.New(`^\s*#SBATCH`)

// environmentKind takes variables that control communication, however they are set: the output of env, a shell's
// export, a prefix of a command, a line of a Dockerfile, Python's os.environ.
func environmentKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "environment", Title: "Environment variables", Command: "env", Gives: []string{"env"},
		Anchors: []string{
			"NCCL_", "RCCL_", "CUDA_", "HSA_", "HIP_", "ROCR_", "UCX_", "FI_", "OMPI_MCA_", "NVSHMEM_", "GPU_DEVICE_ORDINAL", "LD_LIBRARY_PATH",
			"LD_PRELOAD", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_IMEX_CHANNELS", "NVIDIA_VISIBLE_DEVICES",
		}, // The beginnings of the names that env.SteersCommunication takes.
		Line: func(_ *parse.Sink, l parse.Line) bool {
			if s.isDockerfile() || dockerfileSetting.MatchString(l.Text) && s.inDockerfile(l) {
				return false
			}
			settings := environmentSettings(l.Text)
			for _, v := range settings {
				value := v[1]
				if strings.Contains(value, "$") {
					value = shell.Expand(value, s.variables(l.Number))
				}
				if refersTo(v[0], value) || s.isExported(v[0], l.Text) {
					s.set(VariablePart(v[0]), value, l.Number)
				}
				if !shell.Refers(value) || v[0] == searchPath && !strings.HasPrefix(value, "$") {
					s.Variable(v[0], escape.Printable(value, maxValue), l)
				}
			}
			return len(settings) > 0
		},
	}
}

var (
	// environmentPython is os.environ["NAME"] = "value" and os.environ.setdefault("NAME", "value").
	environmentPython = lazy.New(`^\s*(?:>>> )?os\.environ(?:\[|\.setdefault\()\s*['"](\w+)['"]\s*(?:\]\s*=|,)\s*(?:str\()?['"]?([^'")]*)['"]?\)*\s*(?:#.*)?$`)
	// environmentFront is what stands before assignments: the plus of "set -x", the second prompt, an export.
	environmentFront = lazy.New(`^(?:\++ )?(?:> )?((?:export|declare -x|ENV|set) +)?`)
	// environmentDocker is the older form of ENV: "ENV NAME value".
	environmentDocker = lazy.New(`^\s*ENV\s+([A-Za-z_]\w*)\s+([^=\s].*)$`)
	// environmentFish and others: "setenv NAME value", "set -gx NAME value".
	environmentSet = lazy.New(`^\s*(?:setenv|set -g?x|set -Ux)\s+([A-Za-z_]\w*)\s+(\S+)\s*$`)
	// environmentConf writes a variable to NCCL's file of settings.
	environmentConf = lazy.New(`^\W*(?:RUN |sudo |&& )*echo\s+["']?([NR]CCL_\w+)=([^"'\s]+)["']?\s*>>?\s*\S*/\.?nccl\.conf\b`)
	// environmentJSON is a variable in a job's description, and environmentJSONPair one that is a name and a value.
	environmentJSON     = lazy.New(`^\s*[{,]?\s*"([A-Z][A-Z0-9_]+)"\s*:\s*"([^"\\]*)"\s*[},]*\s*$`)
	environmentJSONPair = lazy.New(`"name"\s*:\s*"([A-Z][A-Z0-9_]+)"\s*,\s*"value"\s*:\s*"([^"\\]*)"`)
	// environmentCommand is what a word must look like for variables before it to be those of a command, and not of prose.
	environmentCommand = lazy.New(`^(?:\.{0,2}/\S+|python[\d.]*|bash|sh|torchrun|mpirun|mpiexec|srun|deepspeed|accelerate|vllm|docker|podman|numactl|nohup|sudo|env|time|ray|horovodrun|sglang|trtllm-serve|lmdeploy|uv|poetry|conda|swift|llamafactory-cli|nsys|FORCE_TORCHRUN=\S*|\S+\.(?:sh|py)|\w+_perf|nvidia-smi|make|pytest|\\)$`)
)

// environmentSettings returns the variables that a line sets for the job, as name and value.
func environmentSettings(line string) [][2]string {
	return slices.DeleteFunc(allSettings(line), func(v [2]string) bool { return !env.SteersCommunication(v[0]) })
}

// allSettings returns those of any name.
func allSettings(line string) (settings [][2]string) {
	if p, ok := parse.PromptOf(line); ok {
		line = p.Command
	}
	if len(line) > 16<<10 {
		return nil
	}
	for _, form := range []*lazy.Regexp{environmentJSONPair, environmentPython, environmentDocker, environmentSet, environmentConf, environmentJSON} {
		for _, m := range form.FindAllStringSubmatch(line, parse.MaxEntries) {
			settings = append(settings, [2]string{m[1], strings.Trim(strings.TrimSpace(m[2]), `"'`)})
		}
		if settings != nil {
			return settings
		}
	}
	text := strings.TrimSpace(line)
	front := environmentFront.FindStringSubmatch(text)
	declared := front[1] != ""
	text = text[len(front[0]):]
	name, value, ok := strings.Cut(text, "=")
	if !ok || !variableName.MatchString(name) {
		return nil
	}
	words := shell.Words(strings.TrimSuffix(strings.TrimRight(text, " \t"), `\`))
	if len(words) == 0 {
		return [][2]string{{name, value}}
	}
	for i, word := range words {
		name, value, ok := assignment(word)
		switch {
		case ok:
			settings = append(settings, [2]string{name, value})
		case declared || environmentCommand.MatchString(word) || i == 1 && strings.HasPrefix(settings[0][0], "LD_"):
			return settings
		default: // A value with spaces, as env prints it, or prose: a path at the front of the line says which.
			return nil
		}
	}
	return settings
}
