package nodes

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
)

// Place is this process's place in a job: which rank it is, of how many, and where they meet.
type Place struct {
	// Engine is what started the job.
	Engine string
	Rank   int
	Count  int
	// Hosts are names and addresses at which the first rank may be reached, the likeliest first.
	Hosts []string
	// Names are the hosts of all ranks in their order, where the engine lists them so.
	Names []string
	// Job distinguishes this job from others on the same hosts.
	Job string
}

// engine says by which variables a program learns its place from what started it.
type engine struct {
	name  string
	rank  string
	count string
	job   []string
	// hosts is the variable that says where the ranks are, and read what reads it, given the full name of this host.
	hosts string
	read  func(value, self string) []string
}

// engines are all of them, the most specific first: mpirun in a job of Slurm hands on that job's variables. Sources: mpirun(1)
// of Open MPI 4.1 and 5.0, srun(1) of Slurm 24.11 (OUTPUT ENVIRONMENT VARIABLES; the script of sbatch has SLURM_PROCID=0 and no
// variables of a step), PMIx 4.2 (pmix_client_init), Hydra of MPICH 4.2 (pmi1), the documentation of indexed jobs of Kubernetes,
// and of torchrun.
var engines = []engine{
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", []string{"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}, "OMPI_MCA_orte_hnp_uri", uriHosts},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}, "SLURM_STEP_NODELIST", func(list, _ string) []string { return Expand(list, MaxNodes) }},
	{"PMIx", "PMIX_RANK", "", []string{"PMIX_NAMESPACE"}, "PMIX_SERVER_URI4", uriHosts},
	{"PMI", "PMI_RANK", "PMI_SIZE", []string{"PMI_JOBID"}, "", nil},
	{"Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", nil, "JOB_COMPLETION_INDEX", indexedHost},
	{"torchrun", "RANK", "WORLD_SIZE", []string{"TORCHELASTIC_RUN_ID"}, "MASTER_ADDR", func(value, _ string) []string { return []string{value} }},
}

// ErrNoEngine means that no variables of an engine were found.
var ErrNoEngine = errors.New("no variables of srun, mpirun, an indexed Job of Kubernetes or torchrun are set")

// Find finds this process's place by its environment. A count above 0 overrides the engine's; self is this host's full name.
func Find(get func(string) string, self string, count int) (Place, error) {
	for _, e := range engines {
		p := Place{Engine: e.name, Count: count}
		if p.Count == 0 {
			p.Count, _ = strconv.Atoi(get(e.count)) // Checked below.
		}
		if get(e.rank) == "" || p.Count == 0 && e.name == "Slurm" { // The script of a batch job is no rank.
			continue
		}
		rank, err := strconv.Atoi(get(e.rank))
		switch {
		case err != nil:
			return p, fmt.Errorf("%s=%q is not the number of a rank", e.rank, get(e.rank))
		case p.Count == 0:
			return p, fmt.Errorf("%s says which rank this is (%d), and nothing says of how many", e.rank, rank)
		case rank < 0 || rank >= p.Count || p.Count > MaxNodes:
			return p, fmt.Errorf("rank %d of %d is not possible (%s); at most %d take part", rank, p.Count, e.rank, MaxNodes)
		}
		p.Rank = rank
		for _, name := range e.job {
			p.Job += get(name) + "."
		}
		if e.read != nil && get(e.hosts) != "" {
			p.Hosts = e.read(get(e.hosts), self)
		}
		if e.name == "Slurm" && len(p.Hosts) == p.Count { // One rank on each node: they are in the order of the list.
			p.Names = p.Hosts
		}
		if e.name == "Slurm" && len(p.Hosts) > 0 { // The first rank is on the first node.
			p.Hosts = p.Hosts[:1]
		}
		return p, nil
	}
	return Place{}, ErrNoEngine
}

// MaxNodes bounds the ranks of a job.
const MaxNodes = 4096

// Port is the port at which the ranks of a job meet: below those that systems hand out, and rarely that of another job.
func (p Place) Port() int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.Job)) // It never fails.
	return 20000 + int(h.Sum32()%10000)
}

// uriHosts are the addresses in a contact of Open MPI or PMIx: "542900224.0;tcp://192.0.2.2,10.0.0.1:44483;tcp6://[fd00::2]:52279".
func uriHosts(value, _ string) []string {
	var all []string
	for part := range strings.SplitSeq(value, ";") {
		scheme, rest, ok := strings.Cut(part, "://")
		if !ok || !strings.HasPrefix(scheme, "tcp") {
			continue
		}
		port := strings.LastIndexByte(rest, ':')
		for host := range strings.SplitSeq(rest[:max(port, 0)], ",") {
			if u, err := url.Parse("tcp://" + host); err == nil && u.Hostname() != "" {
				all = append(all, u.Hostname())
			}
		}
	}
	return all
}

// indexedHost is the pod with index 0 of an indexed Job: its name is the job's with "-0", under the headless service that the full
// name of each pod has: "train-3.workers.default.svc.cluster.local".
func indexedHost(index, self string) []string {
	pod, domain, ok := strings.Cut(self, ".")
	job, of := strings.CutSuffix(pod, "-"+index)
	if !ok || !of {
		return nil
	}
	return []string{job + "-0." + domain}
}

// maxName bounds a name in bytes: that of a host has no more.
const maxName = 255

// Expand expands a list of hosts as Slurm writes it, "node[1-3,07],gpu-a"; nil if it is malformed, or has more than most.
func Expand(list string, most int) []string {
	var all []string
	names := []string{""} // Those of the word so far.
	for list += ","; list != ""; {
		end := strings.IndexAny(list, "[],")
		ends := []string{list[:end]}
		sign, rest := list[end], list[end+1:]
		if sign == '[' {
			inside, after, _ := strings.Cut(rest, "]")
			ends, rest = numbered(list[:end], inside, most/len(names)), after
		}
		if ends == nil || sign == ']' || len(names[0])+end > maxName {
			return nil
		}
		var longer []string
		for _, name := range names {
			for _, e := range ends {
				longer = append(longer, name+e)
			}
		}
		if names = longer; sign == ',' {
			if names[0] == "" || len(all)+len(names) > most {
				return nil
			}
			all, names = append(all, names...), []string{""}
		}
		list = rest
	}
	return all
}

// numbered is a text with each number of ranges behind it, "1-3,07"; nil if they are malformed, or have more than most.
func numbered(text, ranges string, most int) (all []string) {
	for r := range strings.SplitSeq(ranges, ",") {
		low, high, is := strings.Cut(r, "-")
		if !is {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 32)
		to, err2 := strconv.ParseUint(high, 10, 32)
		if err != nil || err2 != nil || len(low) > maxName || to < from || to-from >= uint64(max(most-len(all), 0)) {
			return nil
		}
		for n := from; n <= to; n++ {
			all = append(all, fmt.Sprintf("%s%0*d", text, len(low), n))
		}
	}
	return all
}
