package redact

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file replaces names that were learnt, wherever they stand.

// ordinary are words that the texts of this trade are full of, and names of
// numbered devices. A host, user or job of such a name is replaced where it is
// known to be one, and nowhere else: to replace the word wherever it stands would
// spoil what is said of a machine.
var ordinary = lazy.New(`^(?:(?:gpu|cpu|numa|eth|ib|bond|en[ospx]?|mlx\d?|nvme|rank|dev|card|socket|channel|ring|tree|stream|slot|port|link|device)[-_]?(?:[0-9]|1[0-5])?|(?:node|vm|host|worker|master|server|pod|task|job|user|container)|(?:task|job|user)[0-9]+|mlx\d_\d+|nvme\d+n\d+|eth\d+|cpu\d+|` +
	`localhost|config|environment|sysfs|devices|procfs|corp|intra|internal|intranet|cloud|linux|ubuntu|debian|rocky|centos|fedora|redhat|suse|amazon|azure|google|nvidia|amd|amdgpu|intel|mellanox|kernel|compute|head|login|docker|podman|kube|kubernetes|slurm|training|trainer|train|inference|instance|default|unknown|system|machine|hypervisor|gpudoctor|redacted|test|tests|demo|main|prod|production|staging|local|private|public|network|cluster|data|model|models|home|root|admin|nobody|build|release|none|null|true|false|` +
	`cuda|nccl|rccl|rocm|torch|pytorch|python|python3|bash|mpirun|torchrun|vllm|sglang|ollama|llama|llama-server|triton|jax|tensorflow|deepspeed|megatron|nemo|ampere|hopper|turing|volta|pascal|blackwell|ada|tesla|quadro|titan|spark|info|warn|warning|error|debug|trace|fatal|critical|notice|failed|failure|timeout|transport|memory|shared|driver|library|process|service|error|bench|benchmark|benchmarks|app|application|api|web|file|files|log|logs|name|code|work|work[-_]?dir|workspace|scratch|shm|tmp|var|etc|opt|usr|lib|proc|sys|mnt|` +
	`[abhlvptk][0-9]{1,3}[a-z]?|mi[0-9]+[a-z]?|g[bh]?[0-9]{3}|rtx[0-9a-z]*|gtx[0-9a-z]*|gfx[0-9a-f]+|sm_?[0-9]+|dgx|hgx|geforce|instinct|radeon|epyc|xeon|ryzen|connectx[0-9a-z-]*|bluefield[0-9a-z-]*|infiniband|ethernet|roce|nvlink|nvswitch|pcie|iommu|` +
	`all-?reduce|allreduce|all_reduce|all-gather|all_gather|broadcast|reduce|p2p|copy|check|probe|quick|full|off|auto)$`)

// learn makes a word be replaced wherever it stands. The first stand-in holds.
func (r *Redactor) learn(word, standIn string) {
	word = lower(word)
	const longest = 512 // Of a name that is looked for; that of an image may be long.
	if _, ok := r.words[word]; ok || word == "" || len(word) > longest || !isAlnum(word[0]) || !isAlnum(word[len(word)-1]) {
		return
	}
	r.words[word] = standIn
	first, n := word[:partEnd(word, 0)], countParts(word)
	r.parts[first] = max(r.parts[first], n)
}

// distinctive reports whether a name can be replaced wherever it stands.
func distinctive(name string) bool {
	const long, short = 4, 3 // Shorter ones are abbreviations in a driver's log, or units.
	return !ordinary.MatchString(lower(name)) && (len(name) >= long || len(name) >= short && strings.ContainsAny(name, "0123456789")) &&
		strings.Trim(name, "0123456789.-_:") != ""
}

// lower returns a text in which the ASCII letters are in lower case: its bytes
// stand where they stood.
func lower(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return 'A' <= c && c <= 'Z' }) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func isAlnum(c byte) bool { return isWord(c) && c != '_' }

// partEnd returns where the letters and digits end that begin at a place.
func partEnd(s string, at int) int {
	for at < len(s) && isAlnum(s[at]) {
		at++
	}
	return at
}

// countParts counts the runs of letters and digits of a text.
func countParts(s string) int {
	n := 0
	for at := 0; at < len(s); {
		end := partEnd(s, at)
		if end > at {
			n++
		}
		at = end + 1
	}
	return n
}

// learnt replaces the names that were learnt, and names of hosts in domains that
// were. A name ends where its letters and digits do. The time that it takes does
// not depend on how many names there are.
func (r *Redactor) learnt(s string) string {
	if len(r.words) == 0 && len(r.domains) == 0 {
		return s
	}
	low := lower(s)
	var out strings.Builder
	done := 0
	for at := 0; at < len(low); {
		if !isAlnum(low[at]) {
			at++
			continue
		}
		end, standIn := r.nameAt(low, at)
		if end == 0 {
			at = partEnd(low, at)
			continue
		}
		out.WriteString(s[done:at])
		out.WriteString(standIn)
		at, done = end, end
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// nameAt finds the longest name that begins at a place, and its stand-in.
// The end is 0 if no name begins there.
func (r *Redactor) nameAt(low string, at int) (end int, standIn string) {
	first := partEnd(low, at)
	for n, to := r.parts[low[at:first]], first; n > 0; n-- {
		if word, ok := r.words[low[at:to]]; ok && !ofKernel(low, at) {
			end, standIn = to, word
		}
		if to+1 >= len(low) || !isAlnum(low[to+1]) {
			break
		}
		to = partEnd(low, to+1)
	}
	if len(r.domains) == 0 || before(low, at) == '.' && isAlnum(before(low, at-1)) {
		return end, standIn // Inside a dotted name, whose beginning was looked at.
	}
	short, to := r.inDomain(low, at)
	switch {
	case to == 0 || to <= end:
		return end, standIn
	case short == at:
		return to, exampleDomain
	}
	return to, r.Host(low[at:short]) + "." + exampleDomain
}

// ofKernel reports whether what begins at a place is numbered by the kernel: a
// NUMA node, which may be called as a host is.
func ofKernel(low string, at int) bool {
	return slices.ContainsFunc([]string{"node/", "numa ", "numa-", "numa_", "scsi_host/", "scsi "}, func(word string) bool { return strings.HasSuffix(low[:at], word) })
}

// exampleDomain stands for all domains; it is reserved for documentation (RFC
// 2606).
const exampleDomain = "example.com"

// maxHostName is how long the name of a host can be (RFC 1035, 2.3.4).
const maxHostName = 253

// inDomain finds a dotted name that ends in a known domain: where its first part
// ends, and where it ends; the first part is empty for the domain itself.
func (r *Redactor) inDomain(low string, at int) (short, end int) {
	to := at
	for to < len(low) && to-at <= maxHostName && (isAlnum(low[to]) || low[to] == '-' || low[to] == '_' || low[to] == '.' && to+1 < len(low) && isAlnum(low[to+1])) {
		to++
	}
	name := low[at:to]
	if len(name) > maxHostName || !strings.Contains(name, ".") {
		return 0, 0
	}
	for from := 0; from >= 0; {
		if r.domains[name[from:]] {
			if from == 0 {
				return at, to
			}
			return at + from - 1, to
		}
		dot := strings.IndexByte(name[from:], '.')
		if dot < 0 {
			break
		}
		from += dot + 1
	}
	return 0, 0
}

// hostStandIn is what the name of a host becomes, and a list of hosts.
var hostStandIn = lazy.New(`^host-(?:[0-9]+|\[[0-9,-]+\])$`)

// noHost are words that stand where the name of a host is expected.
var noHost = []string{
	"version", "kernel", "release", "localhost", "(none)", "none", "null", "nil", "true", "false", "unknown", "any", "auto", "env", "static", "c10d", "etcd", "etcd-v2", "file",
	"pci", "info", "warn", "warning", "error", "debug", "trace", "fatal", "critical", "notice", "is", "not", "redacted", "example", "sha256", "not-set",
	"default", "required", "self", "here", "unset", "host", "hostname", "private", "bridge", "the", "this", "a", "an", "and", "or", "of", "at", "on", "to", "from", "for",
}

// numberedThing are processes and devices, which stand in brackets as hosts do.
var numberedThing = lazy.New(`(?i)^(?:rank|gpu|cuda|cpu|device|core)[-_]?[0-9]*$`)

// isHostName reports whether a text can be the name of a host, and of one that is
// not the same on every machine.
func isHostName(name string) bool {
	return len(name) <= maxHostName && strings.Trim(name, "0123456789.-_:x") != "" && isAlnum(name[0]) && !numberedThing.MatchString(name) &&
		!slices.Contains(noHost, lower(name)) && !strings.HasPrefix(lower(name), "localhost") &&
		!strings.ContainsFunc(name, func(c rune) bool { return !isAlnum(byte(min(c, 0xff))) && c != '.' && c != '-' && c != '_' })
}

// Host notes the name of a host, so that it is replaced wherever it stands,
// and returns its stand-in. A name that is an ordinary word is replaced only
// where it is known to be a host's.
func (r *Redactor) Host(name string) string {
	trimmed := strings.TrimRight(strings.TrimSpace(name), ".")
	if trimmed == "" || !isHostName(trimmed) {
		return name
	}
	short, domain, _ := strings.Cut(lower(trimmed), ".")
	switch {
	case domain == exampleDomain && hostStandIn.MatchString(short):
		return short
	case hostStandIn.MatchString(short) || trimmed == exampleDomain:
		return name
	}
	// The hosts of one name in two domains are two.
	key := short
	if first, known := r.domainOf[short]; domain != "" && known && first != domain {
		key = short + "." + domain
	} else if domain != "" {
		r.domainOf[short] = domain
	}
	standIn := "host-" + strconv.Itoa(r.number(kindHost, key))
	if distinctive(short) {
		r.learn(short, standIn)
	}
	if key != short {
		r.learn(key, standIn+"."+exampleDomain)
	}
	r.learnDomain(domain)
	return standIn
}

// sharedDomains are parents of domains of many owners.
var sharedDomains = []string{
	"cluster.local", "svc.cluster.local", "compute.internal", "ec2.internal", "amazonaws.com", "compute.amazonaws.com", "googleusercontent.com", "google.internal",
	"cloudapp.net", "azure.com", "cloudapp.azure.com", "internal.cloudapp.net", "oraclevcn.com", "co.uk", "ac.uk", "com.au", "edu.au", "co.jp", "ac.jp", "com.cn", "edu.cn", "ac.cn", "co.kr", "ac.kr", "com.br", "co.in", "ac.in",
}

// learnDomain notes a domain, and those above it as far as they have one owner,
// and not all the world; and the owner's name.
func (r *Redactor) learnDomain(domain string) {
	const long = 5 // A shorter name of an owner is too common to be looked for.
	for strings.Contains(domain, ".") && domain != exampleDomain && !publicHost(domain) && !slices.Contains(sharedDomains, domain) {
		r.domains[domain] = true
		label, rest, _ := strings.Cut(domain, ".")
		if owner := !strings.Contains(rest, ".") || slices.Contains(sharedDomains, rest); owner && rest != "cluster.local" && rest != "svc.cluster.local" && len(label) >= long && distinctive(label) {
			r.learn(label, "example")
		}
		domain = rest
	}
}

// hostWithDomain is Host for a name whose domain is to stay visible as one.
func (r *Redactor) hostWithDomain(name string) string {
	standIn := r.Host(name)
	if standIn != name && strings.Contains(strings.TrimRight(name, "."), ".") {
		return standIn + "." + exampleDomain
	}
	return standIn
}

// job and image return the stand-ins of names of jobs and of container images.
func (r *Redactor) job(name string) string { return r.work(kindJob, "job-", name) }

func (r *Redactor) image(name string) string {
	if publicImage(name) {
		return name
	}
	standIn := r.work(kindImage, "image-", name)
	if repository, _, _ := strings.Cut(name, "@"); standIn != name {
		slash := strings.LastIndexByte(repository, '/')
		if colon := strings.LastIndexByte(repository, ':'); colon > slash {
			repository = repository[:colon]
		}
		if strings.Contains(repository, "/") {
			r.learn(repository, standIn)
		}
	}
	return standIn
}

func (r *Redactor) work(k kind, prefix, name string) string {
	if len(name) == 0 || strings.HasPrefix(name, prefix) && strings.Trim(name[len(prefix):], "0123456789") == "" ||
		strings.ContainsAny(name, "$<>{}*% ") || strings.Trim(name, "0123456789.-_:") == "" || ordinary.MatchString(lower(name)) {
		return name
	}
	standIn := prefix + strconv.Itoa(r.number(k, name))
	if distinctive(name) {
		r.learn(name, standIn)
	}
	return standIn
}

// publicImages begin the names of images that everybody can have: they tell which
// versions are in it, and not whose job it is.
var publicImages = []string{
	"nvcr.io/nvidia/", "nvidia/", "docker.io/nvidia/", "rocm/", "docker.io/rocm/", "pytorch/", "docker.io/pytorch/", "vllm/", "lmsysorg/", "tensorflow/",
	"ghcr.io/huggingface/", "huggingface/", "library/", "docker.io/library/", "mcr.microsoft.com/", "public.ecr.aws/", "registry.k8s.io/", "quay.io/podman/",
}

func publicImage(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "docker://"), "library/")
	if slices.ContainsFunc(publicImages, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return true
	}
	base, _, _ := strings.Cut(name, ":")
	return slices.Contains([]string{"ubuntu", "debian", "python", "alpine", "busybox", "rockylinux", "fedora", "centos", "almalinux", "scratch"}, base)
}
