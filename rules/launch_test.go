package rules

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// openCase is a file that describes a job, with fields whose values are marked: "<<KEY>>".
type openCase struct {
	name, text string
	// fields have, by key, what differs from openFields.
	fields map[string]openField
	// references are how such a file refers to a value that it does not show.
	references []string
}

// openField is a good value of a field, a bad one, if the field alone can be at fault, and the rules that read it.
type openField struct{ good, bad, rules string }

// openFields are the fields of all cases, by key; a case names those that differ.
var openFields = map[string]openField{
	"ranks": {"8", "16", "job-gpus job-shm"}, "shm": {"16g", "64m", "job-shm"}, "ipc": {"private", "", "job-shm"}, "network": {"host", "bridge", "job-network"},
	"privileged": {"false", "", "job-memlock job-devices"}, "user": {"root", "", "job-memlock"}, "cap": {"SYS_NICE", "", "job-memlock"}, "memlock": {"-1", "65536", "job-memlock"},
	"device": {"/dev/fuse", "", "job-devices job-memlock"}, "mount": {"/data", "", "job-shm"}, "ifname": {"ens1", "", "job-network job-variables"},
	"net": {"IB", "Socket", "job-variables job-devices"}, "capabilities": {"all", "utility", "job-runtime"}, "p2p": {"0", "1", "job-variables"},
	"path": {"/a", "/usr/local/cuda/lib64/stubs", "job-libraries"}, "visible": {"0,1,2,3,4,5,6,7", "0", "job-gpus"}, "gpus": {"8", "4", "job-gpus job-shm job-devices"},
}

// openCases are the kinds of file. Each of them is good with the good values.
var openCases = []openCase{
	{
		name: "compose.yaml",
		text: `services:
  train:
    image: train:1
    command: torchrun --nproc-per-node=<<ranks>> train.py
    shm_size: <<shm>>
    ipc: <<ipc>>
    network_mode: <<network>>
    privileged: <<privileged>>
    user: <<user>>
    cap_add: ["<<cap>>"]
    ulimits: {memlock: <<memlock>>}
    devices: ["/dev/infiniband", "<<device>>"]
    volumes: ["/data:<<mount>>"]
    environment:
      NCCL_SOCKET_IFNAME: <<ifname>>
      NCCL_NET: <<net>>
      NVIDIA_DRIVER_CAPABILITIES: <<capabilities>>
      NCCL_P2P_DISABLE: <<p2p>>
      LD_LIBRARY_PATH: <<path>>
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: <<gpus>>
              capabilities: [gpu]
`,
		references: []string{"${X}", "$X", "${X:?no}", "'{{ .Values.x }}'"},
	},
	{
		name: "run.sh",
		text: `#!/bin/bash
docker run --gpus <<gpus>> --shm-size <<shm>> --ipc <<ipc>> --network <<network>> --ulimit memlock=<<memlock>> --cap-add <<cap>> --user <<user>> \
  --device /dev/infiniband --device <<device>> -v /data:<<mount>> -e NCCL_NET=<<net>> -e NCCL_SOCKET_IFNAME=<<ifname>> -e NCCL_P2P_DISABLE=<<p2p>> \
  -e NVIDIA_DRIVER_CAPABILITIES=<<capabilities>> -e LD_LIBRARY_PATH=<<path>> train:1 torchrun --nproc-per-node=<<ranks>> train.py
`,
		references: []string{"$X", `"$X"`, "${X}", "$(x)", "`x`", "{{x}}"},
	},
	{
		name: "pod.yaml",
		text: `apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  hostIPC: <<ipc>>
  hostNetwork: <<network>>
  containers:
  - name: train
    image: train:1
    command: ["torchrun", "--nproc-per-node=<<ranks>>", "train.py"]
    securityContext:
      privileged: <<privileged>>
      runAsUser: <<user>>
      capabilities:
        add: ["IPC_LOCK", "<<cap>>"]
    env:
    - name: NCCL_SOCKET_IFNAME
      value: "<<ifname>>"
    - name: NCCL_NET
      value: "<<net>>"
    - name: NCCL_P2P_DISABLE
      value: "<<p2p>>"
    - name: CUDA_VISIBLE_DEVICES
      value: "<<visible>>"
    resources:
      limits:
        nvidia.com/gpu: <<gpus>>
        rdma/hca: <<hca>>
    volumeMounts:
    - name: shm
      mountPath: /dev/shm
  volumes:
  - name: shm
    emptyDir: {medium: "<<medium>>", sizeLimit: <<shm>>}
`,
		fields: map[string]openField{
			"shm": {"16Gi", "64Mi", "job-shm"}, "ipc": {"false", "", "job-shm"}, "network": {"true", "", "job-network"}, "user": {"0", "1000", "job-memlock"},
			"gpus": {"8", "16", "job-gpus job-shm job-devices"}, "hca": {"1", "", "job-memlock job-devices"}, "medium": {"Memory", "", "job-shm"},
		},
		references: []string{"${X}", "$(X)", "{{ .Values.x }}"},
	},
	{
		name: "job.sbatch",
		text: `#!/bin/bash
#SBATCH --nodes=<<nodes>>
#SBATCH --gpus-per-node=<<gpus>>
#SBATCH --ntasks-per-node=<<tasks>>
ulimit -l <<memlock>>
export NCCL_P2P_DISABLE=<<p2p>>
export CUDA_VISIBLE_DEVICES=<<visible>>
export LD_LIBRARY_PATH=<<path>>
srun torchrun --nnodes=<<nnodes>> --nproc-per-node=<<ranks>> train.py
`,
		fields: map[string]openField{
			"nodes": {"2", "1", "job-nodes"}, "gpus": {"8", "4", "job-gpus"}, "tasks": {"1", "8", "job-nodes"}, "memlock": {"unlimited", "64", "job-memlock"},
			"nnodes": {"2", "4", "job-nodes"}, "ranks": {"8", "16", "job-gpus"},
		},
		references: []string{"$X", `"$X"`, "${X}", "{{x}}"},
	},
	{
		name:       "mpi.sh",
		text:       "#!/bin/bash\nmpirun -H <<hosts>> -npernode <<ranks>> -x NCCL_P2P_DISABLE=<<p2p>> -x CUDA_VISIBLE_DEVICES=<<visible>> python train.py\n",
		fields:     map[string]openField{"hosts": {"a,b", "", "job-nodes"}, "ranks": {"8", "16", "job-gpus"}},
		references: []string{"$X", `"$X"`, "${X}", "{{x}}"},
	},
	{
		name:       "Dockerfile",
		text:       "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\nRUN make\nENV NCCL_P2P_DISABLE=<<p2p>>\nENV LD_LIBRARY_PATH=<<path>>\nENV NVIDIA_DRIVER_CAPABILITIES <<capabilities>>\n",
		fields:     map[string]openField{"capabilities": {"all", "compute", "job-runtime"}},
		references: []string{"$X", `"$X"`, "${X}", "{{x}}"},
	},
}

// all are the fields whose places are in the text.
func (c *openCase) all() map[string]openField {
	all := maps.Clone(openFields)
	maps.Copy(all, c.fields)
	maps.DeleteFunc(all, func(key string, _ openField) bool { return !strings.Contains(c.text, "<<"+key+">>") })
	return all
}

func (c *openCase) fill(values map[string]string) string {
	text := c.text
	for key, field := range c.all() {
		value, ok := values[key]
		if !ok {
			value = field.good
		}
		text = strings.ReplaceAll(text, "<<"+key+">>", value)
	}
	return text
}

// TestOpenValues checks that a value of a launch file that the file does not show leads to no finding and to no pass of
// a rule that reads it, for each field of each kind of file, and that the same field is judged where it has a value.
func TestOpenValues(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	s := compiledSet(t)
	for _, c := range openCases {
		judge := func(t *testing.T, values map[string]string) (*Result, string) {
			t.Helper()
			text := c.fill(values)
			return judgedUnits(t, s, texttest.Parse(c.name, text)), text
		}
		t.Run(c.name, func(t *testing.T) {
			v, text := judge(t, nil)
			expect.Must(t, len(v.Skipped) == 0 && len(graveOf(v)) == 0, "%s\nskipped %v, findings %v", text, v.Skipped, graveOf(v))
			for _, key := range slices.Sorted(maps.Keys(c.all())) {
				field := c.all()[key]
				if field.bad != "" {
					v, text := judge(t, map[string]string{key: field.bad})
					expect.That(t, len(v.Findings) != 0, "%s\nno finding with the bad value of %s", text, key)
				}
				for _, reference := range c.references {
					v, text := judge(t, map[string]string{key: reference})
					expect.Len(t, 0, v.Findings, "%s\n%s: findings", text, key)
					for rule := range strings.FieldsSeq(field.rules) {
						expect.That(t, slices.ContainsFunc(v.Skipped, func(s Skipped) bool { return s.Rule == rule }), "%s\n%s: %s is not skipped", text, key, rule)
					}
				}
			}
		})
	}
}

// TestVariablesElsewhere checks that variables which another file holds leave open what the rules
// about variables say, without a finding, and that what the description states is still judged.
func TestVariablesElsewhere(t *testing.T) {
	s := compiledSet(t)
	for name, text := range map[string]string{
		"compose.yaml": "services:\n  a:\n    image: x:1\n    shm_size: 16g\n    gpus: all\n    env_file: job.env\n    environment: {NCCL_P2P_DISABLE: '%d'}\n",
		"list.yaml":    "services:\n  a:\n    image: x:1\n    shm_size: 16g\n    gpus: all\n    env_file: [{path: job.env, required: false}]\n    environment: {NCCL_P2P_DISABLE: '%d'}\n",
		"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: x:1\n    envFrom: [{configMapRef: {name: nccl}}]\n" +
			"    env: [{name: NCCL_P2P_DISABLE, value: '%d'}]\n    resources: {limits: {nvidia.com/gpu: 8}}\n" +
			"    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n  volumes: [{name: shm, emptyDir: {medium: Memory}}]\n",
		"run.sh": "docker run --gpus all --shm-size 16g --env-file job.env -e NCCL_P2P_DISABLE=%d x:1 torchrun --nproc-per-node=8 train.py\n",
	} {
		for disabled := range 2 {
			v := judgedUnits(t, s, texttest.Parse(name, fmt.Sprintf(text, disabled)))
			found := graveOf(v)
			expect.That(t, (len(found) > 0) == (disabled == 1), "%s, NCCL_P2P_DISABLE=%d: %v", name, disabled, found)
			skipped := slices.ContainsFunc(v.Skipped, func(s Skipped) bool { return s.Rule == "job-variables" })
			expect.That(t, !slices.Contains(v.Passed, "job-variables") && (skipped || disabled == 1), "%s, NCCL_P2P_DISABLE=%d: passed %v, skipped %v", name, disabled, v.Passed, v.Skipped)
		}
	}
}

func judgedUnits(t *testing.T, s *Set, f *facts.Facts) *Result {
	t.Helper()
	var all Result
	for _, u := range unitsOf(f) {
		v := expect.Value(s.Evaluate(t.Context(), u, Options{Profile: Launch}))(t)
		all.Findings = append(all.Findings, v.Findings...)
		all.Skipped = append(all.Skipped, v.Skipped...)
		all.Passed = append(all.Passed, v.Passed...)
	}
	return &all
}

// unitsOf are the facts of each unit of a text, as the program judges them: the launches with the same number.
func unitsOf(f *facts.Facts) []*facts.Facts {
	var all []*facts.Facts
	at := map[int]*facts.Facts{}
	for _, l := range f.Launches {
		if at[l.Unit] == nil {
			u := *f
			u.Launches = nil
			at[l.Unit] = &u
			all = append(all, &u)
		}
		at[l.Unit].Launches = append(at[l.Unit].Launches, l)
	}
	return all
}

// launchUnits are the units of fixtures/launches, and of each open case with all that is bad, by file and number.
func launchUnits(t *testing.T) map[string]*facts.Facts {
	t.Helper()
	files, err := filepath.Glob("../fixtures/launches/*.txtar")
	expect.Must(t, err == nil && len(files) >= 30, "%d cases: %v", len(files), err)
	all := map[string]*facts.Facts{}
	for _, c := range openCases {
		bad := map[string]string{}
		for key, field := range c.all() {
			bad[key] = field.bad
		}
		for i, u := range unitsOf(texttest.Parse(c.name, c.fill(bad))) {
			all[fmt.Sprintf("%s, all bad/%d", c.name, i)] = u
		}
	}
	for _, file := range files {
		a := expect.Value(txtar.ParseFile(file))(t)
		for _, f := range a.Files {
			for i, u := range unitsOf(texttest.Parse(f.Name, string(f.Data))) {
				all[fmt.Sprintf("%s/%s/%d", filepath.Base(file), f.Name, i)] = u
			}
		}
	}
	return all
}

// foundIn are the rules with findings about a unit.
func foundIn(t *testing.T, s *Set, f *facts.Facts) []string {
	t.Helper()
	return firedIn(expect.Value(s.Evaluate(t.Context(), f, Options{Profile: Launch}))(t))
}

// TestUnknownParts checks for each part of each launch that no finding appears where the file
// does not show its value; that the order of launches means nothing; and that a unit which uses
// no GPU has no finding but that Kubernetes refuses it.
func TestUnknownParts(t *testing.T) {
	expect.NotShort(t, "nothing in it runs side by side")
	s := compiledSet(t)
	tried := 0
	for name, unit := range launchUnits(t) {
		before := foundIn(t, s, unit)
		for i, l := range unit.Launches {
			for _, part := range slices.Sorted(maps.Keys(partsOf(t, l))) {
				tried++
				v := expect.Value(s.Evaluate(t.Context(), without(t, unit, i, part), Options{Profile: Launch}))(t)
				for _, f := range v.Findings {
					expect.That(t, slices.Contains(before, f.Rule), "%s: without %s of launch %d also %s: %s", name, part, i, f.Rule, f.Message)
				}
			}
		}
		reversed := *unit
		reversed.Launches = slices.Clone(unit.Launches)
		slices.Reverse(reversed.Launches)
		expect.NoDiff(t, before, foundIn(t, s, &reversed), "%s", name)
		idle := *unit
		idle.Launches = slices.Clone(unit.Launches)
		for i := range idle.Launches {
			idle.Launches[i].CPUOnly = true
		}
		found := slices.DeleteFunc(foundIn(t, s, &idle), func(rule string) bool { return rule == "manifest-refused" })
		expect.That(t, len(found) == 0 || idle.Launches[0].Kind == "slurm-node", "%s: without a GPU: %v", name, found)
	}
	expect.AtLeast(t, 250, tried, "parts were tried")
}

// described are the fields of a launch that are no parts of it.
var described = []string{"kind", "object", "unit", "name", "image", "command", "source", "line", "lines", "unknown", "ignored", "gpu_vendor", "shm_mounted", "cpu_only"}

// partsOf are the parts of a launch that have a value, its variables each.
func partsOf(t *testing.T, l facts.Launch) map[string]any {
	t.Helper()
	parts := reread[map[string]any](t, l)
	maps.DeleteFunc(parts, func(part string, _ any) bool { return slices.Contains(described, part) })
	for name := range l.Variables {
		parts["variables["+name+"]"] = nil
	}
	return parts
}

// without are facts in which the file does not show a part of a launch.
func without(t *testing.T, f *facts.Facts, i int, part string) *facts.Facts {
	t.Helper()
	changed := *f
	changed.Launches = slices.Clone(f.Launches)
	l := &changed.Launches[i]
	l.Unknown = maps.Clone(l.Unknown)
	if l.Unknown == nil {
		l.Unknown = map[string]string{}
	}
	l.Unknown[part] = "${X}"
	l.Variables = maps.Clone(l.Variables)
	if name, ok := strings.CutPrefix(part, "variables["); ok {
		delete(l.Variables, strings.TrimSuffix(name, "]"))
		return &changed
	}
	fields := reflect.ValueOf(l).Elem()
	for j := range fields.NumField() {
		if tag, _, _ := strings.Cut(fields.Type().Field(j).Tag.Get("json"), ","); tag == part {
			fields.Field(j).SetZero()
		}
	}
	return &changed
}

// graveOf are the findings of medium severity or above.
func graveOf(v *Result) []string {
	var all []string
	for _, f := range v.Findings {
		if f.Severity.Rank() <= Medium.Rank() {
			all = append(all, fmt.Sprint(f.Rule, ": ", f.Message))
		}
	}
	return all
}
