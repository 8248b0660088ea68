package host_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestAffinity(t *testing.T) {
	const topo = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n" +
		"GPU0\t X \tSYS\t0-15,32-47\t0\t\tN/A\nGPU1\tSYS\t X \t16-31,48-63\t1\t\tN/A\n"
	for _, test := range []struct {
		name, text, allowed string
		counts              [2]int
	}{
		{"the kernel's status", "Cpus_allowed_list:\t0-7\n", "0-7", [2]int{8, 0}},
		{"taskset", "pid 4711's current affinity list: 0-7,40,48\n", "0-7,40,48", [2]int{9, 1}},
		{"numactl", "physcpubind: 16 17 18 20\n", "16-18,20", [2]int{0, 4}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := texttest.Parse("a.txt", test.text+topo)
			expect.Must(t, f.NUMA != nil && f.NUMA.AllowedCPUs == test.allowed && len(f.NUMA.Nodes) == 2, "got %+v, want %s and two nodes", f.NUMA, test.allowed)
			for i, want := range test.counts {
				got := f.NUMA.Nodes[i].AllowedCPUs
				expect.That(t, got != nil && *got == want, "node %d: got %v, want %d", i, got, want)
				got = f.GPUs.Devices[i].NUMANode
				expect.That(t, got != nil && *got == i, "GPU %d: got node %v", i, got)
			}
		})
	}
	for _, text := range []string{"Cpus_allowed_list:\t\n", "Cpus_allowed_list:\t7-0\n", "pid 1's current affinity list: ,\n"} {
		if f := texttest.Parse("a.txt", text); f.NUMA != nil && f.NUMA.AllowedCPUs != "" {
			t.Errorf("%q: got %q", text, f.NUMA.AllowedCPUs)
		}
	}
}

// TestEnvironmentJSON: variables of a job's description in JSON.
func TestEnvironmentJSON(t *testing.T) {
	f := texttest.Parse("job.json", "  \"NCCL_DEBUG\": \"INFO\",\n  {\"name\": \"FI_PROVIDER\", \"value\": \"efa\"},\n  \"USER\": \"x\",\n")
	got := map[string]string{}
	if f.Env != nil {
		for _, v := range f.Env.Variables {
			got[v.Name] = v.Value
		}
	}
	expect.That(t, len(got) == 2 && got["NCCL_DEBUG"] == "INFO" && got["FI_PROVIDER"] == "efa", "got %v", got)
}

// TestNCCLOldStart: the forms of NCCL 2.2 to 2.4, and the list of CPUs of 2.27.
func TestNCCLOldStart(t *testing.T) {
	f := texttest.Parse("a.log", "n1:1:5 [0] NCCL INFO comm 0x7f10 rank 0 nranks 2\nn2:1:5 [0] NCCL INFO comm 0x7f20 rank 1 nranks 2 cudaDev 0 nvmlDev 0\n"+
		"n1:1:5 [0] NCCL INFO Ring 00 : 1 -> 0 [receive] via NET/Socket/0\nn1:1:5 [0] NCCL INFO Setting affinity for GPU 0 to 0-31,64-95\n")
	expect.That(t, len(f.Logs.Communicators) == 1 && len(f.Logs.Communicators[0].Hosts) == 2 && f.Logs.Communicators[0].Started == 0, "got %+v", f.Logs.Communicators)
	expect.That(t, len(f.Logs.Transports) == 1 && f.Logs.Transports[0].SameHost != nil && !*f.Logs.Transports[0].SameHost, "got %+v", f.Logs.Transports)
	expect.That(t, len(f.Logs.Affinities) == 1 && f.Logs.Affinities[0].CPUs == 64, "got %+v", f.Logs.Affinities)
}

// TestNCCLTestsCutTable: a table that begins with the names of its columns.
func TestNCCLTestsCutTable(t *testing.T) {
	f := texttest.Parse("a.log", "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"+
		"     1048576        262144   float     sum    310.1    3.38    6.76  1e-06    308.0    3.40    6.81  1e-06\n")
	expect.That(t, len(f.Benchmarks) == 1 && len(f.Benchmarks[0].Points) == 1, "got %+v", f.Benchmarks)
}

func FuzzAffinity(f *testing.F) {
	f.Add("Cpus_allowed_list:\t0-7,9\n")
	f.Add("pid 1's current affinity list: 0-99999999\nnode 0 cpus: 1 2\n")
	f.Add("physcpubind: 0 1 2\n")
	f.Fuzz(func(t *testing.T, text string) {
		facts := texttest.Parse("a.txt", text)
		if facts.NUMA != nil && len(facts.NUMA.Nodes) > 1024 {
			t.Errorf("%d nodes", len(facts.NUMA.Nodes))
		}
	})
}
