package redact

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file finds names by what stands around them: the name of a host before a
// message of NCCL, that of a job behind --job-name.

// form is what stands around a name, a number or a secret. The groups of its pattern are
// called for what stands there: host, hosts (a list), user, job, image, export (a folder
// of a file server), with a digit behind it where there are two. A line is looked at only if it
// holds one of the hints.
type form struct {
	hints   []string
	pattern *lazy.Regexp
	// least is how often a hint must occur; 0 for once.
	least int
}

// times is the form for lines that hold a hint so often.
func (c form) times(least int) form {
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

func formOf(source string, hints ...string) form {
	return form{hints: hints, pattern: lazy.New(nameParts.Replace(source))}
}

// nameForms are where names stand.
var nameForms = []form{
	formOf(`\b(?P<list>[A-Za-z][A-Za-z0-9_.-]*\[[0-9]+(?:[-,][0-9]+)+\])`, "["),
	// NCCL and RCCL begin their lines so (debug.cc, ncclDebugLog).
	formOf(`(?:^|[\s\]:|])(?P<host>[A-Za-z][A-Za-z0-9_.-]*|[0-9][A-Za-z0-9_.-]*[A-Za-z][A-Za-z0-9_.-]*):[0-9]+:[0-9]+ (?:\[-?[0-9]+\]|NCCL)`, " [", " NCCL"),
	// Syslog daemons and journalctl: the time, the host, the program.
	formOf(`(?:[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[0-9.,:+Z-]*)\s+{host}\s+(?:[A-Za-z_][\w./()-]*\[[0-9]*\]|kernel|systemd|dockerd|containerd|kubelet|slurmd|slurmctld|nvidia-fabricmanager|nv-fabricmanager)(?:\[[0-9]*\])?:`, "]:", "kernel:", "systemd", "dockerd", "containerd", "kubelet", "slurm", "fabricmanager"),
	// Prompts, addresses of mail, logins of ssh.
	formOf(`\b{user}@{host}(?:[: ][^#$\[\]"]*\]?[#$%](?:\s|$))`, "@"),
	formOf(`^(?:\([\w.+-]+\) ?)+\[?{user}@{host}`, "@"), // Conda's and venv's.
	formOf(`\({user}㉿{host}\)`, "㉿"),
	formOf(`\b(?:ssh|scp|rsync|sftp|pdsh|ssh-copy-id|mosh)\s(?:[^;|&\n]*?\s)??{user}@{host}`, "@"),
	formOf(`\b(?P<user>[A-Za-z0-9_][A-Za-z0-9_.+-]*)@(?P<host>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})\b`, "@"),
	formOf(`\bssh\s+(?:-[A-Za-z]+(?:\s+[^-\s]\S*)?\s+)*{host}\s+(?:["']|nvidia-smi|sudo|bash|hostname|python|mpirun|ls|cat|dmesg)`, "ssh "),
	// Slurm.
	formOf(`(?:NODELIST|NodeList|BatchHost|NodeName|NodeHostName|HostList|--nodelist|--exclude|--nodefile|--include)(?:\([A-Z_]+\))?\s*[=: ]\s*["']?{hosts}`, "NODELIST", "odeList", "BatchHost", "NodeName", "NodeHostName", "HostList", "--nodelist", "--exclude", "--include"),
	formOf(`\b(?:srun|sbatch|salloc|pdsh|clush)\s(?:[^;|&\n]*?\s)??-w[\s=]*{hosts}`, "-w"),
	formOf(`\b(?:srun|slurmstepd|slurmd)(?:-[\w.-]+)?: (?:error|fatal|info|debug|warning): (?:Node )?{hosts}: tasks?\b`, "srun:", "slurmstepd"),
	formOf(`\b(?:STEP|JOB) \S+ ON {host} `, " ON "),
	formOf(`\bslurm(?:d|stepd)[\[-]{host}\]?:`, "slurm"),
	// MPI and launchers made on it.
	formOf(`(?:^|\s)(?:-H|--?hosts?|--hostlist)[\s=]+{hosts}(?:\s|$|["',\]])`, "-H", "-host"),
	formOf(`(?i)(?:hostlist|host_list|horovod_hosts|nodelist|hydra_host[a-z_]*|add-host)["']?\s*[=: ]\s*["']?{hosts}`, "hostlist", "host_list", "HOSTS", "HYDRA", "HOSTLIST", "nodelist", "add-host"),
	formOf(`^\s*{host}\s+slots\s*=`, "slots"),
	formOf(`\b(?:Local host|Remote host|Target node|Local hostname|Peer host|Node|Host)\s*:\s*{host}\s*$`, "host", "ode:", "ode :", "Host"),
	formOf(`\bon node {host}(?:[,.:;]|\s+(?:exited|aborted|died|failed|called|lost)|\s*$)`, "on node "),
	formOf(`\bnode {host} (?:exited|died|failed|aborted|is down|not responding)`, "node "),
	formOf(`(?:^|[\s:])\[(?P<host>[A-Za-z0-9.]*[g-zG-Z-][A-Za-z0-9_.-]*):(?:[0-9]{3,}|[0-9]{3,} *:[0-9A-Za-z]+(?::[0-9]+)?|mpi_rank_[0-9]+)\]`, "["), // Not [10de:2335].
	// UCX (ucs/debug/log.c): the time, then the host, its process and the thread.
	formOf(`\[[0-9]{9,}\.[0-9]+\] \[{host}:[0-9]+ *:`, "] ["),
	formOf(`\[{host}:[0-9]+ *:[0-9]+:[0-9]+\] Caught signal`, "Caught signal"),
	// What pdsh, and DeepSpeed with it, put before the lines of each host.
	formOf(`^pdsh@{host}: (?P<host2>[A-Za-z0-9][A-Za-z0-9_.-]*): `, "pdsh@"),
	formOf(`^(?P<prefix>[A-Za-z0-9][A-Za-z0-9_.-]*): (?:\[rank[0-9]|\[[0-9]{4}-|\[[IWEF][0-9]{3}|\[ *[0-9]+\.[0-9]{6}\]|Traceback|NVRM:)`, ": [", ": Traceback", ": NVRM:"),
	formOf(`\brank [0-9]+ on {host}(?:\s|$|[,.:;])`, "rank "),
	formOf(`\b(?:on|from) host {host}(?:\s|$|[,.:;])`, " host "),
	// Meeting points of PyTorch, DeepSpeed, Accelerate, SGLang, Ray.
	formOf(`(?i)\b(?:[a-z_]*master[_-]addr(?:ess)?|rdzv[_-]?endpoint|main[_-]process[_-]ip|dist[_-]init[_-]addr|init[_-]method|dist[_-]url|ray[_-]address|nccl[_-]comm[_-]id|[a-z_]*master[_-]host|[a-z_]*head[_-](?:node|addr|ip))["'\\]*\s*[:=]\s*[\\"']*(?:[a-z]+://)?\[?{host}`, "aster_addr", "aster-addr", "ASTER_ADDR", "rdzv", "RDZV", "process_ip", "process-ip", "init", "INIT", "dist", "DIST", "ddress", "ADDRESS", "COMM_ID", "comm_id", "aster_host", "ASTER_HOST", "head_", "head-", "HEAD_"),
	formOf(`--?(?:master[_-]addr(?:ess)?|rdzv[_-]?endpoint|main[_-]process[_-]ip|dist[_-]init[_-]addr|init[_-]method|dist[_-]url|address|head[_-]node|node[_-]ip[_-]address|master[_-]host)\s+["']?(?:[a-z]+://)?\[?{host}`, "--"),
	formOf(`(?:connect|onnection|ocket|address|listen|resolve|endpoint|endezvous)[^\n]*?[\[(](?P<host>[A-Za-z][A-Za-z0-9_.-]*)(?:\]:|, |:)[0-9]{2,5}\b`, "onnect", "ocket", "address", "listen", "resolve", "ndpoint", "ndezvous"),
	formOf(`(?:peer|remote|from|to|connect)\s+(?:host\s+)?(?P<host>[A-Za-z][A-Za-z0-9_.-]*)<[1-9][0-9]{1,4}>`, "<1", "<2", "<3", "<4", "<5", "<6", "<7", "<8", "<9"),
	formOf(`(?:connect to host|resolve host(?:name)?:?|unknown host|no route to host|Name or service not known:?|could not resolve|lookup)\s+["']?{host}`, "host", "service", "resolve", "lookup"),
	formOf(`(?:getaddrinfo|gethostbyname)\w*\(\s*["']?{host}`, "getaddrinfo", "gethostbyname"),
	formOf(`^\s*host\s+:\s*{host}\s*$`, "host"), // The summary of torchrun.
	// Clouds and clusters name their machines so.
	formOf(`\b(?P<host>ip(?:-[0-9]{1,3}){4}(?:\.[a-z0-9-]+)*)\b`, "ip-"),
	formOf(`\b(?P<internal>[A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)*\.(?:internal\.cloudapp\.net|internal|cluster\.local|oraclevcn\.com))\b`, ".internal", ".local", ".oraclevcn"),
	formOf(`\b(?P<host>gke-[a-z0-9-]+-[0-9a-f]{8}-[a-z0-9]{4}|aks-[a-z0-9]+-[0-9]{8}-vmss[0-9a-z]{6})\b`, "gke-", "aks-"),
	formOf(`\b(?P<image>[0-9]{12}\.dkr\.ecr\.[\w.-]+/[\w./@:-]*\w)`, ".dkr.ecr."),
	formOf(`\barn:aws[\w-]*:[\w-]*:[\w-]*:(?P<account>[0-9]{12}):(?:[a-z-]+[/:])?(?P<job>[A-Za-z0-9](?:[\w./:-]*\w)?)`, "arn:aws"),
	// Tools.
	formOf(`"{host} (?:mlx[0-9]_[0-9]+|HCA-[0-9]+|hfi1_[0-9]+|bnxt_re[0-9]+)"`, ` mlx`, " HCA-", " hfi1_", " bnxt_re"), // ibnetdiscover.
	formOf(`\bPid\s+[0-9]+ on\s+{host} device`, " device"),                                                             // nccl-tests.
	formOf(`\bLinux {host} [0-9]+\.[0-9]+`, "Linux "),                                                                  // uname -a.
	formOf(`(?i)\b(?:hostname|nodename|host_name|node_name|submit_host|hostnames)["']?(?:\s*[=:]\s*|\s+set to\s+)["']?<?{host}`, "ostname", "OSTNAME", "odename", "odeName", "ODENAME", "ost_name", "ode_name", "NODE_NAME", "SUBMIT_HOST", "HOST_NAME", "ODE_NAME", "nodename"),
	formOf(`\bHostname set to <?{host}`, "Hostname"),
	formOf(`(?i)\bno_proxy["']?\s*[=:]\s*["']?(?P<hosts>[A-Za-z0-9.*][A-Za-z0-9_.,*/:-]*)`, "_proxy", "_PROXY"),
	formOf(`(?i)\b(?:https?|all|ftp)_proxy["']?\s*[=:]\s*["']?{host}(?::[0-9]|\s|$|["'])`, "_proxy", "_PROXY"),
	formOf(`\b(?:[a-z][a-z0-9+.-]*)://(?:[^/\s@"']*@)?\[?{host}`, "://"),
	formOf(`(?m)^(?:search|domain)\s+(?P<hosts>[A-Za-z0-9][A-Za-z0-9.-]*)\s*$`, "search ", "domain "), // resolv.conf(5).
	// Folders of file servers: mountinfo, mount, df, fstab.
	formOf(`\s-\s(?:nfs4?|cifs|smb3|lustre|ceph|glusterfs|beegfs|9p|gpfs|wekafs|afs|virtiofs|fuse\.\S+)\s(?P<export>\S+)`, " - "),
	formOf(`^\s*(?P<export>(?://)?[A-Za-z0-9][\w.,@-]*:?/\S*)\s+(?:on\s+/\S*\s+type\s|/\S*\s+(?:nfs|cifs|lustre|ceph|gluster|beegfs|fuse)|[0-9.]+[KMGTP]?\s+[0-9.]+[KMGTP]?\s)`, ":/", "//"),
	formOf(`\b(?:mount\.nfs4?|mount|umount)\b[^\n]*\s(?P<export>[A-Za-z0-9][\w.-]*:/\S*)`, ":/"),
	formOf(`\b(?:nfs|NFS)[: ]+server {host} (?:not responding|OK)`, "server "),
	// Users and their work.
	formOf(`\b(?:USER|LOGNAME|SUDO_USER|USERNAME|SLURM_JOB_USER|SLURM_JOB_ACCOUNT|username)=["']?{user}`, "USER", "LOGNAME", "username", "ACCOUNT"),
	formOf(`\b(?:SLURM_JOB_(?:USER|GROUP|ACCOUNT)|PBS_O_LOGNAME|SUDO_USER|UserId|GroupId)["']?\s*[=:]\s*["']?{user}`, "SLURM_JOB_", "LOGNAME", "SUDO_USER", "erId", "oupId"),
	formOf(`\b(?:SLURMD_NODENAME|SLURM_TOPOLOGY_ADDR|SLURM_SUBMIT_HOST|PBS_O_HOST|LSB_SUB_HOST)["']?\s*[=:]\s*["']?{host}`, "SLURM", "PBS_O", "LSB_"),
	formOf(`\bLSB_HOSTS=["']?(?P<words>[A-Za-z0-9][\w. -]*)`, "LSB_HOSTS"),
	formOf(`\b[ug]id=[0-9]+\({user}\)`, "id="),
	formOf(`\b(?:for|by) (?:invalid )?user {user}`, "user "),
	formOf(`--(?:mail-user|uid)[\s=]+{user}`, "--mail-user", "--uid"),
	formOf(`(?:--job-name|--container-name|--account|--partition|--reservation|--qos|--wckey)[\s=]+{job}`, "--job-name", "--container-name", "--account", "--partition", "--reservation", "--qos", "--wckey"),
	formOf(`#SBATCH\s+-[JAp]\s*{job}`, "#SBATCH"),
	formOf(`\b(?:SLURM_JOB_NAME|SLURM_JOB_PARTITION|SLURM_JOB_QOS|SLURM_CLUSTER_NAME|JOB_NAME|JobName|WANDB_PROJECT|WANDB_RUN_ID|WANDB_NAME|WANDB_ENTITY|POD_NAME|POD_NAMESPACE)=["']?{job}`, "JOB", "CLUSTER_NAME", "JobName", "WANDB", "POD_"),
	formOf(`\b(?:docker|podman|nerdctl|enroot)\s(?:[^;|&\n]*?\s)??--name[\s=]+{job}`, "--name"),
	formOf(`^\s*(?:container_name|jobName|job_name|namespace|claimName|secretName|serviceAccountName|serviceAccount)\s*:\s*{job}\s*$`, "_name", "Name", "namespace", "serviceAccount"),
	formOf(`^\s*(?:-\s+)?[Ii]mage\s*:\s*{image}["']?,?\s*$`, "mage"),
	formOf(`--container-image[\s=]+{image}`, "--container-image"),
	formOf(`\b(?:Pulling from|pull access denied for|manifest for|Pulling image|pull image|image)\s+["'](?P<image>[a-z0-9][^\s"']*/[^\s"']*)["']`, "mage", "ulling"),
	// Homes, where they usually lie and on shared file systems.
	formOf(`/(?:home|Users|users)/(?P<home>`+folderName+`)`, "ome/", "sers/"),
	formOf(`/homes/(?:[a-z]/)?(?P<home>`+folderName+`)`, "/homes/"),
	formOf(`(?:^|[\s"'=:,(\[<])/(?:mnt/)?(?:fsx|scratch|nfs|lustre|gpfs)/(?:scratch/|user/|people/)?(?P<share>`+folderName+`)`, "/fsx/", "/scratch/", "/nfs/", "/lustre/", "/gpfs/"),
	formOf(`(?i)serial[ _-]?(?:number|no\.?)["']?\s*[:=]\s*["']?(?P<serial>[A-Za-z0-9][A-Za-z0-9._-]{3,})`, "erial", "ERIAL"),
}

// numberForms are where numbers stand that tell a machine, a container or an account
// from others.
var numberForms = []form{
	formOf(`(?P<colons>[0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,})`, ":").times(2),
	formOf(`\b(?P<uuid>[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){4}[0-9A-Fa-f]{8})\b`, "-").times(4),
	// Kubernetes puts "pod" before it, and systemd takes no dashes in a name.
	formOf(`pod(?P<uuid>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){4}[0-9a-f]{8})\b`, "pod"),
	formOf(`(?:^|[^\w-])(?:[0-9A-Fa-f]{2}-)?(?P<mac>[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5})`, "-").times(macBytes - 1), // BOOTIF=01-...
	formOf(`\benx(?P<mac>[0-9a-f]{12})\b`, "enx"),
	formOf(`\b(?P<mac>[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4})\b`, ".").times(2), // Of switches.
	formOf(`(?i)guid["']?[ =:]{1,3}["']?(?:0x)?(?P<guid>[0-9a-f]{16})\b`, "uid", "UID"),
	formOf(`"[HSR]-(?P<guid>[0-9a-f]{16})"`, "-"), // ibnetdiscover.
	// Made of a MAC address: by RFC 4291, and as Mellanox makes them.
	formOf(`(?i)\b(?:0x)?(?P<eui>[0-9a-f]{6}(?:fffe|0300)[0-9a-f]{6})\b`, "fffe", "FFFE", "0300"),
	formOf(`\bGID [0-9]+ \([0-9A-F]+/(?P<gid>[0-9A-F]{1,16})\)`, "GID "), // NCCL (net_ib.cc).
	formOf(`\b(?P<resource>[a-z]+-[0-9a-f]{17})\b`, "-0"),                // EC2: instances, networks, file systems.
	formOf(`\b(?P<account>[0-9]{12})\.dkr\.ecr\.`, ".dkr.ecr."),
	formOf(`(?i)\baccount(?:[ _-]?id)?["']*\s*[:=]\s*["']*(?P<account>[0-9]{12})\b`, "ccount", "CCOUNT"),
	formOf(`(?:^|[^0-9A-Za-z])(?P<container>[0-9a-f]{64})\b`, "docker", "ontainer", "crio", "libpod", "kubepods", "moby", "overlay"),
	formOf(`^["']?(?P<container>[0-9a-f]{64})\b`, ""), // docker ps --no-trunc.
}

// addressForms are where IPv4 addresses, and versions, stand.
var addressForms = []form{formOf(`(?P<ipvfour>[0-9]{1,3}(?:\.[0-9]{1,3}){3})`, ".").times(3)}

// folderName is the name of a folder in a path.
const folderName = `[^/\s:"',;=()<>|\[\]*$]+`

// sharedFolder is a folder of a shared file system that belongs to nobody.
var sharedFolder = lazy.New(`^(?:data.*|conda.*|.*(?:models?|checkpoints?|ckpts?|cache|logs?|envs?|containers?|images|shared|projects?|` +
	`software|apps?|te?mp|modules?|datasets?|hub|results|outputs?|experiments?|jobs?|groups?|scratch|users?|homes?))$`)

// apply replaces what stands where forms say by what standIn returns for it.
func apply(forms []form, s string, standIn func(what, name, s string, from, to int) string) string {
	for i := range forms {
		p := &forms[i]
		if !p.hinted(s) {
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
				out.WriteString(standIn(strings.TrimRight(groups[g], "0123456789"), s[from:to], s, from, to))
				last = to
			}
		}
		s = out.String() + s[last:]
	}
	return s
}

// hinted reports whether a text holds a hint often enough. Most lines hold none.
func (c *form) hinted(s string) bool {
	for _, hint := range c.hints {
		if c.least == 0 && strings.Contains(s, hint) || c.least > 0 && strings.Count(s, hint) >= c.least {
			return true
		}
	}
	return false
}

// fileEnds are ends of names that are no hosts': of files, and of platforms.
var fileEnds = []string{".so", ".py", ".cc", ".cpp", ".c", ".h", ".log", "-gnu"}

// standIn returns what stands for a name or a number of a kind, which lies in s.
func (r *Redactor) standIn(what, name, s string, from, to int) string {
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
	case "list":
		return r.bracketNames(name)
	case "serial":
		return r.serial(name)
	case "colons":
		return r.colons(s, from, to)
	case "ipvfour":
		if a, err := netip.ParseAddr(name); err == nil && !isVersion(s, from, to) {
			return r.ipv4Address(a).String()
		}
		return name
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

// bracketNames replaces a list of hosts as Slurm writes it, node[01-16,20], unless it can be one of devices: its numbers
// have leading zeros, or its name is not a device's.
func (r *Redactor) bracketNames(list string) string {
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
