package redact

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file finds names by what stands around them: the name of a host before a
// message of NCCL, that of a job behind --job-name.

// nameContext is what stands around a name. The groups of its pattern are called for
// what stands there: host, hosts (a list), user, job, image, export (a folder of
// a file server). A line is looked at only if it holds one of the hints.
type nameContext struct {
	hints   []string
	pattern *lazy.Regexp
	// least is how often a hint must occur, if more than once.
	least int
}

// times is the form for lines that hold a hint so often.
func (c nameContext) times(least int) nameContext {
	c.least = least
	return c
}

// Parts of patterns: the name of a host, and a list of such names as Slurm and
// MPI write it.
const (
	hostName = `[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]|[A-Za-z]`
	hostList = `[A-Za-z0-9][A-Za-z0-9_.,:-]*(?:\[[0-9,-]+\][A-Za-z0-9_.,:-]*)*`
)

// nameParts puts the parts of patterns where patterns name them.
var nameParts = strings.NewReplacer("{host}", "(?P<host>"+hostName+")", "{hosts}", "(?P<hosts>"+hostList+")",
	"{user}", `(?P<user>[A-Za-z_][A-Za-z0-9_.-]*)`, "{job}", `["']?(?P<job>[A-Za-z0-9][^\s"',;]*)`, "{image}", `["']?(?P<image>[A-Za-z0-9][^\s"',;]*)`)

func nameAround(source string, hints ...string) nameContext {
	return nameContext{hints: hints, pattern: lazy.New(nameParts.Replace(source))}
}

// nameContexts are where names stand.
var nameContexts = []nameContext{
	// NCCL and RCCL begin their lines so (debug.cc, ncclDebugLog).
	nameAround(`(?:^|[\s\]:|])(?P<host>[A-Za-z][A-Za-z0-9_.-]*|[0-9][A-Za-z0-9_.-]*[A-Za-z][A-Za-z0-9_.-]*):[0-9]+:[0-9]+ (?:\[-?[0-9]+\]|NCCL)`, " [", " NCCL"),
	// Syslog daemons and journalctl: the time, the host, the program.
	nameAround(`(?:[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[0-9.,:+Z-]*)\s+{host}\s+(?:[A-Za-z_][\w./()-]*\[[0-9]*\]|kernel|systemd|dockerd|containerd|kubelet|slurmd|slurmctld|nvidia-fabricmanager|nv-fabricmanager)(?:\[[0-9]*\])?:`, "]:", "kernel:", "systemd", "dockerd", "containerd", "kubelet", "slurm", "fabricmanager"),
	// Prompts, addresses of mail, logins of ssh.
	nameAround(`\b{user}@{host}(?:[: ][^#$\[\]"]*\]?[#$%](?:\s|$))`, "@"),
	nameAround(`^(?:\([\w.+-]+\) ?)+\[?{user}@{host}`, "@"), // Conda's and venv's.
	nameAround(`\({user}㉿{host}\)`, "㉿"),
	nameAround(`\b(?:ssh|scp|rsync|sftp|pdsh|ssh-copy-id|mosh)\s(?:[^;|&\n]*?\s)??{user}@{host}`, "@"),
	nameAround(`\b(?P<user>[A-Za-z0-9_][A-Za-z0-9_.+-]*)@(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})\b`, "@"),
	nameAround(`\bssh\s+(?:-[A-Za-z]+(?:\s+[^-\s]\S*)?\s+)*{host}\s+(?:["']|nvidia-smi|sudo|bash|hostname|python|mpirun|ls|cat|dmesg)`, "ssh "),
	// Slurm.
	nameAround(`(?:NODELIST|NodeList|BatchHost|NodeName|NodeHostName|HostList|--nodelist|--exclude|--nodefile|--include)(?:\([A-Z_]+\))?\s*[=: ]\s*["']?{hosts}`, "NODELIST", "odeList", "BatchHost", "NodeName", "NodeHostName", "HostList", "--nodelist", "--exclude", "--include"),
	nameAround(`\b(?:srun|sbatch|salloc|pdsh|clush)\s(?:[^;|&\n]*?\s)??-w[\s=]*{hosts}`, "-w"),
	nameAround(`\b(?:srun|slurmstepd|slurmd)(?:-[\w.-]+)?: (?:error|fatal|info|debug|warning): (?:Node )?{hosts}: tasks?\b`, "srun:", "slurmstepd"),
	nameAround(`\b(?:STEP|JOB) \S+ ON {host} `, " ON "),
	nameAround(`\bslurm(?:d|stepd)[\[-]{host}\]?:`, "slurm"),
	// MPI and launchers made on it.
	nameAround(`(?:^|\s)(?:-H|--?hosts?|--hostlist)[\s=]+{hosts}(?:\s|$|["',\]])`, "-H", "-host"),
	nameAround(`(?i)(?:hostlist|host_list|horovod_hosts|nodelist|hydra_host[a-z_]*|add-host)["']?\s*[=: ]\s*["']?{hosts}`, "hostlist", "host_list", "HOSTS", "HYDRA", "HOSTLIST", "nodelist", "add-host"),
	nameAround(`^\s*{host}\s+slots\s*=`, "slots"),
	nameAround(`\b(?:Local host|Remote host|Target node|Local hostname|Peer host|Node|Host)\s*:\s*{host}\s*$`, "host", "ode:", "ode :", "Host"),
	nameAround(`\bon node {host}(?:[,.:;]|\s+(?:exited|aborted|died|failed|called|lost)|\s*$)`, "on node "),
	nameAround(`\bnode {host} (?:exited|died|failed|aborted|is down|not responding)`, "node "),
	nameAround(`(?:^|[\s:])\[(?P<host>[A-Za-z0-9.]*[g-zG-Z-][A-Za-z0-9_.-]*):(?:[0-9]{3,}|[0-9]{3,} *:[0-9A-Za-z]+(?::[0-9]+)?|mpi_rank_[0-9]+)\]`, "["), // Not [10de:2335].
	// UCX (ucs/debug/log.c): the time, then the host, its process and the thread.
	nameAround(`\[[0-9]{9,}\.[0-9]+\] \[{host}:[0-9]+ *:`, "] ["),
	nameAround(`\[{host}:[0-9]+ *:[0-9]+:[0-9]+\] Caught signal`, "Caught signal"),
	// What pdsh, and DeepSpeed with it, put before the lines of each host.
	nameAround(`^pdsh@{host}: (?P<host2>[A-Za-z0-9][A-Za-z0-9_.-]*): `, "pdsh@"),
	nameAround(`^(?P<prefix>[A-Za-z0-9][A-Za-z0-9_.-]*): (?:\[rank[0-9]|\[[0-9]{4}-|\[[IWEF][0-9]{3}|\[ *[0-9]+\.[0-9]{6}\]|Traceback|NVRM:)`, ": [", ": Traceback", ": NVRM:"),
	nameAround(`\brank [0-9]+ on {host}(?:\s|$|[,.:;])`, "rank "),
	nameAround(`\b(?:on|from) host {host}(?:\s|$|[,.:;])`, " host "),
	// Meeting points of PyTorch, DeepSpeed, Accelerate, SGLang, Ray.
	nameAround(`(?i)\b(?:[a-z_]*master[_-]addr(?:ess)?|rdzv[_-]?endpoint|main[_-]process[_-]ip|dist[_-]init[_-]addr|init[_-]method|dist[_-]url|ray[_-]address|nccl[_-]comm[_-]id|[a-z_]*master[_-]host|[a-z_]*head[_-](?:node|addr|ip))["'\\]*\s*[:=]\s*[\\"']*(?:[a-z]+://)?\[?{host}`, "aster_addr", "aster-addr", "ASTER_ADDR", "rdzv", "RDZV", "process_ip", "process-ip", "init", "INIT", "dist", "DIST", "ddress", "ADDRESS", "COMM_ID", "comm_id", "aster_host", "ASTER_HOST", "head_", "head-", "HEAD_"),
	nameAround(`--?(?:master[_-]addr(?:ess)?|rdzv[_-]?endpoint|main[_-]process[_-]ip|dist[_-]init[_-]addr|init[_-]method|dist[_-]url|address|head[_-]node|node[_-]ip[_-]address|master[_-]host)\s+["']?(?:[a-z]+://)?\[?{host}`, "--"),
	nameAround(`(?:connect|onnection|ocket|address|listen|resolve|endpoint|endezvous)[^\n]*?[\[(](?P<host>[A-Za-z][A-Za-z0-9_.-]*)(?:\]:|, |:)[0-9]{2,5}\b`, "onnect", "ocket", "address", "listen", "resolve", "ndpoint", "ndezvous"),
	nameAround(`(?:peer|remote|from|to|connect)\s+(?:host\s+)?(?P<host>[A-Za-z][A-Za-z0-9_.-]*)<[1-9][0-9]{1,4}>`, "<1", "<2", "<3", "<4", "<5", "<6", "<7", "<8", "<9"),
	nameAround(`(?:connect to host|resolve host(?:name)?:?|unknown host|no route to host|Name or service not known:?|could not resolve|lookup)\s+["']?{host}`, "host", "service", "resolve", "lookup"),
	nameAround(`(?:getaddrinfo|gethostbyname)\w*\(\s*["']?{host}`, "getaddrinfo", "gethostbyname"),
	nameAround(`^\s*host\s+:\s*{host}\s*$`, "host"), // The summary of torchrun.
	// Clouds and clusters name their machines so.
	nameAround(`\b(?P<host>ip(?:-[0-9]{1,3}){4}(?:\.[a-z0-9-]+)*)\b`, "ip-"),
	nameAround(`\b(?P<internal>[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*\.(?:internal\.cloudapp\.net|internal|cluster\.local|oraclevcn\.com))\b`, ".internal", ".local", ".oraclevcn"),
	nameAround(`\b(?P<host>gke-[a-z0-9-]+-[0-9a-f]{8}-[a-z0-9]{4}|aks-[a-z0-9]+-[0-9]{8}-vmss[0-9a-z]{6})\b`, "gke-", "aks-"),
	nameAround(`\b(?P<image>[0-9]{12}\.dkr\.ecr\.[\w.-]+/[\w./@:-]*\w)`, ".dkr.ecr."),
	nameAround(`\barn:aws[\w-]*:[\w-]*:[\w-]*:(?P<account>[0-9]{12}):(?:[a-z-]+[/:])?(?P<job>[A-Za-z0-9](?:[\w./:-]*\w)?)`, "arn:aws"),
	// Tools.
	nameAround(`"{host} (?:mlx[0-9]_[0-9]+|HCA-[0-9]+|hfi1_[0-9]+|bnxt_re[0-9]+)"`, ` mlx`, " HCA-", " hfi1_", " bnxt_re"), // ibnetdiscover.
	nameAround(`\bPid\s+[0-9]+ on\s+{host} device`, " device"),                                                             // nccl-tests.
	nameAround(`\bLinux {host} [0-9]+\.[0-9]+`, "Linux "),                                                                  // uname -a.
	nameAround(`(?i)\b(?:hostname|nodename|host_name|node_name|submit_host|hostnames)["']?(?:\s*[=:]\s*|\s+set to\s+)["']?<?{host}`, "ostname", "OSTNAME", "odename", "odeName", "ODENAME", "ost_name", "ode_name", "NODE_NAME", "SUBMIT_HOST", "HOST_NAME", "ODE_NAME", "nodename"),
	nameAround(`\bHostname set to <?{host}`, "Hostname"),
	nameAround(`(?i)\bno_proxy["']?\s*[=:]\s*["']?(?P<hosts>[A-Za-z0-9.*][A-Za-z0-9_.,*/:-]*)`, "_proxy", "_PROXY"),
	nameAround(`(?i)\b(?:https?|all|ftp)_proxy["']?\s*[=:]\s*["']?{host}(?::[0-9]|\s|$|["'])`, "_proxy", "_PROXY"),
	nameAround(`\b(?:[a-z][a-z0-9+.-]*)://(?:[^/\s@"']*@)?\[?{host}`, "://"),
	nameAround(`(?m)^(?:search|domain)\s+(?P<hosts>[A-Za-z0-9][A-Za-z0-9.-]*)\s*$`, "search ", "domain "), // resolv.conf(5).
	// Folders of file servers: mountinfo, mount, df, fstab.
	nameAround(`\s-\s(?:nfs4?|cifs|smb3|lustre|ceph|glusterfs|beegfs|9p|gpfs|wekafs|afs|virtiofs|fuse\.\S+)\s(?P<export>\S+)`, " - "),
	nameAround(`^\s*(?P<export>(?://)?[A-Za-z0-9][\w.,@-]*:?/\S*)\s+(?:on\s+/\S*\s+type\s|/\S*\s+(?:nfs|cifs|lustre|ceph|gluster|beegfs|fuse)|[0-9.]+[KMGTP]?\s+[0-9.]+[KMGTP]?\s)`, ":/", "//"),
	nameAround(`\b(?:mount\.nfs4?|mount|umount)\b[^\n]*\s(?P<export>[A-Za-z0-9][\w.-]*:/\S*)`, ":/"),
	nameAround(`\b(?:nfs|NFS)[: ]+server {host} (?:not responding|OK)`, "server "),
	// Users and their work.
	nameAround(`\b(?:USER|LOGNAME|SUDO_USER|USERNAME|SLURM_JOB_USER|SLURM_JOB_ACCOUNT|username)=["']?{user}`, "USER", "LOGNAME", "username", "ACCOUNT"),
	nameAround(`\b(?:SLURM_JOB_(?:USER|GROUP|ACCOUNT)|PBS_O_LOGNAME|SUDO_USER|UserId|GroupId)["']?\s*[=:]\s*["']?{user}`, "SLURM_JOB_", "LOGNAME", "SUDO_USER", "erId", "oupId"),
	nameAround(`\b(?:SLURMD_NODENAME|SLURM_TOPOLOGY_ADDR|SLURM_SUBMIT_HOST|PBS_O_HOST|LSB_SUB_HOST)["']?\s*[=:]\s*["']?{host}`, "SLURM", "PBS_O", "LSB_"),
	nameAround(`\bLSB_HOSTS=["']?(?P<words>[A-Za-z0-9][\w. -]*)`, "LSB_HOSTS"),
	nameAround(`\b[ug]id=[0-9]+\({user}\)`, "id="),
	nameAround(`\b(?:for|by) (?:invalid )?user {user}`, "user "),
	nameAround(`--(?:mail-user|uid)[\s=]+{user}`, "--mail-user", "--uid"),
	nameAround(`(?:--job-name|--container-name|--account|--partition|--reservation|--qos|--wckey)[\s=]+{job}`, "--job-name", "--container-name", "--account", "--partition", "--reservation", "--qos", "--wckey"),
	nameAround(`#SBATCH\s+-[JAp]\s*{job}`, "#SBATCH"),
	nameAround(`\b(?:SLURM_JOB_NAME|SLURM_JOB_PARTITION|SLURM_JOB_QOS|SLURM_CLUSTER_NAME|JOB_NAME|JobName|WANDB_PROJECT|WANDB_RUN_ID|WANDB_NAME|WANDB_ENTITY|POD_NAME|POD_NAMESPACE)=["']?{job}`, "JOB", "CLUSTER_NAME", "JobName", "WANDB", "POD_"),
	nameAround(`\b(?:docker|podman|nerdctl|enroot)\s(?:[^;|&\n]*?\s)??--name[\s=]+{job}`, "--name"),
	nameAround(`^\s*(?:container_name|jobName|job_name|namespace|claimName|secretName|serviceAccountName|serviceAccount)\s*:\s*{job}\s*$`, "_name", "Name", "namespace", "serviceAccount"),
	nameAround(`^\s*(?:-\s+)?[Ii]mage\s*:\s*{image}["']?,?\s*$`, "mage"),
	nameAround(`--container-image[\s=]+{image}`, "--container-image"),
	nameAround(`\b(?:Pulling from|pull access denied for|manifest for|Pulling image|pull image|image)\s+["'](?P<image>[a-z0-9][^\s"']*/[^\s"']*)["']`, "mage", "ulling"),
	// Homes, where they usually lie and on shared file systems.
	nameAround(`/(?:home|Users|users)/(?P<home>`+folderName+`)`, "ome/", "sers/"),
	nameAround(`/homes/(?:[a-z]/)?(?P<home>`+folderName+`)`, "/homes/"),
	nameAround(`(?:^|[\s"'=:,(\[<])/(?:mnt/)?(?:fsx|scratch|nfs|lustre|gpfs)/(?:scratch/|user/|people/)?(?P<share>`+folderName+`)`, "/fsx/", "/scratch/", "/nfs/", "/lustre/", "/gpfs/"),
}

// numberForms are where numbers stand that tell a machine, a container or an account
// from others.
var numberForms = []nameContext{
	nameAround(`\b(?P<uuid>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){4}[0-9A-Fa-f]{8})\b`, "-").times(4),
	// Kubernetes puts "pod" before it, and systemd takes no dashes in a name.
	nameAround(`pod(?P<uuid>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){4}[0-9a-f]{8})\b`, "pod"),
	nameAround(`(?:^|[^\w-])(?:[0-9A-Fa-f]{2}-)?(?P<mac>[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5})`, "-").times(macBytes - 1), // BOOTIF=01-...
	nameAround(`\benx(?P<mac>[0-9a-f]{12})\b`, "enx"),
	nameAround(`\b(?P<mac>[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})\b`, ".").times(2), // Of switches.
	nameAround(`(?i)guid["']?[ =:]{1,3}["']?(?:0x)?(?P<guid>[0-9a-f]{16})\b`, "uid", "UID"),
	nameAround(`"[HSR]-(?P<guid>[0-9a-f]{16})"`, "-"), // ibnetdiscover.
	// Made of a MAC address: by RFC 4291, and as Mellanox makes them.
	nameAround(`(?i)\b(?:0x)?(?P<eui>[0-9a-f]{6}(?:fffe|0300)[0-9a-f]{6})\b`, "fffe", "FFFE", "0300"),
	nameAround(`\bGID [0-9]+ \([0-9A-F]+/(?P<gid>[0-9A-F]{1,16})\)`, "GID "), // NCCL (net_ib.cc).
	nameAround(`\b(?P<resource>[a-z]+-[0-9a-f]{17})\b`, "-0"),                // EC2: instances, networks, file systems.
	nameAround(`\b(?P<account>[0-9]{12})\.dkr\.ecr\.`, ".dkr.ecr."),
	nameAround(`(?i)\baccount(?:[ _-]?id)?["']*\s*[:=]\s*["']*(?P<account>[0-9]{12})\b`, "ccount", "CCOUNT"),
	nameAround(`(?:^|[^0-9A-Za-z])(?P<container>[0-9a-f]{64})\b`, "docker", "ontainer", "crio", "libpod", "kubepods", "moby", "overlay"),
	nameAround(`^["']?(?P<container>[0-9a-f]{64})\b`, ""), // docker ps --no-trunc.
}

// folderName is the name of a folder in a path.
const folderName = `[^/\s:"',;=()<>|\[\]*$]+`

// sharedFolder is a folder of a shared file system that belongs to nobody.
var sharedFolder = lazy.New(`^(?:data.*|conda.*|.*(?:models?|checkpoints?|ckpts?|cache|logs?|envs?|containers?|images|shared|projects?|` +
	`software|apps?|te?mp|modules?|datasets?|hub|results|outputs?|experiments?|jobs?|groups?|scratch|users?|homes?))$`)

// named replaces the names that stand where names stand, and learns them.
func (r *Redactor) named(s string) string {
	if !strings.ContainsAny(s, " \t=@/:[") {
		return s // Nothing stands around it.
	}
	if strings.Contains(s, "[") {
		s = replace(s, bracketList, r.bracketNames)
	}
	return r.apply(nameContexts, s)
}

// apply replaces what stands where forms say.
func (r *Redactor) apply(forms []nameContext, s string) string {
	for _, p := range forms {
		if !slices.ContainsFunc(p.hints, func(hint string) bool { return occurs(s, hint, p.least) }) {
			continue
		}
		matches := p.pattern.FindAllStringSubmatchIndex(s, -1)
		if matches == nil {
			continue
		}
		groups := p.pattern.SubexpNames()
		var out strings.Builder
		last := 0
		for _, m := range matches {
			for g := 1; g < len(groups); g++ {
				from, to := m[2*g], m[2*g+1]
				if groups[g] == "" || from < last {
					continue
				}
				out.WriteString(s[last:from])
				out.WriteString(r.nameOf(strings.TrimRight(groups[g], "0123456789"), s[from:to], s, from, to))
				last = to
			}
		}
		s = out.String() + s[last:]
	}
	return s
}

// occurs reports whether a text holds a hint often enough.
func occurs(s, hint string, least int) bool {
	if least <= 1 {
		return strings.Contains(s, hint)
	}
	return strings.Count(s, hint) >= least
}

// fileEnds are ends of names that are no hosts': of files, and of platforms.
var fileEnds = []string{".so", ".py", ".cc", ".cpp", ".c", ".h", ".log", "-gnu"}

// nameOf returns what stands for a name of a kind, which lies in s.
func (r *Redactor) nameOf(what, name, s string, from, to int) string {
	switch what {
	case "hosts":
		return r.hosts(name)
	case "user":
		if before(s, from) == '/' || name == "git" {
			return name
		}
		return r.user(name)
	case "job":
		return r.job(name)
	case "image":
		return r.image(name)
	case "export":
		return r.export(name)
	case "home":
		return r.user(name)
	case "share":
		if ordinary.MatchString(lower(name)) || sharedFolder.MatchString(lower(name)) || isFile(name) {
			return name
		}
		return r.user(name)
	case "words":
		names := strings.Fields(name)
		for i := range names {
			names[i] = r.Host(names[i])
		}
		return strings.Join(names, " ")
	case "prefix":
		if ordinary.MatchString(lower(name)) || strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Warning") {
			return name
		}
	case "internal":
		next := after(s, to)
		if publicHost(name) || next == '(' || next == '-' || next == '.' && isWord(after(s, to+1)) {
			return name // What every machine has, or a name in a program.
		}
	case "uuid":
		if strings.Contains(name, "_") {
			return strings.ReplaceAll(r.uuid(strings.ReplaceAll(name, "_", "-")), "-", "_")
		}
		return r.uuid(name)
	case "mac":
		if next := after(s, to); isWord(next) || next == '-' || !strings.HasSuffix(s[:from], "enx") && !strings.ContainsAny(name, "abcdefABCDEF") {
			return name // A part of something longer, a date, or a version.
		}
		return r.mac(name)
	case "guid":
		return r.guidText(name)
	case "eui":
		if least := 5; distinct(name) < least {
			return name // A mask: 000001fffeffffff.
		}
		return r.guidText(name)
	case "gid":
		return r.gidHalf(name)
	case "resource":
		kind, id, _ := strings.Cut(name, "-")
		return kind + "-" + r.counted(kindResource, id)
	case "account":
		return r.counted(kindAccount, name)
	case "container":
		if strings.HasSuffix(s[:from], "sha256:") {
			return name // An image, or a file that everybody can have.
		}
		return r.counted(kindContainer, name)
	}
	if strings.HasSuffix(s[:from], "://") || strings.HasSuffix(s[:from], "@") {
		if publicHost(name) {
			return name
		}
		if before(s, from) == '@' && strings.Contains(name, ".") && !strings.Contains(s[:from], "ssh") && !strings.Contains(s[:from], "scp") && !strings.Contains(s[:from], "://") && after(s, to) != ':' {
			r.learnDomain(lower(name))
			return exampleDomain // Of an address of mail.
		}
	}
	if isFile(name) {
		return name
	}
	return r.hostWithDomain(name)
}

func isFile(name string) bool {
	return slices.ContainsFunc(fileEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// publicDomains are those of sites that everybody knows; an address there tells
// nothing of who has it in a log.
var publicDomains = []string{
	"github.com", "githubusercontent.com", "gitlab.com", "nvidia.com", "nvcr.io", "amd.com", "intel.com", "pytorch.org", "huggingface.co", "kernel.org", "python.org", "pypi.org", "pythonhosted.org",
	"docker.io", "docker.com", "ghcr.io", "quay.io", "ubuntu.com", "debian.org", "redhat.com", "google.com", "googleapis.com", "microsoft.com", "amazon.com", "open-mpi.org", "openucx.org", "readthedocs.io",
	"tensorflow.org", "w3.org", "apache.org", "gnu.org", "schedmd.com", "conda.io", "anaconda.com", "anaconda.org", "kubernetes.io", "k8s.io", "vllm.ai", "wandb.ai", "example.com", "example.org", "freedesktop.org",
	"stackoverflow.com", "launchpad.net", "llvm.org", "json-schema.org", "openssl.org", "ietf.org", "archive.org",
	// The same on every machine.
	"docker.internal", "containers.internal", "metadata.google.internal", "kubernetes.default.svc.cluster.local",
}

func publicHost(name string) bool {
	name = lower(name)
	return slices.ContainsFunc(publicDomains, func(d string) bool { return name == d || strings.HasSuffix(name, "."+d) })
}

// bracketList finds lists of hosts as Slurm writes them: node[01-16,20].
var bracketList = lazy.New(`\b[A-Za-z][A-Za-z0-9_.-]*\[[0-9]+(?:[-,][0-9]+)+\]`)

// bracketNames replaces such a list unless it can be one of devices: its numbers
// have leading zeros, or its name is not a device's.
func (r *Redactor) bracketNames(s string, from, to int) string {
	list := s[from:to]
	open := strings.IndexByte(list, '[')
	if slices.Contains([]string{"GPU", "CPU", "NIC", "HCA", "Rank", "rank", "bus", "NVLink", "core"}, list[:open]) {
		return list
	}
	if list[open+1] != '0' || list[open+2] == '-' || list[open+2] == ',' {
		if ordinary.MatchString(lower(list[:open])) || !strings.HasSuffix(list[:open], "-") {
			return list
		}
	}
	return r.hosts(list)
}

// maxListed bounds the hosts of lists that are learnt one by one, in all: a list
// of a few bytes can name millions.
const maxListed = 1 << 16

// hosts redacts a list of hosts: names with commas between, each with a number of
// slots or a port behind it, or with numbers in brackets.
func (r *Redactor) hosts(list string) string {
	var out []string
	for _, element := range splitList(list) {
		name, slots, colon := strings.Cut(element, ":")
		open, end := strings.IndexByte(name, '['), strings.IndexByte(name, ']')
		dots := len(name) - len(strings.TrimLeft(name, ".*"))
		switch {
		case open > 0 && end > open && !hostStandIn.MatchString(name):
			name = r.numbered(name[:open], name[open+1:end], name[end+1:])
		case open > 0:
		case dots > 0 && !publicHost(name[dots:]) && strings.Contains(name[dots:], "."): // A domain, in no_proxy.
			r.learnDomain(lower(name[dots:]))
			if lower(name[dots:]) != "cluster.local" {
				name = name[:dots] + exampleDomain
			}
		case dots > 0, strings.Contains(name, "/"):
		default:
			name = r.hostWithDomain(name)
		}
		if colon {
			name += ":" + slots
		}
		out = append(out, name)
	}
	return strings.Join(out, ",")
}

// splitList splits a list at the commas that are not in brackets.
func splitList(list string) []string {
	var all []string
	start, depth := 0, 0
	for i := range len(list) {
		switch list[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				all = append(all, list[start:i])
				start = i + 1
			}
		}
	}
	return append(all, list[start:])
}

// numbered redacts the hosts that a prefix, numbers and a suffix make, and writes
// their stand-ins in the same form.
func (r *Redactor) numbered(prefix, numbers, suffix string) string {
	var names []string
	for part := range strings.SplitSeq(numbers, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(high)
		}
		if err != nil || last < first || last-first >= maxListed-r.listed-len(names) {
			return r.hostWithDomain(strings.TrimRight(prefix, "-_.") + suffix)
		}
		for n := first; n <= last; n++ {
			digits := strconv.Itoa(n)
			names = append(names, prefix+strings.Repeat("0", max(0, len(low)-len(digits)))+digits+suffix)
		}
	}
	r.listed += len(names)
	var standIns []int
	for _, name := range names {
		n, err := strconv.Atoi(strings.TrimPrefix(r.Host(name), "host-"))
		if err != nil {
			return prefix + "[" + numbers + "]" + suffix // No hosts after all.
		}
		standIns = append(standIns, n)
	}
	var out strings.Builder
	for i := 0; i < len(standIns); {
		j := i
		for j+1 < len(standIns) && standIns[j+1] == standIns[j]+1 {
			j++
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.Itoa(standIns[i]))
		if j > i {
			out.WriteString("-" + strconv.Itoa(standIns[j]))
		}
		i = j + 1
	}
	return "host-[" + out.String() + "]"
}

// exportStandIn is what a folder of a file server becomes.
var exportStandIn = lazy.New(`^/export-[0-9]+$`)

// export redacts the server and the folder of a mounted file system:
// "server:/folder", "//server/share".
func (r *Redactor) export(source string) string {
	folder := func(name string) string {
		if name == "" || name == "/" || exportStandIn.MatchString(name) {
			return name
		}
		return "/export-" + strconv.Itoa(r.number(kindExport, name))
	}
	if rest, ok := strings.CutPrefix(source, "//"); ok {
		server, share, _ := strings.Cut(rest, "/")
		return "//" + r.hostWithDomain(server) + folder("/"+share)
	}
	servers, name, ok := strings.Cut(source, ":/")
	if !ok {
		return source // A device, or a tag.
	}
	return r.hosts(servers) + ":" + folder("/"+name)
}

// hostVariables are variables whose value is a host, or a list of them.
var hostVariables = lazy.New(`(?i)(?:^|_)(?:master_addr|master_host|host_ip|hostname|nodename|hosts|hostlist|nodelist|head_node|head_addr|head_ip|comm_id|rdzv_endpoint|launch_node_ipaddr|submit_host|node_name|ray_address)$`)

// hostVariable redacts the value of such a variable.
func (r *Redactor) hostVariable(value string) string {
	if scheme, rest, ok := strings.Cut(value, "://"); ok {
		return scheme + "://" + r.hosts(rest)
	}
	return r.hosts(value)
}
