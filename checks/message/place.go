package message

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// The forms in which libraries say where in them a message comes from. Each has the
// groups file and words, and may have function and result.
var placeForms = []struct {
	library string
	like    *lazy.Regexp
}{
	// The plugin for libfabric writes through NCCL's logger and names its functions (include/nccl_ofi_log.h of
	// aws-ofi-nccl): with their parameters (__PRETTY_FUNCTION__) where it is compiled as C++, from 1.9.2 on.
	{"ofi", lazy.New(`(?P<file>[\w.+:~<>-]+)\(.*\)[^()]*:\d+ NCCL WARN NET/OFI (?P<words>.*)`)},
	{"ofi", lazy.New(`(?P<file>[\w./+:~-]+):\d+ NCCL WARN NET/OFI (?P<words>.*)`)},
	// src/debug.cc of NCCL 2.4 to 2.30: the function is there since 2.29. RCCL has long paths.
	{"nccl", lazy.New(`(?P<file>[\w./+-]+):\d+ (?:\((?P<function>[^)]{1,80})\) )?NCCL WARN (?P<words>.*)`)},
	{"nccl", lazy.New(`(?P<file>)NCCL WARN (?P<words>.*)`)},
	// NCCLCHECK of src/include/checks.h.
	{"nccl", lazy.New(`NCCL INFO (?P<file>[\w./+-]+\.(?:cc|cu|h|c|cpp)):\d+ (?:\((?P<function>[^)]{1,80})\) )?-> (?P<result>\d{1,2})\b(?P<words>)`)},
	// ucs_log_default_handler of src/ucs/debug/log.c.
	{"ucx", lazy.New(`(?P<file>[\w-]+)\.(?:c|cc|cpp|h|inl):\d+ +UCX +(?:ERROR|FATAL|WARN) +(?P<words>.*)`)},
	// ofi_log of src/log.c of libfabric.
	{"libfabric", lazy.New(`libfabric:\d+:\d+:{1,2}(?P<file>[\w;-]+):\w+:(?P<function>\w+)\(\):\d+<\w+> (?P<words>.*)`)},
	// The logger of PyTorch (c10/util/Logging.cpp), with glog's letters.
	{"c10d", lazy.New(`\[[EWF]\d*[^\]]* (?P<file>(?:ProcessGroup\w*|TCPStore\w*|FileStore|HashStore|PrefixStore|Store|socket|NCCLUtils|Backend|reducer|UCCUtils|TraceUtils|FlightRecorder\w*|\w*DMAConnectivity|\w*SymmetricMemory\w*|intra_node_comm|IpcExchange|GlooDeviceFactory))\.(?:cpp|hpp|cc|cu|h):\d+\] (?P<words>.*)`)},
	// What it throws (torch/csrc/distributed/c10d/exception.h).
	{"c10d", lazy.New(`torch\.distributed\.(?P<file>Dist(?:Backend|Network|Store)Error): (?P<words>.*)`)},
	{"container-toolkit", lazy.New(`nvidia-container-cli: (?P<file>[a-z]+(?: [a-z]+)? error): (?P<words>.*)`)},
	// The container runtime, as it logs and as an engine passes on what it said.
	{"container-toolkit", lazy.New(`(?P<file>level=error|OCI runtime (?:create failed|error))(?:: | msg=)(?P<words>.*(?:(?i:nvidia)|NVML|\bCDI\b|libcuda|\bGPU).*)`)},
}

// PlaceOf is where in a library a line of this row comes from, as far as its form tells, and what the codes and variables are
// that it names: in the area of the row, if it has one. It is nil if the line tells nothing of the kind.
func (t *Statement) PlaceOf(line string) *facts.Place {
	p := &facts.Place{}
	words := line
	for _, form := range placeForms {
		m := form.like.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		p.Library = form.library
		groups := map[string]string{}
		for i, name := range form.like.Get().SubexpNames() {
			groups[name] = m[i]
		}
		p.File, p.Function, words = shortFile(groups["file"]), groups["function"], groups["words"]
		if c := codeOf(data.Codes().NCCL, groups["result"]); c != nil {
			p.Codes = append(p.Codes, facts.Code{Space: "nccl", Number: c.Number, Name: c.Name})
		}
		name := p.File
		if p.Library == "libfabric" { // A provider does many things, and its functions say which.
			name += "/" + p.Function
		}
		p.Area = data.AreaOf(p.Library, name, words)
		break
	}
	if t.Area != "" {
		p.Library, p.Area = cmp.Or(p.Library, t.Program), t.Area
	}
	p.Codes = append(p.Codes, codesIn(words, p.Area)...)
	p.Variables = variablesIn(words)
	if p.Area == "" && len(p.Codes) == 0 {
		return nil
	}
	return p
}

// shortFile is a source file as NCCL names it, below its src folder, also where RCCL
// prints the whole path ("/build/hipify/src/transport/net_ib.cc").
func shortFile(file string) string {
	if at := strings.LastIndex(file, "/src/"); at >= 0 {
		return file[at+len("/src/"):]
	}
	return strings.TrimPrefix(file, "src/")
}

// The forms of codes.
var (
	errnoName   = lazy.New(`\b(E[A-Z0-9]{2,14})\b`)
	errnoNumber = lazy.New(`(?i)\berrno[ :=(]*-?(\d{1,3})\b|\[Errno (\d{1,3})\]|\b(?:returned|error|failed|rc|ret|status|code)[ :=(]*-(\d{1,3})\b|: -(\d{1,3})\b`)
	cudaName    = lazy.New(`\bCUDA_ERROR_([A-Z0-9_]+)|\b(?:cudaError|hipError)_?([A-Z]\w+)`)
	cudaNumber  = lazy.New(`(?i)\b(?:cuda|hip|driver)(?: runtime| driver| api)?(?: call)? ?(?:error|failure|ret|result|returned|code)(?: code)?[ :='(]*(\d{1,3})\b|\bfailed with (\d{1,3})\b|\bcuret=(\d{1,3})\b`)
	aboutCUDA   = lazy.New(`(?i)\b(?:cuda|hip)|\bcu[A-Z][a-z]+\w+`)
	wcName      = lazy.New(`\bIBV_WC_([A-Z_]+)`)
	wcNumber    = lazy.New(`(?i)completion.{0,80}?(?:status|error)[ :=]*(?:[\w -]*\()?(\d{1,2})\b|wc.?status[ :=]*(?:[\w -]*\()?(\d{1,2})\b|\bwith status (\d{1,2})\b`)
	variable    = lazy.New(`\b(?:NCCL|RCCL|UCX|FI|OFI_NCCL|HSA|HIP|CUDA|NVSHMEM|TORCH|GLOO|MASTER)_[A-Z0-9_]{2,60}\b`)
)

// maxCodes bounds the codes and the variables of one message.
const maxCodes = 4

// codesIn are the codes that a text holds. Words that both the operating system and CUDA
// have are CUDA's where the text speaks of it.
func codesIn(words, area string) []facts.Code {
	var all []facts.Code
	add := func(space string, number int, name string) {
		c := facts.Code{Space: space, Number: number, Name: name}
		if len(all) < maxCodes && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if m := wcName.FindStringSubmatch(words); m != nil {
		if c := codeOf(data.Codes().Completions, m[1]); c != nil {
			add("ibverbs", c.Number, c.Name)
		}
	} else if m := wcNumber.FindStringSubmatch(words); m != nil && (area == "verbs" || area == "gpu-network" || strings.Contains(words, "IB")) {
		if c := codeOf(data.Codes().Completions, strings.Join(m[1:], "")); c != nil {
			add("ibverbs", c.Number, c.Name)
		}
	}
	if aboutCUDA.MatchString(words) || area == "cuda" {
		if c := cudaCode(words); c != nil {
			add("cuda", c.Code, c.Name)
		}
		return all
	}
	if c := errnoCode(words); c != nil {
		add("errno", c.Number, c.Name)
	}
	return all
}

// cudaCode is the error of CUDA or HIP that a text holds, by name, words or number; nil if it holds none.
func cudaCode(words string) (found *data.DriverError) {
	codes := data.DriverErrors().Codes
	if m := cudaName.FindStringSubmatch(words); m != nil {
		found = facts.Find(codes, func(c *data.DriverError) bool {
			return c.Name == m[1] || m[2] != "" && strings.EqualFold(c.Runtime, m[2])
		})
	}
	if found == nil {
		found = longest(words, codes, func(c *data.DriverError) string { return c.Words })
	}
	if m := cudaNumber.FindStringSubmatch(words); found == nil && m != nil {
		found = facts.Find(codes, func(c *data.DriverError) bool { return strconv.Itoa(c.Code) == strings.Join(m[1:], "") })
	}
	return found
}

// errnoCode is the error of the operating system that a text holds, by name, words or number; nil if it holds none.
func errnoCode(words string) *data.Code {
	codes := data.Codes().Errno
	found := codeOf(codes, errnoName.First(words))
	if found == nil {
		found = longest(words, codes, func(c *data.Code) string { return c.Words })
	}
	if m := errnoNumber.FindStringSubmatch(words); found == nil && m != nil && !strings.Contains(words, "exitcode") {
		found = codeOf(codes, strings.Join(m[1:], ""))
	}
	return found
}

// longest is the code of which a text holds the longest words, whatever their case; nil where it holds none.
func longest[T any](text string, codes []T, words func(*T) string) (best *T) {
	text = strings.ToLower(text)
	for i := range codes {
		w := words(&codes[i])
		if w != "" && (best == nil || len(w) > len(words(best))) && strings.Contains(text, strings.ToLower(w)) {
			best = &codes[i]
		}
	}
	return best
}

// codeOf is the code that goes by a name or a number; nil if there is none.
func codeOf(codes []data.Code, text string) *data.Code {
	n, err := strconv.Atoi(text)
	return facts.Find(codes, func(c *data.Code) bool { return c.Name == text || err == nil && c.Number == n })
}

// ownPrefixes begin nothing but variables; what begins otherwise may be a constant of the
// library (FI_HMEM, NCCL_CONFIG_INITIALIZER).
var ownPrefixes = lazy.New(`^(?:UCX|OFI_NCCL|GLOO|TORCH_NCCL|MASTER)_`)

// advice is the end of what stands before a variable that a line only recommends or explains.
var advice = lazy.New(`(?i)(?:\b(?:by setting|by exporting|(?:try|please|can|could|should|must|may|to|and|or|consider|not) (?:\w+ly )?(?:set(?:ting)?|export(?:ing)?|us(?:e|ing)|unset)|use|see|via|e\.g\.|for example|usage:.*|hint:.*|tip:.*|defaults?(?: to| is)?:?|force-enable \w+)|\(default:?)[ :("'` + "`" + `]*$`)

// variablesIn are the variables of libraries that a text names as set or read, each once.
func variablesIn(words string) []string {
	var all []string
	for _, at := range variable.Get().FindAllStringIndex(words, -1) {
		name := words[at[0]:at[1]]
		isKnown := data.Variables().IsKnown(name) || ownPrefixes.MatchString(name)
		if isKnown && !strings.HasPrefix(name, "NCCL_DEBUG") && !slices.Contains(all, name) && len(all) < maxCodes && !advice.MatchString(words[:at[0]]) {
			all = append(all, name)
		}
	}
	return all
}
