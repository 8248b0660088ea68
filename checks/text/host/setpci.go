package host

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/pci"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// setpciKind is what setpci prints of an ACS control register: the value alone
// behind its prompt, or with -v the place before it.
var setpciKind = &parse.Kind{
	Name: "setpci", Title: "ACS control, from setpci", Command: "sudo setpci -v -s 3b:08.0 ECAP_ACS+6.w", Gives: []string{"pci"},
	Anchors: []string{"(cap ", "(ecap "}, Commands: []string{"setpci"},
	Begins: func(in *parse.Lines) bool {
		_, _, read := setpciValue(in, in.First())
		return read
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		in.While(func(l parse.Line) bool {
			address, word, read := setpciValue(in, l)
			if read {
				setpciACS(s, address, word, l)
			}
			return read
		})
	},
}

func setpciACS(s *parse.Sink, address string, word int, l parse.Line) {
	d, on := s.Device(address, l), pci.ACSWord(word)
	d.ACS = cmp.Or(d.ACS, &facts.ACS{Control: on})
}

var (
	// setpciRead is a command that reads the ACS control: by name, or at the
	// place that PLX's PEX 8700 switches have it (f24h + 6).
	setpciRead = lazy.New(`-s +((?:[0-9a-f]{1,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b.* (?:(?i:ECAP_ACS)\+(?:0x)?0?6\.[wW]|(?:0x)?f2a\.[wW])(?: |$|;|\|)`)
	setpciWord = lazy.New(`^([0-9a-f]{4})$`)
	setpciLong = lazy.New(`^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \(ecap 0?0?0d[^)]*\+0?6\) = ([0-9a-f]{4})\b`)
	// setpciAt is setpci -v of pciutils since 3.3, which gives the place of the
	// capability and then that of the register: "(ecap 000d @2a0) @2a6 = 001d".
	setpciAt = lazy.New(`^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \(ecap 0?0?0d @([0-9a-f]{3})\) @([0-9a-f]{3})(?: =)? ([0-9a-f]{4})$`)
)

func setpciValue(in *parse.Lines, l parse.Line) (address string, word int, ok bool) {
	digits := ""
	if m := setpciLong.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
		address, digits = facts.Address(m[1]), m[2]
	} else if m := setpciAt.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
		capability, _ := strconv.ParseUint(m[2], 16, 16)
		register, _ := strconv.ParseUint(m[3], 16, 16)
		if register != capability+6 {
			return "", 0, false
		}
		address, digits = facts.Address(m[1]), m[4]
	} else if in.After("setpci") {
		command, value := setpciRead.FindStringSubmatch(in.Prompt().Command), setpciWord.FindStringSubmatch(strings.TrimSpace(l.Text))
		if command == nil || value == nil {
			return "", 0, false
		}
		address, digits = facts.Address(command[1]), value[1]
	}
	n, err := strconv.ParseUint(digits, 16, 16)
	return address, int(n), err == nil && address != "" && n != 0xffff
}
