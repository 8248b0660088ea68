package host

import (
	"cmp"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// The report of python -m torch.utils.collect_env, and of vLLM's own, which begins with the same lines
// (torch/utils/collect_env.py, vllm/collect_env.py). Its lines are taken one by one: people leave out parts of it,
// and other outputs stand in its middle (lscpu, nvidia-smi topo -m, variables).

// collectEnvLine is a line "Name: value" of the report.
var collectEnvLine = lazy.New(`^\s*(PyTorch version|CUDA used to build PyTorch|ROCM used to build PyTorch|OS|Nvidia driver version|HIP runtime version|ROCM Version)\s*: ?(.*?)\s*$`)

// collectEnvPackages are the names under which values are noted as software.
var collectEnvPackages = map[string]string{
	"PyTorch version":            "torch",
	"CUDA used to build PyTorch": "cuda-runtime",
	"ROCM used to build PyTorch": "hip",
	"Nvidia driver version":      "nvidia-driver",
	"HIP runtime version":        "hip",
	"ROCM Version":               "rocm",
}

var collectEnvVersion = lazy.New(`^[0-9]+(?:\.[0-9]+)[\w.+-]*`)

// collectEnvKind takes the lines of the report but those of the GPUs.
var collectEnvKind = &parse.Kind{
	Name: "collect-env", Title: "PyTorch's report on its environment", Command: "python -m torch.utils.collect_env",
	Gives: []string{"software", "host"},
	Anchors: []string{
		"PyTorch version: ", "used to build PyTorch: ", "Nvidia driver version: ", "HIP runtime version: ", "ROCM Version", "OS: ",
		"PyTorch version              :", "CUDA used to build PyTorch   :", "ROCM used to build PyTorch   :", "OS                           :",
		"Nvidia driver version        :", "HIP runtime version          :",
	},
	Line: parse.LineLike(collectEnvLine, func(s *parse.Sink, l parse.Line, m []string) bool {
		name, value := m[1], m[2]
		if name == "OS" {
			return collectEnvOS(s, value, l)
		}
		if version := collectEnvVersion.FindString(value); version != "" && collectEnvPackages[name] != "" {
			s.Package(collectEnvPackages[name], version, "", "collect_env", l)
			if name == "Nvidia driver version" {
				parse.Note(s, &s.GPUs().Driver.Version, "gpus.driver.version", version, l)
			}
		}
		return true
	}),
}

// collectEnvDistribution is the value of "OS": "Ubuntu 22.04.3 LTS (x86_64)".
var collectEnvDistribution = lazy.New(`^(.{3,80}?)(?: \((x86_64|aarch64|arm64|ppc64le)\))?$`)

func collectEnvOS(s *parse.Sink, value string, l parse.Line) bool {
	m := collectEnvDistribution.FindStringSubmatch(value)
	if m == nil || m[2] == "" && !strings.ContainsAny(value, "0123456789") {
		return false
	}
	host := s.HostFacts()
	parse.Note(s, &host.Distribution, "host.distribution", m[1], l)
	if host.Arch == "" && m[2] != "" {
		host.Arch = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64", "ppc64le": "ppc64le"}[m[2]]
	}
	return true
}

// collectEnvGPU is a GPU of the report: "GPU 0: NVIDIA H100 80GB HBM3".
var collectEnvGPU = lazy.New(`^\s*(?:GPU models and configuration\s*: *)?GPU ([0-9]{1,4}): (.{2,80}?)\s*$`)

// collectEnvGPUs takes the list of GPUs, which begins in the line of its title or in the one after it.
var collectEnvGPUs = &parse.Kind{
	Name: "collect-env-gpus", Title: "GPUs in PyTorch's report on its environment", Command: "python -m torch.utils.collect_env",
	Gives:   []string{"gpus"},
	Anchors: []string{"GPU models and configuration"},
	Begins: parse.BeginsWith(func(text string) bool {
		return strings.HasPrefix(strings.TrimSpace(text), "GPU models and configuration")
	}),
	Read: func(s *parse.Sink, in *parse.Lines) {
		title, _ := in.Next()
		collectEnvAdd(s, title)
		in.While(func(l parse.Line) bool { return collectEnvAdd(s, l) })
	},
}

// collectEnvAMD is in the names of AMD's GPUs.
var collectEnvAMD = lazy.New(`(?i)\bAMD\b|Radeon|Instinct|\bgfx[0-9]|\bMI[0-9]{2,3}[AX]?\b`)

// collectEnvAdd notes a GPU, and reports whether the line is one.
func collectEnvAdd(s *parse.Sink, l parse.Line) bool {
	m := collectEnvGPU.FindStringSubmatch(l.Text)
	if m == nil {
		return false
	}
	g := s.GPUAt(parse.Number(m[1]), l)
	// nvidia-smi -L puts the GPU's id behind its name.
	name, _, _ := strings.Cut(m[2], " (UUID")
	g.Name = cmp.Or(g.Name, name)
	vendor := "nvidia"
	if collectEnvAMD.MatchString(name) {
		vendor = "amd"
	}
	g.Vendor = cmp.Or(g.Vendor, vendor)
	return true
}

// osReleaseLine is a line of /etc/os-release, or of lsb_release -a.
var osReleaseLine = lazy.New(`^\s*(?:(?:(?:PRETTY_NAME|DISTRIB_DESCRIPTION)="?|Description:\t *)([^"]{1,80}?)"?|VERSION_ID="?[^"]{1,80}?"?|ID="?[a-z][a-z._-]{1,30}"?|(?:Distributor ID|Release):\t *.{1,80}?)\s*$`)

// osReleaseKind takes the distribution from /etc/os-release and lsb_release -a.
var osReleaseKind = &parse.Kind{
	Name: "os-release", Title: "the distribution", Command: "cat /etc/os-release", Gives: []string{"host"},
	Anchors: []string{"PRETTY_NAME=", "VERSION_ID=", "DISTRIB_DESCRIPTION=", "Description:\t", "Distributor ID:\t", "Release:\t", "ID="},
	Line: parse.LineLike(osReleaseLine, func(s *parse.Sink, l parse.Line, m []string) bool {
		if m[1] != "" {
			parse.Note(s, &s.HostFacts().Distribution, "host.distribution", m[1], l)
		}
		return true
	}),
}
