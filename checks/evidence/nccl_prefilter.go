package evidence

import "bytes"

// The forms of NCCL's lines that ncclLog.read knows by their beginnings, but for those
// of channels, those that tell nothing and those that begin with a digit.
var ncclForms = byFirstByte(
	"Using network ", "Setting affinity for GPU ", "ncclTopoGetCpuAffinity: Affinity for GPU ",
	"NET/IB", "NET/Socket", "Bootstrap", "NET/Plugin", "Kernel version: ", "cudaDriverVersion ",
)

// The forms of channels, and those that tell nothing.
var (
	ncclChannels = byFirstByte("Channel ", "Ring ", "Coll")
	ncclNothing  = byFirstByte("Trees ", "Connected ")
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

// What lines hold of which ncclLog.read makes something.
var (
	ncclMark     = []byte("NCCL ")
	ncclInfoMark = []byte(ncclInfo)
	ncclVia      = []byte(" via ")
	ncclCounts   = []byte(" coll channels, ")
	ncclVariable = []byte("CCL_")
	ncclComms    = []byte("comm")
	ncclRank     = []byte("rank ")
	ncclVersions = []byte("version")
)

// ncclPrefilter finds the lines with "NCCL INFO" from which ncclLine learns nothing:
// four fifths of a log.
func ncclPrefilter(line []byte) Relevance {
	at := bytes.Index(line, ncclMark)
	if at < 0 || !bytes.HasPrefix(line[at:], ncclInfoMark) || !ncclSigned(line[:at]) {
		return Relevant
	}
	body := line[at+len(ncclInfoMark):]
	if bytes.Contains(body, ncclMark) || ncclMayTell(body) {
		return Relevant
	}
	return Counted
}

// ncclMayTell reports whether ncclLog.read may learn something from what a process
// says.
func ncclMayTell(body []byte) bool {
	switch {
	case len(body) == 0:
		return false
	case ncclChannels.begin(body):
		return bytes.Contains(body, ncclVia)
	case ncclNothing.begin(body):
		return false
	case ncclForms.begin(body):
		return true
	case isDigit(body[0]):
		return bytes.Contains(body, ncclCounts)
	}
	return bytes.Contains(body, ncclVariable) || bytes.Contains(body, ncclVersions) ||
		bytes.Contains(body, ncclComms) && bytes.Contains(body, ncclRank)
}

// ncclSigned reports whether a text ends with "host:pid:tid [dev] ", so that
// ncclSpeakerOf finds a process in it.
func ncclSigned(text []byte) bool {
	text, ok := bytes.CutSuffix(text, []byte("] "))
	if !ok {
		return false
	}
	for _, mark := range []byte{'[', ':', ':'} {
		digits := len(text)
		for digits > 0 && isDigit(text[digits-1]) {
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
	return len(text) > 0 && hostByte(text[len(text)-1])
}
