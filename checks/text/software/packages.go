package software

import (
	"bytes"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/internal/pattern"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Versions of software, as package managers and tools print them.

// packagesPython are the Python packages whose version affects how GPUs
// communicate: the libraries, what brings them along, and the frameworks. A
// name is as the package index writes it, in lower case with hyphens.
var packagesPython = lazy.New(`^(?:nvidia-[a-z0-9-]*(?:nccl|nvshmem|cuda-runtime|cudnn|cublas|nvjitlink|cufile)[a-z0-9-]*|` +
	`torch|torchvision|torchaudio|pytorch|pytorch-cuda|pytorch-mutex|pytorch-lightning|lightning|pytorch-triton-rocm|pytorch-triton|triton|triton-rocm|` +
	`vllm|sglang|sgl-kernel|sgl-kernel-cu[0-9]+|lmdeploy|tensorrt|tensorrt-llm|deepspeed|accelerate|transformers|trl|peft|megatron-core|nemo-toolkit|transformer-engine|` +
	`flash-attn|flashinfer-python|xformers|apex|bitsandbytes|ray|horovod|jax|jaxlib|jax-cuda[0-9]+-plugin|jax-cuda[0-9]+-pjrt|tensorflow|tensorflow-gpu|tensorflow-rocm|` +
	`cupy|cupy-cuda[0-9a-z]+|mpi4py|nvshmem4py-cu[0-9]+|nccl4py|nixl|nixl-cu[0-9]+|mooncake-transfer-engine|deep-ep|deep-gemm|aiter|amd-aiter|amdsmi|rocm|rocm-sdk-core|rocm-sdk|mori|` +
	`nccl|cudatoolkit|cuda-runtime|cuda-version|cuda-cudart|cudnn|openmpi|ucx|libfabric)$`)

// packagesSystem are packages of distributions, likewise.
var packagesSystem = lazy.New(`(?i)nccl|rccl|nvshmem|nvidia|cuda(?:-|$)|cuda-(?:drivers|runtime|compat|toolkit|cudart)|fabricmanager|nvlsm|nvlink|imex|datacenter-gpu-manager|` +
	`rocm|hip-runtime|hsa-rocr|amdgpu|amdsmi|amdrocm|miopen|libfabric|\befa\b|efa-|ofed|mlnx|doca|rdma-core|ibverbs|peer-?mem|peermem|gdrcopy|gdrdrv|openmpi|ucx|linux-image-[0-9]`)

// packageVersion is what a version looks like: it begins with a digit, or with
// an epoch.
const packageVersion = `[0-9][\w.+:~-]*`

var (
	// packageFrozen is a line of pip freeze or of a requirements file, with the
	// mark of PyTorch's collect_env before it: "[pip3] torch==2.4.0".
	packageFrozen = lazy.New(`^\s*(?:\[(pip3?|conda)\] +)?([A-Za-z][\w.-]*)==(` + packageVersion + `)(?:\s*[;#].*)?\s*$`)
	// packageListed is a line of a table of pip, uv or conda: a name and a
	// version, in conda's a build and a channel, in pip's a folder of sources
	// after them.
	packageListed = lazy.New(`^\s*(?:\[(conda|pip3?)\] +)?([A-Za-z][\w.-]*)( {2,}| *\t+)(` + packageVersion + `)(?:\s+\S+){0,3}\s*$`)
	// packageShown is a pair of lines of pip show, joined by a blank.
	packageShownName    = lazy.New(`^Name: ([A-Za-z][\w.-]*)\s*$`)
	packageShownVersion = lazy.New(`^Version: (` + packageVersion + `)\s*$`)
	// packageDpkg is a line of dpkg -l: the wanted and the real state, the
	// name, with the architecture where two are installed, and the version.
	packageDpkg = lazy.New(`^\s*[uihrp][nicufhwt] +([a-z0-9][a-z0-9+.-]+)(?::[a-z0-9]+)? +(` + packageVersion + `)(?:\s|$)`)
	// packageApt is a line of apt list: "libnccl2/now 2.27.7-1+cuda12.9 amd64
	// [installed,local]".
	packageApt = lazy.New(`^\s*([a-z0-9][a-z0-9+.-]+)/\S+ (` + packageVersion + `) \S+ \[installed[^\]]*\]\s*$`)
	// packageRPM is a line of rpm -qa: name-version-release.architecture.
	packageRPM = lazy.New(`^\s*([A-Za-z][\w+.-]*?)-([0-9][\w.+~^]*-[\w.+~^]+)\.(?:x86_64|aarch64|noarch|ppc64le|i686)\s*$`)
	// packageImage is the tag of an image that says which version of a
	// framework it holds.
	packageImage = lazy.New(`\b(vllm/vllm-openai|lmsysorg/sglang|rocm/vllm)[a-z-]*:v([0-9]+\.[0-9]+\.[0-9]+[\w.]*)`)
)

// packageName writes a Python package's name as the index does (PEP 503).
func packageName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
}

// packagesFrozen takes lines "name==version", wherever they stand.
var packagesFrozen = &parse.Kind{
	Name: "pip-freeze", Title: "Python packages, from pip freeze", Command: "pip freeze", Gives: []string{"software"},
	Anchors: []string{"=="},
	Line: func(s *parse.Sink, l parse.Line) bool {
		m := packageFrozen.FindStringSubmatch(l.Text)
		if m == nil || !packagesPython.MatchString(packageName(m[2])) {
			return false
		}
		packageNote(s, packageName(m[2]), m[3], m[1], l)
		return true
	},
}

// packageNote notes a Python package; manager is "conda" or nothing.
func packageNote(s *parse.Sink, name, version, manager string, l parse.Line) {
	if manager != "conda" {
		manager = "pip"
	}
	s.Package(name, version, "", manager, l)
}

// packagesTable takes the tables of pip list, uv pip list and conda list.
// Without a prompt before it, a table is recognized by a name with its column of
// spaces. This also matches a single line, because people filter tables with
// grep.
var packagesTable = &parse.Kind{
	Name: "pip-list", Title: "Python packages, from pip list or conda list", Command: "pip list", Gives: []string{"software"},
	Anchors: []string{
		"torch  ", "torch\t", "vllm  ", "vllm\t", "nccl", "sglang  ", "deepspeed  ", "accelerate  ", "transformers  ", "triton  ",
		"jaxlib  ", "tensorflow  ", "megatron-core  ", "nvshmem", "cuda-runtime", "cudatoolkit", "flash-attn  ", "flash_attn  ", "xformers  ",
		"horovod  ", "ray  ", "lightning  ", "cuda-version", "[conda] ",
	},
	Prefilter: func(line []byte) parse.Relevance {
		// packageListed has two blanks or a tab behind the name.
		if bytes.IndexByte(line, '\t') >= 0 || bytes.Contains(line, []byte("  ")) {
			return parse.Relevant
		}
		return parse.Irrelevant
	},
	Line: func(s *parse.Sink, l parse.Line) bool {
		m := packageListed.FindStringSubmatch(l.Text)
		if m == nil || !packagesPython.MatchString(packageName(m[2])) {
			return false
		}
		manager := m[1]
		if fields := strings.Fields(l.Text); len(fields) >= 3 && fields[0] == m[2] && packageBuild.MatchString(fields[2]) {
			manager = "conda"
		}
		packageNote(s, packageName(m[2]), m[4], manager, l)
		return true
	},
}

// packageBuild is the third column of conda list: a build ends with its number
// ("hca7485f_0", "py3.10_cuda11.8_cudnn8.7.0_0", "pypi_0").
var packageBuild = lazy.New(`_[0-9]+$`)

// packagesShown takes what pip show prints of one package.
var packagesShown = &parse.Kind{
	Name: "pip-show", Title: "a Python package, from pip show", Command: "pip show torch", Gives: []string{"software"},
	Anchors: []string{"Name: "},
	Begins: func(in *parse.Lines) bool {
		ahead := in.Ahead(2)
		if len(ahead) < 2 {
			return false
		}
		m := packageShownName.FindStringSubmatch(ahead[0].Text)
		return m != nil && packagesPython.MatchString(packageName(m[1])) && packageShownVersion.MatchString(ahead[1].Text)
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		name, _ := in.Next()
		version, ok := in.Next()
		m, v := packageShownName.FindStringSubmatch(name.Text), packageShownVersion.FindStringSubmatch(version.Text)
		if ok && m != nil && v != nil {
			packageNote(s, packageName(m[1]), v[1], "", version)
		}
	},
}

// packagesSystemLists takes the lines of dpkg -l, apt list and rpm -qa.
var packagesSystemLists = &parse.Kind{
	Name: "packages", Title: "system packages, from dpkg -l, apt list or rpm -qa", Command: "dpkg -l", Gives: []string{"software"},
	Anchors: []string{
		"ii  ", "ii ", "hi  ", "rc  ", "iU  ", "iF  ", "[installed", ".x86_64", ".aarch64", ".noarch", ".ppc64le",
	},
	Line: func(s *parse.Sink, l parse.Line) bool {
		name, version, manager := "", "", "dpkg"
		if m := packageDpkg.FindStringSubmatch(l.Text); m != nil {
			state := strings.TrimSpace(l.Text)[:2]
			if state == "rc" || state[1] == 'n' { // Only its configuration is left, or nothing.
				return false
			}
			name, version = m[1], m[2]
		} else if m := packageApt.FindStringSubmatch(l.Text); m != nil {
			name, version = m[1], m[2]
		} else if m := packageRPM.FindStringSubmatch(l.Text); m != nil {
			name, version, manager = m[1], m[2], "rpm"
		}
		if name == "" || !packagesSystem.MatchString(name) {
			return false
		}
		s.Package(name, version, "", manager, l)
		return true
	},
}

// packageUpgraded is one package of the line "Upgrade:" or "Install:" of
// /var/log/apt/history.log, with the version before and the one after, and
// packageLogged a line of /var/log/dpkg.log.
var (
	packageUpgraded = lazy.New(`(?:^(?:Upgrade|Install): |, )([a-z0-9][a-z0-9+.-]+):[a-z0-9]+ \((?:` + packageVersion + `, )?(` + packageVersion + `)(?:, automatic)?\)`)
	packageLogged   = lazy.New(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?:upgrade|install) ([a-z0-9][a-z0-9+.-]+):[a-z0-9]+ (?:<none>|` + packageVersion + `) (` + packageVersion + `)\s*$`)
)

// packagesHistory takes what apt and dpkg write of what they installed. An
// unattended update of the driver shows there.
var packagesHistory = &parse.Kind{
	Name: "apt-history", Title: "installed packages, from apt's history or dpkg's log", Command: "grep -h nvidia /var/log/apt/history.log", Gives: []string{"software"},
	Anchors: []string{"Upgrade: ", "Install: ", " upgrade ", " install "},
	Line: func(s *parse.Sink, l parse.Line) bool {
		found := packageUpgraded.FindAllStringSubmatch(l.Text, parse.MaxEntries)
		if m := packageLogged.FindStringSubmatch(l.Text); m != nil {
			found = append(found, m)
		}
		taken := false
		for _, m := range found {
			if packagesSystem.MatchString(m[1]) {
				s.Package(m[1], m[2], "", "apt-history", l)
				taken = true
			}
		}
		return taken
	},
}

// packagesImages takes the version from the tag of a framework's image.
var packagesImages = &parse.Kind{
	Files: true,
	Name:  "image-tag", Title: "a framework's image", Gives: []string{"software"},
	Anchors: []string{"vllm/vllm-openai", "lmsysorg/sglang", "rocm/vllm"},
	Line: func(s *parse.Sink, l parse.Line) bool {
		m := packageImage.FindStringSubmatch(l.Text)
		if m == nil {
			return false
		}
		name := "vllm"
		if strings.HasPrefix(m[1], "lmsysorg/") {
			name = "sglang"
		}
		s.Package(name, m[2], "", "image", l)
		return true
	},
}

// packageStatement is a line by which a program or a tool tells a version.
type packageStatement struct {
	name, manager string
	like          *pattern.Pattern
}

// packageStatements are such lines. The first group is the version.
var packageStatements = []packageStatement{
	// vLLM: vllm/distributed/device_communicators/pynccl.py, vllm/entrypoints,
	// vllm/v1/engine/core.py, vllm/engine/llm_engine.py.
	{"nccl", "log", pattern.New(`\b(?:vLLM|sglang|SGLang|LightLLM) is using nccl==([0-9][\w.+-]*)`)},
	{"vllm", "log", pattern.New(`\bvLLM API server version v?([0-9][\w.+-]*)`)},
	{"vllm", "log", pattern.New(`Initializing an? (?:V[01] )?LLM engine \(v([0-9][\w.+-]*)\)`)},
	{"vllm", "collect_env", pattern.New(`^\s*vLLM Version\s*: ([0-9][\w.+-]*)`)},
	// PyTorch: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and Utils.
	{"nccl", "log", pattern.New(`(?:ProcessGroupNCCL|NCCLUtils|NCCLComm|nccl)\.[ch]pp:\d+,? .*NCCL version ([0-9]+\.[0-9]+\.[0-9]+)`)},
	{"nccl", "log", pattern.New(`\bProcessGroupNCCL[^,]{0,60} NCCL version:? ([0-9]+\.[0-9]+\.[0-9]+)`)},
	{"torch", "log", pattern.New(`^.{0,60}\bPyTorch version:? ([0-9][\w.+-]*) available`)},
	// nvcc, lsb_release's neighbours, NVIDIA's and Mellanox' tools.
	{"cuda-toolkit", "nvcc", pattern.New(`Cuda compilation tools, release [0-9.]+, V([0-9.]+)`)},
	{"ofed", "ofed_info", pattern.New(`^\s*(?:MLNX_OFED_LINUX|OFED-internal|DOCA-OFED|DOCA_Host|OFED)-([0-9][\w.-]*):?\s*$`)},
	{"nvidia-driver", "modinfo", pattern.New(`NVRM version: NVIDIA UNIX.* Kernel Module(?: for \w+)?  ([0-9]+\.[0-9.]+)`)},
	// DeepSpeed: deepspeed/env_report.py, names padded with full stops.
	{"torch", "ds_report", pattern.New(`^torch version \.{3,} ([0-9][\w.+-]*)`)},
	{"cuda-runtime", "ds_report", pattern.New(`^torch cuda version \.{3,} ([0-9][\w.]*)`)},
	{"hip", "ds_report", pattern.New(`^torch hip version \.{3,} ([0-9][\w.+-]*)`)},
	{"deepspeed", "ds_report", pattern.New(`^deepspeed info \.{3,} ([0-9][\w.+-]*)`)},
	// DeepSpeed and Megatron at their start.
	{"deepspeed", "log", pattern.New(`DeepSpeed info: version=([0-9][\w.+-]*)`)},
	{"torch", "log", pattern.New(`\[INFO\].* torch version = ([0-9][\w.+-]*)`)},
}

// packagesStated takes the lines by which programs tell versions.
var packagesStated = &parse.Kind{
	Name: "version", Title: "versions that programs state", Gives: []string{"software"},
	Anchors: []string{
		"is using nccl==", "vLLM API server version", "LLM engine (v", "vLLM Version", "NCCL version", " available.",
		"Cuda compilation tools", "MLNX_OFED_LINUX-", "OFED-", "DOCA_Host-", "NVRM version: ", "torch version .", "torch cuda version .", "torch hip version .",
		"deepspeed info .", "DeepSpeed info: version=", "torch version = ",
	},
	Line: func(s *parse.Sink, l parse.Line) bool {
		for _, st := range packageStatements {
			if m := st.like.Find(l.Text); m != nil {
				if version := strings.TrimRight(m[1], "."); version != "" {
					s.Package(st.name, version, "", st.manager, l)
					return true
				}
			}
		}
		return false
	},
}

// packageCommand is a command whose output is a version and nothing else.
type packageCommand struct {
	// holds is a part of the command line.
	holds         string
	name, manager string
	like          *lazy.Regexp
}

// packageBare is a version alone in its line, also in quotes or as Python
// prints a tuple: "(2, 20, 5)".
var packageBare = lazy.New(`^\s*['"(]?([0-9]+(?:\.|, )[0-9]+[\w.+ ,-]*?)['")]?:?\s*$`)

var packageCommands = []packageCommand{
	{"ofed_info", "ofed", "ofed_info", packageBare},
	{"/sys/module/amdgpu/version", "amdgpu", "modinfo", packageBare},
	{"/sys/module/nvidia_peermem/version", "nvidia-peermem", "modinfo", packageBare},
	{"/sys/module/nv_peer_mem/version", "nv-peer-mem", "modinfo", packageBare},
	{"nccl.version()", "nccl", "torch", packageBare},
	{"torch.version.cuda", "cuda-runtime", "torch", packageBare},
	{"torch.version.hip", "hip", "torch", packageBare},
	{"torch.__version__", "torch", "torch", packageBare},
	{"vllm.__version__", "vllm", "python", packageBare},
	{"sglang.__version__", "sglang", "python", packageBare},
	{"hipconfig --version", "hip", "hipconfig", packageBare},
	{"hipconfig -v", "hip", "hipconfig", packageBare},
}

// packagesPrinted takes what such a command prints.
var packagesPrinted = &parse.Kind{
	Name: "version-command", Title: "a version that a command printed", Command: "python -c 'import torch; print(torch.cuda.nccl.version())'", Gives: []string{"software"},
	Commands: []string{"cat", "cut", "head", "awk", "ofed_info", "python", "python3", "hipconfig"},
	Begins: func(in *parse.Lines) bool {
		l, ok := in.Peek()
		return ok && packageCommandOf(in.Prompt().Command) != nil && packageBare.MatchString(l.Text)
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		command := packageCommandOf(in.Prompt().Command)
		l, _ := in.Next()
		if m := command.like.FindStringSubmatch(l.Text); m != nil {
			s.Package(command.name, strings.ReplaceAll(strings.TrimSpace(m[1]), ", ", "."), "", command.manager, l)
		}
	},
}

func packageCommandOf(line string) *packageCommand {
	for i, c := range packageCommands {
		if strings.Contains(line, c.holds) {
			return &packageCommands[i]
		}
	}
	return nil
}
