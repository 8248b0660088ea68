package remedies

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/rules"
)

// Situation is what advice must fit.
type Situation struct {
	// Facts are those that the findings follow from; nothing is known to be in force if they are nil.
	Facts *facts.Facts
	// Proofs says, by remedy id, what was tried here.
	Proofs map[string]Proof
	// Recheck is how gpudoctor was called.
	Recheck Recheck
}

// Place is where something is set.
type Place struct {
	// Kind is "environment", "file" (a configuration file of this machine), "text" (a log or a listing, which shows the
	// setting and not where it is made), "image" (the configuration of a container image), or the kind of a launch:
	// "kubernetes", "dockerfile", "compose", "slurm", "docker-run".
	Kind string `json:"kind"`
	// File and Line are where it is set; empty for the environment.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// String describes the place.
func (p Place) String() string {
	switch {
	case p.File == "":
		return p.Kind
	case p.Line == 0:
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// setting is a variable's value in force, and where it is set.
type setting struct {
	value string
	place Place
}

// variables are what the environment and files say of a variable.
func (s Situation) variables(name string) []facts.Variable {
	if s.Facts.Env == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Facts.Env.Variables), func(v facts.Variable) bool { return v.Name != name })
}

// settings are the values of a variable that are in force: for the process that
// reads them, or for a job that is described.
func (s Situation) settings(name string) (all []setting) {
	for _, v := range s.variables(name) {
		if v.Effective {
			all = appendNew(all, setting{v.Value, s.placeOf(v)})
		}
	}
	for _, l := range s.Facts.Launches {
		value, set := l.Variables[name]
		known := slices.ContainsFunc(all, func(o setting) bool { return o.value == value && o.place.File == l.Source })
		tried := slices.ContainsFunc(s.variables(name), func(v facts.Variable) bool { return v.Trial && v.Value == value }) // Only as an experiment.
		if set && !known && !tried {
			all = appendNew(all, setting{value, Place{l.Kind, l.Source, l.Line}})
		}
	}
	return all
}

func appendNew[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

func (s Situation) placeOf(v facts.Variable) Place {
	switch {
	case v.Source == "environment" && s.Facts.Image != nil:
		return Place{Kind: "image", File: "the image's ENV"}
	case v.Source == "environment":
		return Place{Kind: "environment"}
	}
	p := Place{Kind: "file", File: v.Source, Line: v.Line}
	for _, l := range s.Facts.Launches {
		if value, set := l.Variables[v.Name]; set && l.Source == v.Source && value == v.Value {
			p.Kind = l.Kind
			return p
		}
	}
	if i := slices.IndexFunc(s.Facts.Texts, func(t facts.Text) bool { return t.Name == v.Source }); i >= 0 {
		p.Kind = kindOf(s.Facts.Texts[i])
	}
	return p
}

// configurations are the names of the files that NCCL and RCCL read (initEnvFunc,
// NCCL src/misc/param.cc): nothing in such a file identifies it.
var configurations = []string{"nccl.conf", ".nccl.conf", "rccl.conf", ".rccl.conf"}

// kindOf is the kind of place that a text is for the variables in it: what a batch script or a Dockerfile sets is set
// there. Where a text holds something else as well, such as a log, a variable may be from that.
func kindOf(t facts.Text) string {
	if slices.Contains(configurations, path.Base(t.Name)) {
		return "file"
	}
	kind := "text"
	for _, k := range t.Kinds {
		switch k.Kind {
		case "sbatch":
			kind = "slurm"
		case "dockerfile":
			kind = "dockerfile"
		case "environment", "command-line", "messages": // Their lines look like this.
		default:
			return "text"
		}
	}
	return kind
}

// editable are the lines of files that give a variable its value in force: also
// those that another line overrides, since they take effect once that one is removed.
func (s Situation) editable(name string) (all []Edit) {
	inForce := s.settings(name)
	for _, v := range s.variables(name) {
		p := s.placeOf(v)
		if p.Kind != "environment" && p.Kind != "text" && slices.ContainsFunc(inForce, func(n setting) bool { return n.value == v.Value }) {
			all = appendNew(all, Edit{Place: p, Remove: name + "=" + v.Value})
		}
	}
	for _, l := range s.Facts.Launches {
		value, set := l.Variables[name]
		if set && !slices.ContainsFunc(all, func(e Edit) bool { return e.File == l.Source }) {
			all = append(all, Edit{Place: Place{l.Kind, l.Source, l.Line}, Remove: name + "=" + value})
		}
	}
	return all
}

// vendorOf is the one vendor of all GPUs; empty where there are several. Where no GPU is known,
// what was asked for them tells: the probe's runtime, a container, messages and libraries.
func vendorOf(f *facts.Facts) string {
	if f.GPUs != nil && len(f.GPUs.Devices) > 0 {
		return OneVendor(f.GPUs.Devices)
	}
	if f.Transfers != nil && f.Transfers.API == "hip" || slices.ContainsFunc(f.Launches, forAMD) || spokenOf(f, "hip", "rocr", "rocm", "rocblas", "rccl") && !spokenOf(f, "cuda", "nvml", "nvidia-smi", "nvidia-driver") ||
		has(f, "libamdhip64") && !has(f, "libcuda", "libcudart") {
		return "amd"
	}
	return ""
}

// OneVendor is the one vendor of all GPUs; empty where there are none, or several vendors.
func OneVendor(gpus []facts.GPU) string {
	if len(gpus) == 0 || slices.ContainsFunc(gpus, func(g facts.GPU) bool { return g.Vendor != gpus[0].Vendor }) {
		return ""
	}
	return gpus[0].Vendor
}

func has(f *facts.Facts, kinds ...string) bool {
	return f.Libraries != nil && slices.ContainsFunc(f.Libraries.Files, func(l facts.Library) bool { return slices.Contains(kinds, l.Kind) })
}

// forAMD reports whether a launch asks for AMD GPUs, or is of an image for them.
func forAMD(l facts.Launch) bool {
	return l.GPUVendor == "amd" || l.GPUVendor == "" && strings.Contains(l.Image, "rocm")
}

// spokenOf reports whether one of the programs left a message.
func spokenOf(f *facts.Facts, programs ...string) bool {
	return f.Logs != nil && slices.ContainsFunc(f.Logs.Messages, func(m facts.Message) bool { return slices.Contains(programs, m.Program) })
}

// schedulerOf is the scheduler of the job that the facts show; empty if they show none.
func schedulerOf(f *facts.Facts) string {
	if f.Env != nil && slices.ContainsFunc(f.Env.Variables, func(v facts.Variable) bool { return strings.HasPrefix(v.Name, "SLURM_") }) ||
		slices.ContainsFunc(f.Launches, func(l facts.Launch) bool { return l.Kind == "slurm" }) ||
		f.Logs != nil && (slices.ContainsFunc(f.Logs.Deaths, func(d facts.Death) bool { return d.Reporter == "slurm" }) ||
			slices.ContainsFunc(f.Logs.Messages, func(m facts.Message) bool { return m.Program == "slurm" })) {
		return "slurm"
	}
	return ""
}

// ownSetting reports whether a file of the user sets what a remedy unsets because of a finding.
func (s Situation) ownSetting(r Remedy, f rules.Finding) bool {
	return slices.ContainsFunc(newFiller([]rules.Finding{f}, Recheck{}).list(r.Apply.Unset), func(name string) bool { return len(s.editable(name)) > 0 })
}

// provenBy are the variables whose removal by a remedy, filled, is proven, and nothing else's.
func (s Situation) provenBy(a Apply) string {
	if triedBy(s.Facts, a).outcome() != Proven {
		return ""
	}
	return strings.Join(slices.Sorted(slices.Values(a.Unset)), " ")
}

// removal distinguishes the variables that are removed in different ways: by "unset",
// or by an edit that takes this or that.
func (s Situation) removal(name string) string {
	edits := s.editable(name)
	var ways []string
	if len(edits) == 0 || s.inEnvironment(name) {
		ways = append(ways, "unset")
	}
	for _, e := range edits {
		ways = append(ways, string(e.needsOf()))
	}
	slices.Sort(ways)
	return strings.Join(slices.Compact(ways), " ")
}

// inEnvironment reports whether a process has a variable in its environment, or
// nothing is known about it: then "unset" removes it.
func (s Situation) inEnvironment(name string) bool {
	all := s.settings(name)
	return len(all) == 0 || slices.ContainsFunc(all, func(n setting) bool {
		return n.place.Kind == "environment" || n.place.Kind == "text"
	})
}

// hasVariable reports whether a variable has a value already, and where.
func (s Situation) hasVariable(name, value string) (Place, bool) {
	for _, n := range s.settings(name) {
		if sameValue(n.value, value) {
			return n.place, true
		}
	}
	return Place{}, false
}

// sameValue compares values of a variable: as numbers if both are, otherwise as words regardless of case.
func sameValue(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	return strings.EqualFold(a, b)
}

// hasKernelParameter reports whether a parameter is on the kernel's command
// line already, as the only value or in a list of the same key.
func (s Situation) hasKernelParameter(parameter string) bool {
	var line []string
	if s.Facts.Host != nil {
		line = append(line, s.Facts.Host.CommandLine...)
	}
	if s.Facts.IOMMU != nil {
		line = append(line, s.Facts.IOMMU.CommandLine...)
	}
	key, value, _ := strings.Cut(parameter, "=")
	return slices.ContainsFunc(line, func(word string) bool {
		k, v, _ := strings.Cut(strings.ReplaceAll(word, `"`, ""), "=")
		return k == key && (v == value || slices.Contains(strings.Split(v, ","), value))
	})
}

// hasModuleOption reports whether a module has an option already: "options amdgpu pcie_p2p=1".
func (s Situation) hasModuleOption(line string) bool {
	parts := strings.Fields(line)
	if s.Facts.GPUs == nil || len(parts) != 3 || parts[0] != "options" {
		return false
	}
	name, value, _ := strings.Cut(parts[2], "=")
	var parameters map[string]string
	switch g := s.Facts.GPUs; parts[1] {
	case "amdgpu":
		if g.AMD != nil {
			parameters = g.AMD.Parameters
		}
	case "nvidia":
		parameters = g.Driver.Parameters
	}
	has, known := parameters[name]
	return known && sameValue(strings.NewReplacer("Y", "1", "N", "0").Replace(has), value)
}

// containers are the kinds of launches that the flags of docker run affect.
var containers = []string{"docker-run", "compose", "kubernetes", "docker-inspect"}

// hasContainerFlag reports whether every described container already has what a flag of docker run asks for.
func (s Situation) hasContainerFlag(flag string) bool {
	if setting, ok := strings.CutPrefix(flag, "-e "); ok {
		name, value, _ := strings.Cut(setting, "=")
		_, has := s.hasVariable(name, value)
		return has
	}
	isOther := func(l facts.Launch) bool { return !slices.Contains(containers, l.Kind) }
	described := slices.DeleteFunc(slices.Clone(s.Facts.Launches), isOther)
	return len(described) > 0 && !slices.ContainsFunc(described, func(l facts.Launch) bool { return !Has(&l, flag) })
}

// Has reports whether a container is started with what a flag of docker run asks for, as far as its description says.
func Has(l *facts.Launch, flag string) bool {
	key, value, _ := strings.Cut(strings.Replace(flag, " ", "=", 1), "=")
	unlimited := l.MemlockBytes != nil && *l.MemlockBytes == -1
	adds := func(capability string) bool {
		return slices.Contains(l.CapAdd, capability) || slices.Contains(l.CapAdd, "ALL")
	}
	switch key {
	case "--ipc":
		return l.IPC == value
	case "--pid":
		return l.PID == value
	case "--network":
		return l.Network == value
	case "--cap-add":
		return l.Privileged || adds(value) || value == "IPC_LOCK" && unlimited
	case "--device":
		return l.Privileged || passes(l, value)
	case "--group-add":
		return l.Privileged
	case "--gpus":
		return value == "all" && l.GPUs != nil && *l.GPUs == -1
	case "-v", "--volume":
		parts := strings.Split(value, ":")
		return slices.Contains(l.Mounts, strings.Join(parts[:min(2, len(parts))], ":"))
	case "--ulimit":
		return value == "memlock=-1" && (unlimited || l.Privileged || IsRoot(l.User) && adds("IPC_LOCK"))
	case "--shm-size":
		n, err := units.RAMInBytes(value)
		return err == nil && l.SHMBytes != nil && *l.SHMBytes >= n
	}
	return false
}

// IsRoot reports whether a user is root, as far as a description says: a capability that is added is in force for root.
func IsRoot(user string) bool {
	name, _, _ := strings.Cut(user, ":")
	return name == "" || name == "0" || name == "root"
}

// passes reports whether a device, or one of the nodes in a folder of them, reaches a container; of /dev/dri, in which each
// GPU has its own, all must.
func passes(l *facts.Launch, name string) bool {
	isIn := func(path string) bool {
		return path == name || path == "/dev" || name != "/dev/dri" && strings.HasPrefix(path, name+"/")
	}
	ofGPU := !strings.HasPrefix(name, "/dev/infiniband")
	return l.Runtime == "amd" && ofGPU ||
		slices.ContainsFunc(l.Devices, func(d string) bool { return isIn(d) || strings.HasPrefix(d, "amd.com/gpu=") && ofGPU }) ||
		slices.ContainsFunc(l.Mounts, func(m string) bool {
			source, target, _ := strings.Cut(m, ":")
			return source == target && isIn(source)
		})
}

// Edit is a line to take out of a file.
type Edit struct {
	Place
	// Remove is the setting that goes: "NCCL_P2P_DISABLE=1".
	Remove string `json:"remove"`
}

// Variable is the variable whose setting goes.
func (e Edit) Variable() string {
	name, _, _ := strings.Cut(e.Remove, "=")
	return name
}

func (e Edit) needsOf() Need {
	switch e.Kind {
	case "dockerfile", "image":
		return NeedImageRebuild
	case "kubernetes", "compose", "docker-run", "docker-inspect", "apptainer":
		return NeedContainerRestart
	case "file":
		if strings.HasPrefix(path.Clean(e.File), "/etc/") {
			return NeedRoot
		}
	}
	return NeedJobRestart
}

// Recheck is how the user called gpudoctor: what a command has to repeat to judge the same things again.
type Recheck struct {
	// Flags are those that decide what is examined and how it is judged, as words of a command line: "--profile",
	// "image". --only and --skip are not among them.
	Flags []string
	// Files is true where it reads files, which do not change by themselves.
	Files bool
}

// Command is the command that judges these rules again.
func (r Recheck) Command(rules ...string) string {
	words := []string{"gpudoctor", "check"}
	for _, flag := range r.Flags {
		words = append(words, Quote(flag))
	}
	if len(rules) > 0 {
		words = append(words, "--only", Quote(strings.Join(rules, ",")))
	}
	return strings.Join(words, " ")
}

// bare matches what a POSIX shell takes as one word without quotes.
var bare = lazy.New(`^[A-Za-z0-9_./:=,@%+-]+$`)

// Quote makes one word for a POSIX shell.
func Quote(word string) string {
	if bare.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
