package launch

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/place"
	"github.com/gpudoctor/gpudoctor/checks/text/launch/values"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

const (
	// maxWords bounds the words of one command line, maxList the
	// entries of each list of a launch.
	maxWords = 2000
	maxList  = 256
	// maxValue bounds one word that is kept, as checks does for
	// variables.
	maxValue = 4 << 10
	// maxCommand bounds the words of a program that are kept.
	maxCommand = 64
)

// variableName is a shell variable's name.
var variableName = lazy.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// assignment splits NAME=value.
func assignment(word string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(word, "=")
	return name, value, ok && variableName.MatchString(name)
}

// parseCount reads a count of processes, GPUs or nodes. "2:4" is torchrun's
// range of nodes, of which the first counts.
func parseCount(text string) *int {
	text, _, _ = strings.Cut(text, ":")
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > 1<<20 {
		return nil
	}
	return &n
}

// setVariable sets a variable of a launch.
func setVariable(l *facts.Launch, name, value string) {
	if !variableName.MatchString(name) {
		return
	}
	if refersTo(name, value) {
		leaveOpen(l, value, place.Variable(name))
		if name != searchPath {
			return
		}
	}
	if l.Variables == nil {
		l.Variables = make(map[string]string)
	}
	if _, known := l.Variables[name]; !known && len(l.Variables) >= maxList {
		return
	}
	l.Variables[name] = escape.Printable(value, maxValue)
}

// setAssignment sets the variable of NAME=value.
func setAssignment(l *facts.Launch, word string) {
	if name, value, ok := strings.Cut(word, "="); ok {
		setVariable(l, name, value)
	}
}

// appendTo adds to a list of a launch.
func appendTo(list *[]string, values ...string) {
	for _, v := range values {
		if v != "" && len(*list) < maxList && !slices.Contains(*list, v) {
			*list = append(*list, escape.Printable(v, maxValue))
		}
	}
}

// addMount notes a mount.
func addMount(l *facts.Launch, source, target string) {
	if target == "" {
		return
	}
	if target == "/dev/shm" {
		l.SHMMounted = true
	}
	if values.Refers(target) || values.Refers(source) && strings.HasPrefix(target, "/dev") {
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

// keepLaunch writes a launch into the facts: its variables also apply to
// the job. A launch that another line described already is not added
// twice. Lines are those of the command, if it continues over several.
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
		place.Find(l, lines)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Variables)) {
		s.Variable(name, l.Variables[name], place.Of(l, place.Variable(name), at))
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
		end := at.Number
		if len(lines) > 0 {
			end = lines[len(lines)-1].Number
		}
		s.parts = append(s.parts, part{at.Number, end})
	}
}

// notUnderstood notes that descriptions of jobs in the text may be missing from the facts.
func notUnderstood(s *reading, reason, hint string) {
	s.Unknown("launches", "["+s.Source()+"]", reason, hint)
}

// described are the kinds of launch that files of their own describe: the same in two files
// is said twice, and either may be at fault. Logs repeat the others.
var described = map[string]bool{
	"compose": true, "dockerfile": true, "enroot-conf": true, "kubernetes": true, "shell": true, "slurm": true, "slurm-node": true,
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

// counted are the variables by which servers are told how many GPUs to use: NVIDIA NIM for LLMs
// (docs.nvidia.com/nim, Environment Variables) and text-generation-launcher (NUM_SHARD).
var counted = map[string]string{
	"NIM_TENSOR_PARALLEL_SIZE": "tensor_parallel", "NIM_PIPELINE_PARALLEL_SIZE": "pipeline_parallel", "NUM_SHARD": "tensor_parallel",
}

// readVariables takes from the variables which GPUs a container gets:
// the NVIDIA runtime reads NVIDIA_VISIBLE_DEVICES.
func readVariables(l *facts.Launch) {
	if len(l.Command) > 1 && slices.Contains(swift, l.Command[1]) && l.Variables["NPROC_PER_NODE"] != "" {
		l.Processes = parseCount(l.Variables["NPROC_PER_NODE"])
	}
	for name, part := range counted {
		if value := l.Variables[name]; value != "" && valueOf(l, part).IsZero() {
			set(l, part, value)
		}
	}
	if l.Variables["JAX_PLATFORMS"] == "cpu" || l.Variables["JAX_PLATFORM_NAME"] == "cpu" || l.Variables["ACCELERATE_USE_CPU"] == "true" {
		l.CPUOnly = true
	}
	if l.GPUs != nil || l.Runtime != "nvidia" && l.Kind != "docker-run" && l.Kind != "compose" {
		return
	}
	leaveOpen(l, l.Unknown[place.Variable("NVIDIA_VISIBLE_DEVICES")], "gpus")
	if l.GPUs = countDevices(l.Variables["NVIDIA_VISIBLE_DEVICES"]); l.GPUs != nil {
		l.GPUVendor = "nvidia"
	}
}

// countDevices counts the GPUs of "all", "0,1" or "GPU-uuid,GPU-uuid"; nil is
// none or unknown.
func countDevices(list string) *int {
	switch lower := strings.ToLower(list); {
	case lower == "all":
		return new(-1)
	case lower == "" || lower == "none" || lower == "void" || lower == "no-gpu-has-10de" || strings.ContainsAny(list, "$ "):
		return nil
	}
	return new(strings.Count(list, ",") + 1)
}

// wrappers are programs that run the command behind them, with those of
// their options that take a value.
var wrappers = map[string][]string{
	"sudo": {"-u", "-g"}, "env": {"-u"}, "nohup": nil, "time": nil, "exec": nil, "stdbuf": nil, "unbuffer": nil,
	"uv": {"--with", "--extra", "--group", "--python"}, "poetry": nil, "pixi": nil, "conda": {"-n", "-p", "--name", "--prefix"},
	"numactl": {"-N", "-m", "-C", "-i"}, "nsys": nil, "ncu": nil, "timeout": {"-k", "-s"}, "taskset": nil, "setsid": nil,
}

// stripWrappers takes variables and programs that only run the command behind
// them off its front.
func stripWrappers(words []string) (variables [][2]string, rest []string) {
	for len(words) > 0 {
		if name, value, ok := assignment(words[0]); ok {
			variables = append(variables, [2]string{name, value})
			words = words[1:]
			continue
		}
		valued, wrapper := wrappers[baseName(words[0])]
		if !wrapper {
			break
		}
		if words = words[1:]; len(words) > 0 && words[0] == "run" { // "uv run"
			words = words[1:]
		}
		for len(words) > 0 && strings.HasPrefix(words[0], "-") {
			n := 1
			if slices.Contains(valued, words[0]) {
				n = 2
			}
			words = words[min(n, len(words)):]
		}
		if len(words) > 0 && durationForm.MatchString(words[0]) { // "timeout 60 torchrun ..."
			words = words[1:]
		}
	}
	return variables, words
}

// Starts splits a command line into the variables that it sets for its program, by name
// and value, and the program with its arguments. It ends where the command ends.
func Starts(line string) (variables [][2]string, words []string) {
	return stripWrappers(shell.Words(line))
}

// Settings are the variables that a line sets for a job, by name and value: a shell's
// export, the prefix of a command, a line of env. It leaves out values that the line does not
// show.
func Settings(line string) [][2]string {
	return slices.DeleteFunc(environmentSettings(line), func(v [2]string) bool { return refersTo(v[0], v[1]) })
}

// durationForm is a length of time, as timeout takes it.
var durationForm = lazy.New(`^\d{1,9}(?:\.\d+)?[smhd]?$`)

// baseName is a program's name without its folder.
func baseName(word string) string { return word[strings.LastIndexByte(word, '/')+1:] }

// programOf is what a command line runs, as a kind of launch: empty for
// what starts no job.
func programOf(words []string) string {
	if len(words) == 0 {
		return ""
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	base := baseName(words[0])
	for _, s := range starters {
		if !slices.Contains(s.programs, base) {
			continue
		}
		if s.kind == "docker-run" && second == "container" && len(words) > 2 {
			second = words[2]
		}
		if s.second == nil || slices.Contains(s.second, second) {
			return s.kind
		}
	}
	i := slices.Index(words, "-m")
	switch isModule := strings.HasPrefix(base, "python") && i >= 0 && i+1 < len(words); {
	case isModule && torchModule.MatchString(words[i+1]):
		return "torchrun"
	case isModule && pythonModule.MatchString(words[i+1]), collective.MatchString(base):
		return "command"
	}
	return ""
}

// starters are the programs that start containers or jobs, by the kind of launch. Some do so with a certain second
// word only.
var starters = []struct {
	kind             string
	programs, second []string
}{
	{"docker-run", []string{"docker", "podman", "nerdctl", "nvidia-docker"}, []string{"run", "create", "exec"}},
	{"apptainer", []string{"apptainer", "singularity", "enroot"}, []string{"run", "exec", "shell", "start"}},
	{"slurm", []string{"srun", "sbatch", "salloc"}, nil},
	{"mpirun", []string{"mpirun", "mpiexec", "orterun", "prterun", "horovodrun", "mpiexec.hydra"}, nil},
	{"torchrun", []string{"torchrun"}, nil},
	{"command", []string{"deepspeed", "sglang", "trtllm-serve", "lmdeploy", "text-generation-launcher", "llamafactory-cli"}, nil},
	{"command", []string{"accelerate"}, []string{"launch"}},
	{"command", []string{"vllm"}, []string{"serve"}},
	{"command", []string{"swift", "megatron"}, swift},
}

// swift are what the programs swift and megatron of ms-swift do.
var swift = []string{"sft", "pt", "rlhf", "infer", "rollout", "deploy", "export", "eval", "sample"}

var (
	// collective are the programs of nccl-tests and rccl-tests.
	collective = lazy.New(`^(?:all_reduce|all_gather|alltoallv?|broadcast|gather|hypercube|reduce|reduce_scatter|scatter|sendrecv|all_gather_v)_perf$`)
	// torchModule and pythonModule are Python modules that start ranks.
	torchModule  = lazy.New(`^torch\.distributed\.(?:run|launch)$`)
	pythonModule = lazy.New(`^(?:vllm\.entrypoints\..*|sglang\.launch_server|sglang\.bench.*|deepspeed\.launcher\.(?:launch|runner)|accelerate\.commands\.launch|lmdeploy.*|tensorrt_llm.*)$`)
)

// options are the parts that the options set by which programs are told how many ranks to
// run, by their spelling with dashes: the documentation of torchrun,
// accelerate, DeepSpeed, vLLM, SGLang, TGI, TensorRT-LLM and LMDeploy.
var options = byOption(map[string][]string{
	"processes":         {"--nproc-per-node", "--num-processes", "--num-gpus", "--num-local-procs"},
	"nodes":             {"--nnodes", "--num-nodes", "--num-machines"},
	"tensor_parallel":   {"--tensor-parallel-size", "--tensor-model-parallel-size", "-tp", "--tp", "--tp-size", "--num-shard"},
	"pipeline_parallel": {"--pipeline-parallel-size", "--pipeline-model-parallel-size", "-pp", "--pp", "--pp-size"},
	"data_parallel":     {"--data-parallel-size", "-dp", "--dp", "--dp-size"},
})

// byOption are parts of a launch by the options that set them.
func byOption(optionsOf map[string][]string) map[string]string {
	parts := make(map[string]string)
	for part, names := range optionsOf {
		for _, name := range names {
			parts[name] = part
		}
	}
	return parts
}

// onCPU are the options by which a program is told to use no GPU, with their value; "-" stands for no value.
var onCPU = map[string]string{
	"--device": "cpu", "--local-parameter-device": "cpu", "--device-type": "cpu", "--accelerator": "cpu", "--backend": "gloo", "--dist-backend": "gloo",
	"--ddp-backend": "gloo", "--distributed-backend": "gloo", "--use-cpu": "-", "--no-cuda": "-", "--cpu": "-",
}

// readCommand takes from a program's arguments how many ranks it should
// run. It also reads a command inside one word ("bash -c '...'").
func readCommand(l *facts.Launch, words []string) {
	for i, word := range words {
		if !strings.ContainsAny(word, " \n") || i == 0 {
			continue
		}
		script := values.Read(word)
		for _, c := range shell.Parse(word).Commands {
			readScript(l, c)
			var options []string
			for _, w := range c.Words {
				if value := values.Expand(w.Value, script.At(c.Line).Or(ofLaunch(l))); value != w.Value {
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
		expanded[i] = values.Expand(kubernetesReference.ReplaceAllString(word, "$${$1}"), ofLaunch(l))
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
			leaveOpen(l, "set in a script", place.Variable(v[0]))
		default:
			setVariable(l, v[0], v[1])
		}
	}
}

// kubernetesReference is how a pod's command refers to a variable of the container.
var kubernetesReference = lazy.New(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)`)

// ofLaunch looks variables up among those that a launch sets.
func ofLaunch(l *facts.Launch) values.Lookup {
	return func(name string) (string, values.State) {
		if value, ok := l.Variables[name]; ok {
			return value, values.Known
		}
		if l.Unknown[place.Variable(name)] != "" {
			return "", values.Unknown
		}
		return "", values.Unset
	}
}

func readOptions(l *facts.Launch, words []string) {
	if len(words) == 0 {
		return
	}
	base := baseName(words[0])
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
		spelling := strings.ReplaceAll(name, "_", "-")
		if part := options[spelling]; part != "" {
			set(l, part, value)
			continue
		}
		if where := onCPU[spelling]; where == "-" && (!joined || value == "true") || where != "" && value == where {
			l.CPUOnly = true
		}
		if spelling == "--distributed-executor-backend" && value == "ray" { // The ranks of all of Ray's nodes.
			leaveOpen(l, "of the Ray cluster", "tensor_parallel")
		}
		if spelling == "--world-info" {
			worldInfo(l, value)
		}
		if spelling == "--include" && base == "deepspeed" && !unresolved(l, "processes", value) { // "localhost:0,1,2"
			if _, list, ok := strings.Cut(value, ":"); ok && !strings.Contains(list, "@") {
				l.Processes = countDevices(list)
			}
		}
		if spelling == "-g" && strings.HasSuffix(base, "_perf") && l.Processes == nil {
			set(l, "processes", value)
		}
	}
	if base == "accelerate" { // --num_processes is the whole job's.
		leaveOpen(l, l.Unknown["nodes"], "processes")
		l.Processes = onNode(l.Processes, l.Nodes)
	}
}

// worldInfo reads DeepSpeed's list of GPUs by host, JSON in base64
// (deepspeed/launcher/runner.py, encode_world_info).
func worldInfo(l *facts.Launch, value string) {
	raw, err := base64.URLEncoding.DecodeString(value)
	var hosts map[string][]int
	if err != nil || json.Unmarshal(raw, &hosts) != nil {
		return
	}
	processes := 0
	for _, gpus := range hosts {
		processes = max(processes, len(gpus))
	}
	if processes > 0 {
		l.Nodes, l.Processes = new(len(hosts)), &processes
	}
}

// takeCommand reads one command line, already joined, and keeps what it
// starts. It reports whether it understood it.
func takeCommand(s *reading, text string, at parse.Line) bool {
	understood := false
	for _, words := range started(values.Expand(text, s.variables(at.Number)), 0) {
		l := &facts.Launch{}
		if s.Form() == parse.Program { // Variables in front of it may stand in the lines above.
			for _, word := range s.script().Prefixes[at.Number] {
				setAssignment(l, values.Expand(word, s.variables(at.Number)))
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

// readLaunch reads a command by its kind.
func readLaunch(s *reading, l *facts.Launch, words []string, at parse.Line) bool {
	variables, words := stripWrappers(words)
	for _, v := range variables {
		setVariable(l, v[0], v[1])
	}
	l.Kind = programOf(words)
	switch l.Kind {
	case "docker-run":
		i := slices.IndexFunc(words, func(w string) bool { return w == "run" || w == "create" || w == "exec" })
		if words[i] == "exec" {
			return dockerExec(s, l, words[i+1:], at)
		}
		if !readDocker(l, words[i+1:]) {
			return false
		}
		for part, text := range l.Unknown { // "-e NAME" hands on the variable of the shell.
			name, ok := strings.CutPrefix(part, "variables[")
			name = strings.TrimSuffix(name, "]")
			if value, state := s.variables(at.Number)(name); ok && text == "$"+name && state == values.Known {
				delete(l.Unknown, part)
				setVariable(l, name, value)
			}
		}
	case "apptainer":
		readApptainer(l, words)
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

// commandFlags are options of a program: which take no value.
type commandFlags struct {
	bare []string
	// letters are the short ones that take no value and may stand together:
	// "-itd".
	letters string
}

// next splits the option at the front off: its name, its value and what is
// left. An option that is not known takes a value when the next word does not
// look like an option.
func (f *commandFlags) next(words []string) (name, value string, rest []string) {
	name, value, joined := strings.Cut(words[0], "=")
	rest = words[1:]
	switch {
	case joined || slices.Contains(f.bare, name):
		return name, value, rest
	case !strings.HasPrefix(name, "--") && len(name) > 2 && !strings.Contains(f.letters, name[1:2]):
		return name[:2], name[2:], rest // "-p8080:80".
	case !strings.HasPrefix(name, "--") && strings.Trim(name[1:], f.letters) == "":
		return name, "", rest
	case !strings.HasPrefix(name, "--") && len(name) > 2: // "-itv a:b".
		name = "-" + name[len(name)-1:]
	}
	if len(rest) == 0 {
		return name, "", nil
	}
	return name, rest[0], rest[1:]
}

// dockerFlags are those of docker run, podman run and nerdctl run.
var dockerFlags = commandFlags{
	bare: []string{
		"--rm", "--init", "--privileged", "--read-only", "--detach", "--interactive", "--tty", "--oom-kill-disable", "--publish-all",
		"--no-healthcheck", "--sig-proxy", "--disable-content-trust", "--quiet", "--replace", "--rmi", "--no-hosts", "--tls-verify", "--env-host",
	},
	letters: "ditPq",
}

// readDocker reads the options of docker run. It reports false for what is
// prose.
func readDocker(l *facts.Launch, words []string) bool {
	options, open := 0, ""
	for len(words) > 0 && words[0] != "--" && (strings.HasPrefix(words[0], "-") || standsForOptions(words)) {
		options++
		if !strings.HasPrefix(words[0], "-") {
			open, words = words[0], words[1:]
			continue
		}
		var name, value string
		name, value, words = dockerFlags.next(words)
		dockerOption(l, name, value)
	}
	if len(words) > 0 && words[0] == "--" {
		options, words = options+1, words[1:]
	}
	if open != "" {
		leaveRestOpen(l, open, ofContainer)
	}
	if len(words) > 0 {
		l.Image = words[0]
		l.Command = words[1:]
	}
	return options > 0
}

// dockerParts are the parts of a launch that options set whose value is one of them.
var dockerParts = map[string]string{
	"--gpus": "gpus", "--device": "devices", "--shm-size": "shm_bytes", "--ipc": "ipc", "--pid": "pid", "--network": "network", "--net": "network",
	"--cap-add": "cap_add", "--privileged": "privileged", "--user": "user", "-u": "user", "--runtime": "runtime",
	"--cpus": "cpus", "--memory": "memory_bytes", "-m": "memory_bytes",
}

func dockerOption(l *facts.Launch, name, value string) {
	part := dockerParts[name]
	if part != "" && unresolved(l, part, value) {
		if part == "gpus" {
			l.GPUVendor = "nvidia"
		}
		if part == "devices" {
			leaveOpen(l, value, "gpus")
		}
		return
	}
	switch name {
	case "--gpus":
		setGPUs(l, value)
	case "--device":
		addDevice(l, value)
	case "--cap-add":
		for c := range strings.SplitSeq(value, ",") {
			appendTo(&l.CapAdd, values.Capability(c))
		}
	case "--privileged":
		l.Privileged = value != "false"
	case "--ulimit":
		setUlimit(l, value)
	case "--env", "-e":
		dockerVariable(l, value)
	case "--env-file":
		leaveOpen(l, "set by "+value, "variables")
	case "--volume", "-v":
		addVolume(l, value, "")
	case "--mount":
		fields := keyValues(value)
		addMount(l, cmp.Or(fields["source"], fields["src"], fields["type"]), cmp.Or(fields["target"], fields["destination"], fields["dst"]))
	case "--tmpfs":
		target, options, _ := strings.Cut(value, ":")
		addMount(l, "tmpfs", target)
		if _, size, ok := strings.Cut(options, "size="); ok && target == "/dev/shm" {
			size, _, _ = strings.Cut(size, ",")
			set(l, "shm_bytes", size)
		}
	case "--name":
		l.Name = value
	default:
		set(l, part, value)
	}
}

// dockerVariable reads the value of --env: a variable with its value, or one whose value is that
// of the shell.
func dockerVariable(l *facts.Launch, text string) {
	name, value, ok := assignment(text)
	switch {
	case ok:
		setVariable(l, name, value)
	case variableName.MatchString(text):
		leaveOpen(l, "$"+text, place.Variable(text))
	default:
		unresolved(l, "variables", text)
	}
}

// keyValues reads "type=bind,source=/a,target=/b".
func keyValues(text string) map[string]string {
	fields := make(map[string]string)
	for part := range strings.SplitSeq(text, ",") {
		if name, value, ok := strings.Cut(part, "="); ok && len(fields) < maxList {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return fields
}

// setGPUs reads the value of --gpus: "all", "2", "device=0,1",
// "\"device=0,1\"", "all,capabilities=utility".
func setGPUs(l *facts.Launch, value string) {
	value = strings.Trim(value, `"'\`)
	l.GPUVendor = "nvidia"
	if _, list, ok := strings.Cut(value, "device="); ok {
		list, _, _ = strings.Cut(strings.Trim(list, `"'\`), ",cap")
		l.GPUs = countDevices(strings.Trim(list, `"'\`))
		return
	}
	first, _, _ := strings.Cut(value, ",")
	first = strings.TrimPrefix(first, "count=")
	if first == "all" || first == "-1" {
		l.GPUs = countDevices("all")
	} else if n := parseCount(first); n != nil {
		l.GPUs = n
	}
}

// addDevice reads the value of --device: a path, or a name of CDI such as
// "nvidia.com/gpu=all".
func addDevice(l *facts.Launch, value string) {
	path, _, _ := strings.Cut(value, ":")
	appendTo(&l.Devices, path)
	vendor, device, cdi := strings.Cut(value, "=")
	gpus := 0 // -1 is all.
	switch {
	case cdi && (vendor == "nvidia.com/gpu" || vendor == "amd.com/gpu"):
		l.GPUVendor, _, _ = strings.Cut(vendor, ".")
		if gpus = 1; device == "all" {
			gpus = -1
		}
	case path == "/dev/kfd":
		l.GPUVendor = cmp.Or(l.GPUVendor, "amd")
	case path == "/dev/dri" || path == "/dev/dri/":
		gpus = -1
	case strings.HasPrefix(path, "/dev/dri/renderD"):
		gpus = 1
	}
	switch {
	case gpus == -1 || gpus == 1 && l.GPUs == nil:
		l.GPUs = &gpus
	case gpus == 1 && *l.GPUs > 0:
		l.GPUs = new(*l.GPUs + 1)
	}
}

// setUlimit reads "memlock=-1:-1", "memlock=-1", "memlock=unlimited".
func setUlimit(l *facts.Launch, value string) {
	name, limit, _ := strings.Cut(value, "=")
	if values.Refers(name) {
		leaveOpen(l, value, "memlock_bytes")
	}
	if strings.TrimSpace(name) != "memlock" || unresolved(l, "memlock_bytes", limit) {
		return
	}
	soft, _, _ := strings.Cut(strings.TrimSpace(limit), ":")
	if strings.HasPrefix(soft, "-") {
		soft = "unlimited"
	}
	l.MemlockBytes = cmp.Or(values.Limit(soft, 1), l.MemlockBytes)
}

// dockerExec reads docker exec: it starts a program in a container that some
// other line describes.
func dockerExec(s *reading, l *facts.Launch, words []string, at parse.Line) bool {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		var name, value string
		name, value, words = dockerFlags.next(words)
		if name == "-e" || name == "--env" {
			dockerVariable(l, value)
		}
	}
	if len(words) < 2 {
		return false
	}
	for name, value := range l.Variables {
		line := at
		if len(s.block) > 1 {
			line.Number = place.Line(s.block, name, value)
		}
		s.Variable(name, value, line)
	}
	command := words[1:]
	if len(command) > 2 && command[1] == "-c" {
		return takeCommand(s, command[2], at)
	}
	_, program := stripWrappers(command)
	if kind := programOf(program); kind == "" || kind == "docker-run" { // A container in a container is not followed.
		return false
	}
	return readLaunch(s, &facts.Launch{Variables: l.Variables, Unknown: l.Unknown}, command, at)
}

// apptainerFlags are those of apptainer, singularity and enroot start.
var apptainerFlags = commandFlags{
	bare: []string{
		"--nv", "--rocm", "--nvccli", "--writable", "--writable-tmpfs", "--contain", "--containall", "--cleanenv", "--ipc", "--pid", "--net",
		"--fakeroot", "--userns", "--no-home", "--rw", "--root", "--no-privs", "--keep-privs", "--unsquash", "--compat", "--uts",
	},
	letters: "cCefipuwsrq",
}

// readApptainer reads apptainer, singularity and enroot lines. They hand on
// the host's /dev/shm and namespaces, unless --contain, --ipc or --pid says
// otherwise.
func readApptainer(l *facts.Launch, words []string) {
	l.Runtime = baseName(words[0])
	words = words[2:]
	l.SHMMounted = true
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		var name, value string
		name, value, words = apptainerFlags.next(words)
		switch name {
		case "--nv", "--nvccli":
			l.GPUs, l.GPUVendor = countDevices("all"), "nvidia"
		case "--rocm":
			l.GPUs, l.GPUVendor = countDevices("all"), "amd"
		case "--ipc", "-i":
			l.IPC = "private"
		case "--pid", "-p":
			l.PID = "private"
		case "--contain", "-c", "--containall", "-C":
			// A minimal /dev with a tmpfs at /dev/shm of the session's
			// (sessiondir max size, 64 MiB).
			l.SHMMounted = false
			if strings.HasSuffix(name, "all") || name == "-C" {
				l.IPC, l.PID = "private", "private"
			}
		case "--bind", "-B", "--mount", "-m":
			for part := range strings.SplitSeq(value, ",") {
				addVolume(l, part, part)
			}
		case "--env", "-e":
			setAssignment(l, value)
		}
	}
	if len(words) > 0 {
		l.Image, l.Command = words[0], words[1:]
	}
}

// slurmFlags are those of srun and sbatch.
var slurmFlags = commandFlags{
	bare: []string{
		"--exclusive", "--overlap", "--pty", "--label", "--unbuffered", "--no-kill", "--overcommit", "--oversubscribe", "--container-writable",
		"--container-mount-home", "--no-container-mount-home", "--container-remap-root", "--requeue", "--wait", "--verbose", "--quiet", "--hold",
		"--export-file", "--kill-on-bad-exit", "--preserve-env",
	},
	letters: "lusOovQHZE",
}

// slurmParts are the parts of a launch that options of Slurm set whose value is one of them.
var slurmParts = map[string]string{
	"--nodes": "nodes", "-N": "nodes", "--ntasks-per-node": "processes", "--tasks-per-node": "processes", "--ntasks": "processes", "-n": "processes",
	"--cpus-per-task": "cpus", "-c": "cpus", "--mem": "memory_bytes",
	"--gres": "gpus", "--gpus-per-node": "gpus", "--gpus": "gpus", "-G": "gpus", "--gpus-per-task": "gpus",
}

// readSlurm reads the options of srun, or those of #SBATCH lines, and
// returns the program.
func readSlurm(l *facts.Launch, words []string) []string {
	var tasks, total, perTask, cpus *int
	counts := map[string]**int{
		"--ntasks": &tasks, "-n": &tasks, "--gpus": &total, "-G": &total, "--gpus-per-task": &perTask, "--cpus-per-task": &cpus, "-c": &cpus,
	}
	exclusive := false
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		var name, value string
		name, value, words = slurmFlags.next(words)
		if part := slurmParts[name]; part != "" && unresolved(l, part, value) {
			continue
		}
		if count := counts[name]; count != nil {
			*count = gresCount(value)
		}
		switch name {
		case "--nodes", "-N":
			value, _, _ = strings.Cut(value, "-")
			l.Nodes = parseCount(value)
		case "--ntasks-per-node", "--tasks-per-node":
			l.Processes = parseCount(value)
		case "--gres", "--gpus-per-node":
			setGres(l, name, value)
		case "--mem":
			l.MemoryBytes = slurmMemory(value)
		case "--exclusive":
			exclusive = true
		case "--job-name", "-J":
			l.Name = value
		case "--container-image":
			l.Image = value
		case "--container-mounts":
			for part := range strings.SplitSeq(value, ",") {
				if strings.Contains(part, ":") {
					addVolume(l, part, "")
				}
			}
		case "--export":
			for part := range strings.SplitSeq(value, ",") {
				setAssignment(l, part)
			}
		}
	}
	if len(words) > 0 && optionsVariable(words[0]) {
		leaveRestOpen(l, words[0], []string{"gpus", "processes", "tasks", "nodes"})
	}
	leaveOpen(l, l.Unknown["processes"], "tasks")
	if tasks != nil && l.Processes == nil {
		leaveOpen(l, l.Unknown["nodes"], "processes", "tasks")
		l.Processes = onNode(tasks, l.Nodes)
	}
	l.Tasks = l.Processes
	if cpus != nil && l.Unknown["processes"] == "" && !exclusive { // An exclusive job has all CPUs of the node.
		n := float64(*cpus)
		if l.Processes != nil {
			n *= float64(*l.Processes)
		}
		l.CPUs = &n
	}
	if l.GPUs == nil {
		l.GPUs = slurmGPUs(l, total, perTask)
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

// slurmMemory reads the value of --mem, in MiB without a unit; 0 is all of the node.
func slurmMemory(text string) *int64 {
	n := values.Size(text)
	switch {
	case n == nil || *n == 0:
		return nil
	case strings.Trim(text, "0123456789") == "" && *n < 1<<40:
		return new(*n << 20)
	}
	return n
}

// slurmGPUs counts the GPUs of a node from those of the job or of a task. Without
// a number of nodes, or of tasks on one, it is not known.
func slurmGPUs(l *facts.Launch, total, perTask *int) *int {
	switch {
	case total != nil:
		leaveOpen(l, l.Unknown["nodes"], "gpus")
		return onNode(total, l.Nodes)
	case perTask != nil:
		leaveOpen(l, l.Unknown["processes"], "gpus")
		if l.Processes != nil && *l.Processes <= 1<<10 && *perTask <= 1<<10 {
			return new(*perTask * *l.Processes)
		}
	}
	return perTask
}

// setGres reads "gpu:8", "gpu:h100:8", "8", "h100:8".
func setGres(l *facts.Launch, name, value string) {
	if name == "--gres" {
		i := strings.Index(value, "gpu")
		if i < 0 {
			return
		}
		value, _, _ = strings.Cut(value[i:], ",")
		if value == "gpu" {
			value = "gpu:1"
		}
	}
	l.GPUs = cmp.Or(gresCount(value), l.GPUs)
}

// gresCount reads "8", "h100:8", "gpu:h100:8(S:0-1)".
func gresCount(value string) *int {
	value, _, _ = strings.Cut(value, "(")
	return parseCount(value[strings.LastIndexByte(value, ':')+1:])
}

// saidOfMPI are the words that follow "mpirun" where it tells how a job ended (help-prun.txt
// of PRRTE, help-orterun.txt of Open MPI): "mpirun noticed that process rank 0 ...".
var saidOfMPI = map[string]bool{"detected": true, "noticed": true, "was": true, "has": true, "could": true, "does": true, "failed": true}

// mpiFlags are those of mpirun that take no value (Open MPI, MPICH,
// Intel MPI, Horovod).
var mpiFlags = []string{
	"-allow-run-as-root", "-oversubscribe", "-tag-output", "-report-bindings", "-verbose", "-v", "-q", "-bynode", "-byslot", "-nooversubscribe", "-l",
	"-merge-stderr-to-stdout", "-use-hwthread-cpus", "-display-map", "-display-allocation", "-timestamp-output", "-mpi", "-gloo", "-disable-cache",
	"-prepend-rank",
}

// mpiParts are the parts of a launch that options of mpirun set whose value is one of them.
var mpiParts = map[string]string{
	"-np": "processes", "-n": "processes", "-c": "processes", "-npernode": "processes", "-N": "processes", "-ppn": "processes", "-perhost": "processes",
	"-map-by": "processes", "-H": "nodes", "-host": "nodes", "-hosts": "nodes",
}

// readMPI reads the options of mpirun and returns the program.
func readMPI(l *facts.Launch, words []string) []string {
	var total, perNode, hosts *int
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		name, value, joined := strings.Cut(words[0], "=")
		words, name = words[1:], "-"+strings.TrimLeft(name, "-")
		if slices.Contains(mpiFlags, name) {
			continue
		}
		if !joined && len(words) > 0 {
			value, words = words[0], words[1:]
		}
		if part := mpiParts[name]; part != "" && unresolved(l, part, value) {
			continue
		}
		switch name {
		case "-np", "-n", "-c":
			total = parseCount(value)
		case "-npernode", "-N", "-ppn", "-perhost":
			perNode = parseCount(value)
		case "-map-by":
			if strings.HasPrefix(value, "ppr:") && strings.Contains(value, ":node") {
				perNode = parseCount(strings.TrimPrefix(value, "ppr:"))
			}
		case "-H", "-host", "-hosts":
			names := make(map[string]bool)
			for part := range strings.SplitSeq(value, ",") {
				host, _, _ := strings.Cut(part, ":")
				names[host] = true
			}
			hosts = new(len(names))
		case "-x", "-genvlist":
			setAssignment(l, value)
		case "-env", "-genv":
			if len(words) > 0 && !joined && !strings.Contains(value, "=") {
				setVariable(l, value, words[0])
				words = words[1:]
			} else {
				setAssignment(l, value)
			}
		case "-mca", "-gmca", "-omca", "-prtemca", "-pmixmca":
			if len(words) > 0 && !joined {
				words = words[1:]
			}
		}
	}
	l.Nodes = hosts
	if perNode == nil && total != nil { // That of the whole job is known only.
		leaveOpen(l, l.Unknown["nodes"], "processes")
	}
	if hosts == nil {
		leaveOpen(l, l.Unknown["processes"], "nodes")
	}
	if len(words) > 0 && optionsVariable(words[0]) {
		leaveRestOpen(l, words[0], []string{"processes", "nodes"})
	}
	l.Processes = cmp.Or(perNode, onNode(total, hosts))
	if perNode != nil && hosts == nil && total != nil && *total > *perNode {
		l.Nodes = new(*total / *perNode)
	}
	return words
}
