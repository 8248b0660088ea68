package launch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/gpudoctor/gpudoctor/checks/env"
	"github.com/gpudoctor/gpudoctor/checks/escape"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/shell"
)

const (
	// maxDocument bounds a description that is parsed as a whole, in bytes, and maxDocumentLines in lines.
	maxDocument      = 1 << 20
	maxDocumentLines = 20000
	maxDepth         = 40
	// maxVisits bounds the nodes that are looked at: aliases may refer to the same one many times.
	maxVisits    = 100000
	maxDocuments = 4096
)

// yamlKind takes descriptions in YAML: Kubernetes objects of any kind that hold containers, compose files, and pieces
// of both. A compose file in JSON is also YAML.
func yamlKind(s *reading) *parse.Kind {
	return &parse.Kind{
		Name: "manifest", Title: "A Kubernetes or compose description", Command: "kubectl get pod NAME -o yaml", Gives: []string{"launches", "env"},
		Anchors: []string{
			"apiVersion:", "services:", "containers:", "spec:", "template:", "image:", "resources:", "version:", "hostIPC:",
			"volumes:", "name: ", ": &",
		},
		Begins: yamlBegins,
		Read:   func(_ *parse.Sink, in *parse.Lines) { yamlRead(s, in) },
	}
}

var (
	// yamlFirst is how such a description, or a piece of one, begins.
	yamlFirst = lazy.New(`^\s*(?:- )?(?:apiVersion:|kind: \w|services:\s*$|containers:\s*$|spec:\s*$|template:\s*$|image: *\S|resources:\s*$|version: *['"]?[23]|hostIPC:|volumes:\s*$|- ?name: |x-[\w.-]+:\s+&)`)
	// yamlTelling is what one of its lines must hold to be worth reading.
	yamlTelling = lazy.New(`^\s*(?:- )?["']?(?:image|containers|services|resources|shm_size|hostIPC|value|resourcesPerNode|modelFormat|nvidia\.com/gpu|amd\.com/gpu)["']?:|[{,]\s*["']?containers["']?:`)
	// yamlKey is a key at the level of the first line: one word.
	yamlKey = lazy.New(`^\s*(?:#|---\s*$|- |-$|[\w."'-]+\s*:(?:\s|$))`)
	// yamlLine is a line of YAML: a key, an entry of a list, or what goes on from the line before.
	yamlLine = lazy.New(`^\s*(?:$|#|---\s*$|- |-$|[\w."'/$<&*-]+(?: ?[\w."'/-]+)*\s*:(?:\s|$)|[\]\[{}"']|\S+,?$)`)
)

func yamlBegins(in *parse.Lines) bool {
	if !begins(in, yamlFirst) {
		return false
	}
	indent := indentation(in.First().Text)
	for _, l := range in.Ahead(200) {
		at := indentation(l.Text)
		switch {
		case strings.TrimSpace(l.Text) == "" || yamlTemplate.MatchString(l.Text):
		case at < indent:
			return false
		case yamlTelling.MatchString(l.Text):
			return true
		case at == indent && !yamlKey.MatchString(l.Text):
			return false
		}
	}
	return false
}

func indentation(text string) int { return len(text) - len(strings.TrimLeft(text, " ")) }

func yamlRead(s *reading, in *parse.Lines) {
	indent := indentation(in.First().Text)
	size, count := 0, 0
	// In a file that is valid to its end, each line belongs to it, whatever it looks like: a scalar may go on over several.
	valid := false
	if indent == 0 && s.Text() != "" && checkedWhole(s) { // It is empty of a text that is too long to be checked.
		_, err := s.whole()
		valid = err == nil
	}
	// literal is the indentation of the key whose text block is under way.
	literal := -1
	lines := in.While(func(l parse.Line) bool {
		size, count = size+len(l.Text)+1, count+1
		at := indentation(l.Text)
		switch {
		case size > maxDocument || count > maxDocumentLines:
			notUnderstood(s, fmt.Sprintf("the manifest at line %d of %s has more than %d lines or %d bytes", in.First().Number, s.Source(), maxDocumentLines, maxDocument), "give its documents in files of their own")
			return false
		case valid, strings.TrimSpace(l.Text) == "" || yamlTemplate.MatchString(l.Text) || literal >= 0 && at > literal:
			return true
		}
		literal = -1
		if yamlLiteral.MatchString(l.Text) {
			literal = at
		}
		return at > indent && yamlLine.MatchString(l.Text) || at == indent && yamlKey.MatchString(l.Text)
	})
	var b strings.Builder
	for _, l := range lines {
		if text := strings.TrimRight(l.Text, " "); len(text) >= indent {
			b.WriteString(quotedExpressions(strings.ReplaceAll(text[indent:], "\t", " ")))
		}
		b.WriteByte('\n')
	}
	// A template's lines (Helm, Jinja) are no YAML until it is filled in.
	if i := slices.IndexFunc(lines, func(l parse.Line) bool { return isTemplated(l.Text) }); i >= 0 {
		notUnderstood(s, fmt.Sprintf("line %d of %s is a template, which says nothing until it is filled in", lines[i].Number, s.Source()),
			"render it (helm template, kustomize build), and give the result")
	}
	if !slices.ContainsFunc(lines, func(l parse.Line) bool { return yamlTemplate.MatchString(l.Text) }) {
		yamlDocuments(s, b.String(), in.First(), true)
	}
}

// yamlLiteral is a key whose value is a block of text: "- |", "run: >-".
var yamlLiteral = lazy.New(`(?:^|[:-]) *[|>][+-]?\d?\s*$`)

// yamlDocuments parses text, whose first line is first. What does not
// parse to its end is read as far as it does: texts are cut. Docker Compose may replace references in it.
func yamlDocuments(s *reading, text string, first parse.Line, mayReplace bool) {
	broken := "" // The line that does not parse.
	for range 8 {
		nodes, err := yamlNodes(text)
		if bad := yamlErrorLine.FindStringSubmatch(fmt.Sprint(err)); bad != nil {
			// The line that the parser names is that of the fault, or the one before it.
			n, _ := strconv.Atoi(bad[1])
			if !checkedWhole(s) {
				notUnderstood(s, fmt.Sprintf("%s is not valid YAML at line %d", s.Source(), first.Number+max(n, 1)-1), "correct it: what follows was not read")
			}
			lines := strings.SplitAfter(strings.TrimRight(text, "\n"), "\n")
			if n = min(n, len(lines)-1); n > 0 {
				text, broken = strings.Join(lines[:n], ""), cmp.Or(strings.TrimSpace(lines[n]), "cut off")
				continue
			}
		}
		begin := len(s.Facts.Launches) // Where those of the last document begin.
		w := &yamlWalk{sink: s, first: first}
		for _, n := range nodes {
			begin = len(s.Facts.Launches)
			if mayReplace && parse.YAMLMapping(n)["apiVersion"] == nil {
				replaceAsCompose(n, 0)
			}
			w.visit(n, yamlContext{})
		}
		for i := begin; i < len(s.Facts.Launches) && broken != ""; i++ {
			// The rest of the last one is missing, and with it what the containers of a pod share.
			if l := &s.Facts.Launches[i]; i == len(s.Facts.Launches)-1 || l.Kind == "kubernetes" {
				leaveRestOpen(l, broken, ruled)
			}
		}
		if w.visits > maxVisits || len(nodes) == maxDocuments {
			notUnderstood(s, fmt.Sprintf("the manifest at line %d of %s has more parts than are read", first.Number, s.Source()), "give its documents in files of their own")
		}
		return
	}
}

var yamlErrorLine = lazy.New(`line (\d{1,6}):`)

type yamlWalk struct {
	sink   *reading
	first  parse.Line
	visits int
}

type yamlContext struct {
	depth int
	name  string
	// nodes is the number of nodes, or what stands for it.
	nodes string
	// kind is that of the object, object what is read from the outside inwards, and key the key above.
	kind, apiVersion, object, key string
	// claims are the volumes that a StatefulSet makes, and networks those that annotations add to the pod's own.
	claims   []string
	networks []string
}

// enter goes into a mapping: an object, or a group of replicas with a name.
func (c *yamlContext) enter(w *yamlWalk, m map[string]*yaml.Node) {
	metadata := parse.YAMLMapping(m["metadata"])
	name := cmp.Or(parse.YAMLText(metadata["name"]), parse.YAMLText(metadata["generateName"]))
	c.name = cmp.Or(parse.YAMLText(metadata["name"]), c.name)
	if kind := parse.YAMLText(m["kind"]); kind != "" && c.key != "template" && (m["apiVersion"] != nil || m["metadata"] != nil || m["spec"] != nil) {
		c.kind, c.apiVersion, c.object = kind, parse.YAMLText(m["apiVersion"]), ""
		c.into(kind)
		c.into(name)
		c.networks, c.claims = nil, nil
	} else if m["template"] != nil || m["spec"] != nil {
		c.into(cmp.Or(parse.YAMLText(m["groupName"]), parse.YAMLText(m["name"])))
	}
	for _, n := range w.list(m["volumeClaimTemplates"]) {
		c.claims = append(slices.Clip(c.claims), parse.YAMLText(parse.YAMLMapping(parse.YAMLMapping(n)["metadata"])["name"]))
	}
	if n := parse.YAMLMapping(metadata["annotations"])["k8s.v1.cni.cncf.io/networks"]; n != nil {
		c.networks = nil
		for name := range strings.SplitSeq(parse.YAMLText(n), ",") { // Multus: "a, space/b@net1".
			appendTo(&c.networks, strings.TrimSpace(name))
		}
	}
}

func (c *yamlContext) into(name string) {
	if name != "" && len(c.object) < 200 {
		c.object = strings.TrimPrefix(c.object+"/"+escape.Printable(name, 100), "/")
	}
}

// below is the context of what stands below a key.
func (c yamlContext) below(key string) yamlContext {
	switch {
	case strings.HasSuffix(c.key, "ReplicaSpecs"), c.kind == "" && !plainKeys[key]:
		c.into(key)
	case roleKeys[key] != "":
		c.into(roleKeys[key])
	}
	c.key = key
	return c
}

// roleKeys are the keys of the parts of an object that have pods of their own, and plainKeys those that say
// nothing of which part it is.
var (
	roleKeys = map[string]string{
		"headGroupSpec": "head", "leaderTemplate": "leader", "workerTemplate": "worker", "predictor": "predictor", "transformer": "transformer",
		"explainer": "explainer", "prefill": "prefill", "worker": "worker",
	}
	plainKeys = map[string]bool{"spec": true, "template": true, "items": true, "containers": true, "services": true, "jobTemplate": true}
)

// stands notes where a part of a launch stands; n may be nil. An alias is looked up where it points to.
func (w *yamlWalk) stands(l *facts.Launch, part string, n *yaml.Node) {
	if n = parse.YAMLResolve(n); n != nil && part != "" {
		noteLine(l, part, w.at(n).Number)
	}
}

// standsWord notes where a word of a command stands that sets the number of processes.
func (w *yamlWalk) standsWord(l *facts.Launch, words []*yaml.Node) {
	for _, n := range words {
		if text := parse.YAMLText(n); slices.ContainsFunc(partWords["processes"], func(word string) bool { return strings.Contains(text, word) }) {
			w.stands(l, "processes", n) // The first that is noted counts.
		}
	}
}

func (w *yamlWalk) at(n *yaml.Node) parse.Line {
	return parse.Line{Number: w.first.Number + max(n.Line, 1) - 1}
}

func (w *yamlWalk) visit(n *yaml.Node, c yamlContext) {
	n = parse.YAMLResolve(n)
	if w.visits++; n == nil || c.depth > maxDepth || w.visits > maxVisits {
		return
	}
	c.depth++
	if n.Kind != yaml.MappingNode {
		for _, child := range n.Content {
			w.visit(child, c)
		}
		return
	}
	m := parse.YAMLMapping(n)
	c.enter(w, m)
	if m["template"] != nil { // A Job.
		c.count(parse.YAMLText(m["parallelism"]))
	}
	if m["workerTemplate"] != nil { // A LeaderWorkerSet.
		c.count(parse.YAMLText(m["size"]))
	}
	for key, child := range m {
		if strings.HasSuffix(key, "ReplicaSpecs") { // Of Kubeflow's jobs.
			c.count(replicasOf(child))
		}
	}
	if name := parse.YAMLText(m["name"]); m["value"] != nil && env.SteersCommunication(name) && !shell.Refers(parse.YAMLText(m["value"])) { // An entry of a container's env.
		w.sink.Variable(name, escape.Printable(parse.YAMLText(m["value"]), maxValue), w.at(m["name"]))
	}
	switch {
	case isSequence(m["containers"]):
		w.pod(m, c)
	case isServices(m["services"]):
		services := parse.YAMLResolve(m["services"]).Content
		for i := 0; i+1 < len(services) && i < 2*maxList; i += 2 {
			w.service(services[i], services[i+1], c)
		}
	case m["image"] != nil && isContainer(m), c.isModel(m):
		w.container(n, nil, c)
	default:
		for i := 0; i+1 < len(n.Content); i += 2 {
			w.visit(n.Content[i+1], c.below(n.Content[i].Value))
		}
	}
}

func (c *yamlContext) count(text string) {
	if shell.Refers(text) || parseCount(text) != nil {
		c.nodes = text
	}
}

// list is a list's entries; a plain value is a list of one. A list that is too long is not understood.
func (w *yamlWalk) list(n *yaml.Node) []*yaml.Node {
	switch n = parse.YAMLResolve(n); {
	case n == nil || n.Kind == yaml.MappingNode || n.Tag == "!!null":
		return nil
	case n.Kind != yaml.SequenceNode:
		return []*yaml.Node{n}
	case len(n.Content) > maxList:
		notUnderstood(w.sink, fmt.Sprintf("the list at line %d of %s has more than %d entries", w.at(n).Number, w.sink.Source(), maxList), "make it shorter: what follows was not read")
	}
	return n.Content[:min(len(n.Content), maxList)]
}

func (w *yamlWalk) texts(n *yaml.Node) (list []string) {
	for _, entry := range w.list(n) {
		list = append(list, parse.YAMLText(entry))
	}
	return list
}

func isSequence(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }

func isServices(n *yaml.Node) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(parse.YAMLMapping(n))), func(service *yaml.Node) bool {
		return hasAny(parse.YAMLMapping(service), "image", "build", "shm_size")
	})
}

func hasAny(m map[string]*yaml.Node, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return m[key] != nil })
}

// isModel is true for what a controller brings the image for: a model of KServe, and the trainer of a TrainJob.
func (c *yamlContext) isModel(m map[string]*yaml.Node) bool {
	return m["storageUri"] != nil && m["resources"] != nil || c.key == "model" && m["modelFormat"] != nil || c.key == "trainer" && c.kind == "TrainJob" || m["resourcesPerNode"] != nil
}

func isContainer(m map[string]*yaml.Node) bool {
	return hasAny(m, "resources", "volumeMounts", "imagePullPolicy", "securityContext") || isSequence(m["env"]) || isSequence(m["args"])
}

// replicasOf is the number of replicas of a job's parts, or what stands for it.
func replicasOf(n *yaml.Node) string {
	total := 0
	for role, part := range parse.YAMLMapping(n) {
		text := cmp.Or(parse.YAMLText(parse.YAMLMapping(part)["replicas"]), "1")
		if role == "Launcher" { // MPIJob: it starts the workers.
			continue
		}
		if shell.Refers(text) {
			return text
		}
		if count := parseCount(text); count != nil {
			total += *count
		}
	}
	return strconv.Itoa(total)
}

func (w *yamlWalk) pod(spec map[string]*yaml.Node, c yamlContext) {
	begin := len(w.sink.Facts.Launches)
	for _, container := range w.list(spec["containers"]) {
		w.container(container, spec, c)
	}
	// A container that asks for no GPU beside one that does gets none: a proxy, a collector of logs.
	if own := w.sink.Facts.Launches[min(begin, len(w.sink.Facts.Launches)):]; slices.ContainsFunc(own, func(l facts.Launch) bool { return l.GPUs != nil && *l.GPUs > 0 }) {
		for i := range own {
			if own[i].GPUs == nil && own[i].Unknown["gpus"] == "" {
				own[i].GPUs = new(0)
			}
		}
	}
}

func (w *yamlWalk) container(n *yaml.Node, pod map[string]*yaml.Node, c yamlContext) {
	m := parse.YAMLMapping(n)
	if m == nil {
		return
	}
	l := &facts.Launch{
		Kind: "kubernetes", Name: cmp.Or(c.name, parse.YAMLText(m["name"])), Image: parse.YAMLText(m["image"]),
		Command: append(w.texts(m["command"]), w.texts(m["args"])...),
	}
	c.into(parse.YAMLText(m["name"]))
	l.Object, l.Networks = c.object, c.networks
	l.Lines = map[string]int{}
	for key, part := range map[string]string{"hostIPC": "ipc", "hostPID": "pid", "hostNetwork": "network"} {
		w.stands(l, part, pod[key])
		if text := parse.YAMLText(pod[key]); !unresolved(l, part, text) && text == "true" {
			set(l, part, "host")
		}
	}
	w.set(l, "runtime", pod["runtimeClassName"])
	set(l, "nodes", c.nodes)
	w.standsWord(l, slices.Concat(w.list(m["command"]), w.list(m["args"])))
	resources := cmp.Or(m["resources"], m["resourcesPerNode"])
	if c.kind == describedPod {
		resources = n
	}
	w.resources(l, resources)
	security := openNodes(l, m["securityContext"], "privileged", "cap_add", "user")
	w.set(l, "privileged", security["privileged"])
	w.set(l, "user", cmp.Or(security["runAsUser"], parse.YAMLMapping(pod["securityContext"])["runAsUser"]))
	w.environment(l, m["env"])
	w.fields(l, n, podFields...)
	openNodes(l, pod["volumes"], "mounts", "shm_bytes")
	openNodes(l, m["volumeMounts"], "mounts", "shm_bytes")
	volumes := make(map[string]map[string]*yaml.Node)
	for _, entry := range w.list(pod["volumes"]) {
		v := parse.YAMLMapping(entry)
		volumes[parse.YAMLText(v["name"])] = v
	}
	for _, entry := range w.list(m["volumeMounts"]) {
		mount := parse.YAMLMapping(entry)
		w.mount(l, mount, volumes)
		if name := parse.YAMLText(mount["name"]); pod != nil && name != "" && volumes[name] == nil && !slices.Contains(c.claims, name) && !shell.Refers(name) {
			appendTo(&l.UndefinedVolumes, name)
			w.stands(l, "undefined_volumes["+name+"]", mount["name"])
		}
	}
	complete(l, c.apiVersion, c.kind, pod != nil)
	if !ofKubernetes(c.apiVersion) || l.Unknown["mounts"] != "" || w.sink.Form() != parse.Data { // A ticket may show a part of a pod.
		l.UndefinedVolumes = nil
	}
	w.keep(l, n, n)
}

// set gives a part of a launch the value of a node, whose line it notes.
func (w *yamlWalk) set(l *facts.Launch, part string, n *yaml.Node) {
	w.stands(l, part, n)
	set(l, part, parse.YAMLText(n))
}

// resources reads what a container requests, and its limits.
func (w *yamlWalk) resources(l *facts.Launch, n *yaml.Node) {
	both := openNodes(l, n, "resources", "gpus")
	if claims := w.list(both["claims"]); len(claims) > 0 { // Dynamic resource allocation.
		l.Resources = map[string]string{"claims": strconv.Itoa(len(claims))}
	}
	for _, key := range []string{"requests", "limits"} {
		amounts := openNodes(l, both[key], "resources", "gpus")
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			w.amount(l, key, name, amounts[name])
		}
	}
	if both["limits"] == nil && both["requests"] == nil { // resourcesPerNode: {nvidia.com/gpu: 8}.
		w.amount(l, "limits", "nvidia.com/gpu", both["nvidia.com/gpu"])
	}
}

// amount notes one resource. A limit counts for more than a request.
func (w *yamlWalk) amount(l *facts.Launch, key, name string, n *yaml.Node) {
	text := parse.YAMLText(n)
	if n == nil || text == "" && !isGPU(name) {
		return
	}
	text = cmp.Or(text, "0") // Null is 0.
	part, list := "resources", &l.Resources
	if key == "requests" {
		part, list = "requests", &l.Requests
	}
	of := map[string]string{"cpu": "cpus", "memory": "memory_bytes"}[name]
	if isGPU(name) {
		of = "gpus"
		l.GPUVendor, _, _ = strings.Cut(name, ".")
		if l.GPUs = nil; text == "0" {
			l.GPUs = new(0)
		}
	} else if shell.Refers(name) {
		leaveOpen(l, text, "gpus")
	}
	delete(l.Lines, of) // The limit counts.
	w.set(l, of, n)
	switch {
	case len(*list) >= maxList || key == "limits" && !strings.Contains(name, "/"):
	case shell.Refers(name) || shell.Refers(text):
		leaveOpen(l, text, part)
	default:
		facts.Put(list, escape.Printable(name, 300), escape.Printable(text, 300))
		noteLine(l, part+"["+name+"]", w.at(n).Number)
	}
}

// cores reads a number of CPUs: "8", "500m".
func cores(text string) *float64 {
	digits, milli := strings.CutSuffix(text, "m")
	n, err := facts.ParseFloat(digits)
	switch {
	case err != nil || n < 0:
		return nil
	case milli:
		n /= 1000
	}
	return &n
}

// isGPU is true of a resource that is a whole GPU, or a share of one.
func isGPU(name string) bool {
	return name == "nvidia.com/gpu" || name == "amd.com/gpu" || strings.HasPrefix(name, "nvidia.com/gpu.")
}

// mount notes a volume: at /dev/shm a memory volume or the host's directory stands for its size.
func (w *yamlWalk) mount(l *facts.Launch, mount map[string]*yaml.Node, volumes map[string]map[string]*yaml.Node) {
	name, target := parse.YAMLText(mount["name"]), strings.TrimRight(parse.YAMLText(mount["mountPath"]), "/")
	volume := volumes[name]
	empty := openNodes(l, volume["emptyDir"], "mounts", "shm_bytes")
	source := cmp.Or(parse.YAMLText(parse.YAMLMapping(volume["hostPath"])["path"]), name)
	if empty != nil {
		source = "emptyDir"
		if medium := parse.YAMLText(empty["medium"]); medium != "" {
			source = "emptyDir-" + strings.ToLower(medium)
		}
		if target == "/dev/shm" {
			w.set(l, "shm_bytes", empty["sizeLimit"])
		}
	}
	addMount(l, source, target)
}

func (w *yamlWalk) service(key, n *yaml.Node, c yamlContext) {
	m := parse.YAMLMapping(n)
	if m == nil {
		return
	}
	name := parse.YAMLText(key)
	l := &facts.Launch{
		Kind: "compose", Name: cmp.Or(parse.YAMLText(m["container_name"]), name), Image: parse.YAMLText(m["image"]), Lines: map[string]int{},
		Object: escape.Printable("service/"+name, 200),
	}
	set(l, "nodes", c.nodes)
	w.fields(l, n, serviceFields...)
	w.environment(l, m["environment"])
	w.standsWord(l, slices.Concat(w.list(m["entrypoint"]), w.list(m["command"])))
	for _, key := range []string{"entrypoint", "command"} {
		words := w.texts(m[key])
		if text := parse.YAMLText(m[key]); text != "" {
			words = shell.Words(text)
		}
		l.Command = append(l.Command, words...)
	}
	w.reservations(l, m["deploy"])
	w.keep(l, key, n)
}

// keep keeps a launch that stands from the line of a node to the last one of another.
func (w *yamlWalk) keep(l *facts.Launch, from, to *yaml.Node) {
	keepLaunch(w.sink, l, w.at(from), []parse.Line{{Number: w.first.Number + lastLine(to, 0) - 1}})
}

func lastLine(n *yaml.Node, depth int) int {
	last := n.Line
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		last += strings.Count(n.Value, "\n")
	}
	if len(n.Content) > 0 && depth < maxDepth { // The others stand above it.
		last = max(last, lastLine(n.Content[len(n.Content)-1], depth+1))
	}
	return last
}

func (w *yamlWalk) reservations(l *facts.Launch, n *yaml.Node) {
	for _, key := range []string{"resources", "reservations", "devices"} {
		n = openNodes(l, n, "gpus")[key]
	}
	openNodes(l, n, "gpus")
	for _, entry := range w.list(n) {
		device := parse.YAMLMapping(entry)
		capabilities := w.texts(device["capabilities"])
		if !slices.Contains(capabilities, "gpu") && parse.YAMLText(device["driver"]) != "nvidia" {
			unresolved(l, "gpus", strings.Join(append(capabilities, parse.YAMLText(device["driver"])), ","))
			continue
		}
		l.GPUVendor = "nvidia"
		w.stands(l, "gpus", cmp.Or(device["count"], device["device_ids"], entry))
		switch ids := w.texts(device["device_ids"]); {
		case unresolved(l, "gpus", strings.Join(ids, ",")), unresolved(l, "gpus", parse.YAMLText(device["count"])):
		case len(ids) > 0:
			l.GPUs = new(len(ids))
		default: // "all", or no count, which is all.
			l.GPUs = cmp.Or(parseCount(parse.YAMLText(device["count"])), countDevices("all"))
		}
	}
}
