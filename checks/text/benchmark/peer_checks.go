package benchmark

import (
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// peerMatrixKind is what small programs print that people write to ask the driver for peer access, pair by pair:
//
//	[Step 1] hipDeviceCanAccessPeer matrix
//	0 -> 1 : 1
var peerMatrixKind = &parse.Kind{
	Name: "peer-access", Title: "peer access, from a small program", Gives: []string{"gpus"},
	Anchors: []string{"CanAccessPeer"},
	Begins: func(in *parse.Lines) bool {
		lines := in.Ahead(4)
		ofProgram := strings.ContainsAny(lines[0].Text, "(&;")
		return !ofProgram && slices.ContainsFunc(lines[1:], func(l parse.Line) bool { return peerMatrixRow.MatchString(l.Text) })
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		head, _ := in.Next()
		amd := strings.Contains(strings.ToLower(head.Text), "hip")
		for _, l := range in.While(func(l parse.Line) bool { return peerMatrixRow.MatchString(l.Text) || strings.TrimSpace(l.Text) == "" }) {
			m := peerMatrixRow.FindStringSubmatch(l.Text)
			if m == nil || m[1] == m[2] { // A GPU is not its own peer.
				continue
			}
			from, to := parse.Number(m[1]), parse.Number(m[2])
			p2pAccess(s, from, to, slices.Contains([]string{"1", "yes", "true"}, strings.ToLower(m[3])), l)
			if amd {
				s.GPUAt(from, l).Vendor, s.GPUAt(to, l).Vendor = "amd", "amd"
			}
		}
	},
}

var peerMatrixRow = lazy.New(`^\s*(?:(?i:GPU|device|dev) ?)?(\d{1,2}) ?(?:->|→|=>) ?(?:(?i:GPU|device|dev) ?)?(\d{1,2}) ?[:=] ?(0|1|(?i:yes|no|true|false))\s*$`)

// peerCopyKind is a line in which such a program says how a copy between two GPUs came out: "copy cuda:0 -> cuda:1 :
// max abs diff 3.99, all zeros on target: True", "P2P copy success: GPU 0 -> GPU 1, bytes = 67108864". What it calls a
// success was not compared with the source data.
var peerCopyKind = &parse.Kind{
	Name: "peer-copy", Title: "a copy between two GPUs, from a small program", Gives: []string{"benchmarks"},
	Anchors: []string{"opy", "opied", "opies", "COPY", "COPIED", "emcpy", "MEMCPY", "ransfer", "TRANSFER"},
	Line:    parse.LineLike(peerCopyPair, peerCopyLine),
}

var (
	peerCopyPair = lazy.New(`(?i)\b(?:cuda:|gpu[ :]?|hip:|device[ :]?)(\d{1,2}) ?(?:->|→|=>| to ) ?(?:cuda:|gpu[ :]?|hip:|device[ :]?)(\d{1,2})\b`)
	peerCopyTold = lazy.New(`(?i)\bcop(?:y|ied|ies)\b|memcpy|transfer`)
	// The words that data arrived wrong, with the number or the answer that decides, if there is one.
	peerCopyWords = lazy.New(`(?i)\b(?:all[ -]zeros?|mismatch(?:es|ed)?|corrupt(?:ed|ion)?|incorrect|wrong data|data (?:is )?wrong|not equal|differs?)\b(?: (?:on|at|in) \w+)?(?: ?[:=] ?(\w+))?`)
	peerCopyDiff  = lazy.New(`(?i)\bmax(?:imum)?[ _]?(?:abs(?:olute)?[ _])?(?:diff(?:erence)?|err(?:or)?)[ :=]+([0-9.]+(?:e[-+]?\d+)?)`)
	peerCopyGood  = lazy.New(`(?i)\b(?:success(?:ful(?:ly)?)?|ok|pass(?:ed)?|correct|match(?:es)?|equal[:= ]+true)\b`)
)

func peerCopyLine(s *parse.Sink, l parse.Line, m []string) bool {
	if m[1] == m[2] || !peerCopyTold.MatchString(l.Text) {
		return false
	}
	b := facts.Benchmark{
		Tool: "own program", Test: "a copy between GPUs", What: "copy", Complete: true, Source: s.Source(), Line: l.Number,
		Points: []facts.BenchmarkPoint{{A: "GPU" + m[1], B: "GPU" + m[2], Line: l.Number}},
	}
	switch wrong, told := peerCopyVerdict(l.Text); {
	case wrong:
		b.Wrong = new(int64(1)) // How many is not told.
	case told:
		b.Wrong = new(int64(0))
	case !peerCopyGood.MatchString(l.Text):
		return false
	}
	Add(s, b)
	return true
}

// peerCopyVerdict says whether a line calls data wrong, and whether it compared them at all.
func peerCopyVerdict(text string) (wrong, told bool) {
	if v, err := facts.ParseFloat(peerCopyDiff.First(text)); err == nil {
		wrong, told = v > 0, true // A copy is exact: rounding is no excuse.
	}
	for _, m := range peerCopyWords.FindAllStringSubmatch(text, 8) {
		told, wrong = true, wrong || !slices.Contains([]string{"0", "false", "no", "none"}, strings.ToLower(m[1]))
	}
	return wrong, told
}
