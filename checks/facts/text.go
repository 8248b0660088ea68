package facts

import (
	"slices"

	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// The sections of this file are filled from texts that users give: logs, outputs of commands, job descriptions (package
// checks/text). A live machine has none of them, unless a text was given in addition.

// Text is one text that was examined.
type Text struct {
	// Name is the file, the member of an archive ("bundle.zip:nccl.log"), or "standard input".
	Name string `json:"name"`
	// Lines and Bytes are its size, as far as it was read.
	Lines int   `json:"lines"`
	Bytes int64 `json:"bytes"`
	// Kinds are what was recognized in it, in order of the first line.
	Kinds []TextKind `json:"kinds"`
	// Problem says why it was not read, or not to its end: "binary data".
	Problem string `json:"problem,omitempty"`
	// Unread says why a part of it was not read. It is empty if all was read, and for what holds no text of its own:
	// binary data, links to what is read.
	Unread Unread `json:"unread,omitempty"`
	// Document is the line at which the document begins that is broken. Those before it were read to their end.
	Document int `json:"document,omitempty"`
	// More is how many further texts an entry stands for that are not listed by name.
	More int `json:"more,omitempty"`
	// Sections are the lines of headings over the logs of several processes. Lines of two such sections have no order.
	Sections []int `json:"sections,omitempty"`
	// Past are its lines of trouble that is over.
	Past []PastLine `json:"past,omitempty"`
	// Topics are the causes of which somebody who tells of trouble writes, the one of most lines first.
	Topics []Topic `json:"topics,omitempty"`
	// GPU is the model of GPUs that such a text names, if it names one.
	GPU string `json:"gpu,omitempty"`
}

// Topic is a cause of which a text speaks.
type Topic struct {
	// Cause is its id.
	Cause string `json:"cause"`
	// Words are the first that speak of it, and Line is where they stand.
	Words string `json:"words"`
	Line  int    `json:"line"`
	// Count is how many lines speak of it; those of prose count more than those of outputs.
	Count int `json:"count"`
}

// EndedWell stands for a number of steps of work where a later line says that the job ended well.
const EndedWell = 9

// SectionOf is the number of the section in which a line is; 0 is before the first.
func (t *Text) SectionOf(line int) int {
	i, _ := slices.BinarySearch(t.Sections, line+1)
	return i
}

// EndOf is the last line of the section in which a line is.
func (t *Text) EndOf(line int) int {
	if i := t.SectionOf(line); i < len(t.Sections) {
		return t.Sections[i] - 1
	}
	return t.Lines
}

// PastLine is a line of trouble, and what shows that it is past: a text, or a line and its date, that tells of later work
// or of another failure.
type PastLine struct {
	Line  int    `json:"line"`
	Shown string `json:"shown"`
}

// Unread names why a text, or a part of it, was not read.
type Unread string

// Reasons for not reading a text.
const (
	// UnreadError is an error of the file system, or a broken archive.
	UnreadError Unread = "error"
	// UnreadForm is an unsupported form: encrypted, compressed too many times, or not a regular file.
	UnreadForm Unread = "form"
	// UnreadBroken is what should be YAML or JSON and is not.
	UnreadBroken Unread = "broken"
	// UnreadLines are lines that exceed the maximum length of a line.
	UnreadLines Unread = "long-lines"
	// UnreadSize is the limit of --max-bytes, UnreadTime that of --deadline, and
	// UnreadCount that of the number of texts.
	UnreadSize  Unread = "max-bytes"
	UnreadTime  Unread = "deadline"
	UnreadCount Unread = "too-many"
)

// KindObject is the kind of a Kubernetes object without containers, which fills no section.
const KindObject = "kubernetes-object"

// TextKind is one kind of text that was recognized in a text.
type TextKind struct {
	// Kind is its id: "nccl-log", "lspci".
	Kind string `json:"kind"`
	// Line is where it begins, Lines how many lines were understood.
	Line  int `json:"line"`
	Lines int `json:"lines"`
}

// Origin says which line of which text a fact comes from.
type Origin struct {
	// Fact is its path in the facts: "pci.devices[0000:40:01.1].acs".
	Fact string `json:"fact"`
	// Source is the text's name, Line the line from 1.
	Source string `json:"source"`
	Line   int    `json:"line"`
	// Value is the fact's value as text, for display. A facts file does not hold it: the fact itself does.
	Value string `json:"-"`
}

// LogFacts is what programs logged about their own run.
type LogFacts struct {
	// Messages are the statements that the catalogue of messages knows (checks/message), equal ones counted, in order:
	// by time where all of them have one, otherwise in the order of the texts.
	Messages []Message `json:"messages"`
	// Communicators are those that NCCL or RCCL created, or began to create.
	Communicators []Communicator `json:"communicators,omitempty"`
	// Transports are the transports of channels, equal ones counted.
	Transports []Transport `json:"transports,omitempty"`
	// Networks are the networks that NCCL or RCCL chose, by host.
	Networks []NetworkChoice `json:"networks,omitempty"`
	// Affinities are the CPUs that NCCL used, by GPU.
	Affinities []Affinity `json:"affinities,omitempty"`
	// Deaths are the ends of the job's processes that texts report, and the
	// exceptions that Python printed, in order; of many only the first and the last.
	Deaths []Death `json:"deaths,omitempty"`
	// Processes are those that the texts name, each as one text shows it.
	Processes []Process `json:"processes,omitempty"`
	// Progress is how far the ranks came in their process groups, as the watchdogs of
	// PyTorch report when a collective times out.
	Progress []Progress `json:"progress,omitempty"`
	// Unequal are the variables of which ranks of one communicator have different values.
	Unequal []Unequal `json:"unequal,omitempty"`
	// Late is a process for which all others wait in each step.
	Late *Late `json:"late,omitempty"`
	// Job is what follows from all of this, made when the facts are judged.
	Job *Job `json:"job,omitempty"`
	// Truncated is true when there were more messages than are kept.
	Truncated bool `json:"truncated,omitempty"`
}

// Process is a process of a job.
type Process struct {
	// Rank, Host, PID and Device, its CUDA ordinal, identify it, as far as the texts do.
	Rank   *int   `json:"rank,omitempty"`
	Host   string `json:"host,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Device *int   `json:"device,omitempty"`
	// Ranks is the size of the first communicator that it began, 0 if it began none; Ready is
	// true if it completed that start.
	Ranks int  `json:"ranks,omitempty"`
	Ready bool `json:"ready,omitempty"`
	// Step is the line in which it last reported a step of its work, 0 for none.
	Step int `json:"step,omitempty"`
	// Said is the row of the last message in which it said that something is wrong, and Line where.
	Said string `json:"said,omitempty"`
	Line int    `json:"line,omitempty"`
	// Source is the text's name.
	Source string `json:"source,omitempty"`
}

// Member is a process of a job with its part in what happened.
type Member struct {
	Process
	Role Role `json:"role"`
	// End is how it ended, if a text says so.
	End *Death `json:"end,omitempty"`
	// Waits is the collective in which it waited at last.
	Waits *Progress `json:"waits,omitempty"`
}

// Role is the part of a process in what happened to its job.
type Role string

// The parts of processes.
const (
	// RoleFirst is that of the process that failed first, RoleAlike that of others that failed in the
	// same way on their own.
	RoleFirst Role = "first"
	RoleAlike Role = "alike"
	// RoleLost is that of a process of which others say that it is gone.
	RoleLost Role = "lost"
	// RoleWaits is that of a process that waited for others in a collective.
	RoleWaits Role = "waits"
	// RoleAfter is that of any other process that ended, or said that something is wrong.
	RoleAfter Role = "after"
	// RoleSilent is that of a process that said nothing of a fault.
	RoleSilent Role = "silent"
)

// Job is the story of a job: its processes, which of them failed first, and who knows of it (package job).
type Job struct {
	// Members are the processes of a job that failed, by rank, and Size is how many ranks it has, 0 if no text says so.
	Members []Member `json:"members,omitempty"`
	Size    int      `json:"size,omitempty"`
	// WentOn is true if the complaints that something does not end were followed by many
	// steps of work, Ended if a launcher says that a process ended.
	WentOn bool `json:"went_on,omitempty"`
	Ended  bool `json:"ended,omitempty"`
	// Settled are the messages, by their order, that need no cause of their own: such complaints
	// where the work went on, and the words of the exception that ended the first process.
	Settled []int `json:"settled,omitempty"`
	// First is the end that the others follow, and Alike are the other ranks that ended so.
	First *Death `json:"first,omitempty"`
	Alike []int  `json:"alike,omitempty"`
	// Unexplained is an exception that ended a process, where the texts hold no complaint and no other end.
	Unexplained *Death `json:"unexplained,omitempty"`
	// Lost is the process of which others say that it is gone, if nothing else tells why.
	Lost *Lost `json:"lost,omitempty"`
}

// Late is the process for which all others wait, by the times that each tells of the parts of its steps.
type Late struct {
	Rank *int `json:"rank,omitempty"`
	// Part takes it OwnSeconds of a step, the median of those told, and the others OthersSeconds; they spend WaitSeconds in Wait.
	Part          string  `json:"part"`
	OwnSeconds    float64 `json:"own_seconds"`
	OthersSeconds float64 `json:"others_seconds"`
	Wait          string  `json:"wait"`
	WaitSeconds   float64 `json:"wait_seconds"`
	Text          string  `json:"text"`
	Source        string  `json:"source"`
	Line          int     `json:"line"`
}

// Unequal is a variable that not all ranks have alike.
type Unequal struct {
	Name string `json:"name"`
	// Values are the different ones, each with the lowest rank that has it.
	Values []RankValue `json:"values"`
}

// RankValue is the value of a variable on one rank.
type RankValue struct {
	Rank int `json:"rank"`
	// Set is false where the rank has not set the variable; then there is no value and no line.
	Set    bool   `json:"set"`
	Value  string `json:"value,omitempty"`
	Source string `json:"source,omitempty"`
	Line   int    `json:"line,omitempty"`
}

// Lost is a process that ended silently.
type Lost struct {
	// Rank is its rank, or the ranks of several; empty if nobody names it.
	Rank string `json:"rank,omitempty"`
	// ToldBy are the messages that say so, by their order.
	ToldBy []int `json:"told_by"`
}

// Death is the end of a process, or an exception that may have ended one.
type Death struct {
	// What is "exception" (a traceback of Python), "signal", "exit" or "assertion".
	What string `json:"what"`
	// Class is the exception's class as it is printed ("ValueError"), or the
	// signal's name ("SIGSEGV"); Said is the text after it, at most 300 bytes.
	Class string `json:"class,omitempty"`
	Said  string `json:"said,omitempty"`
	// Code is the code with which the process ended.
	Code *int `json:"code,omitempty"`
	// File, FileLine and Function are the innermost frame that is not of an installed library, or where all are, the
	// innermost one. RaisedIn is the innermost one's file.
	File     string `json:"file,omitempty"`
	FileLine int    `json:"file_line,omitempty"`
	Function string `json:"function,omitempty"`
	RaisedIn string `json:"raised_in,omitempty"`
	// Behind are the classes and words of the exceptions that were being handled when this one was raised, in order.
	Behind []string `json:"behind,omitempty"`
	// Reporter is the program that reports it: "python", "torchrun", "slurm", "mpirun".
	Reporter string `json:"reporter"`
	// First is true if the launcher says that no process failed before it.
	First bool `json:"first,omitempty"`
	// Uncaught is true if the exception is known to have ended the process, and
	// Ignored if Python or a logger says that it continued.
	Uncaught bool `json:"uncaught,omitempty"`
	Ignored  bool `json:"ignored,omitempty"`
	// TopLevel is true if the outermost frame is a program's own: who catches an exception
	// prints it from the function that does.
	TopLevel bool `json:"top_level,omitempty"`
	// StepsAfter counts the lines after it, up to 8 (9 is EndedWell), in which the process, or one
	// that the lines do not name, reports another step of its work.
	StepsAfter int `json:"steps_after,omitempty"`
	// Rank, Host and PID identify the process, if the text says so; Time is when, in a form that sorts.
	Rank *int   `json:"rank,omitempty"`
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid,omitempty"`
	Time string `json:"time,omitempty"`
	// Text is the line that reports it, at most 300 bytes.
	Text string `json:"text"`
	// Source is the text's name, Line that line, Begins where the traceback begins.
	Source string `json:"source"`
	Line   int    `json:"line"`
	Begins int    `json:"begins"`
	// Order is its index among all messages: it came before the message of that order.
	Order int `json:"order"`
	// Count is how often the same was reported.
	Count int `json:"count"`
}

// Progress is how far a rank was in a process group of PyTorch when a collective
// timed out. Collectives are numbered within a group.
type Progress struct {
	// Group is the process group as the lines name it ("0(default_pg)"); empty if they do not.
	Group string `json:"group,omitempty"`
	// Rank is the rank in the job.
	Rank int `json:"rank"`
	// Seq, Op and Elements are the collective that the rank's watchdog timed out: its number,
	// "ALLREDUCE" and the size of its data; nil and empty if none did.
	Seq      *int   `json:"seq,omitempty"`
	Op       string `json:"op,omitempty"`
	Elements *int   `json:"elements,omitempty"`
	// Enqueued and Completed are the last collective that the rank began and the last that
	// ended; nil if the lines do not say, -1 for no collective.
	Enqueued  *int `json:"enqueued,omitempty"`
	Completed *int `json:"completed,omitempty"`
	// Text is the first line that reports it, at most 300 bytes; Source is its text's name and Line its number.
	Text   string `json:"text"`
	Source string `json:"source"`
	Line   int    `json:"line"`
}

// What programs say is described in a package of its own, because the probe's library says the same.
type (
	// Message is one statement of a program.
	Message = probe.Message
	// Place is where in a library a message comes from.
	Place = probe.Place
	// Code is an error by number and name.
	Code = probe.Code
)

// Communicator is a communicator of NCCL or RCCL.
type Communicator struct {
	// ID is commId, which all its ranks share; empty before 2.16.
	ID string `json:"id,omitempty"`
	// Library is "nccl" or "rccl".
	Library string `json:"library"`
	// Ranks is its intended size; Nodes is what it counted itself, 0 if the log does not say.
	Ranks int `json:"ranks"`
	Nodes int `json:"nodes,omitempty"`
	// Hosts are the hosts whose ranks are in the log.
	Hosts []string `json:"hosts,omitempty"`
	// Started and Completed count the ranks that began and that completed their initialization.
	Started   int    `json:"started"`
	Completed int    `json:"completed"`
	Source    string `json:"source"`
	Line      int    `json:"line"`
}

// Transport is the transport of channels of NCCL or RCCL.
type Transport struct {
	// Kind is "p2p-direct", "p2p-ipc", "p2p-cumem", "p2p-mnnvl", "p2p-indirect", "shm", "net", "collnet".
	Kind string `json:"kind"`
	// Network is the network's name for net and collnet: "IB", "Socket".
	Network string `json:"network,omitempty"`
	// GDR is true if the channel bypasses host memory (GPUDirect RDMA).
	GDR bool `json:"gdr,omitempty"`
	// SameHost is true if both ranks are on one host; nil if the log does not tell.
	SameHost *bool `json:"same_host,omitempty"`
	// Channels counts them.
	Channels int `json:"channels"`
	// A and B are the ranks of the first such channel.
	A      int    `json:"a"`
	B      int    `json:"b"`
	Source string `json:"source"`
	Line   int    `json:"line"`
}

// NetworkChoice is a network that NCCL or RCCL chose on a host.
type NetworkChoice struct {
	Host string `json:"host,omitempty"`
	// Name is "IB", "Socket" or the plugin's own.
	Name   string `json:"name"`
	Source string `json:"source"`
	Line   int    `json:"line"`
	Count  int    `json:"count"`
}

// Affinity is the set of CPUs that NCCL uses for a GPU.
type Affinity struct {
	Host string `json:"host,omitempty"`
	GPU  int    `json:"gpu"`
	// Mask is the set as NCCL prints it, in hexadecimal; CPUs counts them.
	Mask   string `json:"mask"`
	CPUs   int    `json:"cpus"`
	Source string `json:"source"`
	Line   int    `json:"line"`
}

// Package is a version of a piece of software that a text names.
type Package struct {
	// Name is the package as its manager calls it ("nvidia-nccl-cu12", "torch"), or for what a log or a tool says about
	// itself: "nccl", "rccl", "cuda-runtime", "cuda-driver", "nvidia-driver", "fabric-manager", "rocm", "hip", "ofed",
	// "libfabric", "aws-ofi-nccl", "kernel".
	Name string `json:"name"`
	// Version is as the text states it.
	Version string `json:"version"`
	// Host is the host that has it, if the text says so.
	Host string `json:"host,omitempty"`
	// Manager is the source of the version: "pip", "conda", "dpkg", "rpm", "log",
	// "collect_env", "modinfo", "nvidia-smi".
	Manager string `json:"manager"`
	Source  string `json:"source"`
	Line    int    `json:"line"`
}

// Launch is how a job or a container is started: a docker run line, a compose
// service, a pod's container, a batch script.
type Launch struct {
	// Kind is "docker-run", "compose", "kubernetes", "dockerfile", "docker-inspect", "slurm", "apptainer", "mpirun",
	// "torchrun", "command"; "shell" is a script's own limits, "slurm-node" a node of slurm.conf or gres.conf.
	Kind string `json:"kind"`
	// Object is what declares it in the file, from the outside inwards: "PyTorchJob/gpt/Worker/train",
	// "service/web", "stage/build"; empty for a script itself.
	Object string `json:"object,omitempty"`
	// Unit numbers the part of a text that one process tree starts from: a container, a service, a
	// stage, a script. Launches of one text with the same number belong together: the header of a
	// batch script, its limits and the commands that it runs; no others share anything.
	Unit int `json:"unit,omitempty"`
	// Name is the container's, pod's or job's.
	Name  string `json:"name,omitempty"`
	Image string `json:"image,omitempty"`
	// Command is the program and its arguments.
	Command []string `json:"command,omitempty"`
	// Runtime is the requested runtime: "nvidia", "runsc".
	Runtime string `json:"runtime,omitempty"`
	// GPUs counts the GPUs that it gets; -1 is all; nil is not stated.
	GPUs *int `json:"gpus,omitempty"`
	// GPUVendor is "nvidia" or "amd", if the request shows it.
	GPUVendor string `json:"gpu_vendor,omitempty"`
	// SHMBytes is the requested size of /dev/shm; nil if none was requested.
	SHMBytes *int64 `json:"shm_bytes,omitempty"`
	// SHMMounted is true when something is mounted at /dev/shm: the host's, or a memory volume.
	SHMMounted bool `json:"shm_mounted,omitempty"`
	// IPC, PID and Network are the requested namespaces: "host", "private", "container:x"; empty is the default.
	IPC     string `json:"ipc,omitempty"`
	PID     string `json:"pid,omitempty"`
	Network string `json:"network,omitempty"`
	// Privileged is true when it gets every device and capability.
	Privileged bool `json:"privileged,omitempty"`
	// CapAdd are capabilities without CAP_, in upper case.
	CapAdd []string `json:"cap_add,omitempty"`
	// Devices are the paths that are passed in.
	Devices []string `json:"devices,omitempty"`
	// Mounts are "source:target".
	Mounts []string `json:"mounts,omitempty"`
	// MemlockBytes is the requested memlock limit; -1 is unlimited.
	MemlockBytes *int64 `json:"memlock_bytes,omitempty"`
	// User is the user that it runs as, by name or number; empty is the default.
	User string `json:"user,omitempty"`
	// Packages are those that a Dockerfile installs, without versions; PythonPackages are those of NCCL
	// that pip, uv or conda install there, as they are written: "nvidia-nccl-cu12==2.21.5".
	Packages       []string `json:"packages,omitempty"`
	PythonPackages []string `json:"python_packages,omitempty"`
	// CPUOnly is true of a program that is told to use no GPU: --device=cpu, --backend=gloo, JAX_PLATFORMS=cpu.
	CPUOnly bool `json:"cpu_only,omitempty"`
	// CPUs and MemoryBytes are the limits of a container or a job on one node, or what it requests where
	// it has no limit; nil is not stated.
	CPUs        *float64 `json:"cpus,omitempty"`
	MemoryBytes *int64   `json:"memory_bytes,omitempty"`
	// Networks are the networks that a pod has besides its own (k8s.v1.cni.cncf.io/networks).
	Networks []string `json:"networks,omitempty"`
	// UndefinedVolumes are the names of mounts of a pod for which it has no volume.
	UndefinedVolumes []string `json:"undefined_volumes,omitempty"`
	// Variables are those that it sets. The section env also holds them.
	Variables map[string]string `json:"variables,omitempty"`
	// Processes counts the ranks on one node, Nodes the nodes; TensorParallel, PipelineParallel and DataParallel are
	// what the command asks for. nil is not stated.
	Processes *int `json:"processes,omitempty"`
	// Tasks counts the programs that srun starts on one node, each of which may start ranks of its own.
	Tasks            *int `json:"tasks,omitempty"`
	Nodes            *int `json:"nodes,omitempty"`
	TensorParallel   *int `json:"tensor_parallel,omitempty"`
	PipelineParallel *int `json:"pipeline_parallel,omitempty"`
	DataParallel     *int `json:"data_parallel,omitempty"`
	// Resources are the requested limits by name: "nvidia.com/gpu": "8",
	// "vpc.amazonaws.com/efa": "4"; "claims" counts claims of other devices.
	Resources map[string]string `json:"resources,omitempty"`
	// Requests are what a container requests, cpu and memory included, as Resources are its limits.
	Requests map[string]string `json:"requests,omitempty"`
	// Ignored are the rules that a comment of the file accepts for it.
	Ignored []Ignored `json:"ignored,omitempty"`
	// Unknown are the parts to which the file gives a value that it does not show, by the
	// names of Lines, and how it refers to the value: "shm_bytes": "${SHM}". A part is
	// either here or has a value. "variables" and "resources" stand for any of them.
	Unknown map[string]string `json:"unknown,omitempty"`
	Source  string            `json:"source"`
	// Line is where it begins. Lines are those of its parts, where several lines
	// describe it: "shm_bytes", "variables[NCCL_DEBUG]".
	Line  int            `json:"line"`
	Lines map[string]int `json:"lines,omitempty"`
}

// Ignored is a rule whose findings a file accepts: "# gpudoctor:ignore job-shm: it needs no NCCL".
type Ignored struct {
	// Rule is the id of a rule or a cause.
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	Line   int    `json:"line"`
}

// Run is one run of a program among several: of a transcript, or of the files of a ticket.
type Run struct {
	// By is what distinguishes the run: "command", "heading", "file", "table" (a row of one), "text" (a sentence tells of
	// it) or "output" (a program that begins again).
	By string `json:"by"`
	// Program is what the command starts, without its folder: "all_reduce_perf".
	Program string `json:"program,omitempty"`
	Host    string `json:"host,omitempty"`
	// Variables are those that control communication and were set for it, and what a heading
	// or a file's name says in words: "iommu": "pt".
	Variables map[string]string `json:"variables,omitempty"`
	// Devices are the GPUs that it may use, as a list of visible devices gives them.
	Devices []string `json:"devices,omitempty"`
	// GPUs and Nodes count what it used; 0 if that is not stated.
	GPUs  int `json:"gpus,omitempty"`
	Nodes int `json:"nodes,omitempty"`
	// Library and Version are NCCL or RCCL: "nccl", "2.27.7".
	Library string `json:"library,omitempty"`
	Version string `json:"version,omitempty"`
	// Outcome is "ok", "failed", "hung" or "unknown"; unknown is never ok.
	Outcome string `json:"outcome"`
	// Why says how the outcome is known, as a clause: "it gave wrong results".
	Why string `json:"why,omitempty"`
	// Wrong is true if it gave results, and these are wrong.
	Wrong bool `json:"wrong,omitempty"`
	// Told is true if a program reported it. Otherwise a person said so, or the output stops.
	Told bool `json:"told,omitempty"`
	// Message is the row of the catalogue that shows the failure, Stated whether that row states a cause.
	Message string `json:"message,omitempty"`
	Stated  bool   `json:"stated,omitempty"`
	// GBps is the largest bus bandwidth that it reached, and Microseconds the time of its smallest message; nil if none was
	// measured.
	GBps         *float64 `json:"gbps,omitempty"`
	Microseconds *float64 `json:"microseconds,omitempty"`
	Source       string   `json:"source"`
	// Line is where it begins, Shown the line that shows its outcome, and Text that line's text.
	Line  int    `json:"line"`
	Shown int    `json:"shown,omitempty"`
	Text  string `json:"text,omitempty"`
}

// Comparison is two runs that differ in exactly one thing, and whose outcomes are known.
type Comparison struct {
	// Kind is "variable", "devices" (which GPUs), "gpus" (how many), "nodes" or "version".
	Kind string `json:"kind"`
	// Name is the variable, or "nccl" or "rccl" for a version.
	Name string `json:"name,omitempty"`
	// A and B are the runs, by their index in the list of runs.
	A int `json:"a"`
	B int `json:"b"`
}

// Benchmark is a table that a benchmark printed.
type Benchmark struct {
	// Tool is "nccl-tests", "rccl-tests", "p2pBandwidthLatencyTest", "simpleP2P", "nvbandwidth", "perftest",
	// "TransferBench", "osu", "rocm-bandwidth-test", "pytorch" (a tensor copied by hand).
	Tool string `json:"tool"`
	// Test is what was measured, as the tool names it: "all_reduce", "device_to_device_memcpy_write_ce",
	// "unidirectional, P2P enabled", "ib_write_bw".
	Test string `json:"test"`
	// What is the same in the terms of gpudoctor: "collective", "copy", "copy-read", "bidirectional", "host-to-gpu",
	// "gpu-to-host", "latency", "network", "local" (inside one GPU), "other".
	What string `json:"what"`
	// P2P says whether peer access was on; nil if not stated.
	P2P *bool `json:"p2p,omitempty"`
	// Memory is "gpu" where a network was measured from a GPU's memory, and
	// "host" where from the host's; empty for everything else.
	Memory string `json:"memory,omitempty"`
	// QueuePairs is how many a test of a network used; 0 if not stated.
	QueuePairs int `json:"queue_pairs,omitempty"`
	// Ranks, Nodes and GPUs are of a collective; 0 if not stated.
	Ranks int `json:"ranks,omitempty"`
	Nodes int `json:"nodes,omitempty"`
	// Jobs counts the processes that call themselves rank 0, if there are several: they do not know of each other.
	Jobs int `json:"jobs,omitempty"`
	// GPUNames are the models of its devices, sorted by rank.
	GPUNames []string `json:"gpu_names,omitempty"`
	// Points are the values.
	Points []BenchmarkPoint `json:"points,omitempty"`
	// Wrong counts the values that the tool found wrong; nil means not checked.
	Wrong *int64 `json:"wrong,omitempty"`
	// Complete is true when its closing lines are present, false when it was cut off.
	Complete bool   `json:"complete"`
	Source   string `json:"source"`
	// Line is where it begins. Lines are those of its parts: "wrong" is where the wrong values are counted, or if they
	// are not counted, the first one that shows some; "jobs" is where the second process calls itself rank 0.
	Line  int            `json:"line"`
	Lines map[string]int `json:"lines,omitempty"`
}

// BenchmarkPoint is one value of a table.
type BenchmarkPoint struct {
	// A and B are the source and the destination: "GPU0", "CPU", a PCI address, a NIC; empty for collectives. GPUs are
	// known by the tool's own number. Of a network, A is the NIC and B the GPU whose memory was used, if any.
	A string `json:"a,omitempty"`
	B string `json:"b,omitempty"`
	// Bytes is the size of the message.
	Bytes int64 `json:"bytes,omitempty"`
	// GBps is the rate (bus bandwidth of a collective), in 10^9 bytes per second; nil for a latency.
	GBps *float64 `json:"gbps,omitempty"`
	// Microseconds is the time, or the latency.
	Microseconds *float64 `json:"microseconds,omitempty"`
	// ExpectedGBps is what the links allow, Threshold the part of it that counts as good, and Basis says what it
	// follows from, as for gpudoctor's own transfers. They are missing if the links are not known.
	ExpectedGBps *float64 `json:"expected_gbps,omitempty"`
	Threshold    *float64 `json:"threshold,omitempty"`
	Basis        string   `json:"basis,omitempty"`
	Line         int      `json:"line"`
}
