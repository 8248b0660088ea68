package host

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Versions of software, as package managers and tools print them.

// packagesPython are the Python packages whose version a rule asks for, in lower case with hyphens, as the package index has them.
var packagesPython = lazy.New(`^(?:nvidia-(?:nccl|cuda-runtime|cublas)(?:-cu[0-9]+)?|vllm-nccl-cu[0-9]+|nccl|cuda-runtime|torch|vllm|sglang|rocm)$`)

// packagesSystem are packages of distributions, likewise.
var packagesSystem = lazy.New(`^(?:libnccl2?|rccl|rocm)$`)

// packageVersion is what a version looks like: it begins with a digit, or with
// an epoch. pythonName is the name of a package of Python, and pythonListed one with its version in the next column.
const (
	packageVersion = `([0-9][\w.+:~-]*)`
	pythonName     = `([A-Za-z][\w.-]*)`
	pythonListed   = pythonName + `(?: {2,}| *\t+)` + packageVersion
)

// form is a line that tells the version of a package, which it names if among says which packages matter.
type form struct {
	name, manager string
	among         *lazy.Regexp
	// like has the groups of the name, if there is one, and of the version.
	like *lazy.Regexp
}

// take reads a line in the first of some forms that it has.
func take(forms ...form) func(s *parse.Sink, l parse.Line) bool {
	return func(s *parse.Sink, l parse.Line) bool {
		for _, f := range forms {
			m := f.like.FindStringSubmatch(l.Text)
			if m == nil {
				continue
			}
			name, version := f.name, strings.TrimRight(m[len(m)-1], ".")
			if f.among != nil {
				name = m[1]
			}
			if f.among == packagesPython { // As the index writes it (PEP 503).
				name = strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(name))
			}
			if version == "" || f.among != nil && !f.among.MatchString(name) {
				return false
			}
			s.Package(name, version, "", f.manager, l)
			return true
		}
		return false
	}
}

// packagesFrozen takes lines "name==version" of pip freeze or of a requirements file, wherever they stand, with the
// mark of PyTorch's collect_env before them: "[pip3] torch==2.4.0".
var packagesFrozen = &parse.Kind{
	Name: "pip-freeze", Title: "Python packages, from pip freeze", Command: "pip freeze", Gives: []string{"software"},
	Anchors: []string{"=="},
	Line: take(
		form{manager: "conda", among: packagesPython, like: lazy.New(`^\s*\[conda\] +` + pythonName + `==` + packageVersion + `(?:\s*[;#].*)?\s*$`)},
		form{manager: "pip", among: packagesPython, like: lazy.New(`^\s*(?:\[pip3?\] +)?` + pythonName + `==` + packageVersion + `(?:\s*[;#].*)?\s*$`)},
	),
}

// packagesTable takes the tables of pip list, uv pip list and conda list: a name and a version, in conda's a build
// and a channel, in pip's a folder of sources after them. A build ends with its number
// ("py3.10_cuda11.8_cudnn8.7.0_0"). Without a prompt before it, a table is recognized by a name with its column of
// spaces. This also matches a single line, because people filter tables with grep.
var packagesTable = &parse.Kind{
	Name: "pip-list", Title: "Python packages, from pip list or conda list", Command: "pip list", Gives: []string{"software"},
	Anchors: []string{
		"torch  ", "torch\t", "vllm  ", "vllm\t", "nccl", "sglang  ", "cuda-runtime", "cublas", "[conda] ",
	},
	Line: take(
		form{manager: "conda", among: packagesPython, like: lazy.New(`^\s*\[conda\] +` + pythonListed + `(?:\s+\S+){0,3}\s*$`)},
		form{manager: "conda", among: packagesPython, like: lazy.New(`^\s*` + pythonListed + `\s+\S*_[0-9]+(?:\s+\S+){0,2}\s*$`)},
		form{manager: "pip", among: packagesPython, like: lazy.New(`^\s*(?:\[pip3?\] +)?` + pythonListed + `(?:\s+\S+){0,3}\s*$`)},
	),
}

// packagesSystemLists takes the lines of dpkg -l, apt list and rpm -qa: the wanted and the real state, which is not
// that only the configuration is left, the name, with the architecture where two are installed, and the version;
// "libnccl2/now 2.27.7-1+cuda12.9 amd64 [installed,local]"; name-version-release.architecture.
var packagesSystemLists = &parse.Kind{
	Name: "packages", Title: "system packages, from dpkg -l, apt list or rpm -qa", Command: "dpkg -l", Gives: []string{"software"},
	Anchors: []string{
		"libnccl", "rccl", "rocm",
	},
	Line: take(
		form{manager: "dpkg", among: packagesSystem, like: lazy.New(`^\s*(?:[uihp][icufhwt]|r[iufhwt]) +([a-z0-9][a-z0-9+.-]+)(?::[a-z0-9]+)? +` + packageVersion + `(?:\s|$)`)},
		form{manager: "dpkg", among: packagesSystem, like: lazy.New(`^\s*([a-z0-9][a-z0-9+.-]+)/\S+ ` + packageVersion + ` \S+ \[installed[^\]]*\]\s*$`)},
		form{manager: "rpm", among: packagesSystem, like: lazy.New(`^\s*([A-Za-z][\w+.-]*?)-([0-9][\w.+~^]*-[\w.+~^]+)\.(?:x86_64|aarch64|noarch|ppc64le|i686)\s*$`)},
	),
}

// packagesImages takes the version from the tag of a framework's image.
var packagesImages = &parse.Kind{
	Files: true,
	Name:  "image-tag", Title: "a framework's image", Gives: []string{"software"},
	Anchors: []string{"vllm/vllm-openai", "lmsysorg/sglang", "rocm/vllm"},
	Line: take(
		form{name: "vllm", manager: "image", like: lazy.New(`\b(?:vllm/vllm-openai|rocm/vllm)[a-z-]*:v([0-9]+\.[0-9]+\.[0-9]+[\w.]*)`)},
		form{name: "sglang", manager: "image", like: lazy.New(`\blmsysorg/sglang[a-z-]*:v([0-9]+\.[0-9]+\.[0-9]+[\w.]*)`)},
	),
}

// packagesStated takes the lines by which programs tell versions.
var packagesStated = &parse.Kind{
	Name: "version", Title: "versions that programs state", Gives: []string{"software"},
	Anchors: []string{
		"is using nccl==", "vLLM API server version", "LLM engine (v", "vLLM Version", "NCCL version", " available.",
		"torch version .", "torch cuda version .", "torch hip version .", "torch version = ",
	},
	Line: take(
		// vLLM: vllm/distributed/device_communicators/pynccl.py, vllm/entrypoints,
		// vllm/v1/engine/core.py, vllm/engine/llm_engine.py.
		form{name: "nccl", manager: "log", like: lazy.New(`\b(?:vLLM|sglang|SGLang|LightLLM) is using nccl==([0-9][\w.+-]*)`)},
		form{name: "vllm", manager: "log", like: lazy.New(`\bvLLM API server version v?([0-9][\w.+-]*)`)},
		form{name: "vllm", manager: "log", like: lazy.New(`Initializing an? (?:V[01] )?LLM engine \(v([0-9][\w.+-]*)\)`)},
		form{name: "vllm", manager: "collect_env", like: lazy.New(`^\s*vLLM Version\s*: ([0-9][\w.+-]*)`)},
		// PyTorch: torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and Utils.
		form{name: "nccl", manager: "log", like: lazy.New(`(?:ProcessGroupNCCL|NCCLUtils|NCCLComm|nccl)\.[ch]pp:\d+,? .*NCCL version ([0-9]+\.[0-9]+\.[0-9]+)`)},
		form{name: "nccl", manager: "log", like: lazy.New(`\bProcessGroupNCCL[^,]{0,60} NCCL version:? ([0-9]+\.[0-9]+\.[0-9]+)`)},
		form{name: "torch", manager: "log", like: lazy.New(`^.{0,60}\bPyTorch version:? ([0-9][\w.+-]*) available`)},
		// DeepSpeed: deepspeed/env_report.py, names padded with full stops.
		form{name: "torch", manager: "ds_report", like: lazy.New(`^torch version \.{3,} ([0-9][\w.+-]*)`)},
		form{name: "cuda-runtime", manager: "ds_report", like: lazy.New(`^torch cuda version \.{3,} ([0-9][\w.]*)`)},
		form{name: "hip", manager: "ds_report", like: lazy.New(`^torch hip version \.{3,} ([0-9][\w.+-]*)`)},
		// DeepSpeed at its start.
		form{name: "torch", manager: "log", like: lazy.New(`\[INFO\].* torch version = ([0-9][\w.+-]*)`)},
	),
}

// packageCommand is a command whose output is a version and nothing else.
type packageCommand struct {
	// holds is a part of the command line.
	holds         string
	name, manager string
}

// packageBare is a version alone in its line, also in quotes or as Python prints a tuple: "(2, 20, 5)".
var packageBare = lazy.New(`^\s*['"(]?([0-9]+(?:\.|, )[0-9]+[\w.+ ,-]*?)['")]?:?\s*$`)

var packageCommands = []packageCommand{
	{"nccl.version()", "nccl", "torch"},
	{"torch.version.cuda", "cuda-runtime", "torch"},
	{"torch.version.hip", "hip", "torch"},
	{"torch.__version__", "torch", "torch"},
	{"vllm.__version__", "vllm", "python"},
	{"sglang.__version__", "sglang", "python"},
	{"hipconfig --version", "hip", "hipconfig"},
	{"hipconfig -v", "hip", "hipconfig"},
}

// packagesPrinted takes what such a command prints.
var packagesPrinted = &parse.Kind{
	Name: "version-command", Title: "a version that a command printed", Command: "python -c 'import torch; print(torch.cuda.nccl.version())'", Gives: []string{"software"},
	Commands: []string{"python", "python3", "hipconfig"},
	Begins: func(in *parse.Lines) bool {
		return packageCommandOf(in.Prompt().Command) != nil && packageBare.MatchString(in.First().Text)
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		command := packageCommandOf(in.Prompt().Command)
		l, _ := in.Next()
		version := packageBare.FindStringSubmatch(l.Text)[1]
		s.Package(command.name, strings.ReplaceAll(strings.TrimSpace(version), ", ", "."), "", command.manager, l)
	},
}

func packageCommandOf(line string) *packageCommand {
	if i := slices.IndexFunc(packageCommands, func(c packageCommand) bool { return strings.Contains(line, c.holds) }); i >= 0 {
		return &packageCommands[i]
	}
	return nil
}
