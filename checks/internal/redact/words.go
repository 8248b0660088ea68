package redact

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file replaces names that were learnt, wherever they stand.

// learn makes a word be replaced wherever it stands. The first stand-in holds.
func (r *Redactor) learn(word, standIn string) {
	word = lower(word)
	const longest = 512 // Of a name that is looked for; that of an image may be long.
	if _, ok := r.words[word]; ok || word == "" || len(word) > longest || !isAlnum(word[0]) || !isAlnum(word[len(word)-1]) {
		return
	}
	r.words[word] = standIn
	first, n := word[:partEnd(word, 0)], len(strings.FieldsFunc(word, notAlnum))
	r.parts[first] = max(r.parts[first], n)
}

// distinctive reports whether a name can be replaced wherever it stands.
func distinctive(name string) bool {
	const long, short = 4, 3 // Shorter ones are abbreviations in a driver's log, or units.
	return !known().Ordinary.MatchString(lower(name)) && (len(name) >= long || len(name) >= short && strings.ContainsAny(name, "0123456789")) &&
		strings.Trim(name, "0123456789.-_:") != ""
}

// lower returns a text in which the ASCII letters are in lower case: its bytes stand where they stood.
func lower(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return 'A' <= c && c <= 'Z' }) {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

func isAlnum(c byte) bool { return isWord(c) && c != '_' }

func notAlnum(c rune) bool { return !isAlnum(byte(min(c, utf8.RuneSelf))) }

// partEnd returns where the letters and digits end that begin at a place.
func partEnd(s string, at int) int {
	for at < len(s) && isAlnum(s[at]) {
		at++
	}
	return at
}

// learnt replaces the names that were learnt, and names of hosts in domains that were, in a time that does not
// depend on how many there are.
func (r *Redactor) learnt(s string) string {
	if len(r.words) == 0 && len(r.domains) == 0 {
		return s
	}
	low := lower(s)
	var out strings.Builder
	done := 0
	for at := 0; at < len(low); {
		if !isAlnum(low[at]) {
			at++
			continue
		}
		end, standIn := r.nameAt(low, at)
		if end == 0 {
			at = partEnd(low, at)
			continue
		}
		out.WriteString(s[done:at] + standIn)
		at, done = end, end
	}
	return out.String() + s[done:]
}

// nameAt finds the longest name that begins at a place, and its stand-in. The end is 0 if no name begins there.
func (r *Redactor) nameAt(low string, at int) (end int, standIn string) {
	first := partEnd(low, at)
	for n, to := r.parts[low[at:first]], first; n > 0; n-- {
		if word, ok := r.words[low[at:to]]; ok && !ofKernel(low, at) {
			end, standIn = to, word
		}
		if to+1 >= len(low) || !isAlnum(low[to+1]) {
			break
		}
		to = partEnd(low, to+1)
	}
	if len(r.domains) == 0 || before(low, at) == '.' && isAlnum(before(low, at-1)) {
		return end, standIn // Inside a dotted name, whose beginning was looked at.
	}
	short, to := r.inDomain(low, at)
	switch {
	case to == 0 || to <= end:
		return end, standIn
	case short == at:
		return to, exampleDomain
	}
	return to, r.Host(low[at:short]) + "." + exampleDomain
}

// ofKernel reports whether what begins at a place is numbered by the kernel: a
// NUMA node, which may be called as a host is.
func ofKernel(low string, at int) bool {
	return slices.ContainsFunc([]string{"node/", "numa ", "numa-", "numa_", "scsi_host/", "scsi "}, func(word string) bool { return strings.HasSuffix(low[:at], word) })
}

// exampleDomain stands for all domains; it is reserved for documentation (RFC 2606).
const exampleDomain = "example.com"

// maxHostName is how long the name of a host can be (RFC 1035, 2.3.4).
const maxHostName = 253

// dottedName is the name of a host with its domain.
var dottedName = lazy.New(`^(?:[\w\x{80}-\x{10FFFF}-]|\.[0-9A-Za-z\x{80}-\x{10FFFF}])+`)

// inDomain finds a dotted name that ends in a known domain: where its first part
// ends, and where it ends; the first part is empty for the domain itself.
func (r *Redactor) inDomain(low string, at int) (short, end int) {
	name := dottedName.FindString(low[at:min(at+maxHostName+1, len(low))])
	if len(name) > maxHostName || !strings.Contains(name, ".") {
		return 0, 0
	}
	for rest := name; rest != ""; _, rest, _ = strings.Cut(rest, ".") {
		if r.domains[rest] {
			return at + max(len(name)-len(rest)-1, 0), at + len(name)
		}
	}
	return 0, 0
}

// hostStandIn is what the name of a host becomes, and a list of hosts.
var hostStandIn = lazy.New(`^host-(?:[0-9]+|\[[0-9,-]+\])$`)

// numberedThing are processes and devices, which stand in brackets as hosts do.
var numberedThing = lazy.New(`(?i)^(?:rank|gpu|cuda|cpu|device|core)[-_]?[0-9]*$`)

// isHostName reports whether a text can be the name of a host, and of one that is not the same on every machine.
func isHostName(name string) bool {
	return len(name) <= maxHostName && strings.Trim(name, "0123456789.-_:x") != "" && isAlnum(name[0]) && !numberedThing.MatchString(name) &&
		!slices.Contains(known().NoHost, lower(name)) && !strings.HasPrefix(lower(name), "localhost") &&
		!strings.ContainsFunc(name, func(c rune) bool { return !isAlnum(byte(min(c, 0xff))) && c != '.' && c != '-' && c != '_' })
}

// Host notes the name of a host, so that it is replaced wherever it stands, and returns its stand-in. A name that
// is an ordinary word is replaced only where it is known to be a host's.
func (r *Redactor) Host(name string) string {
	trimmed := strings.TrimRight(strings.TrimSpace(name), ".")
	if trimmed == "" || !isHostName(trimmed) {
		return name
	}
	short, domain, _ := strings.Cut(lower(trimmed), ".")
	switch {
	case domain == exampleDomain && hostStandIn.MatchString(short):
		return short
	case hostStandIn.MatchString(short) || trimmed == exampleDomain:
		return name
	}
	// The hosts of one name in two domains are two.
	key := short
	if first, known := r.domainOf[short]; domain != "" && known && first != domain {
		key = short + "." + domain
	} else if domain != "" {
		r.domainOf[short] = domain
	}
	standIn := "host-" + strconv.Itoa(r.number("host", key))
	if distinctive(short) {
		r.learn(short, standIn)
	}
	if key != short {
		r.learn(key, standIn+"."+exampleDomain)
	}
	r.learnDomain(domain)
	return standIn
}

// learnDomain notes a domain and those above it as far as they have one owner, and the owner's name.
func (r *Redactor) learnDomain(domain string) {
	const long = 5 // A shorter name of an owner is too common to be looked for.
	for strings.Contains(domain, ".") && domain != exampleDomain && !publicHost(domain) && !slices.Contains(known().SharedDomains, domain) {
		r.domains[domain] = true
		label, rest, _ := strings.Cut(domain, ".")
		if owner := !strings.Contains(rest, ".") || slices.Contains(known().SharedDomains, rest); owner && rest != "cluster.local" && rest != "svc.cluster.local" && len(label) >= long && distinctive(label) {
			r.learn(label, "example")
		}
		domain = rest
	}
}

// hostWithDomain is Host for a name whose domain is to stay visible as one.
func (r *Redactor) hostWithDomain(name string) string {
	standIn := r.Host(name)
	if standIn != name && strings.Contains(strings.TrimRight(name, "."), ".") {
		return standIn + "." + exampleDomain
	}
	return standIn
}

func (r *Redactor) image(name string) string {
	if publicImage(name) || known().Ordinary.MatchString(lower(name)) {
		return name
	}
	standIn := r.named("image-", name)
	if repository, _, _ := strings.Cut(name, "@"); standIn != name {
		slash := strings.LastIndexByte(repository, '/')
		if colon := strings.LastIndexByte(repository, ':'); colon > slash {
			repository = repository[:colon]
		}
		if strings.Contains(repository, "/") {
			r.learn(repository, standIn)
		}
	}
	return standIn
}

func publicImage(name string) bool {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "docker://"), "library/")
	base, _, _ := strings.Cut(name, ":")
	return slices.Contains(known().PublicBases, base) ||
		slices.ContainsFunc(known().PublicImages, func(p string) bool { return strings.HasPrefix(name, p) })
}
