// Package redact replaces names, addresses, serial numbers and secrets with stand-ins, the
// same thing with the same one.
package redact

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Redactor replaces what identifies a machine, its network, its users or their work by stand-ins: names, serial
// numbers, UUIDs, addresses, GUIDs, and secrets. A stand-in stays as it is: redacting twice changes nothing. What
// faults depend on stays recognisable: loopback and link-local addresses, zeros, which addresses are in one
// network. PCI addresses, versions and times are left.
//
// A name is replaced wherever it stands once it is known: one redactor is for one run, all of which it studies first.
//
// A Redactor is not safe for concurrent use.
type Redactor struct {
	// secretsOnly leaves all but secrets as it is.
	secretsOnly bool
	// studying is true while names are learnt, and what comes out is not used.
	studying bool
	// standIns maps a kind of thing, then the thing, to its number.
	standIns map[string]map[string]int
	// words are names in lower case that are replaced wherever they stand.
	words map[string]string
	// parts says of how many parts the longest name consists that begins with a part.
	parts map[string]int
	// domains are the parts of host names after the first dot, in lower case.
	domains map[string]bool
	// domainOf is the domain of the first host of each name.
	domainOf map[string]string
	// listed counts the hosts of lists.
	listed int
	// ipv4Seen are the IPv4 addresses by their first number, sorted.
	ipv4Seen map[byte][]ipv4Pair
}

// redacted stands for a secret. They are all alike.
const redacted = "redacted"

// New returns a redactor that has seen nothing yet.
func New() *Redactor {
	return &Redactor{
		standIns: make(map[string]map[string]int), words: make(map[string]string), parts: make(map[string]int),
		domains: make(map[string]bool), domainOf: make(map[string]string), ipv4Seen: make(map[byte][]ipv4Pair),
	}
}

// NewSecrets returns a redactor that replaces secrets and nothing else.
func NewSecrets() *Redactor {
	r := New()
	r.secretsOnly = true
	return r
}

// number returns the number of a thing among those of its kind, from 1.
func (r *Redactor) number(kind, thing string) int {
	seen := r.standIns[kind]
	if seen == nil {
		seen = make(map[string]int)
		r.standIns[kind] = seen
	}
	n, ok := seen[thing]
	if !ok {
		n = len(seen) + 1
		seen[thing] = n
	}
	return n
}

// Text redacts a text.
func (r *Redactor) Text(s string) string { return r.Content(s, true) }

// Content redacts a text line by line; where dotted numbers are versions, they are left.
func (r *Redactor) Content(s string, addresses bool) string {
	if s == "" {
		return s
	}
	s = variables(apply(known().Keys, s, secretOf))
	var out strings.Builder
	out.Grow(len(s))
	var columns []column // Of the table that the lines before head.
	for line := range strings.Lines(s) {
		if !r.secretsOnly {
			line, columns = r.inTable(columns, line)
		}
		out.WriteString(r.line(line, addresses))
	}
	return out.String()
}

func (r *Redactor) line(s string, addresses bool) string {
	s = secrets(s)
	if r.secretsOnly {
		return s
	}
	if strings.ContainsAny(s, " \t=@/:[\\") { // Something stands around a name.
		s = apply(known().Names, s, r.standIn)
	}
	if r.studying {
		return s
	}
	return r.Numbers(r.learnt(s), addresses)
}

// Numbers replaces what identifies by number: UUIDs, GUIDs and addresses.
func (r *Redactor) Numbers(s string, addresses bool) string {
	s = apply(known().Numbers, s, r.standIn)
	if addresses {
		s = apply(known().Addresses, s, r.standIn)
	}
	return s
}

// counted returns a number with as many digits as what it stands for. One that begins with zeros is a stand-in.
func (r *Redactor) counted(kind, digits string) string {
	const zeros = "00000000"
	if strings.HasPrefix(digits, zeros) {
		return digits
	}
	return fmt.Sprintf("%0*x", len(digits), r.number(kind, digits))
}

// before and after return the byte next to a match, 0 at the end of the text.
func before(s string, from int) byte {
	if from == 0 {
		return 0
	}
	return s[from-1]
}

func after(s string, to int) byte {
	if to == len(s) {
		return 0
	}
	return s[to]
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// named returns the stand-in of a name, which is learnt: a prefix and a number.
func (r *Redactor) named(prefix, name string) string {
	const digits = "0123456789"
	number, is := strings.CutPrefix(name, prefix)
	if is && number != "" && strings.Trim(number, digits) == "" || strings.ContainsAny(name, "$<>{}*% ") || strings.Trim(name, digits+".-_:") == "" {
		return name
	}
	standIn := prefix + strconv.Itoa(r.number(prefix, name))
	if distinctive(name) {
		r.learn(name, standIn)
	}
	return standIn
}

// user returns the stand-in of a user's name, unless every machine has it.
func (r *Redactor) user(name string) string {
	if name == "root" || name == "nobody" {
		return name
	}
	return r.named("user", name)
}

func (r *Redactor) job(name string) string {
	if known().Ordinary.MatchString(lower(name)) {
		return name
	}
	return r.named("job-", name)
}

// LearnHome notes a home folder, whose last part is taken for the user's name.
func (r *Redactor) LearnHome(home string) {
	home = path.Clean(home)
	if dir, name := path.Split(home); path.IsAbs(home) && name != "" && name != "root" && dir != "/home/" && dir != "/" {
		r.learn(home[1:], dir[1:]+r.user(name))
	}
}

func (r *Redactor) serial(number string) string {
	trimmed := strings.Trim(number, " []")
	if len(trimmed) < 4 || strings.EqualFold(trimmed, "unknown") || strings.Trim(trimmed, "0") == "" ||
		strings.HasPrefix(trimmed, "serial-") || strings.HasPrefix(strings.ToLower(trimmed), "not ") {
		return number // "N/A", "Not Specified", or nothing that tells one from another.
	}
	standIn := "serial-" + strconv.Itoa(r.number("serial", trimmed))
	if len(trimmed) >= 6 && strings.ContainsAny(trimmed, "0123456789") {
		r.learn(trimmed, standIn)
	}
	return standIn
}

// uuidStandIn begins the stand-ins of UUIDs; those that begin so are left.
const uuidStandIn = "00000000-0000-0000-0000-"

func (r *Redactor) uuid(s string) string {
	s = strings.ToLower(s)
	if strings.HasPrefix(s, uuidStandIn) {
		return s
	}
	return fmt.Sprintf("%s%012d", uuidStandIn, r.number("uuid", s))
}
