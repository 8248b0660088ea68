package text_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// placesIn reads texts, each with its name before it, and gives the places of their facts.
func placesIn(texts ...string) map[string]string {
	r := text.NewReading()
	for i := 0; i+1 < len(texts); i += 2 {
		texttest.Text(r, texts[i], texts[i+1])
	}
	places := map[string]string{}
	for _, o := range r.Finish().Origins {
		places[o.Fact] = fmt.Sprintf("%s:%d", o.Source, o.Line)
	}
	return places
}

const placesQuery = `GPU 00000000:01:00.0
    Product Name                          : NVIDIA A100-PCIE-40GB
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 2
            DRAM Uncorrectable            : 3
        Aggregate
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : 7
    Remapped Rows
        Correctable Error                 : 0
        Uncorrectable Error               : 4
        Pending                           : Yes
`

// TestPlaces checks where facts are put down to.
func TestPlaces(t *testing.T) {
	const port, gpu = "pci.devices[0000:00:01.1]", "gpus.devices[0000:01:00.0]"
	for name, c := range map[string]struct {
		texts []string
		want  map[string]string
	}{
		"a GPU that lspci shows and nvidia-smi describes": {[]string{"lspci.txt", texttest.LspciVerbose, "smi.txt", placesQuery}, map[string]string{
			gpu + ".remapped_rows.pending": "smi.txt:13",
			port + ".acs.control":          "lspci.txt:16", port + ".acs": "lspci.txt:16",
			port + ".link.width": "lspci.txt:13", port + ".link.max_width": "lspci.txt:12",
			gpu + ".name": "smi.txt:2", // In the words of nvidia-smi, not of lspci.
		}},
		"a sum has no line of its own": {[]string{"smi.txt", placesQuery}, map[string]string{gpu + ".ecc.volatile_uncorrected": ""}},
		"of two texts the one whose value counts": {
			[]string{"before.txt", placesQuery, "after.txt", strings.Replace(placesQuery, "-40GB", "-80GB", 1)},
			map[string]string{gpu + ".name": "after.txt:2", gpu + ".remapped_rows.pending": "before.txt:13"},
		},
		"of two limits the lower one": {[]string{"a.txt", "Max locked memory 8388608 8388608 bytes\nx\nMax locked memory 65536 65536 bytes\n"}, map[string]string{"container.memlock_soft_bytes": "a.txt:3"}},
		"a GPU that is known by its index first": {
			[]string{"list.txt", "GPU 0: NVIDIA H200 (UUID: GPU-1)\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n", "q.csv", "index, pci.bus_id, mig.mode.current\n0, 00000000:06:00.0, Disabled\n1, 00000000:07:00.0, Enabled\n"},
			map[string]string{"gpus.devices[0000:07:00.0].uuid": "list.txt:2", "gpus.devices[0000:07:00.0].mig": "q.csv:3", "gpus.devices[GPU1].uuid": ""},
		},
		"what one text switches on and the next one off": {
			[]string{"a.csv", "index, pci.bus_id, mig.mode.current\n0, 00000000:06:00.0, Enabled\n", "b.csv", "index, pci.bus_id, mig.mode.current\n0, 00000000:06:00.0, Disabled\n"},
			map[string]string{"gpus.devices[0000:06:00.0].mig": "b.csv:2"},
		},
		"interfaces of two hosts with one name": {
			[]string{"ip.txt", "root@a:~# ip addr\n2: eth0: <BROADCAST,UP,LOWER_UP> mtu 1500\n    inet 10.0.0.1/24 scope global eth0\nroot@b:~# ip addr\n2: eth0: <BROADCAST,UP,LOWER_UP> mtu 9000\n    inet 10.0.0.2/24 scope global eth0\n"},
			map[string]string{"nics.interfaces[eth0].mtu": "", "nics.interfaces[eth0].addresses": ""},
		},
	} {
		got := placesIn(c.texts...)
		for fact, want := range c.want {
			expect.Equal(t, want, got[fact], "%s: %s is put down to", name, fact)
		}
	}
}

// TestLaunchPlaces checks the lines of a launch's parts in each form of one.
func TestLaunchPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want map[string]int
	}{
		"a pod": {
			"apiVersion: v1\nkind: Pod\nspec:\n  hostIPC: true\n  containers:\n  - name: c\n    image: i\n    env:\n    - name: NCCL_DEBUG\n      value: INFO\n    resources:\n      limits:\n        nvidia.com/gpu: 2\n    volumeMounts:\n    - {name: s, mountPath: /dev/shm}\n  volumes:\n  - name: s\n    emptyDir:\n      medium: Memory\n      sizeLimit: 1Gi\n",
			map[string]int{"ipc": 4, "variables[NCCL_DEBUG]": 9, "resources[nvidia.com/gpu]": 13, "shm_bytes": 20},
		},
		"a service": {
			"services:\n  s:\n    image: i\n    environment:\n      A: b\n      NCCL_DEBUG: INFO\n    shm_size: 1g\n",
			map[string]int{"variables[A]": 5, "variables[NCCL_DEBUG]": 6, "shm_bytes": 7},
		},
		"a command over several lines": {
			"docker run --gpus all \\\n  -e NCCL_DEBUG_SUBSYS=INIT \\\n  -e NCCL_DEBUG=INFO \\\n  --shm-size=1g img\n",
			map[string]int{"variables[NCCL_DEBUG_SUBSYS]": 2, "variables[NCCL_DEBUG]": 3, "shm_bytes": 4},
		},
		"a command in one line": {"docker run --gpus all -e NCCL_DEBUG=INFO --shm-size=1g img\n", nil},
	} {
		f := texttest.Parse("x.txt", c.text)
		expect.Must(t, len(f.Launches) == 1, "%s: %d launches", name, len(f.Launches))
		got := f.Launches[0].Lines
		for part, line := range c.want {
			expect.Equal(t, line, got[part], "%s: %s is in line", name, part)
		}
		expect.That(t, c.want != nil || got == nil, "%s: got %v", name, got)
		for _, v := range f.Env.Variables {
			want := max(c.want["variables["+v.Name+"]"], 1)
			expect.That(t, v.Line == want, "%s: the variable %s is in line %d, want %d", name, v.Name, v.Line, want)
		}
	}
}
