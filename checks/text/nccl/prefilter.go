package nccl

import (
	"bytes"

	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// The forms of NCCL's lines that log.read knows by their beginnings, but for those
// of channels, those that tell nothing and those that begin with a digit.
var forms = byFirstByte(
	"Using network ", "Setting affinity for GPU ", "ncclTopoGetCpuAffinity: Affinity for GPU ",
	"NET/IB", "NET/Socket", "Bootstrap", "NET/Plugin", "Kernel version: ", "cudaDriverVersion ",
)

// The forms of channels, and those that tell nothing.
var (
	channels = byFirstByte("Channel ", "Ring ", "Coll")
	nothing  = byFirstByte("Trees ", "Connected ")
)

// prefixes are beginnings of texts, by their first bytes.
type prefixes [256][][]byte

func byFirstByte(texts ...string) *prefixes {
	p := new(prefixes)
	for _, text := range texts {
		p[text[0]] = append(p[text[0]], []byte(text))
	}
	return p
}

// begin reports whether a text begins with one of them.
func (p *prefixes) begin(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	for _, prefix := range p[text[0]] {
		if bytes.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// What lines hold of which log.read makes something.
var (
	mark     = []byte("NCCL ")
	infoMark = []byte(levelInfo)
	via      = []byte(" via ")
	counts   = []byte(" coll channels, ")
	variable = []byte("CCL_")
	comms    = []byte("comm")
	rank     = []byte("rank ")
	versions = []byte("version")
)

// prefilter finds the lines with "NCCL INFO" from which ncclLine learns nothing:
// four fifths of a log.
func prefilter(line []byte) parse.Relevance {
	at := bytes.Index(line, mark)
	if at < 0 || !bytes.HasPrefix(line[at:], infoMark) || !signed(line[:at]) {
		return parse.Relevant
	}
	body := line[at+len(infoMark):]
	if bytes.Contains(body, mark) || mayTell(body) {
		return parse.Relevant
	}
	return parse.Counted
}

// mayTell reports whether log.read may learn something from what a process
// says.
func mayTell(body []byte) bool {
	switch {
	case len(body) == 0:
		return false
	case channels.begin(body):
		return bytes.Contains(body, via)
	case nothing.begin(body):
		return false
	case forms.begin(body):
		return true
	case parse.IsDigit(body[0]):
		return bytes.Contains(body, counts)
	}
	return bytes.Contains(body, variable) || bytes.Contains(body, versions) ||
		bytes.Contains(body, comms) && bytes.Contains(body, rank)
}

// signed reports whether a text ends with "host:pid:tid [dev] ", so that
// speakerOf finds a process in it.
func signed(text []byte) bool {
	text, ok := bytes.CutSuffix(text, []byte("] "))
	if !ok {
		return false
	}
	for _, mark := range []byte{'[', ':', ':'} {
		digits := len(text)
		for digits > 0 && parse.IsDigit(text[digits-1]) {
			digits--
		}
		if digits == len(text) || digits == 0 || text[digits-1] != mark {
			return false
		}
		text = text[:digits-1]
		if mark == '[' {
			if text, ok = bytes.CutSuffix(text, []byte(" ")); !ok {
				return false
			}
		}
	}
	return len(text) > 0 && parse.HostByte(text[len(text)-1])
}
