package nccl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// logKind are the lines that NCCL (2.4 to 2.30) and RCCL write of their start and of the ways that they choose. Forms
// are of NVIDIA/nccl v2.4.2-1 to v2.30.7-1 and ROCm/rccl rocm-4.0 to rocm-6.2, src/init.cc, src/bootstrap.cc,
// src/transport and src/debug.cc.
//
// A job of a thousand ranks writes gigabytes of them, so what stands in every
// rank's log many times is read without patterns and without allocation.
func logKind(n *log) *parse.Kind {
	return &parse.Kind{
		Name:    "nccl-log",
		Title:   "log of NCCL or RCCL, with NCCL_DEBUG=INFO",
		Command: "NCCL_DEBUG=INFO (in the environment of the job)",
		Gives:   []string{"logs", "software", "env", "nics"},
		Anchors: []string{
			levelInfo, levelWarn, "NCCL version ", "RCCL version", "HIP version ", "ROCm version :",
			// What people paste without its beginning.
			" via P2P/", " via SHM/", " via NET/", " via direct shared memory", "NET/IB : Using [", " - Init COMPLETE", " - Init START", " set by environment to ",
		},
		Line: func(s *parse.Sink, l parse.Line) bool { return n.line(s, l) },
	}
}

const (
	levelInfo = "NCCL INFO "
	levelWarn = "NCCL WARN "
	// maxCommunicators, maxPairs, maxTransports and maxRanks bound what is kept; maxRanks over all communicators.
	maxCommunicators = 4096
	maxPairs         = 1 << 16
	maxTransports    = 256
	maxRanks         = 1 << 18
	// maxValue bounds the value of a variable, in bytes.
	maxValue = 4096
)

// log is what the lines of NCCL told so far.
type log struct {
	rccl bool

	comms []*comm
	// byID finds a communicator by its commId, byPointer by host, process and pointer.
	byID, byPointer map[string]*comm
	// channels are the last numbers of channels, by kind: "coll", "collnet", "nvls", "p2p".
	channels map[string]int
	ranks    int

	pairs map[pair]*channelCount
	// hostOf is the host of each rank, mixed where ranks of several communicators bear the number.
	hostOf map[int]string

	networks   []facts.NetworkChoice
	affinities []facts.Affinity
	// nics are the last list of NICs of each host, to skip equal ones.
	nics map[string]string
	set  settings
}

// comm is a communicator under construction.
type comm struct {
	facts.Communicator
	// seen holds started and completed by rank.
	seen  map[int]uint8
	hosts map[string]bool
}

const (
	started   = 1
	completed = 2
)

// way is a way of channels as it stands in the line.
type way struct {
	kind, network string
	gdr           bool
}

// pair is a way between two ranks.
type pair struct {
	a, b int
	way  way
}

// channelCount counts the channels of a pair. A channel over the network stands
// twice in the log, once as each of its ends sees it.
type channelCount struct {
	sent, received int
	// from and to are the hosts of the ends; empty where they are not known.
	from, to string
	source   string
	line     int
}

// mixed stands for several hosts, and is the name of none.
const mixed = " "

// line reads one line.
func (n *log) line(s *parse.Sink, l parse.Line) bool {
	body, who, level := split(l.Text)
	if level == levelWarn { // What it says is the catalogue's.
		n.rccl = n.rccl || strings.Contains(l.Text, "rccl") || strings.Contains(l.Text, "RCCL")
		return true
	}
	return n.read(s, l, body, who) || level == levelInfo
}

// speaker is who wrote a line: the text "host:pid", and its host.
type speaker struct{ process, host string }

// split takes a line apart: what NCCL says, who, and "NCCL INFO " or "NCCL WARN ". Where two processes wrote into
// one line, the last one counts: the first one's is cut.
func split(text string) (body string, who speaker, level string) {
	rest := text
	for {
		i := strings.Index(rest, "NCCL ")
		if i < 0 || len(rest) < i+len(levelInfo) {
			break
		}
		word := rest[i : i+len(levelInfo)]
		if word != levelInfo && word != levelWarn {
			rest = rest[i+len("NCCL "):]
			continue
		}
		level, who = word, speakerOf(rest[:i])
		rest = rest[i+len(levelInfo):]
		body = rest
	}
	if level == "" {
		return text, speaker{}, ""
	}
	return strings.TrimRight(body, " \t"), who, level
}

// speakerOf reads "host:pid:tid [dev] " at the end of what stands before "NCCL INFO". Launchers put their own words
// right before it: "[1,0]<stdout>:", "(RayWorkerWrapper pid=3, ip=10.0.0.2) ".
func speakerOf(before string) speaker {
	before = strings.TrimRight(before, " ")
	if strings.HasSuffix(before, "]") {
		i := strings.LastIndexByte(before, '[')
		if i < 0 {
			return speaker{}
		}
		before = strings.TrimRight(before[:i], " ")
	}
	token := before[strings.LastIndexByte(before, ' ')+1:]
	tid := strings.LastIndexByte(token, ':')
	if tid <= 0 || !allDigits(token[tid+1:]) {
		return speaker{}
	}
	pid := strings.LastIndexByte(token[:tid], ':')
	if pid <= 0 || !allDigits(token[pid+1:tid]) {
		return speaker{}
	}
	start := pid
	for start > 0 && parse.HostByte(token[start-1]) {
		start--
	}
	if start == pid {
		return speaker{}
	}
	return speaker{process: token[start:tid], host: token[start:pid]}
}

func allDigits(s string) bool {
	for i := range len(s) { // Faster than strings.Trim: every line of the log comes here.
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// number takes a decimal number off the front.
func number(s string) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && i < 9 && s[i] >= '0' && s[i] <= '9' {
		n = n*10 + int(s[i]-'0')
		i++
	}
	return n, s[i:], i > 0
}

// numberAfter returns the number behind a word: numberAfter(s, " nranks ").
func numberAfter(s, word string) (int, bool) {
	_, after, _ := strings.Cut(s, word)
	n, _, ok := number(after)
	return n, ok
}

// wordAfter returns the word behind another one, up to a blank.
func wordAfter(s, before string) string {
	_, rest, _ := strings.Cut(s, before)
	word, _, _ := strings.Cut(rest, " ")
	return word
}

// read takes what a line says; it reports whether it is a form it knows.
func (n *log) read(s *parse.Sink, l parse.Line, body string, who speaker) bool {
	switch {
	case strings.HasPrefix(body, "Channel "), strings.HasPrefix(body, "Ring "), strings.HasPrefix(body, "Coll"):
		return n.channel(s, l, body, who)
	case strings.HasPrefix(body, "Trees "), strings.HasPrefix(body, "Connected "):
		return false
	case strings.HasPrefix(body, "Using network "):
		n.set.network(who.process)
		n.network(s, l, strings.TrimSpace(body[len("Using network "):]), who.host)
		return true
	case strings.HasPrefix(body, "Setting affinity for GPU "), strings.HasPrefix(body, "ncclTopoGetCpuAffinity: Affinity for GPU "):
		return n.affinity(s, l, body, who.host)
	case strings.HasPrefix(body, "NET/IB"), strings.HasPrefix(body, "NET/Socket"), strings.HasPrefix(body, "Bootstrap"):
		return n.nic(s, l, body, who.host)
	case strings.HasPrefix(body, "NET/Plugin"):
		n.rccl = n.rccl || strings.Contains(body, "librccl")
		return false
	case strings.HasPrefix(body, "Kernel version: "): // RCCL alone says it.
		n.rccl = true
		if v := wordAfter(body, "Kernel version: "); v != "" && len(v) <= 100 {
			s.Package("kernel", v, who.host, "log", l)
		}
		return true
	case strings.HasPrefix(body, "cudaDriverVersion "):
		if v, _, ok := number(body[len("cudaDriverVersion "):]); ok && v >= 1000 && !n.rccl {
			s.Package("cuda-driver", fmt.Sprintf("%d.%d", v/1000, v%1000/10), who.host, "log", l) // cuDriverGetVersion: 1000 * major + 10 * minor.
		}
		return true
	case len(body) > 0 && body[0] >= '0' && body[0] <= '9':
		return n.counts(body)
	}
	if strings.Contains(body, " set ") && n.variable(s, l, body, who) {
		return true
	}
	if strings.Contains(body, "comm") && strings.Contains(body, "rank ") && n.communicator(s, l, body, who) {
		return true
	}
	if strings.Contains(body, " version ") || strings.Contains(body, "version :") || strings.HasPrefix(body, "NCCL version ") || strings.HasPrefix(body, "RCCL version ") {
		return n.version(s, l, body, who.host)
	}
	return false
}

// channel reads a channel and its way:
//
//	Ring 00 : 0[3000] -> 1[4000] via P2P/IPC                       (2.4 to 2.6)
//	Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read                 (2.14 on)
//	Channel 00 : 0[3000] -> 1[4000] via SHM/direct/direct comm 0x7f nRanks 02
//	Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0(6)/GDRDMA(PCI)/Shared
//	CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA
func (n *log) channel(s *parse.Sink, l parse.Line, body string, who speaker) bool {
	head, way, ok := strings.Cut(body, " via ")
	if !ok {
		return false
	}
	_, ends, ok := strings.Cut(head, " : ")
	if !ok {
		return false
	}
	a, rest, ok := number(ends)
	if !ok {
		return false
	}
	b := a
	if _, rest, ok = strings.Cut(rest, "-> "); ok {
		if b, _, ok = number(rest); !ok {
			return false
		}
	}
	w := wayOf(way)
	if w.kind == "" {
		return false
	}
	n.count(s, l, pair{a, b, w}, strings.HasSuffix(head, "[receive]"), who.host)
	return true
}

// kinds are the ways of channels by the beginnings of what stands behind "via".
var kinds = []struct{ begin, kind string }{
	{"P2P/direct", "p2p-direct"},
	{"P2P/common device", "p2p-direct"},
	{"P2P/IPC", "p2p-ipc"},
	{"P2P/CUMEM", "p2p-cumem"},
	{"P2P/MNNVL", "p2p-mnnvl"},
	{"P2P/indirect", "p2p-indirect"},
	{"SHM/", "shm"},
	{"direct shared memory", "shm"},
	{"NET/", "net"},
	{"COLLNET/", "collnet"},
}

// wayOf reads the way that stands behind "via"; its kind is empty if it is not known.
func wayOf(text string) (w way) {
	for _, k := range kinds {
		if rest, ok := strings.CutPrefix(text, k.begin); ok {
			w.kind = k.kind
			if strings.HasSuffix(k.begin, "NET/") {
				w.network, w.gdr = networkOf(rest)
			}
			break
		}
	}
	return w
}

// networkOf reads "IB/0(6)/GDRDMA(PCI)/Shared". The name may hold blanks and
// slashes ("AWS Libfabric"); the number of the device ends it.
func networkOf(text string) (name string, gdr bool) {
	name, rest := text, ""
	for i := range len(text) - 1 {
		if text[i] == '/' && parse.IsDigit(text[i+1]) {
			name, rest = text[:i], text[i:]
			break
		}
	}
	return name[:min(len(name), 64)], strings.Contains(rest, "/GDRDMA")
}

// count notes one channel.
func (n *log) count(s *parse.Sink, l parse.Line, p pair, received bool, host string) {
	c := n.pairs[p]
	if c == nil {
		if len(n.pairs) >= maxPairs { // Count it with any other of its way.
			p.a, p.b = -1, -1
			c = n.pairs[p]
		}
		if c == nil {
			c = &channelCount{source: s.Source(), line: l.Number}
			p.way.network = strings.Clone(p.way.network)
			facts.Put(&n.pairs, p, c)
		}
	}
	if received {
		c.received++
		c.to = sameOrMixed(c.to, host)
	} else {
		c.sent++
		c.from = sameOrMixed(c.from, host)
	}
}

// sameOrMixed joins what is known about a host with one more sight of it.
func sameOrMixed(known, seen string) string {
	switch {
	case seen == "", known == seen:
		return known
	case known == "":
		return strings.Clone(seen)
	}
	return mixed
}

// communicator reads the lines about the start of a communicator:
//
//	comm 0x7f rank 0 nranks 2 cudaDev 0 busId 3000 - Init COMPLETE    (2.5 to 2.15)
//	ncclCommInitRank comm 0x7f rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 3000 commId 0x5a - Init START
//	ncclCommSplit comm 0x7f rank 0 nranks 2 ... parent 0x7e splitCount 1 color 0 key 0- Init START
//	comm 0x7f rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0
func (n *log) communicator(s *parse.Sink, l parse.Line, body string, who speaker) bool {
	pointer := wordAfter(body, "comm ")
	rank, ok := numberAfter(body, " rank ")
	if !ok || pointer == "" {
		return false
	}
	pointer = who.process + " " + pointer
	if nodes, ok := numberAfter(body, " nNodes "); ok {
		if c := n.byPointer[pointer]; c != nil {
			c.Nodes = cmp.Or(c.Nodes, nodes)
		}
		return true
	}
	what := uint8(started)
	switch {
	case strings.Contains(body, "- Init COMPLETE"):
		what = completed
	case !strings.Contains(body, "- Init START"):
		return false
	}
	ranks, ok := numberAfter(body, " nranks ")
	if !ok || rank >= ranks { // Ranks count from 0.
		return false
	}
	c := n.find(s, l, body, pointer, what, rank, ranks)
	if c == nil {
		return true
	}
	if rank < c.Ranks {
		n.mark(c, rank, what)
	}
	var device *int
	if ordinal, ok := numberAfter(body, " cudaDev "); ok {
		device = &ordinal
	}
	s.Began(l, rank, ranks, device, what == completed)
	n.set.begin(who.process, c, rank)
	if len(n.byPointer) < maxRanks {
		facts.Put(&n.byPointer, pointer, c)
	}
	if who.host != "" {
		if !c.hosts[who.host] && len(c.hosts) < parse.MaxEntries {
			facts.Put(&c.hosts, strings.Clone(who.host), true)
			c.Hosts = append(c.Hosts, strings.Clone(who.host))
		}
		if known, ok := n.hostOf[rank]; ok || len(n.hostOf) < maxRanks {
			facts.Put(&n.hostOf, rank, sameOrMixed(known, who.host))
		}
	}
	return true
}

// find returns the communicator that a line speaks of, new if need be. Where the line bears no commId (before 2.16, and
// those split off since 2.23), a rank that is there already begins another communicator.
func (n *log) find(s *parse.Sink, l parse.Line, body, pointer string, what uint8, rank, ranks int) *comm {
	id := wordAfter(body, " commId ")
	if id != "" {
		if c := n.byID[id]; c != nil {
			return c
		}
	} else {
		if c := n.byPointer[pointer]; c != nil && c.Ranks == ranks && what == completed && c.seen[rank] == started {
			return c
		}
		for _, c := range slices.Backward(n.comms) {
			if c.ID == "" && c.Ranks == ranks && c.seen[rank]&what == 0 {
				return c
			}
		}
	}
	if len(n.comms) >= maxCommunicators {
		return nil
	}
	c := &comm{Communicator: facts.Communicator{ID: strings.Clone(id), Ranks: ranks, Source: s.Source(), Line: l.Number}}
	n.comms = append(n.comms, c)
	if id != "" {
		facts.Put(&n.byID, c.ID, c)
	}
	return c
}

// mark notes that a rank began or ended its start.
func (n *log) mark(c *comm, rank int, what uint8) {
	had, known := c.seen[rank]
	if !known {
		if n.ranks >= maxRanks {
			return
		}
		n.ranks++
	}
	// Who ended began, even where the log (before 2.18) does not say so.
	if what == completed {
		what |= started
	}
	if had&started == 0 {
		c.Started++
	}
	if what&^had&completed != 0 {
		c.Completed++
	}
	facts.Put(&c.seen, rank, had|what)
}

// counts reads the numbers of channels:
//
//	24 coll channels, 0 collnet channels, 16 nvls channels, 32 p2p channels, 32 p2p channels per peer
func (n *log) counts(body string) bool {
	if !strings.Contains(body, " coll channels, ") {
		return false
	}
	n.channels = make(map[string]int, 4)
	for _, m := range channelCounts.FindAllStringSubmatch(body, -1) {
		n.channels[m[2]] = parse.Number(m[1])
	}
	return true
}

var channelCounts = lazy.New(`(\d{1,9}) (coll|collnet|nvls|p2p) channels(?:, |$)`)

// network notes "Using network IB".
func (n *log) network(s *parse.Sink, l parse.Line, name, host string) {
	if name == "" || len(name) > 100 {
		return
	}
	if c := facts.Find(n.networks, func(c *facts.NetworkChoice) bool { return c.Name == name && c.Host == host }); c != nil {
		c.Count++
	} else if len(n.networks) < parse.MaxEntries {
		n.networks = append(n.networks, facts.NetworkChoice{Host: strings.Clone(host), Name: strings.Clone(name), Source: s.Source(), Line: l.Number, Count: 1})
	}
}

// affinity reads the CPUs of a GPU:
//
//	Setting affinity for GPU 0 to ff,ffffffff                                (to 2.26)
//	Setting affinity for GPU 0 to 0-15,64-79                                 (2.27)
//	ncclTopoGetCpuAffinity: Affinity for GPU 0 is 0-15,64-79. (GPU affinity = ...  (2.28 on)
func (n *log) affinity(s *parse.Sink, l parse.Line, body, host string) bool {
	m := affinityForm.FindStringSubmatch(body)
	if m == nil {
		return false
	}
	gpu, mask := parse.Number(m[1]), m[2]+m[3]
	list := mask
	if m[2] != "" && !strings.Contains(mask, "-") {
		list = affinity.CPUList(affinity.ParseMask(mask))
	}
	cpus, ok := affinity.CommonCPUs(list, list)
	if !ok || cpus == 0 {
		return false
	}
	known := slices.ContainsFunc(n.affinities, func(a facts.Affinity) bool { return a.GPU == gpu && a.Host == host && a.Mask == mask })
	if !known && len(n.affinities) < parse.MaxEntries {
		n.affinities = append(n.affinities, facts.Affinity{Host: strings.Clone(host), GPU: gpu, Mask: strings.Clone(mask), CPUs: cpus, Source: s.Source(), Line: l.Number})
	}
	return true
}

var affinityForm = lazy.New(`ffinity for GPU (\d{1,9})(?: to ([0-9a-f,-]+)(?: |$)| is ([\d,-]+)(?:\. \(|$))`)

// variable reads what NCCL took from the environment:
//
//	NCCL_P2P_DISABLE set by environment to 1.
//	NCCL_SOCKET_IFNAME set by environment to eth0
//	NCCL_IB_HCA set to mlx5_0
//	TUNER/Plugin: NCCL_TUNER_PLUGIN set to /opt/tuner.so
func (n *log) variable(s *parse.Sink, l parse.Line, body string, who speaker) bool {
	m := variableForm.FindStringSubmatch(body)
	if m == nil || len(m[2]) > maxValue {
		return false
	}
	name, value := m[1], strings.TrimSpace(m[2])
	// Integers end with a full stop (src/misc/param.cc).
	if v, found := strings.CutSuffix(value, "."); found && allDigits(strings.TrimPrefix(v, "-")) {
		value = v
	}
	s.Variable(name, value, l)
	n.set.note(who.process, name, value, s, l)
	return true
}

var variableForm = lazy.New(`(?:^| )([NR]CCL_[A-Z0-9_]{1,100}) set (?:by environment )?to (.*)$`)

// version reads what NCCL and RCCL say of themselves:
//
//	NCCL version 2.21.5+cuda12.4
//	RCCL version 2.18.6+hip6.0 HEAD:4f5a2ba+
//	RCCL version : 2.21.5-develop:0cbce2a
//	HIP version  : 6.2.41134-65d174c3e
//	ROCm version : 6.2.1.0-90-20df1c0
func (n *log) version(s *parse.Sink, l parse.Line, body, host string) bool {
	if m := rcclVersion.FindStringSubmatch(body); m != nil {
		n.rccl = true
		s.Package("rccl", trimmed(m[1]), host, "log", l)
		if m[2] != "" {
			s.Package("hip", trimmed(m[2]), host, "log", l)
		}
		return true
	}
	if m := rocmVersion.FindStringSubmatch(body); m != nil {
		n.rccl = true
		s.Package(strings.ToLower(m[1]), trimmed(m[2]), host, "log", l)
		return true
	}
	m := ncclVersion.FindStringSubmatch(body)
	// Errors of PyTorch end with it; prose may name any version.
	if m == nil || m[1] != "" && m[3] == "" && !strings.Contains(m[1], "error") || !strings.Contains(trimmed(m[2]), ".") || strings.HasPrefix(m[4], ", but is running") {
		return false
	}
	s.Package("nccl", trimmed(m[2]), host, "log", l)
	if m[3] != "" {
		s.Package("cuda-runtime", trimmed(m[3]), host, "log", l)
	}
	return true
}

// The versions begin with a digit, and something may hang on their last number ("2.8.3rc1").
var (
	rcclVersion = lazy.New(`RCCL version[ :]*(\d[\da-z.]{0,39})(?:\S*?\+hip(\d[\da-z.]{0,39}))?`)
	rocmVersion = lazy.New(`^(HIP|ROCm) version *: (\d[\da-z.]{0,39})`)
	ncclVersion = lazy.New(`^(.*?)NCCL version (\d[\da-z.]{0,39})(?:\S*?\+cuda(\d[\da-z.]{0,39}))?(.*)$`)
)

// trimmed is a version without the full stop of a sentence.
func trimmed(version string) string { return strings.TrimRight(version, ".") }

// nic reads the lists of network devices:
//
//	NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.1.2.3<0>
//	NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x55 pciPath=/sys/devices/... ar=1
//	NET/Socket : Using [0]eth0:10.1.2.3<0> [1]eth1:10.1.3.3<0>
//	Bootstrap : Using eth0:10.1.2.3<0>
func (n *log) nic(s *parse.Sink, l parse.Line, body, host string) bool {
	word, list, ok := strings.Cut(body, " Using")
	if !ok {
		return n.port(s, l, body, host)
	}
	list = strings.TrimLeft(list, " ")
	key := host + " " + word
	if n.nics[key] == list {
		return true
	}
	if len(n.nics) < parse.MaxEntries {
		facts.Put(&n.nics, strings.Clone(key), strings.Clone(list))
	}
	if strings.HasPrefix(word, "NET/IB") {
		var devices string
		devices, list, _ = strings.Cut(list, "; OOB ")
		for _, m := range portsListed.FindAllStringSubmatch(devices, -1) {
			enterPort(s, l, facts.RDMAPort{Device: m[1], Port: parse.Number(m[2]), LinkLayer: linkLayer(m[3]), Host: host})
		}
	}
	for _, m := range interfacesListed.FindAllStringSubmatch(list, -1) {
		enterInterface(s, l, m[1], m[2], host)
	}
	return true
}

// portsListed are those of "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE", and the merged devices of
// 2.20 to 2.23: "[0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}".
var portsListed = lazy.New(`([^\s,{}\[\]=:/]+):(\d+)/(\w*)`)

func linkLayer(word string) string {
	switch {
	case strings.HasPrefix(word, "IB"):
		return "InfiniBand"
	case strings.HasPrefix(word, "RoCE"):
		return "Ethernet"
	}
	return ""
}

// port reads the line of one port.
func (n *log) port(s *parse.Sink, l parse.Line, body, host string) bool {
	m := portForm.FindStringSubmatch(body)
	if m == nil {
		return false
	}
	p := facts.RDMAPort{Device: m[1], Port: parse.Number(m[2]), LinkLayer: linkLayer(m[3]), Host: host}
	if mbps, ok := numberAfter(m[4], " speed="); ok {
		p.RateGbps = float64(mbps) / 1000
	}
	path := wordAfter(m[4], " pciPath=")
	p.Address = facts.Address(path[strings.LastIndexByte(path, '/')+1:])
	enterPort(s, l, p)
	return true
}

// portForm may name the verbs device between the device and the port.
var portForm = lazy.New(`^NET/IB: \[[^\]]*\] ([^\s:/]+)(?::[^\s:/]+)*:(\d+)/(\w*)(.*)`)

// enterPort notes a port, or fills what is not known of it. NCCL takes only
// ports that are active (ncclIbInit), so its list also shows that.
func enterPort(s *parse.Sink, l parse.Line, p facts.RDMAPort) {
	nics := s.NICs()
	port := facts.Find(nics.RDMA, func(known *facts.RDMAPort) bool {
		return known.Device == p.Device && known.Port == p.Port && (known.Host == p.Host || known.Host == "")
	})
	switch {
	case port != nil:
		p.Host = port.Host
		parse.Fill(port, &p)
	case len(nics.RDMA) < parse.MaxEntries && len(p.Device) <= 64:
		p.State, p.Source, p.Line = "active", s.Source(), l.Number
		p.Device, p.Host = strings.Clone(p.Device), strings.Clone(p.Host)
		nics.RDMA = append(nics.RDMA, p)
	}
}

// interfacesListed are "[0]eth0:10.1.2.3<0>" and "eth0:fe80::1%eth0<0>".
var interfacesListed = lazy.New(`(?:^| )(?:\[[^\]]*\])?([^\s:]{1,64}):([^\s<%]{1,64})(?:%[^\s<]*)?<`)

// enterInterface notes an address.
func enterInterface(s *parse.Sink, l parse.Line, name, address, host string) {
	nics := s.NICs()
	n := facts.Find(nics.Interfaces, func(n *facts.Interface) bool { return n.Name == name && (n.Host == host || n.Host == "") })
	if n == nil {
		if len(nics.Interfaces) >= parse.MaxEntries {
			return
		}
		nics.Interfaces = append(nics.Interfaces, facts.Interface{Name: strings.Clone(name), Host: strings.Clone(host), Source: s.Source(), Line: l.Number})
		n = &nics.Interfaces[len(nics.Interfaces)-1]
	}
	known := slices.ContainsFunc(n.Addresses, func(a string) bool { return a == address || strings.HasPrefix(a, address+"/") })
	if !known && len(n.Addresses) < 64 {
		n.Addresses = append(n.Addresses, strings.Clone(address))
	}
}

// finish puts what was collected into the facts.
func (n *log) finish(s *parse.Sink) {
	transports := n.transports()
	if len(n.comms)+len(transports)+len(n.networks)+len(n.affinities) == 0 {
		return
	}
	logs := s.Logs()
	library := "nccl"
	if n.rccl {
		library = "rccl"
	}
	for _, c := range n.comms {
		c.Library = library
		slices.Sort(c.Hosts)
		logs.Communicators = append(logs.Communicators, c.Communicator)
	}
	logs.Transports = transports
	logs.Networks = n.networks
	logs.Affinities = n.affinities
	logs.Unequal = n.set.unequal()
}

// transports adds the pairs up by way and by whether both ends are on one host, in order of the first line.
func (n *log) transports() []facts.Transport {
	type key struct {
		way             way
		isKnown, isSame bool
	}
	pairs := slices.SortedFunc(maps.Keys(n.pairs), func(a, b pair) int {
		x, y := n.pairs[a], n.pairs[b]
		return cmp.Or(cmp.Compare(x.source, y.source), cmp.Compare(x.line, y.line), cmp.Compare(a.way.kind, b.way.kind), cmp.Compare(a.way.network, b.way.network))
	})
	at := make(map[key]int)
	var list []facts.Transport
	for _, p := range pairs {
		c, w := n.pairs[p], p.way
		same := n.sameHost(p, c)
		k := key{w, same != nil, same != nil && *same}
		i, ok := at[k]
		if !ok {
			if len(list) >= maxTransports {
				continue
			}
			i = len(list)
			at[k] = i
			list = append(list, facts.Transport{
				Kind: w.kind, Network: w.network, GDR: w.gdr, SameHost: same, A: p.a, B: p.b, Source: c.source, Line: c.line,
			})
		}
		list[i].Channels += max(c.sent, c.received)
	}
	return list
}

// sameHost tells whether both ends of a pair are on one host; nil is unknown.
func (n *log) sameHost(p pair, c *channelCount) *bool {
	switch p.way.kind {
	case "p2p-mnnvl", "net":
	case "collnet":
		return nil
	default: // The other ways exist only within one host (src/transport/p2p.cc, shm.cc).
		return new(true)
	}
	// What the process that wrote the channel's line says, else where all lines of the rank are of one host.
	from, to := cmp.Or(c.from, n.hostOf[p.a], mixed), cmp.Or(c.to, n.hostOf[p.b], mixed)
	// Of a job on one node every communicator counts one.
	severalNodes := func(c *comm) bool { return c.Nodes != 1 }
	switch {
	case from != mixed && to != mixed:
		return new(from == to)
	case len(n.comms) > 0 && !slices.ContainsFunc(n.comms, severalNodes):
		return new(true)
	}
	return nil
}
