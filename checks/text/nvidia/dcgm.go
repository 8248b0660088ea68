package nvidia

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// dcgmDiagKind is the table of DCGM's diagnostics. A message is cut after every 45 characters, in the middle of
// words, and goes on in rows without a name (dcgmi/Diag.cpp, DisplayVerboseInfo).
//
//	| Diagnostic                | Result                                         |
//	| nvlink                    | Fail                                           |
//	|                           | GPU3: Fail                                     |
//	| Warning: GPU3             | GPU 3's NvLink link 5 is currently down Run a  |
//	|                           | field diagnostic on the GPU.                   |
var dcgmDiagKind = &parse.Kind{
	Name: "dcgm-diag", Title: "the results of DCGM's diagnostics",
	Command: "dcgmi diag -r 2", Gives: []string{"logs"},
	Anchors: []string{"| Diagnostic "},
	Begins:  parse.BeginsLike(lazy.New(`^\s*\| Diagnostic *\| *Result *\|\s*$`)),
	Read:    dcgmDiagRead,
}

// dcgmRow is a row of the table, dcgmRule a line between rows, and dcgmResult the result of one GPU, CPU or switch.
var (
	dcgmRow    = lazy.New(`^\s*\| (\S[^|]*?)? *\| (.*) \|\s*$`)
	dcgmRule   = lazy.New(`^\s*[+|][-=]{2}`)
	dcgmResult = lazy.New(`^\w+\d+: (?:Pass|Fail|Skip|Warn|N/A)`)
)

func dcgmDiagRead(s *parse.Sink, in *parse.Lines) {
	var (
		first parse.Line
		text  string
	)
	tell := func() {
		if row, fields, ok := message.Of(strings.TrimSpace(text)); ok {
			s.Message(row.ID, fields, first)
		}
		text = ""
	}
	in.While(func(l parse.Line) bool {
		m := dcgmRow.FindStringSubmatch(l.Text)
		switch {
		case m == nil:
			return dcgmRule.MatchString(l.Text)
		case strings.HasPrefix(m[1], "Warning"), strings.HasPrefix(m[1], "Error"):
			tell()
			first, text = l, m[2]
		case m[1] == "" && text != "" && !dcgmResult.MatchString(m[2]):
			text += m[2]
		default:
			tell()
		}
		return true
	})
	tell()
}
