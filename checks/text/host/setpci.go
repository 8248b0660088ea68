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
	Anchors: []string{"(cap ", "(ecap "}, Commands: []string{"setpci", "for"},
	Begins: func(in *parse.Lines) bool {
		_, _, read := setpciValue(in, in.First())
		return read || setpciLooped(in) > 0
	},
	Read: func(s *parse.Sink, in *parse.Lines) {
		port := ""
		for range setpciLooped(in) {
			l, _ := in.Next()
			m := setpciEchoed.FindStringSubmatch(strings.TrimSpace(l.Text))
			if m == nil {
				continue
			}
			if m[1] != "" {
				port = facts.Address(m[1])
			}
			word, err := strconv.ParseUint(m[2], 16, 16)
			switch {
			case m[2] == "": // The value follows.
			case err != nil || word == 0xffff:
				port = "" // It lacks the capability, or is not there.
			case port != "":
				setpciACS(s, port, int(word), l)
				port = ""
			default:
				lspciPortless(s, l, pci.ACSWord(int(word)))
			}
		}
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
	// setpciLoop is a shell loop that reads it of one port after the other, as
	// NCCL's and PyTorch's threads show it: "for p in ...; do sudo setpci -s $p
	// f2a.w; done". Whose value is whose the output tells only if the loop prints
	// the address too, in the same line or before it.
	setpciLoop   = lazy.New(`\bfor \w.*\bsetpci +-s +["']?\$\{?\w+\}?["']? (?:(?i:ECAP_ACS)\+(?:0x)?0?6\.[wW]|(?:0x)?f2a\.[wW])(?: |$|;|\||\))`)
	setpciEchoed = lazy.New(`^(?:((?:[0-9a-f]{1,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?: ?[:=])?(?: +|$))?([0-9a-f]{4}|setpci: .*not found\.?)?$`)
	setpciSudo   = lazy.New(`^\[sudo\] password for `)
	setpciLong   = lazy.New(`^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \(ecap 0?0?0d[^)]*\+0?6\) = ([0-9a-f]{4})\b`)
	// setpciAt is setpci -v of pciutils since 3.3, which gives the place of the
	// capability and then that of the register: "(ecap 000d @2a0) @2a6 = 001d".
	setpciAt = lazy.New(`^((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) \(ecap 0?0?0d @([0-9a-f]{3})\) @([0-9a-f]{3})(?: =)? ([0-9a-f]{4})$`)
)

// setpciLooped is how many lines a loop over ports has printed, sudo's question
// among them; none where the next line is not the first of such a loop.
func setpciLooped(in *parse.Lines) int {
	if !in.After("for") || !setpciLoop.MatchString(in.Prompt().Command) {
		return 0
	}
	lines := in.Ahead(200)
	n := 0
	for n < len(lines) && (setpciEchoed.MatchString(cmp.Or(strings.TrimSpace(lines[n].Text), "end")) || n == 0 && setpciSudo.MatchString(lines[n].Text)) {
		n++
	}
	if n == 1 && setpciSudo.MatchString(lines[0].Text) {
		return 0
	}
	return n
}

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
