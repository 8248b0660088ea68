package host

import (
	"cmp"
	"math/big"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/affinity"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// affinityKind takes lines that tell on which CPUs a process may run:
//
//	Cpus_allowed_list:	0-7                          (/proc/PID/status)
//	pid 4711's current affinity list: 0-7            (taskset -cp)
//	physcpubind: 0 1 2 3                             (numactl --show)
//	cpu-bind=MASK - n1, task  0  0 [4711]: mask 0x3 set (srun --cpu-bind=verbose; Slurm src/interfaces/cpu_bind.c)
func affinityKind() *parse.Kind {
	tasks, host := new(big.Int), ""
	return &parse.Kind{
		Name: "cpu-affinity", Title: "The CPUs on which a process may run, from its status, taskset -cp, numactl --show or srun", Command: "grep Cpus_allowed_list /proc/self/status", Gives: []string{"numa"},
		Anchors: []string{"Cpus_allowed_list:", "affinity list: ", "physcpubind: ", "cpu-bind=MASK"},
		Line: func(s *parse.Sink, l parse.Line) bool {
			if m := cpuBindForm.FindStringSubmatch(l.Text); m != nil {
				// The nodes of a job are bound each by itself, and the first stands for all.
				if host = cmp.Or(host, strings.Clone(m[1])); host == m[1] {
					bound(s, l, tasks, m[2])
				}
				return true
			}
			m := affinityForm.FindStringSubmatch(l.Text)
			if m == nil {
				return false
			}
			list := cmp.Or(m[1], spacedCPUs(m[2]))
			if n, ok := affinity.CommonCPUs(list, list); !ok || n == 0 {
				return false
			}
			// The first process counts: which of several is a rank, no line tells.
			parse.Note(s, &s.NUMA().AllowedCPUs, "numa.allowed_cpus", strings.Clone(list), l)
			return true
		},
	}
}

var affinityForm = lazy.New(`^\s*(?:Cpus_allowed_list:\s*|pid \d+'s (?:current |new )?affinity list: )([\d,-]+)\s*$|^physcpubind: (\d[\d ]*)$`)

var cpuBindForm = lazy.New(`\bcpu-bind=MASK - (\S+), task +\d+ +\d+ \[\d+\]: mask 0x([0-9a-f]{1,256})\b`)

// bound adds the CPUs of a task to those of the others: what none of them may use, no rank uses.
func bound(s *parse.Sink, l parse.Line, tasks *big.Int, mask string) {
	f := s.NUMA()
	f.AllowedCPUs = affinity.CPUList(tasks.Or(tasks, affinity.ParseMask(mask)))
	s.Told("numa.allowed_cpus", f.AllowedCPUs, l)
}

// joinAffinity counts the CPUs of each node on which the process may run.
func joinAffinity(s *parse.Sink) {
	f := s.Facts.NUMA
	if f == nil || f.AllowedCPUs == "" {
		return
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if n.CPUs == "" || n.AllowedCPUs != nil {
			continue
		}
		if both, ok := affinity.CommonCPUs(f.AllowedCPUs, n.CPUs); ok {
			n.AllowedCPUs = &both
		}
	}
}
