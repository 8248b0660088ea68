package evidence

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

const (
	// launchMaxDocument bounds a description that is parsed as a whole, in
	// bytes, and launchMaxDocumentLines in lines.
	launchMaxDocument      = 1 << 20
	launchMaxDocumentLines = 20000
	// launchMaxDepth bounds how deep a description is followed.
	launchMaxDepth = 40
	// launchMaxVisits bounds the nodes that are looked at: aliases may refer
	// to the same one many times.
	launchMaxVisits = 100000
)

// launchYAMLKind takes descriptions in YAML: Kubernetes objects of any kind
// that hold containers, compose files, and pieces of both. and
// compose's JSON is YAML, too.
var launchYAMLKind = &Kind{
	Name: "manifest", Title: "A Kubernetes or compose description", Command: "kubectl get pod NAME -o yaml", Gives: []string{"launches", "env"},
	Anchors: []string{
		"apiVersion:", "services:", "containers:", "spec:", "template:", "image:", "resources:", "shm_size:", "deploy:",
		"version:", "hostIPC:", "volumes:", "name: ",
	},
	Begins: launchYAMLBegins,
	Read:   launchYAMLRead,
}

var (
	// launchYAMLFirst is how such a description, or a piece of one, begins.
	launchYAMLFirst = lazy.New(`^\s*(?:- )?(?:apiVersion:|kind: \w|services:\s*$|containers:\s*$|spec:\s*$|template:\s*$|image: *\S|resources:\s*$|shm_size:|deploy:\s*$|version: *['"]?[23]|hostIPC:|volumes:\s*$|- ?name: )`)
	// launchYAMLTelling is what one of its lines must hold to be worth reading.
	launchYAMLTelling = lazy.New(`^\s*(?:- )?["']?(?:image|containers|services|resources|shm_size|hostIPC|value|nvidia\.com/gpu|amd\.com/gpu)["']?:`)
	// launchYAMLKey is a key at the level of the first line: one word.
	launchYAMLKey = lazy.New(`^\s*(?:#|---\s*$|- |-$|[\w."'-]+\s*:(?:\s|$))`)
	// launchYAMLLine is a line of YAML: a key, an entry of a list, or what goes
	// on from the line before.
	launchYAMLLine = lazy.New(`^\s*(?:$|#|---\s*$|- |-$|[\w."'/$<&*-]+(?: ?[\w."'/-]+)*\s*:(?:\s|$)|[\]\[{}"']|\S+,?$)`)
)

func launchYAMLBegins(in *Lines) bool {
	l, ok := in.Peek()
	if !ok || !launchYAMLFirst.MatchString(l.Text) {
		return false
	}
	indent := launchIndent(l.Text)
	for _, l := range in.Ahead(200) {
		if strings.TrimSpace(l.Text) != "" && launchIndent(l.Text) < indent && !launchTemplate.MatchString(l.Text) {
			return false
		}
		if launchYAMLTelling.MatchString(l.Text) {
			return true
		}
		if strings.TrimSpace(l.Text) != "" && launchIndent(l.Text) == indent && !launchTemplate.MatchString(l.Text) && !launchYAMLKey.MatchString(l.Text) {
			return false
		}
	}
	return false
}

func launchIndent(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

func launchYAMLRead(s *Sink, in *Lines) {
	first, _ := in.Peek()
	indent := launchIndent(first.Text)
	size, count := 0, 0
	// literal is the indentation of the key whose text block is under way.
	literal := -1
	lines := in.While(func(l Line) bool {
		size, count = size+len(l.Text)+1, count+1
		if size > launchMaxDocument || count > launchMaxDocumentLines {
			return false
		}
		if strings.TrimSpace(l.Text) == "" {
			return true
		}
		if launchTemplate.MatchString(l.Text) {
			return true
		}
		at := launchIndent(l.Text)
		if literal >= 0 && at > literal {
			return true
		}
		literal = -1
		if launchLiteral.MatchString(l.Text) {
			literal = at
		}
		return at > indent && launchYAMLLine.MatchString(l.Text) || at == indent && launchYAMLKey.MatchString(l.Text)
	})
	var b strings.Builder
	for _, l := range lines {
		// A template's lines (Helm, Jinja) are no YAML until it is filled in.
		if text := strings.TrimRight(l.Text, " "); !strings.Contains(text, "{{") && len(text) >= indent {
			b.WriteString(strings.ReplaceAll(text[indent:], "\t", " "))
		}
		b.WriteByte('\n')
	}
	launchYAMLDocuments(s, b.String(), first)
}

// launchTemplate is a line of a template: "{{- if .Values.shm }}".
var launchTemplate = lazy.New(`^\s*\{\{`)

// launchLiteral is a key whose value is a block of text: "- |", "run: >-".
var launchLiteral = lazy.New(`(?:^|[:-]) *[|>][+-]?\d?\s*$`)

// launchYAMLDocuments parses text, whose first line is first. What does not
// parse to its end is read as far as it does: texts are cut.
func launchYAMLDocuments(s *Sink, text string, first Line) {
	for range 8 {
		d := yaml.NewDecoder(strings.NewReader(text))
		var nodes []*yaml.Node
		var err error
		for len(nodes) < 256 {
			var n yaml.Node
			if err = d.Decode(&n); err != nil {
				break
			}
			nodes = append(nodes, &n)
		}
		bad := launchErrorLine.FindStringSubmatch(launchErrorText(err))
		if err != nil && !errors.Is(err, io.EOF) && bad != nil {
			// The line that the parser names is that of the fault, or the one
			// before it.
			n, _ := strconv.Atoi(bad[1])
			if cut := launchFirstLines(text, min(n, strings.Count(strings.TrimRight(text, "\n"), "\n"))); cut != "" && len(cut) < len(text) {
				text = cut
				continue
			}
		}
		w := &launchWalk{sink: s, first: first}
		for _, n := range nodes {
			w.visit(n, launchContext{})
		}
		return
	}
}

var launchErrorLine = lazy.New(`line (\d{1,6}):`)

func launchErrorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// launchFirstLines is the first n lines of a text.
func launchFirstLines(text string, n int) string {
	at := 0
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return text
		}
		at += i + 1
	}
	return text[:at]
}

// launchWalk looks for containers in a description.
type launchWalk struct {
	sink   *Sink
	first  Line
	visits int
}

// launchContext is what stands above a container.
type launchContext struct {
	depth int
	name  string
	nodes *int
}

// stands notes where a part of a launch stands; n may be nil. An alias is looked
// up where it points to: the text stands there.
func (w *launchWalk) stands(l *facts.Launch, part string, n *yaml.Node) {
	if n = yamlResolve(n); n != nil {
		launchStands(l, part, w.at(n).Number)
	}
}

func (w *launchWalk) at(n *yaml.Node) Line { return Line{Number: w.first.Number + max(n.Line, 1) - 1} }

func (w *launchWalk) visit(n *yaml.Node, c launchContext) {
	n = yamlResolve(n)
	if w.visits++; n == nil || c.depth > launchMaxDepth || w.visits > launchMaxVisits {
		return
	}
	c.depth++
	switch n.Kind {
	case yaml.DocumentNode, yaml.SequenceNode:
		for _, child := range n.Content {
			w.visit(child, c)
		}
		return
	case yaml.MappingNode:
	default:
		return
	}
	m := launchMapping(n)
	c.name = cmp.Or(launchText(launchMapping(m["metadata"])["name"]), c.name)
	if size := launchCount(launchText(m["size"])); size != nil && m["workerTemplate"] != nil { // A LeaderWorkerSet.
		c.nodes = size
	}
	for key, child := range m {
		if strings.HasSuffix(key, "ReplicaSpecs") { // Of Kubeflow's jobs.
			c.nodes = launchReplicas(child)
		}
	}
	if name := launchText(m["name"]); m["value"] != nil && checks.SteersCommunication(name) { // An entry of a container's env.
		w.sink.Variable(name, checks.Printable(launchText(m["value"]), launchMaxValue), w.at(m["name"]))
	}
	switch {
	case launchIsSequence(m["containers"]):
		w.pod(m, c)
		return
	case launchIsServices(m["services"]):
		w.services(m["services"], c)
		return
	case m["image"] != nil && launchIsComposeService(m):
		w.service(nil, n, c)
		return
	case m["image"] != nil && launchIsContainer(m):
		w.container(n, nil, c)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		child := c
		if launchIsCompose(launchMapping(n.Content[i+1])) { // A service without the line "services:".
			w.service(n.Content[i], n.Content[i+1], child)
			continue
		}
		w.visit(n.Content[i+1], child)
	}
}

// launchMapping returns the entries of a mapping, those that "<<" merges in
// among them.
func launchMapping(n *yaml.Node) map[string]*yaml.Node { return launchMerged(n, 0) }

func launchMerged(n *yaml.Node, depth int) map[string]*yaml.Node {
	n = yamlResolve(n)
	if n == nil || n.Kind != yaml.MappingNode || depth > 4 {
		return nil
	}
	m := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "<<" {
			for name, value := range launchMerged(n.Content[i+1], depth+1) {
				if m[name] == nil {
					m[name] = value
				}
			}
			continue
		}
		m[n.Content[i].Value] = yamlResolve(n.Content[i+1])
	}
	return m
}

// launchText is a plain value; empty for what is none.
func launchText(n *yaml.Node) string {
	if n = yamlResolve(n); n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// launchList is a list's entries; a plain value is a list of one.
func launchList(n *yaml.Node) []*yaml.Node {
	n = yamlResolve(n)
	switch {
	case n == nil:
		return nil
	case n.Kind == yaml.SequenceNode:
		return n.Content[:min(len(n.Content), launchMaxList)]
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return []*yaml.Node{n}
	default:
		return nil
	}
}

func launchTexts(n *yaml.Node) []string {
	var list []string
	for _, child := range launchList(n) {
		list = append(list, launchText(child))
	}
	return list
}

func launchIsSequence(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }

func launchIsServices(n *yaml.Node) bool {
	for _, service := range launchMapping(n) {
		if m := launchMapping(service); m["image"] != nil || m["build"] != nil || launchIsCompose(m) {
			return true
		}
	}
	return false
}

// launchIsCompose is true of a mapping with keys that only a service of
// compose has.
func launchIsCompose(m map[string]*yaml.Node) bool {
	deploy := launchMapping(m["deploy"])
	return m["shm_size"] != nil || launchMapping(deploy["resources"])["reservations"] != nil ||
		m["image"] != nil && launchIsComposeService(m)
}

func launchIsComposeService(m map[string]*yaml.Node) bool {
	for _, key := range []string{
		"shm_size", "deploy", "container_name", "environment", "ipc", "runtime", "network_mode", "ulimits", "cap_add", "devices", "gpus",
		"env_file", "depends_on", "entrypoint", "restart", "privileged", "security_opt",
	} {
		if m[key] != nil {
			return true
		}
	}
	return false
}

// launchIsContainer is true of a mapping that may be a pod's container.
func launchIsContainer(m map[string]*yaml.Node) bool {
	return m["resources"] != nil || m["volumeMounts"] != nil || launchIsSequence(m["env"]) || m["imagePullPolicy"] != nil || m["securityContext"] != nil ||
		launchIsSequence(m["args"])
}

// launchReplicas counts the replicas of a job's parts.
func launchReplicas(n *yaml.Node) *int {
	total := 0
	for role, part := range launchMapping(n) {
		if role == "Launcher" { // MPIJob: it starts the workers.
			continue
		}
		if count := launchCount(cmp.Or(launchText(launchMapping(part)["replicas"]), "1")); count != nil {
			total += *count
		}
	}
	if total == 0 {
		return nil
	}
	return &total
}

// pod reads a pod's specification.
func (w *launchWalk) pod(spec map[string]*yaml.Node, c launchContext) {
	begin := len(w.sink.Facts.Launches)
	for _, container := range launchList(spec["containers"]) {
		w.container(container, spec, c)
	}
	// A container that asks for no GPU beside one that does gets none: a proxy, a
	// collector of logs.
	if own := w.sink.Facts.Launches[min(begin, len(w.sink.Facts.Launches)):]; slices.ContainsFunc(own, func(l facts.Launch) bool { return l.GPUs != nil && *l.GPUs > 0 }) {
		for i := range own {
			if own[i].GPUs == nil {
				own[i].GPUs = new(0)
			}
		}
	}
}

// container reads one container of a pod.
func (w *launchWalk) container(n *yaml.Node, pod map[string]*yaml.Node, c launchContext) {
	m := launchMapping(n)
	if m == nil {
		return
	}
	l := &facts.Launch{
		Kind: "kubernetes", Name: cmp.Or(c.name, launchText(m["name"])), Image: launchText(m["image"]), Nodes: c.nodes,
		Runtime: launchText(pod["runtimeClassName"]), Command: append(launchTexts(m["command"]), launchTexts(m["args"])...),
	}
	l.Lines = map[string]int{}
	for key, set := range map[string]*string{"hostIPC": &l.IPC, "hostPID": &l.PID, "hostNetwork": &l.Network} {
		if launchText(pod[key]) == "true" {
			*set = "host"
		}
	}
	w.stands(l, "ipc", pod["hostIPC"])
	w.stands(l, "runtime", pod["runtimeClassName"])
	resources := launchMapping(m["resources"])
	for _, part := range []string{"limits", "requests"} {
		for name, value := range launchMapping(resources[part]) {
			w.resource(l, name, launchText(value))
			if value != nil && l.Resources[name] != "" { // Of two values the last one counts.
				l.Lines["resources["+name+"]"] = w.at(value).Number
			}
		}
	}
	security := launchMapping(m["securityContext"])
	l.Privileged = launchText(security["privileged"]) == "true"
	w.stands(l, "privileged", security["privileged"])
	capabilities := launchMapping(security["capabilities"])
	for _, name := range launchTexts(capabilities["add"]) {
		launchAppend(&l.CapAdd, launchCapability(name))
	}
	for _, name := range launchTexts(capabilities["drop"]) {
		launchAppend(&l.CapDrop, launchCapability(name))
	}
	for _, context := range []map[string]*yaml.Node{security, launchMapping(pod["securityContext"])} {
		if kind := launchText(launchMapping(context["seccompProfile"])["type"]); kind != "" {
			launchAppend(&l.SecurityOptions, "seccomp="+strings.ToLower(kind))
		}
	}
	for _, entry := range launchList(m["env"]) {
		if v := launchMapping(entry); v["value"] != nil {
			launchSet(l, launchText(v["name"]), launchText(v["value"]))
			w.stands(l, launchVariable(launchText(v["name"])), v["name"])
		}
	}
	volumes := make(map[string]map[string]*yaml.Node)
	for _, entry := range launchList(pod["volumes"]) {
		v := launchMapping(entry)
		volumes[launchText(v["name"])] = v
	}
	for _, entry := range launchList(m["volumeMounts"]) {
		w.mount(l, launchMapping(entry), volumes)
	}
	launchKeep(w.sink, l, w.at(n), nil)
}

// resource notes one limit.
func (w *launchWalk) resource(l *facts.Launch, name, value string) {
	if !strings.Contains(name, "/") || value == "" || len(l.Resources) >= launchMaxList {
		return
	}
	if l.Resources == nil {
		l.Resources = make(map[string]string)
	}
	l.Resources[checks.Printable(name, 300)] = checks.Printable(value, 300)
	if name == "nvidia.com/gpu" || name == "amd.com/gpu" || strings.HasPrefix(name, "nvidia.com/gpu.") {
		l.GPUVendor, _, _ = strings.Cut(name, ".")
		l.GPUs = launchCount(value)
	}
}

// mount notes a volume: at /dev/shm a memory volume or the host's directory
// stands for its size.
func (w *launchWalk) mount(l *facts.Launch, mount map[string]*yaml.Node, volumes map[string]map[string]*yaml.Node) {
	name, target := launchText(mount["name"]), strings.TrimRight(launchText(mount["mountPath"]), "/")
	volume := volumes[name]
	empty := launchMapping(volume["emptyDir"])
	source := cmp.Or(launchText(launchMapping(volume["hostPath"])["path"]), name)
	if empty != nil {
		source = "emptyDir"
		if medium := launchText(empty["medium"]); medium != "" {
			source = "emptyDir-" + strings.ToLower(medium)
		}
		if target == "/dev/shm" {
			l.SHMBytes = launchSize(launchText(empty["sizeLimit"]))
			w.stands(l, "shm_bytes", empty["sizeLimit"])
		}
	}
	launchMount(l, source, target)
}

// services reads the services of a compose file.
func (w *launchWalk) services(n *yaml.Node, c launchContext) {
	n = yamlResolve(n)
	for i := 0; i+1 < len(n.Content) && i < 2*launchMaxList; i += 2 {
		w.service(n.Content[i], n.Content[i+1], c)
	}
}

// service reads one service; key is its name, with which it begins, or nil.
func (w *launchWalk) service(key, n *yaml.Node, c launchContext) {
	m := launchMapping(n)
	if m == nil {
		return
	}
	name, begin := launchText(key), n
	if key != nil {
		begin = key
	}
	l := &facts.Launch{
		Kind: "compose", Name: cmp.Or(launchText(m["container_name"]), name, c.name), Image: launchText(m["image"]), Runtime: launchText(m["runtime"]),
		IPC: launchText(m["ipc"]), PID: launchText(m["pid"]), Network: launchText(m["network_mode"]), Privileged: launchText(m["privileged"]) == "true",
		SHMBytes: launchSize(launchText(m["shm_size"])),
	}
	l.Lines = map[string]int{}
	for part, key := range map[string]string{"runtime": "runtime", "ipc": "ipc", "privileged": "privileged", "shm_bytes": "shm_size", "devices": "devices"} {
		w.stands(l, part, m[key])
	}
	for _, key := range []string{"entrypoint", "command"} {
		if text := launchText(m[key]); text != "" {
			l.Command = append(l.Command, launchWords(text)...)
			continue
		}
		l.Command = append(l.Command, launchTexts(m[key])...)
	}
	for _, name := range launchTexts(m["cap_add"]) {
		launchAppend(&l.CapAdd, launchCapability(name))
	}
	for _, name := range launchTexts(m["cap_drop"]) {
		launchAppend(&l.CapDrop, launchCapability(name))
	}
	for _, option := range launchTexts(m["security_opt"]) {
		launchAppend(&l.SecurityOptions, strings.Replace(option, ":", "=", 1))
	}
	for _, device := range launchTexts(m["devices"]) {
		launchDevice(l, device)
	}
	w.serviceLimits(l, m)
	for name, value := range launchMapping(m["environment"]) {
		launchSet(l, name, launchText(value))
		w.stands(l, launchVariable(name), value)
	}
	for _, entry := range launchList(m["environment"]) {
		if name, value, ok := launchAssignment(launchText(entry)); ok {
			launchSet(l, name, value)
			w.stands(l, launchVariable(name), entry)
		}
	}
	for _, entry := range launchList(m["volumes"]) {
		if v := launchMapping(entry); v != nil {
			launchMount(l, cmp.Or(launchText(v["source"]), launchText(v["type"])), launchText(v["target"]))
			continue
		}
		source, target, ok := strings.Cut(launchText(entry), ":")
		target, _, _ = strings.Cut(target, ":")
		if ok {
			launchMount(l, source, target)
		}
	}
	for _, entry := range launchTexts(m["tmpfs"]) {
		launchDockerOption(l, "--tmpfs", entry)
	}
	launchKeep(w.sink, l, w.at(begin), nil)
}

// serviceLimits reads the limits of a service and the GPUs it asks for.
func (w *launchWalk) serviceLimits(l *facts.Launch, m map[string]*yaml.Node) {
	memlock := launchMapping(m["ulimits"])["memlock"]
	soft := cmp.Or(launchText(launchMapping(memlock)["soft"]), launchText(memlock))
	if soft != "" {
		launchUlimit(l, "memlock="+soft)
	}
	if gpus := launchText(m["gpus"]); gpus != "" {
		launchGPUs(l, gpus)
	}
	reservations := launchMapping(launchMapping(launchMapping(m["deploy"])["resources"])["reservations"])
	for _, entry := range launchList(reservations["devices"]) {
		device := launchMapping(entry)
		capabilities := launchTexts(device["capabilities"])
		if !slices.Contains(capabilities, "gpu") && launchText(device["driver"]) != "nvidia" {
			continue
		}
		l.GPUVendor = "nvidia"
		switch ids := launchTexts(device["device_ids"]); {
		case len(ids) > 0:
			n := len(ids)
			l.GPUs = &n
		case launchCount(launchText(device["count"])) != nil:
			l.GPUs = launchCount(launchText(device["count"]))
		default: // "all", or no count, which is all.
			l.GPUs = launchDevices("all")
		}
	}
}
