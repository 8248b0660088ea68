package redact

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// colons redacts groups of hex digits between colons: MAC and IPv6 addresses, GUIDs.
func (r *Redactor) colons(s string, from, to int) string {
	// A group that is the end or the beginning of a word is no part of an address.
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
}

// Lengths of addresses that are written as pairs of hex digits.
const (
	macBytes   = 6
	euiBytes   = 8
	ipoibBytes = 20 // INFINIBAND_ALEN, include/uapi/linux/if_infiniband.h.
)

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
			return r.mac(s)
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

// mac redacts an address that is written as pairs of digits, with what stands
// between them. Zeros and ones, which stand for none and for all, are left.
func (r *Redactor) mac(s string) string {
	digits := strings.ToLower(strings.NewReplacer(":", "", "-", "", ".", "").Replace(s))
	last := len(digits) - 6 // Digits that count.
	if strings.Trim(digits, "0") == "" || strings.Trim(digits, "f") == "" || strings.HasPrefix(digits, "02") && strings.Trim(digits[2:last], "0") == "" {
		return s
	}
	// Bit 1 of the first byte: locally administered.
	standIn := fmt.Sprintf("02%0*x", len(digits)-2, r.number("mac", digits))
	out := []byte(s)
	for i, next := 0, 0; i < len(out); i++ {
		if isAlnum(out[i]) {
			out[i] = standIn[next]
			next++
		}
	}
	return string(out)
}

// guidStandIn begins the stand-ins of GUIDs: it is locally administered.
const guidStandIn = 0x0200_0000_0000_0000

// guid redacts a GUID, or the lower half of an IPv6 address, which on InfiniBand is one. Zero stands for none.
func (r *Redactor) guid(n uint64) uint64 {
	if n == 0 || n&^0xffff == guidStandIn {
		return n
	}
	return guidStandIn + uint64(r.number("guid", strconv.FormatUint(n, 16)))
}

// guidText redacts a GUID of 16 digits, which may be in four groups.
func (r *Redactor) guidText(s string) string {
	n, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	if err != nil {
		return s
	}
	n = r.guid(n)
	if !strings.Contains(s, ":") {
		return fmt.Sprintf("%016x", n)
	}
	return fmt.Sprintf("%04x:%04x:%04x:%04x", n>>48, n>>32&0xffff, n>>16&0xffff, n&0xffff)
}

// gidHalf redacts the lower half of a GID as NCCL prints it: its bytes in the order of
// the network, read as a number of the host.
func (r *Redactor) gidHalf(s string) string {
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return s
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	if b[0] == 0 && b[1] == 0 && b[2] == 0xff && b[3] == 0xff { // An IPv4 address.
		v4 := r.ipv4Address(netip.AddrFrom4([4]byte(b[4:]))).As4()
		copy(b[4:], v4[:])
	} else {
		binary.BigEndian.PutUint64(b[:], r.guid(binary.BigEndian.Uint64(b[:])))
	}
	return fmt.Sprintf("%X", binary.LittleEndian.Uint64(b[:]))
}

// Prefixes of IPv6 networks.
const (
	linkLocal     = 0xfe80_0000_0000_0000 // RFC 4291.
	documentation = 0x2001_0db8_0000_0000 // RFC 3849.
	uniqueLocal   = 0xfd00_0000_0000_0000 // RFC 4193.
)

// ipv6 redacts an address. The upper half becomes a network for documentation unless it is link-local or unique
// local; the lower half is taken for a GUID. Loopback, none and multicast are left.
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
	return netip.AddrFrom16(b).StringExpanded() // As the kernel writes GIDs, mapped IPv4 addresses included.
}

// network redacts the upper half of an address.
func (r *Redactor) network(high uint64) uint64 {
	const numbers = 0xffff // What stand-ins count with.
	if high == 0 || high == linkLocal || high&^numbers == documentation || high&^numbers == uniqueLocal {
		return high
	}
	n := uint64(r.number("net", strconv.FormatUint(high, 16)))
	if high>>57 == uniqueLocal>>57 {
		return uniqueLocal + n
	}
	if high>>54 == linkLocal>>54 {
		return linkLocal
	}
	return documentation + n
}

// What stands before four numbers that are a version or a part of something longer: a letter, a dash (cublas-12.1.3.1, but not
// 10.0.0.1-10.0.0.9), a Python requirement, a word for a version, the name of a program. And what stands behind them.
var (
	versionBefore = lazy.New(`(?i)(?:[\w.\x{80}-\x{10FFFF}]|(?:^|[^0-9])-|[=<>~!]=|` +
		`(?:version|release|firmware|bios|driver|build|\bver|\brev|\bfw|\bv)(?:["']?[\s:=("'\[]*| is )|` +
		`\b(?:rocm|hip|rocr|rocblas|miopen|[nr]ccl|cuda|cudnn|cublas|nvshmem|ucx|ucc|ofed|mofed|libfabric|efa|openmpi|open mpi|torch|pytorch|kernel)["']?[\s("'\[]*)$`)
	versionBehind = lazy.New(`^\.?[\w\x{80}-\x{10FFFF}]`)
	portBehind    = lazy.New(`^\.[\w-]+(?: > |: (?:Flags|UDP|ICMP))`) // As tcpdump writes it.
	rangeBehind   = lazy.New(`^-[0-9]{1,3}(?:\.[0-9]{1,3}){3}`)
	folderBefore  = lazy.New(`(?:^|[^/])/$`)
)

// isVersion reports whether four numbers are a version or a part of something longer.
func isVersion(s string, from, to int) bool {
	const reach = 24 // Enough for the word before it and what joins the two, or for another address.
	head, tail := s[max(0, from-reach):from], s[to:min(to+reach, len(s))]
	return versionBefore.MatchString(head) || versionBehind.MatchString(tail) && !portBehind.MatchString(tail) ||
		strings.HasPrefix(tail, "-") && !rangeBehind.MatchString(tail) || // 5.15.0.1-generic.
		strings.HasPrefix(tail, "/") && folderBefore.MatchString(head) // No URL.
}

// ipv4Networks are left as they are: those for documentation (RFC 5737) and tests (RFC 2544), and the defaults of
// Docker, libvirt and Podman, which rules/lib/networks.rego looks for.
var ipv4Networks = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("172.17.0.0/16"), netip.MustParsePrefix("192.168.122.0/24"), netip.MustParsePrefix("10.88.0.0/16"),
}

// The stand-ins of IPv4 addresses lie in 240.0.0.0/4, which is reserved (RFC 1112). The first number stands for a
// first number, the last one for all that are left.
const (
	ipv4First, ipv4Last = 240, 254
	ipv4HostBits        = 24
)

// ipv4Address redacts one address. Loopback, masks, multicast and 0.x are left. Two addresses share as many bits
// beyond the first eight as their stand-ins do: what is in one network stays in one.
func (r *Redactor) ipv4Address(a netip.Addr) netip.Addr {
	b := a.As4()
	switch {
	case b[0] == 0 || a.IsLoopback() || b[0] >= 224 || slices.ContainsFunc(ipv4Networks, func(p netip.Prefix) bool { return p.Contains(a) }):
		return a
	case a.IsLinkLocalUnicast():
		if b[2] == 0 {
			return a // A stand-in, or one that tells no machine from another.
		}
		n := r.number("link-local ipv4", a.String())
		return netip.AddrFrom4([4]byte{b[0], b[1], 0, byte(n)})
	}
	class := ipv4First + r.number("ipv4", strconv.Itoa(int(b[0]))) - 1
	host := binary.BigEndian.Uint32(b[:]) & (1<<ipv4HostBits - 1)
	if class >= ipv4Last {
		class, host = ipv4Last, uint32(r.number("ipv4 rest", a.String()))
	} else {
		host = r.hostBits(b[0], host)
	}
	binary.BigEndian.PutUint32(b[:], uint32(class)<<ipv4HostBits|host)
	return netip.AddrFrom4(b)
}

// hostBits returns what stands for the lower bits of an address: the bits that it shares with its nearest neighbour
// are that one's, then come the bit that differs, and zeros.
func (r *Redactor) hostBits(first byte, host uint32) uint32 {
	seen := r.ipv4Seen[first]
	at, found := slices.BinarySearchFunc(seen, host, func(e ipv4Pair, host uint32) int { return cmp.Compare(e.real, host) })
	if found {
		return seen[at].standIn
	}
	pair := ipv4Pair{real: host, standIn: 1}
	lent := ipv4HostBits + 1
	for _, i := range []int{at - 1, at} {
		if i < 0 || i >= len(seen) {
			continue
		}
		if differ := bits.Len32(seen[i].real ^ host); differ < lent {
			lent = differ
			pair.standIn = (seen[i].standIn>>(differ-1) ^ 1) << (differ - 1)
		}
	}
	r.ipv4Seen[first] = slices.Insert(seen, at, pair)
	return pair.standIn
}

// ipv4Pair is the lower bits of an address, and what stands for them.
type ipv4Pair struct{ real, standIn uint32 }
