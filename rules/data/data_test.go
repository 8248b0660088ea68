package data

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The words of findings, from the worst and the surest.
var (
	severities  = []string{"critical", "high", "medium", "low", "info"}
	confidences = []string{"confirmed", "likely", "possible"}
)

// keysOf are the keys of each table: its own, and those of all its rows.
var keysOf = map[string][2]string{
	"areas":         {"sources areas words files hangs decides", "name words causes variables libraries like of area library files between usual kinds"},
	"codes":         {"sources errno completions nccl", "number name words means areas causes"},
	"driver_errors": {"sources classes codes nvml", "name words causes remedies code runtime class untried judged_by in_gpu"},
	"experiments":   {"sources switches outcomes wrong things words options ignored devices hangs starts faster places tools", "names off words causes remedies source when reverse includes like name value flag is thing on"},
	"fleet":         {"traits own", "name fact severity why remedies source like_hardware counted expected confidence"},
	"gpu_models": {
		"sources models amd_instinct amd_integrated nvidia accepted_lanes",
		"name like architecture compute_capability form nvlink nvlink_gbps nvswitch efa resizable_bar geforce most_bar1_gib ids xgmi_gbps xgmi_mesh",
	},
	"job_needs":    {"sources needs", "when remedy reason for environment"},
	"known_faults": {"rows", "id library since fixed said confidence severity what remedies source lacks telltale symptom when fault variable"},
	"launch_files": {
		"sources unlimited_memlock rdma_resources host_interfaces loopback driver_packages misplaced_folders host_folders without_nccl node_services other_processors providers lacking parts",
		"what folders severity empty_in why name image beside mounts settings source resources",
	},
	"rates": {
		"sources pcie nvlink_gbps nvlink_raw efa paths gdr_path shares collective collective_bytes collective_error network network_bytes gpu_network " +
			"collective_network host_floor host_bytes emulated_vendors",
		"gts data of",
	},
	"required": {"required", "fact profiles reason holds if"},
	"thresholds": {
		"sources wrong_path detour staged staged_faster staged_beats_crowd collective_faster collective_least_bytes node_pair_share late_us shm_recommended_bytes shm_default_bytes " +
			"shm_connection_bytes group_memory_left_bytes group_tasks_left memlock_too_low_bytes memlock_low_bytes open_files bar_default_bytes spinning_percent link_errors " +
			"lost_packets_per_hour cuda_drivers cuda_graphs_driver cuda_for_capability watchdog_ms first_collectives", "",
	},
	"topics":  {"person title sentences complains denies topics symptoms", "cause like"},
	"unknown": {"facts", ""},
	"variables": {
		"guide losses rows of levels path_levels algorithms protocols joint misspelt beside known",
		"names said severity confidence why like silent unless source remedies when lacks text is inert measured level loss at_most",
	},
	"xids": {"sources actions xids sxids", "code name class severity action"},
}

// TestTables checks that each table has the keys that somebody reads and no others, and what each key of a row has in
// common wherever it stands: sources, patterns, causes and the words of findings.
func TestTables(t *testing.T) {
	expect.Len(t, len(Names()), keysOf, "tables with keys, of %v", Names())
	for _, name := range Names() {
		own, ofRows := strings.Fields(keysOf[name][0]), strings.Fields(keysOf[name][1])
		expect.Len(t, len(own), Table(name), "keys of %s", name)
		for key, v := range Table(name) {
			expect.That(t, slices.Contains(own, key), "%s: nobody reads the key %s", name, key)
			checkKey(t, name, key, v)
			eachRow(v, func(row map[string]any) {
				for key, v := range row {
					expect.That(t, slices.Contains(ofRows, key), "%s: nobody reads the key %s of %v", name, key, row)
					checkKey(t, name, key, v)
				}
			})
		}
	}
	for _, read := range []any{Codes(), DriverErrors(), Fleet(), JobNeeds(), Required(), Thresholds(), Unknown(), Rates()} {
		v := reflect.ValueOf(read).Elem()
		for i := range v.NumField() {
			expect.That(t, !v.Field(i).IsZero(), "%s of %s is not set", v.Type().Field(i).Name, v.Type())
		}
	}
}

// eachRow calls do for each object in a list, at any depth.
func eachRow(v any, do func(row map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, part := range v {
			eachRow(part, do)
		}
	case []any:
		for _, part := range v {
			if row, ok := part.(map[string]any); ok {
				do(row)
			}
			eachRow(part, do)
		}
	}
}

// checkKey checks the value of a key that means the same in all tables.
func checkKey(t *testing.T, table, key string, v any) {
	t.Helper()
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for i, v := range list {
		text, _ := v.(string)
		at := table + ": " + key + ": " + text
		switch key {
		case "sources", "source", "guide":
			u, err := url.Parse(text)
			expect.That(t, err == nil && u.Scheme == "https" && u.Host != "", "%s is no https address", at)
		case "like", "off", "kinds":
			if !isList { // Those of files are no regular expressions.
				_, err := regexp.Compile(text)
				expect.That(t, err == nil, "%s: %v", at, err)
			}
		case "causes":
			_, ok := Areas().Decides[text]
			expect.That(t, ok && !slices.Contains(list[:i], v), "%s: nothing decides whether it is the cause, or it stands twice", at)
		case "severity":
			expect.That(t, slices.Contains(severities, text) || text == "by-loss", "%s is no severity", at)
		case "confidence":
			expect.That(t, slices.Contains(confidences, text), "%s is no confidence", at)
		case "why", "what":
			expect.That(t, !strings.HasSuffix(text, "."), "%s does not stand in a sentence", at)
		}
	}
}

// TestLimits checks that no value lies on the wrong side of another.
func TestLimits(t *testing.T) {
	table := *Read[map[string]any]("thresholds")
	of := func(key string) float64 { return table[key].(float64) }
	detour := table["detour"].(map[string]any)
	inOrder := func(words string, values ...float64) {
		t.Helper()
		expect.That(t, slices.IsSorted(values) && len(slices.Compact(slices.Clone(values))) == len(values), "%s: %v", words, values)
	}
	inOrder("shares", 0, of("staged"), detour["least"].(float64), detour["most"].(float64), 1)
	inOrder("a wrong path", 0, of("wrong_path"), 1)
	inOrder("host memory is faster", 1, of("staged_faster"), of("staged_beats_crowd"))
	inOrder("locked memory", of("memlock_too_low_bytes"), of("memlock_low_bytes"))
	inOrder("shared memory", of("shm_default_bytes"), of("shm_recommended_bytes"))
	drivers := table["cuda_drivers"].(map[string]any)
	inOrder("a newer CUDA needs a newer driver", drivers["11"].(float64), drivers["12"].(float64), drivers["13"].(float64))
	expect.Equal(t, (4*1024+512+4800+4)*1024, of("shm_connection_bytes"), "shm_connection_bytes: Simple, LL, LL128 and a page")
}

func TestDriverErrors(t *testing.T) {
	type class struct{ Name, Words string }
	table := Read[struct {
		Classes, NVML []class
		Codes         []struct {
			Code        int
			Name, Class string
			Untried     bool
			InGPU       bool   `json:"in_gpu"`
			JudgedBy    string `json:"judged_by"`
		}
	}]("driver_errors")
	classes, used, names := map[string]bool{}, map[string]bool{"other": true}, map[string]bool{}
	for _, c := range slices.Concat(table.Classes, table.NVML) {
		expect.That(t, !classes[c.Name] && c.Words != "", "class %q is there twice, or says nothing", c.Name)
		classes[c.Name] = true
	}
	expect.That(t, classes["other"], "no class for a code that names no cause")
	last := 0
	for _, c := range table.Codes {
		expect.That(t, c.Code > last && !names[c.Name] && c.Name != "", "code %d comes after %d, or its name %q is given twice or empty", c.Code, last, c.Name)
		expect.That(t, classes[c.Class], "code %d: unknown class %q", c.Code, c.Class)
		expect.That(t, (!c.InGPU || c.Class == "hardware") && (!c.Untried || c.JudgedBy == ""), "code %d: in_gpu without hardware, or untried and judged by %q", c.Code, c.JudgedBy)
		last, names[c.Name], used[c.Class] = c.Code, true, true
	}
	for _, c := range table.Classes {
		expect.That(t, used[c.Name], "no code is of the class %s", c.Name)
	}
}

// TestExperiments checks that each switch says which values turn it off and what is at fault
// then, and that words name switches and turn them off.
func TestExperiments(t *testing.T) {
	table := Read[struct {
		Switches []struct {
			Names, Causes    []string
			Off, When, Words string
		}
		Outcomes []struct{ Is, Like string }
		Things   []struct{ Thing, Name, Off, On string }
		Words    []struct{ Like, Name, Value string }
	}]("experiments")
	names, off := map[string]int{}, map[string]*regexp.Regexp{}
	for _, row := range table.Switches {
		expect.That(t, row.Off != "" && len(row.Names) != 0 && row.Words != "" && len(row.Causes) != 0, "%v: something is missing", row.Names)
		expect.That(t, !regexp.MustCompile(row.Off).MatchString(""), "%v is off where it is not set", row.Names)
		expect.That(t, slices.Contains([]string{"", "roce", "infiniband"}, row.When), "%v: there is no network %q", row.Names, row.When)
		for _, name := range row.Names {
			names[name]++
			expect.That(t, names[name] <= 2, "%s stands in a row that is never reached", name)
			form := row.Off
			if off[name] != nil {
				form += "|" + off[name].String()
			}
			off[name] = regexp.MustCompile(form)
		}
	}
	for _, o := range table.Outcomes {
		expect.That(t, slices.Contains([]string{"unchanged", "ok", "failed", "hung", "cured", "opposite"}, o.Is) && !regexp.MustCompile(o.Like).MatchString(""), "%+v is no outcome", o)
	}
	for _, w := range table.Things {
		value := w.Off + w.On
		expect.That(t, w.Thing != "" && off[w.Name] != nil && off[w.Name].MatchString(value), "%q: %s is no switch, or %q does not turn it off", w.Thing, w.Name, value)
	}
	for _, w := range table.Words {
		if w.Name == "count" { // Of GPUs.
			continue
		}
		expect.That(t, off[w.Name] != nil && (w.Value == "" || off[w.Name].MatchString(w.Value)), "%q: %s is no switch, or %q does not turn it off", w.Like, w.Name, w.Value)
	}
}

// TestJobNeeds checks that each row says when, what and why.
func TestJobNeeds(t *testing.T) {
	sentence := regexp.MustCompile(`^[A-Z{].*\.$`)
	for i, n := range JobNeeds().Needs {
		expect.That(t, len(n.When) != 0 && (n.Remedy == "") != (len(n.Environment) == 0) && sentence.MatchString(n.Reason), "row %d: when %v, remedy %q, environment %v, reason %q", i+1, n.When, n.Remedy, n.Environment, n.Reason)
	}
}

func TestXIDs(t *testing.T) {
	table := Read[struct {
		Actions map[string][]string
		XIDs    []struct {
			Code                          int
			Name, Class, Severity, Action string
		}
		SXIDs map[string][]int
	}]("xids")
	// What a class weighs that says nothing against the machine.
	harmless := map[string]string{"application": "low", "secondary": "info", "note": "info"}
	last, used := 0, map[string]bool{}
	for _, x := range table.XIDs {
		expect.That(t, x.Code > last && x.Name != "", "Xid %d comes after %d, or has no name", x.Code, last)
		last, used[x.Action] = x.Code, true
		want := []string{harmless[x.Class]}
		if x.Class == "fault" || x.Class == "link" {
			want = severities[:3]
		}
		expect.That(t, slices.Contains(want, x.Severity), "Xid %d: severity %q of the class %q", x.Code, x.Severity, x.Class)
	}
	for action := range table.Actions {
		expect.That(t, used[action], "no Xid has the action %s", action)
	}
	expect.Len(t, len(table.Actions), used, "actions of Xids %v", used)
	severity := map[int]string{}
	for s, codes := range table.SXIDs {
		expect.That(t, slices.Contains([]string{"critical", "high", "noted"}, s) && slices.IsSorted(codes), "SXids of severity %q: %v", s, codes)
		for _, code := range codes {
			// The range is the driver's (ctrl_dev_nvswitch.h).
			expect.That(t, severity[code] == "" && code >= 10001 && code <= 30006, "SXid %d is %s, and %q before", code, s, severity[code])
			severity[code] = s
		}
	}
	expect.That(t, len(severity) > 0, "no SXid")
}

func TestKnownFaults(t *testing.T) {
	version, id := regexp.MustCompile(`^([0-9]+(\.[0-9]+){1,2})?$`), regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	rows := Read[struct {
		Rows []struct {
			ID, Fault, Library, Since, Fixed, Lacks, Symptom, Confidence, What, Variable, Source string
			Said, When, Remedies                                                                 []string
			Telltale                                                                             bool
		}
	}]("known_faults").Rows
	ids := map[string]bool{}
	for _, row := range rows {
		expect.That(t, !ids[row.ID] && id.MatchString(row.ID), "the id %q is not unique, or has another form", row.ID)
		ids[row.ID] = true
	}
	for _, row := range rows {
		check := func(is bool, words string, args ...any) { t.Helper(); expect.That(t, is, row.ID+": "+words, args...) }
		check(row.Fault == "" || ids[row.Fault], "no row has the id %s of its fault", row.Fault)
		check(slices.Contains(row.Remedies, "unset-env") == (row.Variable != ""), "it is cured by unset-env, or names a variable, not both")
		check(slices.Contains([]string{"nccl", "rccl", "rocm"}, row.Library), "library %q", row.Library)
		check(version.MatchString(row.Since) && version.MatchString(row.Fixed) && (row.Since == "" || row.Since != row.Fixed), "no version has it: %q to %q", row.Since, row.Fixed)
		check(slices.Contains([]string{"", "hang", "stall", "crash", "corrupt", "fail"}, row.Symptom), "symptom %q", row.Symptom)
		check(row.Lacks == "" && !row.Telltale || len(row.Said) != 0, "lacks or telltale needs a message")
		check(row.Said == nil || row.Symptom == "", "a message and a symptom: the message alone counts")
		check(len(row.Said)+len(row.When) != 0 || row.Symptom != "", "nothing shows it")
		check(row.Confidence != "" && row.What != "" && len(row.Remedies) != 0 && row.Source != "", "something is missing")
	}
}

// TestRates checks that fractions are fractions.
func TestRates(t *testing.T) {
	table := Rates()
	for test, s := range table.Shares {
		expect.That(t, s.PCIe != 0 && s.Far != 0 && s.Far <= s.PCIe && s.Unknown <= s.PCIe, "%s: a longer way counts as good only where a shorter one does, %+v", test, s)
		for _, share := range []float64{s.NVLink, s.PCIe, s.Far, s.Unknown, s.XGMI} {
			expect.That(t, share >= 0 && share < 1, "%s: the share %v is not between 0 and 1", test, share)
		}
	}
	for _, share := range []float64{table.Collective.NVLink, table.Collective.PCIe, table.CollectiveNetwork, table.Network} {
		expect.That(t, share > 0 && share < 1, "%v is no share", share)
	}
}

// TestPaths checks that each type of path has its share, and that a farther one has no larger one.
func TestPaths(t *testing.T) {
	table := Rates()
	last := table.Network
	for i, path := range table.Paths {
		share := table.GPUNetwork[path]
		expect.That(t, share > 0 && share <= last, "%s: a share of %v behind one of %v", path, share, last)
		last = share
		expect.Equal(t, i, PathRank(path), "%s has the rank", path)
	}
	expect.Len(t, len(table.Paths), table.GPUNetwork, "shares of the paths %v", table.Paths)
	expect.That(t, PathRank("") == len(table.Paths) && slices.Contains(table.Paths, Table("rates")["gdr_path"].(string)), "paths %v", table.Paths)
}

// TestPCIe checks the rates that the specification and data sheets give.
func TestPCIe(t *testing.T) {
	for _, tt := range []struct {
		gts   float64
		width int
		want  float64
	}{
		{2.5, 16, 4}, {5, 16, 8}, {8, 1, 0.985}, {8, 16, 15.754}, {16, 8, 15.754}, {16, 16, 31.508}, {32, 16, 63.015}, {64, 16, 121}, {20, 4, 9.846}, {1, 1, 0.1},
	} {
		expect.Equal(t, tt.want, PCIeGBps(tt.gts, tt.width), "%v GT/s x%d", tt.gts, tt.width)
	}
	for generation := 1; generation <= len(Rates().PCIe); generation++ {
		expect.Equal(t, generation, PCIeGeneration(PCIeSpeedGTs(generation)), "generation %d", generation)
		expect.That(t, PCIeSpeedGTs(generation) > PCIeSpeedGTs(generation-1), "generation %d is not faster than the one before", generation)
	}
	expect.That(t, PCIeGeneration(20) == 0 && PCIeSpeedGTs(0) == 0 && PCIeSpeedGTs(99) == 0, "a speed or a generation that there is not")
	floor := Rates().HostFloor.GBps()
	expect.That(t, floor >= 0.76 && floor <= 1, "host copies are wrong below %v GB/s", floor)
}

// TestLaunchFiles checks that each list of the table matches what it is for, and no name
// that looks similar and is harmless.
func TestLaunchFiles(t *testing.T) {
	table := *Read[map[string]any]("launch_files")
	for i, folders := range []string{"stub_folders", "compat_folders"} {
		table[folders] = table["misplaced_folders"].([]any)[i].(map[string]any)["folders"]
	}
	for name, list := range map[string]struct{ yes, no string }{
		"rdma_resources": {
			"rdma/hca rdma/hca_shared_devices_a nvidia.com/hostdev_rdma nvidia.com/sriov_ib mellanox.com/mlnxnics openshift.io/mlx_rdma nvidia.com/mlnxnics",
			"nvidia.com/gpu nvidia.com/mig-1g.10gb nvidia.com/gpu.shared amd.com/gpu vpc.amazonaws.com/efa claims ephemeral-storage/a smarter-devices/fuse",
		},
		"host_interfaces": {"ib0 ibs1 ibp24s0 ens3 eno1 enp1s0f0 enp24s0np0 bond0 mlx0 docker0 hsn0 br0", "eth0 eth1 net1 lo veth1a2b tailscale0 wg0 ^lo"},
		"loopback": {
			"localhost localhost:29500 127.0.0.1 127.0.0.1:29500 ::1 [::1]:29500",
			"localhost.example.com 10.0.0.1 node-127.example.com 2001:db8::1 $MASTER_ADDR train-0.train",
		},
		"driver_packages": {
			"libnvidia-compute-550 libnvidia-compute-550-server nvidia-driver-550 nvidia-utils-535 cuda-drivers-550 cuda-drivers libcuda1 nvidia-headless-550 nvidia-open-570",
			"cuda-toolkit-12-4 libnccl2 libnccl-dev libcudnn9-cuda-12 cuda-compat-12-4 nvidia-container-toolkit libnvidia-container1 libnvidia-container-tools nvidia-cuda-toolkit libibverbs1",
		},
		"stub_folders": {"/usr/local/cuda/lib64/stubs /usr/local/cuda/lib64/stubs/", "/usr/local/cuda/lib64 /opt/stubs-of-mine /stubs/lib"},
		"compat_folders": {
			"/usr/local/cuda/compat /usr/local/cuda-12.4/compat /usr/local/cuda/compat/ /usr/local/cuda/compat/lib.real",
			"/usr/local/cuda/lib64 /opt/compat /usr/local/cuda/compatible /usr/local/cuda/compat/lib",
		},
		"host_folders": {"/usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/x86_64-linux-gnu", "/usr/local/lib /usr/local/nvidia/bin"},
		"without_nccl": {
			"ollama/ollama:0.12 ghcr.io/ggml-org/llama.cpp:server-cuda /usr/bin/nvidia-smi ubuntu:22.04 nvidia/cuda:12.4.1-base-ubuntu22.04",
			"vllm/vllm-openai:v0.11.0 torchrun python3 registry.example.com/ubuntu-train:1 nvidia/cuda:12.4.1-devel-ubuntu22.04",
		},
		"node_services": {
			"nvcr.io/nvidia/k8s/dcgm-exporter:4.2 nvcr.io/nvidia/k8s-device-plugin:v0.17 nvcr.io/nvidia/gpu-feature-discovery:v0.17",
			"pytorch/pytorch:2.8 vllm/vllm-openai:v0.11.0 registry.example.com/train:1",
		},
		"unlimited_memlock": {"rdma/ib", "rdma/hca rdma/ibs1"},
		"other_processors": {
			"vllm-cpu:1 public.ecr.aws/neuron/pytorch:2 vault.habana.ai/gaudi-docker/1.20 vllm/vllm-tpu:nightly",
			"pytorch/pytorch:2.8 vllm/vllm-openai:v0.11.0",
		},
	} {
		for want, words := range map[bool]string{true: list.yes, false: list.no} {
			for word := range strings.FieldsSeq(words) {
				got := slices.ContainsFunc(table[name].([]any), func(p any) bool { return regexp.MustCompile(p.(string)).MatchString(word) })
				expect.Equal(t, want, got, "%s matches %q", name, word)
			}
		}
	}
	eachRow(table["providers"], func(p map[string]any) {
		expect.That(t, (p["image"] != nil || p["beside"] != nil) && p["settings"] != nil, "%s is not recognised, or sets nothing", p["name"])
		for _, list := range []string{"image", "beside", "mounts", "resources"} {
			patterns, _ := p[list].([]any)
			for _, pattern := range patterns {
				_, err := regexp.Compile(pattern.(string))
				expect.That(t, err == nil, "%s: %v", p["name"], err)
			}
		}
		for name, value := range p["settings"].(map[string]any) {
			_, err := regexp.Compile(name + value.(string))
			expect.That(t, err == nil, "%s: %v", p["name"], err)
		}
	})
}

// TestVariables checks that each row names variables that somebody reads, says why and how much they hurt, and where
// that stands, and that no row stands below one that always fits before it.
func TestVariables(t *testing.T) {
	table := Read[struct {
		Rows []struct {
			Names, Text, Lacks, When, Unless, Said, Remedies     []string
			Is                                                   []int
			AtMost                                               *int `json:"at_most"`
			Like, Severity, Confidence, Why, Loss, Level, Source string
			Silent                                               bool
		}
		Known, Misspelt, Losses              map[string]string
		PathLevels                           map[string]string `json:"path_levels"`
		Joint, Levels, Algorithms, Protocols []string
	}]("variables")
	losses, always := map[string]bool{"": true}, map[string]bool{}
	for i, row := range table.Rows {
		expect.Must(t, len(row.Names) != 0, "row %d names no variable", i)
		check := func(is bool, words string) { t.Helper(); expect.That(t, is, "row %d, %v: %s", i, row.Names, words) }
		for _, name := range row.Names {
			check(!strings.HasPrefix(name, "NCCL_") || table.Known[name] != "", "it is no variable that NCCL reads or has read")
			check(row.Source != "" || strings.HasPrefix(name, "NCCL_") || row.Silent, "it is not NCCL's, and the row has no source")
			check(!always[name], "the row never decides: one above always does")
			always[name] = len(row.Is)+len(row.Text)+len(row.Lacks)+len(row.When)+len(row.Unless)+len(row.Said) == 0 && row.AtMost == nil && row.Like == ""
		}
		losses[row.Loss] = true
		if row.Silent {
			check(row.Severity+row.Confidence+row.Why == "" && len(row.Remedies) == 0, "it is silent, and says something")
			continue
		}
		check(row.Why != "" && row.Severity != "" && row.Confidence != "", "it does not say why, how much, or how surely")
		check(slices.Contains(row.Remedies, "nccl-p2p-level") == slices.Contains(table.Levels, row.Level), "a level without its remedy, or the reverse")
	}
	for name, words := range table.Losses {
		expect.That(t, losses[name] && words != "", "no row has the loss %s, or it says nothing", name)
	}
	expect.Len(t, len(table.Losses)+1, losses, "losses of rows")
	for name, kind := range table.Known {
		expect.That(t, regexp.MustCompile(`^NCCL_[A-Z0-9_]+$`).MatchString(name) && (kind == "number" || kind == "text"), "known: %s: %s", name, kind)
	}
	for i, name := range table.Joint {
		expect.That(t, table.Known[name] != "" && !slices.Contains(table.Joint[:i], name), "joint: %s is not known, or is there twice", name)
	}
	for name, meant := range table.Misspelt {
		expect.That(t, table.Known[name] == "" && table.Known[meant] != "", "misspelt: %s is known, or %s, which it means, is not", name, meant)
	}
	for path, level := range table.PathLevels {
		expect.That(t, slices.Contains(table.Levels, level), "path_levels: %s means the unknown level %s", path, level)
	}
	for _, name := range slices.Concat(table.Algorithms, table.Protocols) {
		expect.That(t, name != "" && name == strings.ToLower(name), "the name %q is not in lower case", name)
	}
}
