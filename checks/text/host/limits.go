package host

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// NewLimits makes, for one reading, the kinds that show what a process or a container may use: limits,
// capabilities, /dev/shm and device nodes.
func NewLimits(*parse.Sink) parse.Family {
	n := &nodes{}
	return parse.Family{Kinds: []*parse.Kind{limitsKind, ulimitKind, shmKind, processKind, n.kind(), n.userKind()}}
}

// limitsKind takes the lines of ulimit -a, /proc/PID/limits, prlimit and systemctl show that tell a limit.
var limitsKind = &parse.Kind{
	Name: "limits", Title: "Limits of a process", Command: "cat /proc/self/limits", Gives: []string{"container"},
	Anchors: []string{
		"max locked memory", "Max locked memory", "locked-in-memory", "MEMLOCK", "locked memory", "open files", "memlock", "virtual memory", "Max address space", "address space limit",
		"vmemory(", "nofiles", "address space (", "file descriptors",
	},
	Line: func(s *parse.Sink, l parse.Line) bool {
		for _, form := range limitsForms {
			if m := form.pattern.FindStringSubmatch(l.Text); m != nil {
				return limitsSet(s, l, form, m)
			}
		}
		return false
	},
}

// limitsForm is one spelling of a limit.
type limitsForm struct {
	pattern *lazy.Regexp
	// what is "memlock", "as" or "nofile".
	what string
	// unit multiplies the figure.
	unit int64
}

// limitsForms are those of bash ("max locked memory (kbytes, -l) 64"), zsh, dash ("locked memory(kbytes) 64"), the kernel (fs/proc/base.c), prlimit and systemd.
var limitsForms = []limitsForm{
	{lazy.New(`^\s*(max locked memory\s+\(kbytes, -l\)|-l:\s+locked-in-memory size \(kbytes\)|locked memory\(kbytes\))\s+(\d+|unlimited)\s*$`), "memlock", 1024},
	{lazy.New(`^\s*(M)ax locked memory\s+(\d+|unlimited)\s+(\d+|unlimited)\b`), "memlock", 1},
	{lazy.New(`^\s*(MEMLOCK)\s+max locked-in-memory address space\s+(\d+|unlimited)\s+(\d+|unlimited)\b`), "memlock", 1},
	{lazy.New(`^\s*(LimitMEMLOCK)=(\d+|infinity)\s*$`), "memlock", 1},
	{lazy.New(`^\s*virtual memory\s+\((kbytes), -v\)\s+(\d+|unlimited)\s*$`), "as", 1024},
	{lazy.New(`^\s*(?:-v:\s+address space |vmemory)\((kbytes)\)\s+(\d+|unlimited)\s*$`), "as", 1024},
	{lazy.New(`^\s*(M)ax address space\s+(\d+|unlimited)\s+(\d+|unlimited)\b`), "as", 1},
	{lazy.New(`^\s*(AS)\s+address space limit\s+(\d+|unlimited)\s+(\d+|unlimited)\b`), "as", 1},
	{lazy.New(`^\s*(-n:\s+file descriptors|nofiles)\s+(\d+|unlimited)\s*$`), "nofile", 1},
	{lazy.New(`^\s*(open files)\s+\(-n\)\s+(\d+|unlimited)\s*$`), "nofile", 1},
	{lazy.New(`^\s*(M)ax open files\s+(\d+|unlimited)\s+(\d+|unlimited)\b`), "nofile", 1},
}

// limitsSet notes a limit; that of another host or process after it adds
// nothing, unless it is lower: the ranks of a job need it everywhere.
func limitsSet(s *parse.Sink, l parse.Line, form limitsForm, m []string) bool {
	c := s.Container()
	soft := parse.Limit(m[2], form.unit)
	var hard *int64
	if len(m) > 3 {
		hard = parse.Limit(m[3], form.unit)
	}
	if limitsHard.MatchString(s.Prompt().Command) {
		soft, hard = nil, soft
	}
	switch form.what {
	case "memlock":
		limitsLower(s, &c.MemlockSoftBytes, soft, "container.memlock_soft_bytes", l)
		limitsLower(s, &c.MemlockHardBytes, hard, "container.memlock_hard_bytes", l)
	case "as":
		limitsLower(s, &c.AddressSpaceSoftBytes, soft, "container.address_space_soft_bytes", l)
	default:
		limitsLower(s, &c.NOFILESoft, soft, "container.nofile_soft", l)
	}
	return true
}

// limitsHard is a command that shows hard limits.
var limitsHard = lazy.New(`ulimit +-\w*H`)

func limitsLower(s *parse.Sink, at **int64, n *int64, fact string, l parse.Line) {
	if n != nil && (*at == nil || **at < 0 || *n >= 0 && *n < **at) {
		*at = n
	}
	s.Told(fact, n, l)
}

// ulimitKind takes what "ulimit -l" prints: a number of KiB, or "unlimited".
var ulimitKind = &parse.Kind{
	Name: "ulimit", Title: "The limit of locked memory", Command: "ulimit -l", Gives: []string{"container"},
	Commands: []string{"ulimit -l", "ulimit -Sl", "ulimit -Hl", "ulimit -lH", "ulimit -H -l"},
	Begins:   parse.BeginsLike(ulimitValue),
	Read: func(s *parse.Sink, in *parse.Lines) {
		l, _ := in.Next()
		limitsSet(s, l, limitsForm{what: "memlock", unit: 1024}, []string{"", "", ulimitValue.First(l.Text)})
	},
}

var ulimitValue = lazy.New(`^\s*(\d{1,18}|unlimited)\s*$`)

// shmKind takes lines that tell what is mounted at /dev/shm: rows of df, of mount and of /proc/mounts.
var shmKind = &parse.Kind{
	Name: "shm", Title: "The size of /dev/shm", Command: "df -h /dev/shm", Gives: []string{"container"}, Anchors: []string{"/dev/shm"},
	Line: func(s *parse.Sink, l parse.Line) bool {
		if m := shmRow.FindStringSubmatch(l.Text); m != nil {
			size, free := shmSize(m[2]), shmSize(m[4])
			if size == nil || free == nil || shmUnits.MatchString(s.Prompt().Command) {
				return false
			}
			shmSet(s, l, m[1], &facts.FileSystem{Path: "/dev/shm", Type: "tmpfs", SizeBytes: *size, FreeBytes: *free})
			return true
		}
		m := shmMount.FindStringSubmatch(l.Text)
		if m == nil {
			return false
		}
		options := "," + m[2] + ","
		fs := &facts.FileSystem{Path: "/dev/shm", Type: "tmpfs", ReadOnly: strings.Contains(options, ",ro,")}
		_, rest, _ := strings.Cut(options, ",size=")
		text, _, _ := strings.Cut(rest, ",")
		size := parse.ByteSize(text)
		if size == nil || *size == 0 { // tmpfs without a size has half of the memory.
			s.Container().SHMMounted = new(true)
			return true
		}
		fs.SizeBytes, fs.FreeBytes = *size, *size // What is used is not told: all of it may be free.
		shmSet(s, l, m[1], fs)
		return true
	},
}

var (
	// shmRow is a row of df, with or without the column of the type.
	shmRow = lazy.New(`^\s*(\S+)\s+(?:tmpfs\s+)?([\d.]+[KMGTP]?i?)\s+([\d.]+[KMGTP]?i?)\s+([\d.]+[KMGTP]?i?)\s+\d{1,3}%\s+/dev/shm\s*$`)
	// shmUnits is a df whose blocks are others than POSIX has.
	shmUnits = lazy.New(`\bdf (?:.* )?-(?:\w*m\b|B|-block-size)`)
	// shmMount is one of mount ("shm on /dev/shm type tmpfs (rw,size=65536k)") or /proc/mounts ("shm /dev/shm tmpfs rw,size=65536k 0 0").
	shmMount = lazy.New(`^\s*(\S+) (?:on )?/dev/shm (?:type )?tmpfs \(?([^)\s]*)`)
)

// shmSize reads a figure of df: with -h in units of 1024, else in blocks of 1024 bytes (POSIX).
func shmSize(text string) *int64 {
	size := parse.ByteSize(text)
	if size == nil || strings.ContainsAny(text, "KMGTP") {
		return size
	}
	if *size > 1<<52 {
		return nil
	}
	return new(*size << 10)
}

// shmSet notes the file system; of several the smallest counts.
func shmSet(s *parse.Sink, l parse.Line, source string, fs *facts.FileSystem) {
	c := s.Container()
	c.SHMMounted = new(true)
	if c.SHM == nil || fs.SizeBytes < c.SHM.SizeBytes {
		c.SHM = fs
		s.Told("container.shm", fs, l)
	}
	// Container engines call theirs "shm" (moby daemon/container_operations_unix.go,
	// containerd pkg/oci WithDevShmSize); on machines it is called "tmpfs".
	if source == "shm" && c.Inside == nil {
		c.Inside = new(true)
		c.Evidence = append(c.Evidence, "a file system of a container engine at /dev/shm")
	}
}

// processKind takes lines of /proc/PID/status and /proc/meminfo.
var processKind = &parse.Kind{
	Name: "process", Title: "Capabilities and memory", Command: "grep CapEff /proc/self/status", Gives: []string{"container", "host"},
	Anchors: []string{"CapEff:", "MemTotal:"},
	Line: func(s *parse.Sink, l parse.Line) bool {
		if mask, err := strconv.ParseUint(processCapEff.First(l.Text), 16, 64); err == nil && s.Container().Capabilities == nil { // The first count.
			s.Container().Capabilities = container.CapabilityNames(mask)
			s.Told("container.capabilities", s.Container().Capabilities, l)
			return true
		}
		if size := host.KiB(processMemory.First(l.Text)); size > 0 && s.HostFacts().MemoryBytes == 0 {
			s.HostFacts().MemoryBytes = size
			s.Told("host.memory_bytes", size, l)
			return true
		}
		return false
	},
}

var (
	processCapEff = lazy.New(`^\s*CapEff:\s*([0-9a-f]{16})\s*$`)
	processMemory = lazy.New(`^\s*MemTotal:\s+(\d{1,12} kB)`)
)

// nodes are the listings of GPU and RDMA nodes in one reading, and what id showed of the user whose session it is.
type nodes struct {
	// session is where id was run; uid is what it printed for the user's number, groups are the names and numbers of its groups.
	session session
	uid     string
	groups  []string
	// closed are the nodes that only their owner and a group may open, by path.
	closed map[string]ownedNode
}

// session is a text, and the host that its prompts show.
type session struct{ text, host string }

// ownedNode is where a node was listed, and the group that may open it.
type ownedNode struct {
	session session
	group   string
	line    parse.Line
}

// kind takes listings of nodes in /dev.
func (n *nodes) kind() *parse.Kind {
	return &parse.Kind{
		Name: "device-nodes", Title: "Device nodes", Command: "ls -l /dev/nvidia* /dev/kfd /dev/dri /dev/infiniband", Gives: []string{"container"},
		Anchors: []string{"/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband", "nvidia0", "nvidiactl"},
		Begins: func(in *parse.Lines) bool {
			text := strings.TrimSpace(in.First().Text)
			_, listed := nodesOf("", text)
			command := in.Prompt().Command
			return (command == "" || nodesCommand.MatchString(command)) && (len(listed) > 0 || nodesFolder.MatchString(text))
		},
		Read: func(s *parse.Sink, in *parse.Lines) {
			folder := ""
			in.While(func(l parse.Line) bool {
				text := strings.TrimSpace(l.Text)
				if head := nodesFolder.First(text); head != "" {
					folder = head
					return true
				}
				if text == "" || strings.HasPrefix(text, "total ") || strings.HasPrefix(text, "ls: ") {
					return true
				}
				mode, listed := nodesOf(folder, text)
				for _, node := range listed {
					n.add(s, node, mode, l)
				}
				return len(listed) > 0 || mode != "" && folder != "" || strings.HasPrefix(mode, "d")
			})
			n.judge(s)
		},
	}
}

// userKind takes what id prints of the user of a session.
func (n *nodes) userKind() *parse.Kind {
	return &parse.Kind{
		Name: "user", Title: "The user and its groups", Command: "id", Gives: []string{"container"}, Anchors: []string{"uid="},
		Line: parse.LineLike(nodesUser, func(s *parse.Sink, _ parse.Line, m []string) bool {
			n.session, n.uid, n.groups = session{s.Source(), s.Host()}, m[1], nodesGroup.FindAllString(m[2], -1)
			n.judge(s)
			return true
		}),
	}
}

// judge notes the nodes that the user may not open: those of the same session, of whose group it is no member.
func (n *nodes) judge(s *parse.Sink) {
	if n.uid == "" || n.uid == "0" {
		return
	}
	for i, node := range s.Container().DeviceNodes {
		if at, ok := n.closed[node.Path]; ok && at.session == n.session && node.Access == "" && !slices.Contains(n.groups, at.group) {
			s.Container().DeviceNodes[i].Access = "none"
			s.Told("container.device_nodes["+node.Path+"]", &s.Container().DeviceNodes[i], at.line)
		}
	}
}

// nodesOf are the nodes that a line lists, and the mode that ls -l shows of one.
func nodesOf(folder, line string) (mode string, nodes []string) {
	names := strings.Fields(line)
	if mode = nodesLong.First(line); mode != "" {
		folder, names = cmp.Or(folder, "/dev"), names[len(names)-1:]
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "/dev/") {
			name = folder + "/" + name
		}
		switch node := path.Clean(name); {
		case mode != "" && mode[0] != 'c' && mode[0] != 'b': // A folder or a link.
		case nodesPath.MatchString(node):
			nodes = append(nodes, node)
		case mode == "": // Prose that names one.
			return "", nil
		}
	}
	return mode, nodes
}

var (
	// nodesCommand lists a glob or a folder, which leaves nothing out, and not single nodes.
	nodesCommand = lazy.New(`^(?:.*\s)?ls\b.*/dev(?:/nvidia\*|/kfd|/dri|/infiniband|/?\s*$|/? ?\|)`)
	nodesPath    = lazy.New(`^/dev/(?:nvidia[\w-]*(?:/\S+)?|kfd|dri/\S+|infiniband/\S+)$`)
	// A "+" behind the mode is an access control list, which may let more users in (ls, "alternate access method").
	nodesLong   = lazy.New(`^([cbdl][rwxst-]{9})[.+]?\s+\d+\s+\S+\s+\S+\s`)
	nodesOwned  = lazy.New(`^\s*c(?:rw-rw|rw-r-)----\.?\s+\d+\s+(?:root|0)\s+(\S+)\s`)
	nodesUser   = lazy.New(`^\s*uid=(\d+)(?:\([^()\s]*\))? gid=(\S+ groups=.*)$`)
	nodesGroup  = lazy.New(`[\w.-]+`)
	nodesFolder = lazy.New(`^\s*(/dev/(?:dri|infiniband|nvidia-caps(?:-imex-channels)?)):\s*$`)
)

// add notes a node. The user who made the listing may open a node that everybody may open; for others, that depends on groups.
func (n *nodes) add(s *parse.Sink, path, mode string, l parse.Line) {
	c := s.Container()
	if len(c.DeviceNodes) >= parse.MaxEntries || slices.ContainsFunc(c.DeviceNodes, func(n facts.DeviceNode) bool { return n.Path == path }) {
		return
	}
	node := facts.DeviceNode{Path: path}
	if mode == "crw-rw-rw-" || mode == "crwxrwxrwx" {
		node.Access = "rw"
	} else if group := nodesOwned.First(l.Text); group != "" {
		facts.Put(&n.closed, path, ownedNode{session{s.Source(), s.Host()}, group, l})
	}
	c.DeviceNodes = append(c.DeviceNodes, node)
	s.Told("container.device_nodes["+path+"]", &node, l)
}
