package launch

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

const (
	// maxWords bounds the words of one command line, maxList the entries of each list of a launch.
	maxWords = 2000
	maxList  = 256
	// maxValue bounds one word that is kept, as checks does for variables.
	maxValue = 4 << 10
	// maxCommand bounds the words of a program that are kept.
	maxCommand = 64
)

var variableName = lazy.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func assignment(word string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(word, "=")
	return name, value, ok && variableName.MatchString(name)
}

// parseCount reads a count of processes, GPUs or nodes. "2:4" is torchrun's range of nodes, of which the first counts.
func parseCount(text string) *int {
	text, _, _ = strings.Cut(text, ":")
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > 1<<20 {
		return nil
	}
	return &n
}

func setVariable(l *facts.Launch, name, value string) {
	if !variableName.MatchString(name) {
		return
	}
	if refersTo(name, value) {
		leaveOpen(l, value, VariablePart(name))
		if name != searchPath {
			return
		}
	}
	if _, known := l.Variables[name]; known || len(l.Variables) < maxList {
		facts.Put(&l.Variables, name, escape.Printable(value, maxValue))
	}
}

func setAssignment(l *facts.Launch, word string) {
	if name, value, ok := strings.Cut(word, "="); ok {
		setVariable(l, name, value)
	}
}

func appendTo(list *[]string, values ...string) {
	for _, v := range values {
		if v != "" && len(*list) < maxList && !slices.Contains(*list, v) {
			*list = append(*list, escape.Printable(v, maxValue))
		}
	}
}

func addMount(l *facts.Launch, source, target string) {
	if target == "" {
		return
	}
	if target == "/dev/shm" {
		l.SHMMounted = true
	}
	if shell.Refers(target) || shell.Refers(source) && strings.HasPrefix(target, "/dev") {
		leaveOpen(l, source+":"+target, "mounts")
	}
	appendTo(&l.Mounts, source+":"+target)
}

// addVolume notes a mount that is written as "source:target:options"; source is that of a target alone.
func addVolume(l *facts.Launch, text, source string) {
	target := text
	if before, after, ok := strings.Cut(text, ":"); ok {
		source = before
		target, _, _ = strings.Cut(after, ":")
	}
	addMount(l, source, target)
}

// keepLaunch writes a launch into the facts: its variables also apply to the job. A launch that another line described
// already is not added twice. Lines are those of the command, if it continues over several.
func keepLaunch(s *reading, l *facts.Launch, at parse.Line, lines []parse.Line) {
	l.Source, l.Line = s.Source(), at.Number
	readVariables(l)
	readCommand(l, l.Command)
	settle(l)
	l.Command = slices.Clone(l.Command[:min(len(l.Command), maxCommand)])
	for i, word := range l.Command {
		l.Command[i] = escape.Printable(word, maxValue)
	}
	l.Name, l.Image = escape.Printable(l.Name, 300), escape.Printable(l.Image, 300)
	if l.Lines == nil {
		findParts(l, lines)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
		line := at
		if l.Lines != nil { // None where several lines describe the launch and it is not known which.
			line.Number = l.Lines[VariablePart(name)]
		}
		s.Variable(name, l.Variables[name], line)
	}
	if l.Kind != "shell" || l.MemlockBytes != nil || len(l.Unknown) > 0 { // Variables are told one by one.
		s.Tell(parse.Event{Kind: parse.Launched, Launch: l, Line: at})
	}
	if s.isDuplicate(l) {
		return
	}
	if len(s.Facts.Launches)-s.begin >= maxList || len(s.Facts.Launches) >= parse.MaxEntries {
		notUnderstood(s, fmt.Sprintf("only the first %d descriptions of jobs are kept, and %s has more", len(s.Facts.Launches)-s.begin, s.Source()), "give fewer files at a time")
		return
	}
	s.Facts.Launches = append(s.Facts.Launches, *l)
	if alone[l.Kind] {
		all := append([]parse.Line{at}, lines...)
		s.parts = append(s.parts, part{at.Number, all[len(all)-1].Number})
	}
}

// notUnderstood notes that descriptions of jobs in the text may be missing from the facts.
func notUnderstood(s *reading, reason, hint string) {
	s.Unknown("launches", "["+s.Source()+"]", reason, hint)
}

// described are the kinds of launch that files of their own describe: the same in two files
// is said twice, and either may be at fault. Logs repeat the others.
var described = map[string]bool{
	"compose": true, "dockerfile": true, "kubernetes": true, "shell": true, "slurm": true, "slurm-node": true,
}

// sameLaunch compares what two launches ask for, not where they stand.
func sameLaunch(a, b *facts.Launch) bool {
	if a.Kind != b.Kind || a.Name != b.Name || a.Image != b.Image || a.Source != b.Source && described[a.Kind] {
		return false
	}
	first, second := *a, *b
	for _, l := range []*facts.Launch{&first, &second} {
		l.Source, l.Line, l.Lines, l.Unit, l.Ignored = "", 0, nil, 0, nil
	}
	return reflect.DeepEqual(first, second)
}

// readVariables takes from the variables how many ranks a program runs, and which GPUs a container gets:
// the NVIDIA runtime reads NVIDIA_VISIBLE_DEVICES.
func readVariables(l *facts.Launch) {
	f := familyOf(strings.Join(l.Command[:min(len(l.Command), 1)], ""))
	for name, value := range l.Variables {
		switch part := f.setByRanks(name, value); {
		case part == "cpu":
			l.CPUOnly = true
		case part != "" && value != "" && valueOf(l, part).IsZero():
			set(l, part, value)
		}
	}
	if l.GPUs != nil || l.Runtime != "nvidia" && l.Kind != "docker-run" && l.Kind != "compose" {
		return
	}
	leaveOpen(l, l.Unknown[VariablePart("NVIDIA_VISIBLE_DEVICES")], "gpus")
	if l.GPUs = countDevices(l.Variables["NVIDIA_VISIBLE_DEVICES"]); l.GPUs != nil {
		l.GPUVendor = "nvidia"
	}
}

// countDevices counts the GPUs of "all", "0,1" or "GPU-uuid,GPU-uuid"; nil means none, or not known.
func countDevices(list string) *int {
	switch lower := strings.ToLower(list); {
	case lower == "all":
		return new(-1)
	case lower == "" || lower == "none" || lower == "void" || lower == "no-gpu-has-10de" || strings.ContainsAny(list, "$ "):
		return nil
	}
	return new(strings.Count(list, ",") + 1)
}

// Settings are the variables that a line sets for a job, by name and value: a shell's export, the prefix of a command,
// a line of env. It leaves out values that the line does not show.
func Settings(line string) [][2]string {
	return slices.DeleteFunc(environmentSettings(line), func(v [2]string) bool { return refersTo(v[0], v[1]) })
}

// readCommand takes from a program's arguments how many ranks it should run, also from a script in one of them ("bash -c
// '...'").
func readCommand(l *facts.Launch, words []string) {
	for i, word := range words {
		if !strings.ContainsAny(word, " \n") || i == 0 {
			continue
		}
		script := shell.ReadVariables(word)
		for _, c := range shell.Parse(word).Commands {
			readScript(l, c)
			var options []string
			for _, w := range c.Words {
				if value := shell.Expand(w.Value, script.At(c.Line).Or(ofLaunch(l))); value != w.Value {
					options = append(options, strings.Fields(value)...)
				} else {
					options = append(options, w.Value)
				}
			}
			if strings.Contains(word, "--") {
				readOptions(l, options)
			}
		}
	}
	expanded := make([]string, len(words))
	for i, word := range words {
		expanded[i] = shell.Expand(kubernetesReference.ReplaceAllString(word, "$${$1}"), ofLaunch(l))
	}
	readOptions(l, expanded)
}

// readScript notes the variables of a command in a script of a container: what it exports or sets for its
// program, or mpirun for the ranks. What may not run is not known.
func readScript(l *facts.Launch, c shell.Command) {
	words := c.Values()
	if len(words) > 0 && words[0] == "export" {
		words = words[1:]
	}
	variables, program := stripWrappers(words)
	if programOf(program) == "mpirun" && (l.GPUs == nil || *l.GPUs != 0) && l.GPUVendor != "" { // Else its ranks run in other pods.
		ranks := &facts.Launch{}
		readMPI(ranks, program[1:])
		for name, value := range ranks.Variables {
			variables = append(variables, [2]string{name, value})
		}
	}
	for _, v := range variables {
		switch _, known := l.Variables[v[0]]; {
		case !env.SteersCommunication(v[0]):
		case known && l.Variables[v[0]] != v[1], c.Maybe:
			leaveOpen(l, "set in a script", VariablePart(v[0]))
		default:
			setVariable(l, v[0], v[1])
		}
	}
}

// kubernetesReference is how a pod's command refers to a variable of the container.
var kubernetesReference = lazy.New(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

func ofLaunch(l *facts.Launch) shell.Lookup {
	return func(name string) (string, shell.State) {
		if value, ok := l.Variables[name]; ok {
			return value, shell.Known
		}
		if l.Unknown[VariablePart(name)] != "" {
			return "", shell.Unknown
		}
		return "", shell.Unset
	}
}

func readOptions(l *facts.Launch, words []string) {
	if len(words) == 0 {
		return
	}
	f := familyOf(words[0])
	begun := false // The program that a launcher starts has its own options.
	for i, word := range words {
		begun = begun || strings.HasSuffix(word, ".py")
		if !strings.HasPrefix(word, "-") {
			if !begun && i > 0 && optionsVariable(word) && programOf(words) != "" {
				leaveRestOpen(l, word, counts)
			}
			continue
		}
		name, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		switch what := f.setByRanks(strings.ReplaceAll(name, "_", "-"), value); what {
		case "cpu flag":
			l.CPUOnly = l.CPUOnly || !joined || value == "true"
		case "cpu":
			l.CPUOnly = true
		case "ray": // The ranks of all of Ray's nodes.
			leaveOpen(l, "of the Ray cluster", "tensor_parallel")
		case "hosts": // "localhost:0,1,2"
			if _, list, ok := strings.Cut(value, ":"); !unresolved(l, "processes", value) && ok && !strings.Contains(list, "@") {
				l.Processes = countDevices(list)
			}
		case "gpus of thread":
			if l.Processes == nil {
				set(l, "processes", value)
			}
		default:
			set(l, what, value)
		}
	}
	if baseName(words[0]) == "accelerate" { // --num_processes is the whole job's.
		leaveOpen(l, l.Unknown["nodes"], "processes")
		l.Processes = onNode(l.Processes, l.Nodes)
	}
}

// takeCommand reads one command line, already joined, and keeps what it starts. It reports whether it understood it.
func takeCommand(s *reading, text string, at parse.Line) bool {
	understood := false
	for _, words := range started(shell.Expand(text, s.variables(at.Number)), 0) {
		l := &facts.Launch{}
		if s.Form() == parse.Program { // Variables in front of it may stand in the lines above.
			for _, word := range s.script().Prefixes[at.Number] {
				setAssignment(l, shell.Expand(word, s.variables(at.Number)))
			}
		}
		understood = readLaunch(s, l, words, at) || understood
	}
	return understood
}

// started are the commands of a line that start containers or jobs: its own, those that follow what another
// program needs to start them ("submit.py --gpus 8 -- torchrun x.py", "$PREFIX docker run"), and those of a
// script that it gives to a shell.
func started(line string, depth int) [][]string {
	var all [][]string
	for _, c := range shell.Line(line) {
		words := c.Values()
		first := true
		for len(words) > 0 && len(all) < maxList {
			variables, command := stripWrappers(words)
			if programOf(command) != "" {
				all = append(all, words)
				break
			}
			i := slices.IndexFunc(command, func(w string) bool { return w == "--" || w == "&&" })
			at := slices.IndexFunc(command, func(w string) bool { return w == "-c" || w == "-lc" })
			switch base := baseName(strings.Join(command[max(at-1, 0):max(at, 0)], "")); {
			case first && len(command) == 2 && command[0] == "alias" && depth < 3:
				_, value, _ := strings.Cut(command[1], "=")
				all = append(all, started(value, depth+1)...)
				words = nil
			case first && len(command) > 1 && strings.HasPrefix(command[0], "$") && len(variables) == 0:
				words = command[1:]
			case (base == "bash" || base == "sh") && at+1 < len(command) && depth < 3:
				all = append(all, started(command[at+1], depth+1)...)
				words = nil
			case i >= 0:
				words = command[i+1:]
			default:
				words = nil
			}
			first = false
		}
	}
	return all
}

func readLaunch(s *reading, l *facts.Launch, words []string, at parse.Line) bool {
	variables, words := stripWrappers(words)
	for _, v := range variables {
		setVariable(l, v[0], v[1])
	}
	l.Kind = programOf(words)
	switch l.Kind {
	case "docker-run":
		i := slices.IndexFunc(words, func(w string) bool { return w == "run" || w == "create" })
		if !readContainer(l, words[0], words[i+1:]) {
			return false
		}
		for part, text := range l.Unknown { // "-e NAME" hands on the variable of the shell.
			name, ok := strings.CutPrefix(part, "variables[")
			name = strings.TrimSuffix(name, "]")
			if value, state := s.variables(at.Number)(name); ok && text == "$"+name && state == shell.Known {
				delete(l.Unknown, part)
				setVariable(l, name, value)
			}
		}
	case "apptainer":
		// It hands on the host's /dev/shm and namespaces, unless --contain, --ipc or --pid says otherwise.
		l.Runtime, l.SHMMounted = baseName(words[0]), true
		readContainer(l, words[0], words[2:])
	case "slurm":
		l.Command = readSlurm(l, words[1:])
	case "mpirun":
		if len(words) > 1 && saidOfMPI[words[1]] {
			return false
		}
		l.Command = readMPI(l, words[1:])
	default:
		isOption := func(w string) bool { return strings.HasPrefix(w, "-") }
		if s.Form() != parse.Program && (len(words) < 3 || !slices.ContainsFunc(words, isOption)) { // "torchrun fails" is prose.
			return false
		}
		l.Command = words
	}
	keepLaunch(s, l, at, s.block)
	return true
}

// readContainer reads the options of docker run or of apptainer, and what runs in the container; false for what is prose.
func readContainer(l *facts.Launch, program string, words []string) bool {
	f, rest, open := familyOf(program), words, ""
	for {
		for what, value := range f.options(&rest) {
			setOption(l, what, value)
		}
		if f.Kind != "docker-run" || !standsForOptions(rest) {
			break
		}
		open, rest = rest[0], rest[1:]
	}
	if open != "" {
		leaveRestOpen(l, open, ofContainer)
	}
	if len(rest) > 0 {
		l.Image, l.Command = rest[0], rest[1:]
	}
	return len(rest) < len(words)
}

// setOption sets what an option says, by the name that programs.yaml gives it.
func setOption(l *facts.Launch, what, value string) {
	if what == "gpus" {
		l.GPUVendor = "nvidia"
	}
	if isPart(what) && unresolved(l, what, value) {
		if what == "devices" {
			leaveOpen(l, value, "gpus")
		}
		return
	}
	switch what {
	case "gpus":
		setGPUs(l, value)
	case "rocm":
		l.GPUs, l.GPUVendor = countDevices("all"), "amd"
	case "devices":
		addDevice(l, value)
	case "cap_add":
		for c := range strings.SplitSeq(value, ",") {
			appendTo(&l.CapAdd, parse.Capability(c))
		}
	case "privileged":
		l.Privileged = value != "false"
	case "memory": // Of Slurm: in MiB without a unit, and 0 is all of the node.
		if strings.Trim(value, "0123456789") == "" {
			value += "m"
		}
		if n := parse.ByteSize(value); n == nil || *n > 0 {
			set(l, "memory_bytes", value)
		}
	case "ulimit":
		setUlimit(l, value)
	case "variable":
		dockerVariable(l, value)
	case "assignment":
		setAssignment(l, value)
	case "assignments":
		for part := range strings.SplitSeq(value, ",") {
			setAssignment(l, part)
		}
	case "env file":
		leaveOpen(l, "set by "+value, "variables")
	case "volume":
		addVolume(l, value, "")
	case "volumes", "binds":
		for part := range strings.SplitSeq(value, ",") {
			if what == "binds" || strings.Contains(part, ":") {
				addVolume(l, part, part)
			}
		}
	case "mount":
		fields := keyValues(strings.SplitSeq(value, ","))
		addMount(l, cmp.Or(fields["source"], fields["src"], fields["type"]), cmp.Or(fields["target"], fields["destination"], fields["dst"]))
	case "tmpfs":
		target, options, _ := strings.Cut(value, ":")
		addMount(l, "tmpfs", target)
		if target == "/dev/shm" {
			set(l, "shm_bytes", keyValues(strings.SplitSeq(options, ","))["size"])
		}
	case "contain", "contain all":
		// A minimal /dev with a tmpfs at /dev/shm of the session's (sessiondir max size, 64 MiB).
		l.SHMMounted = false
		if what == "contain all" {
			l.IPC, l.PID = "private", "private"
		}
	case "name":
		l.Name = value
	case "image":
		l.Image = value
	default:
		set(l, what, value)
	}
}

// dockerVariable reads the value of --env: a variable with its value, or one whose value is that of the shell.
func dockerVariable(l *facts.Launch, text string) {
	name, value, ok := assignment(text)
	switch {
	case ok:
		setVariable(l, name, value)
	case variableName.MatchString(text):
		leaveOpen(l, "$"+text, VariablePart(text))
	default:
		unresolved(l, "variables", text)
	}
}

// keyValues reads fields such as "type=bind", by their names in lower case.
func keyValues(list iter.Seq[string]) map[string]string {
	fields := make(map[string]string)
	for part := range list {
		if name, value, ok := strings.Cut(part, "="); ok && len(fields) < maxList {
			fields[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
	return fields
}

// setGPUs reads the value of --gpus: "all", "2", "device=0,1", "\"device=0,1\"", "all,capabilities=utility".
func setGPUs(l *facts.Launch, value string) {
	value = quotes.Replace(value)
	if _, list, ok := strings.Cut(value, "device="); ok {
		list, _, _ = strings.Cut(list, ",cap")
		l.GPUs = countDevices(list)
		return
	}
	count, _, _ := strings.Cut(strings.TrimPrefix(value, "count="), ",")
	if count == "all" || count == "-1" {
		l.GPUs = new(-1)
	} else {
		l.GPUs = cmp.Or(parseCount(count), l.GPUs)
	}
}

// quotes takes the signs of a quotation off, as the shell leaves them.
var quotes = strings.NewReplacer(`"`, "", `'`, "", `\`, "")

// addDevice reads the value of --device: a path, or a name of CDI such as "nvidia.com/gpu=all".
func addDevice(l *facts.Launch, value string) {
	path, _, _ := strings.Cut(value, ":")
	appendTo(&l.Devices, path)
	name, device, _ := strings.Cut(value, "=")
	vendor, isCDI := strings.CutSuffix(name, ".com/gpu")
	switch {
	case isCDI && (vendor == "nvidia" || vendor == "amd"):
		l.GPUVendor = vendor
	case path == "/dev/kfd":
		l.GPUVendor = cmp.Or(l.GPUVendor, "amd")
		return
	case !strings.HasPrefix(path, "/dev/dri/renderD") && strings.TrimSuffix(path, "/") != "/dev/dri":
		return
	}
	switch {
	case device == "all" || strings.TrimSuffix(path, "/") == "/dev/dri":
		l.GPUs = new(-1)
	case l.GPUs == nil:
		l.GPUs = new(1)
	case *l.GPUs > 0:
		l.GPUs = new(*l.GPUs + 1)
	}
}

// setUlimit reads "memlock=-1:-1", "memlock=-1", "memlock=unlimited".
func setUlimit(l *facts.Launch, value string) {
	name, limit, _ := strings.Cut(value, "=")
	if shell.Refers(name) {
		leaveOpen(l, value, "memlock_bytes")
	}
	if strings.TrimSpace(name) != "memlock" || unresolved(l, "memlock_bytes", limit) {
		return
	}
	soft, _, _ := strings.Cut(strings.TrimSpace(limit), ":")
	if strings.HasPrefix(soft, "-") {
		soft = "unlimited"
	}
	l.MemlockBytes = cmp.Or(parse.Limit(soft, 1), l.MemlockBytes)
}

// readNumbers reads the options of a program that starts ranks. It returns the numbers that they state, by the
// part of a launch ("gpus") or what all of the job or each task has ("gpus of job"), and the words behind them.
// A variable that stands for options may set some parts.
func readNumbers(l *facts.Launch, program string, words []string, parts ...string) (numbers map[string]*int, rest []string) {
	numbers = make(map[string]*int)
	for what, value := range familyOf(program).options(&words) {
		part, of, _ := strings.Cut(what, " of ")
		switch {
		case !slices.Contains([]string{"nodes", "processes", "gpus", "cpus", "exclusive"}, part):
			setOption(l, what, value)
			continue
		case unresolved(l, part, value):
			continue
		case of == "gres": // "gpu:h100:8,nic:1"
			if what, value = part, gpuOfGres.FindString(value); value == "gpu" {
				value = "1"
			}
		case what == "nodes": // "2-4", of which the first counts.
			value, _, _ = strings.Cut(value, "-")
		case of == "map": // "ppr:8:node"
			what, value = part, strings.TrimSuffix(processesOfMap.FindString(value), ":node")
		case of == "hosts": // "a:8,b:8"
			hosts := make(map[string]bool)
			for host := range strings.SplitSeq(value, ",") {
				host, _, _ = strings.Cut(host, ":")
				hosts[host] = true
			}
			what, value = part, strconv.Itoa(len(hosts))
		}
		numbers[what] = cmp.Or(gresCount(value), numbers[what])
	}
	l.Nodes, l.Processes, l.GPUs = cmp.Or(numbers["nodes"], l.Nodes), cmp.Or(numbers["processes"], l.Processes), cmp.Or(numbers["gpus"], l.GPUs)
	if program == "mpirun" && l.Nodes == nil { // It follows from the processes.
		leaveOpen(l, l.Unknown["processes"], "nodes")
	}
	if len(words) > 0 && optionsVariable(words[0]) {
		leaveRestOpen(l, words[0], parts)
	}
	if total := numbers["processes of job"]; total != nil && l.Processes == nil {
		leaveOpen(l, l.Unknown["nodes"], "processes")
		l.Processes = onNode(total, l.Nodes)
	}
	return numbers, words
}

var processesOfMap = lazy.New(`^ppr:\d+:node`)

// readSlurm reads the options of srun, or those of #SBATCH lines, and returns the program.
func readSlurm(l *facts.Launch, words []string) []string {
	numbers, words := readNumbers(l, "srun", words, "gpus", "processes", "tasks", "nodes")
	leaveOpen(l, l.Unknown["processes"], "tasks")
	l.Tasks = l.Processes
	if cpus := numbers["cpus of task"]; cpus != nil && l.Unknown["processes"] == "" && numbers["exclusive"] == nil { // An exclusive job has all CPUs of the node.
		l.CPUs = new(float64(*cpus * *cmp.Or(l.Processes, new(1))))
	}
	// Without a number of nodes, or of tasks on one, that of GPUs on a node is not known.
	switch total, perTask := numbers["gpus of job"], numbers["gpus of task"]; {
	case l.GPUs != nil:
	case total != nil:
		leaveOpen(l, l.Unknown["nodes"], "gpus")
		l.GPUs = onNode(total, l.Nodes)
	case perTask != nil:
		leaveOpen(l, l.Unknown["processes"], "gpus")
		l.GPUs = new(*perTask * *cmp.Or(l.Processes, new(1)))
	}
	return words
}

// onNode is the share of one node of what a job has on all of them: all of it, where their number is not known.
func onNode(total, nodes *int) *int {
	if total != nil && nodes != nil {
		return new(max(*total / *nodes, 1))
	}
	return total
}

// gresCount reads "8", "h100:8", "gpu:h100:8(S:0-1)".
func gresCount(value string) *int {
	value, _, _ = strings.Cut(value, "(")
	return parseCount(value[strings.LastIndexByte(value, ':')+1:])
}

// saidOfMPI are the words that follow "mpirun" where it tells how a job ended (help-prun.txt
// of PRRTE, help-orterun.txt of Open MPI): "mpirun noticed that process rank 0 ...".
var saidOfMPI = map[string]bool{"detected": true, "noticed": true, "was": true, "has": true, "could": true, "does": true, "failed": true}

func readMPI(l *facts.Launch, words []string) []string {
	numbers, words := readNumbers(l, "mpirun", words, "processes", "nodes")
	if perNode, total := numbers["processes"], numbers["processes of job"]; l.Nodes == nil && perNode != nil && total != nil && *total > *perNode {
		l.Nodes = new(*total / *perNode)
	}
	return words
}
