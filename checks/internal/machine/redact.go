package machine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Redactor replaces what identifies a machine, its network or its users by
// stand-ins: host names, serial numbers, UUIDs, MAC and IP addresses, GUIDs,
// user names in paths, and secrets. The same thing always gets the same
// stand-in, and a stand-in stays as it is, so that redacting twice changes
// nothing. What faults depend on stays recognisable: loopback and link-local
// addresses, zeros, IPv4 addresses in GIDs. PCI addresses, versions and times
// are left alone.
//
// A Redactor is not safe for concurrent use.
type Redactor struct {
	// standIns maps a kind of thing, then the thing, to its number.
	standIns map[kind]map[string]int
	// words are names that were learnt and are to be replaced wherever they
	// stand: those of hosts, and serial numbers.
	words map[string]string
	// domains are the parts of host names after the first dot.
	domains []string
	// homes are home folders outside /home.
	homes map[string]string
	// known finds what is in words; nil when that has changed.
	known *regexp.Regexp
}

// kind is a kind of thing that has stand-ins of its own.
type kind string

const (
	kindHost   kind = "host"
	kindSerial kind = "serial"
	kindUser   kind = "user"
	kindUUID   kind = "uuid"
	kindMAC    kind = "mac"
	kindGUID   kind = "guid"
	kindNet    kind = "net"
	kindIPv4   kind = "ipv4"
	kindLocal4 kind = "link-local ipv4"
)

// redacted stands for a secret. Nothing tells two of them apart.
const redacted = "redacted"

// NewRedactor returns a redactor that has seen nothing yet.
func NewRedactor() *Redactor {
	return &Redactor{standIns: make(map[kind]map[string]int), words: make(map[string]string), homes: make(map[string]string)}
}

// number returns the number of a thing among those of its kind, from 1.
func (r *Redactor) number(k kind, thing string) int {
	seen := r.standIns[k]
	if seen == nil {
		seen = make(map[string]int)
		r.standIns[k] = seen
	}
	n, ok := seen[thing]
	if !ok {
		n = len(seen) + 1
		seen[thing] = n
	}
	return n
}

// Text redacts a text.
func (r *Redactor) Text(s string) string { return r.text(s, true) }

// text redacts a text; where dotted numbers are versions they are left alone.
// It goes line by line, because most lines hold nothing that a pattern has to
// be tried on.
func (r *Redactor) text(s string, addresses bool) string {
	if s == "" || !utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	out.Grow(len(s))
	for line := range strings.Lines(s) {
		out.WriteString(r.line(line, addresses))
	}
	return out.String()
}

func (r *Redactor) line(s string, addresses bool) string {
	s = r.secrets(s)
	s = r.users(s)
	s = r.serialNumbers(s)
	s = r.learnt(s)
	s = r.uuids(s)
	s = r.colons(s)
	s = r.macs(s)
	if addresses {
		s = r.ipv4(s)
	}
	return s
}

// replace replaces the matches of a pattern for which f has something else.
// F is given the text and where the match lies in it.
func replace(s string, pattern *regexp.Regexp, f func(s string, from, to int) string) string {
	matches := pattern.FindAllStringIndex(s, -1)
	if matches == nil {
		return s
	}
	var b strings.Builder
	last := 0
	for _, m := range matches {
		b.WriteString(s[last:m[0]])
		b.WriteString(f(s, m[0], m[1]))
		last = m[1]
	}
	b.WriteString(s[last:])
	return b.String()
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

var (
	assignment = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_.-]*=("[^"\n]*"|'[^'\n]*'|[^\s"']+)`)
	userinfo   = regexp.MustCompile(`://[^/\s@"']+@`)
)

// secrets replaces the values of variables whose names say that they are
// secret, and credentials in URLs.
func (r *Redactor) secrets(s string) string {
	if strings.Contains(s, "=") {
		s = replace(s, assignment, func(s string, from, to int) string {
			name, value, _ := strings.Cut(s[from:to], "=")
			if secretVariable(name, strings.Trim(value, `"'`)) {
				return name + "=" + redacted
			}
			return s[from:to]
		})
	}
	if strings.Contains(s, "@") {
		s = userinfo.ReplaceAllString(s, "://"+redacted+"@")
	}
	return s
}

// homeFolder finds a user's name where home folders usually lie.
var homeFolder = regexp.MustCompile(`/(?:home|Users|users)/[^/\s:"',;=()<>|\[\]*$]+`)

// userStandIn is what the name of a user becomes.
var userStandIn = regexp.MustCompile(`^user[0-9]+$`)

// user returns the stand-in of a user's name.
func (r *Redactor) user(name string) string {
	if name == "root" || userStandIn.MatchString(name) {
		return name
	}
	return "user" + strconv.Itoa(r.number(kindUser, name))
}

// users replaces the names of users in paths.
func (r *Redactor) users(s string) string {
	for _, home := range slices.Sorted(maps.Keys(r.homes)) {
		for at := 0; ; {
			i := strings.Index(s[at:], home)
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(home)
			if c := after(s, at); !isWord(c) && c != '-' && c != '.' {
				s = s[:from] + r.homes[home] + s[at:]
				at = from + len(r.homes[home])
			}
		}
	}
	if !strings.Contains(s, "ome/") && !strings.Contains(s, "sers/") {
		return s
	}
	return replace(s, homeFolder, func(s string, from, to int) string {
		i := strings.LastIndexByte(s[from:to], '/') + 1
		return s[from:from+i] + r.user(s[from+i:to])
	})
}

// learnHome notes a home folder, whose last part is taken for the user's name.
func (r *Redactor) learnHome(home string) {
	home = path.Clean(home)
	if dir, name := path.Split(home); path.IsAbs(home) && name != "" && name != "root" && dir != "/home/" && dir != "/" {
		r.homes[home] = dir + r.user(name)
	}
}

// ordinary are host names that are words or numbered devices as well: to
// replace them wherever they stand would spoil what is said of a machine.
var ordinary = regexp.MustCompile(`^(?i:localhost|node|gpu|cpu|numa|eth|ib|en[ospx]|mlx\d_|nvme|vm|host|worker|master|server|linux|ubuntu|debian|nvidia|amdgpu|kernel|compute|head|login|container|docker|kube|training|inference|instance|default|unknown|system|machine|hypervisor|gpudoctor|redacted)[-_]?\d*$`)

// hostStandIn is what the name of a host becomes.
var hostStandIn = regexp.MustCompile(`^host-[0-9]+$`)

// Host notes the name of a host, so that it is replaced wherever it stands,
// and returns its stand-in. A name that is an ordinary word is replaced only
// where it is known to be a host's.
func (r *Redactor) Host(name string) string {
	short, domain, _ := strings.Cut(strings.TrimSpace(name), ".")
	if short == "" || short == "localhost" || short == "(none)" || hostStandIn.MatchString(short) {
		return name
	}
	standIn := "host-" + strconv.Itoa(r.number(kindHost, short))
	if distinctive(short) {
		r.learn(short, standIn)
	}
	if strings.Contains(domain, ".") && !slices.Contains(r.domains, domain) {
		r.domains = append(r.domains, domain)
		r.known = nil
	}
	return standIn
}

func distinctive(name string) bool {
	const long, short = 8, 4 // A word of eight letters is no abbreviation in a driver's log.
	return !ordinary.MatchString(name) &&
		(len(name) >= long || len(name) >= short && strings.ContainsAny(name, "0123456789-"))
}

// serial returns the stand-in of a serial number.
func (r *Redactor) serial(number string) string {
	trimmed := strings.Trim(number, " []")
	if len(trimmed) < 4 || strings.EqualFold(trimmed, "unknown") || strings.Trim(trimmed, "0") == "" ||
		strings.HasPrefix(trimmed, "serial-") || strings.HasPrefix(strings.ToLower(trimmed), "not ") {
		return number // "N/A", "Not Specified", or nothing that tells one from another.
	}
	standIn := "serial-" + strconv.Itoa(r.number(kindSerial, trimmed))
	if len(trimmed) >= 6 && strings.ContainsAny(trimmed, "0123456789") {
		r.learn(trimmed, standIn)
	}
	return standIn
}

// learn makes a word be replaced wherever it stands.
func (r *Redactor) learn(word, standIn string) {
	if _, ok := r.words[word]; !ok {
		r.words[word] = standIn
		r.known = nil
	}
}

// learnt replaces the words that were learnt.
func (r *Redactor) learnt(s string) string {
	if len(r.words) == 0 && len(r.domains) == 0 {
		return s
	}
	if r.known == nil {
		var words []string
		for word := range r.words {
			words = append(words, regexp.QuoteMeta(word))
		}
		for _, domain := range r.domains {
			words = append(words, regexp.QuoteMeta("."+domain))
		}
		// The longest first: a name may begin with another.
		slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
		r.known = regexp.MustCompile(strings.Join(words, "|"))
	}
	return replace(s, r.known, func(s string, from, to int) string {
		match := s[from:to]
		switch next := after(s, to); {
		case isWord(next) || next == '-':
			return match
		case match[0] == '.':
			return ".example.com" // Reserved for documentation, RFC 2606.
		}
		if prev := before(s, from); isWord(prev) || prev == '-' {
			return match
		}
		return r.words[match]
	})
}

// serialNumber finds what a program calls a serial number.
var serialNumber = regexp.MustCompile(`(?i)serial[ _-]?(?:number|no\.?)["']?\s*[:=]\s*["']?[A-Za-z0-9][A-Za-z0-9._-]{3,}`)

func (r *Redactor) serialNumbers(s string) string {
	if !strings.Contains(s, "erial") && !strings.Contains(s, "ERIAL") {
		return s
	}
	return replace(s, serialNumber, func(s string, from, to int) string {
		match := s[from:to]
		i := strings.LastIndexAny(match, "\"' :=\t") + 1
		return match[:i] + r.serial(match[i:])
	})
}

var uuidPattern = regexp.MustCompile(`[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`)

// uuidStandIn begins the stand-ins of UUIDs; those that begin so are left.
const uuidStandIn = "00000000-0000-0000-0000-"

func (r *Redactor) uuids(s string) string {
	if strings.Count(s, "-") < 4 {
		return s
	}
	return replace(s, uuidPattern, func(s string, from, to int) string {
		if isWord(before(s, from)) || isWord(after(s, to)) {
			return s[from:to]
		}
		return r.uuid(s[from:to])
	})
}

func (r *Redactor) uuid(s string) string {
	s = strings.ToLower(s)
	if strings.HasPrefix(s, uuidStandIn) {
		return s
	}
	return fmt.Sprintf("%s%012d", uuidStandIn, r.number(kindUUID, s))
}

// colonRun finds groups of hex digits between colons: MAC and IPv6 addresses,
// GUIDs, but also PCI addresses and times.
var colonRun = regexp.MustCompile(`[0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,}`)

func (r *Redactor) colons(s string) string {
	if strings.Count(s, ":") < 2 {
		return s
	}
	return replace(s, colonRun, func(s string, from, to int) string {
		// A group that is the end or the beginning of a word is none.
		start, end := from, to
		if isWord(before(s, from)) {
			start += strings.IndexByte(s[start:end], ':') + 1
		}
		if isWord(after(s, to)) {
			end = start + max(strings.LastIndexByte(s[start:end], ':'), 0)
		}
		// So is a single colon at either end: "addr:", "fe80::1: timeout".
		for end-start >= 2 && s[start] == ':' && s[start+1] != ':' {
			start++
		}
		for end-start >= 2 && s[end-1] == ':' && s[end-2] != ':' {
			end--
		}
		return s[from:start] + r.colonAddress(s[start:end]) + s[end:to]
	})
}

// Lengths of addresses that are written as pairs of hex digits.
const (
	macBytes   = 6
	euiBytes   = 8
	ipoibBytes = 20 // INFINIBAND_ALEN, include/uapi/linux/if_infiniband.h.
)

// colonAddress redacts one address.
func (r *Redactor) colonAddress(s string) string {
	groups := strings.Split(s, ":")
	width := func(g []string, n int) bool {
		return !slices.ContainsFunc(g, func(g string) bool { return len(g) != n })
	}
	if len(groups) > macBytes && len(groups[0]) != 2 && width(groups[1:], 2) {
		return groups[0] + ":" + r.colonAddress(s[len(groups[0])+1:]) // A word such as "face" before it.
	}
	switch {
	case width(groups, 2):
		switch len(groups) {
		case macBytes, euiBytes, ipoibBytes:
			return r.mac(groups, ":")
		}
		return s
	case width(groups, 4) && len(groups) == 4:
		return r.guidText(s)
	}
	address, err := netip.ParseAddr(s)
	if err != nil || !address.Is6() {
		return s
	}
	full := width(groups, 4) && len(groups) == 8
	if !full && !assigned(address) {
		return s // "c10::cafe" is a name in a program.
	}
	return r.ipv6(address, full)
}

// assigned reports whether an address lies where hosts have theirs.
func assigned(a netip.Addr) bool {
	return a.IsLinkLocalUnicast() || a.IsPrivate() || a.As16()[0]&0xe0 == 0x20 || a.As16()[0] == 0xfe
}

// mac redacts an address that is written as pairs of digits. Zeros and ones,
// which stand for none and for all, are left.
func (r *Redactor) mac(groups []string, separator string) string {
	s := strings.ToLower(strings.Join(groups, ""))
	if strings.Trim(s, "0") == "" || strings.Trim(s, "f") == "" || isMACStandIn(s) {
		return strings.Join(groups, separator)
	}
	standIn := macStandIn(r.number(kindMAC, s), len(groups))
	pairs := make([]string, len(groups))
	for i := range pairs {
		pairs[i] = standIn[2*i : 2*i+2]
	}
	return strings.Join(pairs, separator)
}

// macStandIn returns a locally administered address (bit 1 of the first byte)
// as hex digits.
func macStandIn(n, length int) string { return fmt.Sprintf("02%0*x", 2*length-2, n) }

func isMACStandIn(digits string) bool {
	return strings.HasPrefix(digits, "02") && strings.Trim(digits[2:len(digits)-6], "0") == ""
}

var (
	dashedMAC = regexp.MustCompile(`[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5,6}`)
	namedMAC  = regexp.MustCompile(`\benx[0-9a-f]{12}\b`)
	bareGUID  = regexp.MustCompile(`(?i)guid["']?[ =:]{1,3}["']?(?:0x)?[0-9a-f]{16}\b`)
)

// macs redacts MAC addresses in other forms: with dashes, after the hardware
// type as boot loaders pass it (BOOTIF=01-...), and in names of interfaces;
// and GUIDs without colons.
func (r *Redactor) macs(s string) string {
	if strings.Count(s, "-") >= macBytes-1 {
		s = replace(s, dashedMAC, func(s string, from, to int) string {
			match := s[from:to]
			prev, next := before(s, from), after(s, to)
			if isWord(prev) || prev == '-' || isWord(next) || next == '-' || !strings.ContainsAny(match, "abcdefABCDEF") {
				return match // A part of something longer, or a date.
			}
			groups := strings.Split(match, "-")
			if len(groups) > macBytes {
				return groups[0] + "-" + r.mac(groups[1:], "-")
			}
			return r.mac(groups, "-")
		})
	}
	if strings.Contains(s, "enx") {
		s = replace(s, namedMAC, func(s string, from, to int) string {
			digits := s[from+len("enx") : to]
			if isMACStandIn(digits) {
				return s[from:to]
			}
			return "enx" + macStandIn(r.number(kindMAC, digits), macBytes)
		})
	}
	if !strings.Contains(s, "uid") && !strings.Contains(s, "UID") {
		return s
	}
	return replace(s, bareGUID, func(s string, from, to int) string {
		i := to - 16
		n, err := strconv.ParseUint(s[i:to], 16, 64)
		if err != nil {
			return s[from:to]
		}
		return s[from:i] + fmt.Sprintf("%016x", r.guid(n))
	})
}

// guidStandIn begins the stand-ins of GUIDs: it is locally administered.
const guidStandIn = 0x0200_0000_0000_0000

// guid redacts a GUID, or the lower half of an IPv6 address, which on
// InfiniBand is one. Zero stands for none.
func (r *Redactor) guid(n uint64) uint64 {
	if n == 0 || n&^0xffff == guidStandIn {
		return n
	}
	return guidStandIn + uint64(r.number(kindGUID, strconv.FormatUint(n, 16)))
}

// guidText redacts a GUID of four groups.
func (r *Redactor) guidText(s string) string {
	n, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	if err != nil {
		return s
	}
	n = r.guid(n)
	return fmt.Sprintf("%04x:%04x:%04x:%04x", n>>48, n>>32&0xffff, n>>16&0xffff, n&0xffff)
}

// Prefixes of IPv6 networks.
const (
	linkLocal     = 0xfe80_0000_0000_0000 // RFC 4291.
	documentation = 0x2001_0db8_0000_0000 // RFC 3849.
	uniqueLocal   = 0xfd00_0000_0000_0000 // RFC 4193.
)

// ipv6 redacts an address. The upper half becomes a network for documentation
// unless it is link-local or unique local; the lower half is taken for a
// GUID. Loopback, none and multicast are left.
func (r *Redactor) ipv6(a netip.Addr, full bool) string {
	b := a.As16()
	high, low := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	switch {
	case a.IsLoopback() || a.IsUnspecified() || a.IsMulticast():
	case a.Is4In6():
		v4 := r.ipv4Address(a.Unmap()).As4()
		copy(b[12:], v4[:])
	default:
		binary.BigEndian.PutUint64(b[:8], r.network(high))
		binary.BigEndian.PutUint64(b[8:], r.guid(low))
	}
	if !full {
		return netip.AddrFrom16(b).String()
	}
	groups := make([]string, 0, len(b)/2)
	for pair := range slices.Chunk(b[:], 2) { // As the kernel writes GIDs, mapped IPv4 addresses included.
		groups = append(groups, fmt.Sprintf("%02x%02x", pair[0], pair[1]))
	}
	return strings.Join(groups, ":")
}

// network redacts the upper half of an address.
func (r *Redactor) network(high uint64) uint64 {
	const numbers = 0xffff // What stand-ins count with.
	if high == 0 || high == linkLocal || high&^numbers == documentation || high&^numbers == uniqueLocal {
		return high
	}
	n := uint64(r.number(kindNet, strconv.FormatUint(high, 16)))
	if high>>57 == uniqueLocal>>57 {
		return uniqueLocal + n
	}
	if high>>54 == linkLocal>>54 {
		return linkLocal
	}
	return documentation + n
}

// dotted finds four numbers with dots between them.
var dotted = regexp.MustCompile(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}`)

// versionWord ends the text before a version.
var versionWord = regexp.MustCompile(`(?i)(?:version|release|firmware|bios|driver|build|\bver|\brev|\bfw|\bv)["']?[\s:=("'\[]*$`)

// ipv4 redacts IPv4 addresses, and leaves versions.
func (r *Redactor) ipv4(s string) string {
	if strings.Count(s, ".") < 3 {
		return s
	}
	return replace(s, dotted, func(s string, from, to int) string {
		match := s[from:to]
		a, err := netip.ParseAddr(match)
		if err != nil || isVersion(s, from, to) {
			return match
		}
		return r.ipv4Address(a).String()
	})
}

// isVersion reports whether four numbers are a version or a part of something
// longer, by what stands around them.
func isVersion(s string, from, to int) bool {
	prev, next := before(s, from), after(s, to)
	beyond := after(s, min(to+1, len(s)))
	switch {
	case isWord(prev) || prev == '.' || isWord(next) || next == '.' && isWord(beyond):
		return true
	case prev == '-' && !isDigit(before(s, from-1)): // cublas-12.1.3.1, but 10.0.0.1-10.0.0.9.
		return true
	case next == '-' && !dotted.MatchString(s[to:min(to+16, len(s))]): // 5.15.0.1-generic.
		return true
	case prev == '=' && from >= 2 && strings.IndexByte("=<>~!", s[from-2]) >= 0: // A Python requirement.
		return true
	case prev == '/' && next == '/' && before(s, from-1) != '/': // A folder, no URL.
		return true
	}
	const reach = 24 // Enough for the word before it and what joins the two.
	return versionWord.MatchString(s[max(0, from-reach):from])
}

// ipv4Networks are reserved for documentation (RFC 5737), and for tests of
// devices (RFC 2544) once they are used up.
var ipv4Networks = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
}

// ipv4Address redacts one address. Loopback, masks, multicast, and 0.x, which
// stands for this host, are left.
func (r *Redactor) ipv4Address(a netip.Addr) netip.Addr {
	b := a.As4()
	isStandIn := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case b[0] == 0 || a.IsLoopback() || b[0] >= 224 || slices.ContainsFunc(ipv4Networks, isStandIn):
		return a
	case a.IsLinkLocalUnicast():
		if b[2] == 0 {
			return a // A stand-in, or one that tells no machine from another.
		}
		n := r.number(kindLocal4, a.String())
		return netip.AddrFrom4([4]byte{b[0], b[1], 0, byte(n)})
	}
	n := r.number(kindIPv4, a.String())
	for _, network := range ipv4Networks {
		const hosts = 254 // Of a network of 24 bits.
		if n <= hosts || network.Bits() < 24 {
			b := network.Addr().As4()
			base := binary.BigEndian.Uint32(b[:]) + uint32(n)
			binary.BigEndian.PutUint32(b[:], base)
			return netip.AddrFrom4(b)
		}
		n -= hosts
	}
	return a // Not reached: the last network takes all.
}
