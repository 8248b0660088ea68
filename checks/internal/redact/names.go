package redact

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// This file finds names by what stands around them: the name of a host before a
// message of NCCL, that of a job behind --job-name.

// standIn returns what stands for a name or a number of a kind, which lies in s.
func (r *Redactor) standIn(what, name, s string, from, to int) string {
	switch what {
	case "hosts":
		return r.hosts(name)
	case "user", "home":
		if what == "user" && before(s, from) == '/' || name == "git" {
			return name
		}
		return r.user(name)
	case "job":
		return r.job(name)
	case "image":
		return r.image(name)
	case "export":
		return r.export(name)
	case "list":
		return r.bracketNames(name)
	case "serial":
		return r.serial(name)
	case "gids":
		return r.colonAddress(name)
	case "colons":
		return r.colons(s, from, to)
	case "ipvfour":
		if a, err := netip.ParseAddr(name); err == nil && !isVersion(s, from, to) {
			return r.ipv4Address(a).String()
		}
		return name
	case "share":
		if known().Ordinary.MatchString(lower(name)) || known().SharedFolders.MatchString(lower(name)) || isFile(name) {
			return name
		}
		return r.user(name)
	case "words":
		names := strings.Fields(name)
		for i := range names {
			names[i] = r.Host(names[i])
		}
		return strings.Join(names, " ")
	case "prefix":
		if known().Ordinary.MatchString(lower(name)) || strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Warning") {
			return name
		}
	case "internal":
		next := after(s, to)
		if publicHost(name) || next == '(' || next == '-' || next == '.' && isWord(after(s, to+1)) {
			return name // What every machine has, or a name in a program.
		}
	case "uuid":
		if strings.Contains(name, "_") {
			return strings.ReplaceAll(r.uuid(strings.ReplaceAll(name, "_", "-")), "-", "_")
		}
		return r.uuid(name)
	case "mac":
		if next := after(s, to); isWord(next) || next == '-' || !strings.HasSuffix(s[:from], "enx") && !strings.ContainsAny(name, "abcdefABCDEF") {
			return name // A part of something longer, a date, or a version.
		}
		return r.mac(name)
	case "guid":
		return r.guidText(name)
	case "eui":
		if least := 5; distinct(name) < least {
			return name // A mask: 000001fffeffffff.
		}
		return r.guidText(name)
	case "gid":
		return r.gidHalf(name)
	case "resource":
		kind, id, _ := strings.Cut(name, "-")
		return kind + "-" + r.counted("resource", id)
	case "account", "container":
		if strings.HasSuffix(s[:from], "sha256:") {
			return name // An image, or a file that everybody can have.
		}
		return r.counted(what, name)
	case "decimal":
		return r.decimalGUID(name)
	case "unique":
		return "0"
	}
	if strings.HasSuffix(s[:from], "://") || strings.HasSuffix(s[:from], "@") {
		if publicHost(name) {
			return name
		}
		if before(s, from) == '@' && strings.Contains(name, ".") && !strings.Contains(s[:from], "ssh") && !strings.Contains(s[:from], "scp") && !strings.Contains(s[:from], "://") && after(s, to) != ':' {
			r.learnDomain(lower(name))
			return exampleDomain // Of an address of mail.
		}
	}
	if isFile(name) {
		return name
	}
	return r.hostWithDomain(name)
}

func isFile(name string) bool {
	return slices.ContainsFunc(known().FileEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

func publicHost(name string) bool {
	name = lower(name)
	return slices.ContainsFunc(known().PublicDomains, func(d string) bool { return name == d || strings.HasSuffix(name, "."+d) })
}

// bracketNames replaces a list of hosts as Slurm writes it, node[01-16,20], unless it can be one of devices: its numbers
// have leading zeros, or its name is not a device's.
func (r *Redactor) bracketNames(list string) string {
	open := strings.IndexByte(list, '[')
	if slices.Contains(known().NumberedDevices, list[:open]) {
		return list
	}
	if list[open+1] != '0' || list[open+2] == '-' || list[open+2] == ',' {
		if known().Ordinary.MatchString(lower(list[:open])) || !strings.HasSuffix(list[:open], "-") {
			return list
		}
	}
	return r.hosts(list)
}

// maxListed bounds the hosts of lists that are learnt one by one, in all: a list of a few bytes can name millions.
const maxListed = 1 << 16

// hosts redacts a list of hosts: names with commas between, each with a number of
// slots or a port behind it, or with numbers in brackets.
func (r *Redactor) hosts(list string) string {
	var out []string
	for _, element := range listed.FindAllString(list, -1) {
		name, slots, colon := strings.Cut(element, ":")
		open, end := strings.IndexByte(name, '['), strings.IndexByte(name, ']')
		dots := len(name) - len(strings.TrimLeft(name, ".*"))
		switch {
		case open > 0 && end > open && !hostStandIn.MatchString(name):
			name = r.numbered(name[:open], name[open+1:end], name[end+1:])
		case open > 0:
		case dots > 0 && !publicHost(name[dots:]) && strings.Contains(name[dots:], "."): // A domain, in no_proxy.
			r.learnDomain(lower(name[dots:]))
			if lower(name[dots:]) != "cluster.local" {
				name = name[:dots] + exampleDomain
			}
		case dots > 0, strings.Contains(name, "/"):
		default:
			name = r.hostWithDomain(name)
		}
		if colon {
			name += ":" + slots
		}
		out = append(out, name)
	}
	return strings.Join(out, ",")
}

// listed is an element of a list of hosts: commas in brackets do not end it.
var listed = lazy.New(`(?:[^,\[]|\[[^\]]*\]?)+`)

// numbered redacts the hosts that a prefix, numbers and a suffix make, and writes their stand-ins in the same form.
func (r *Redactor) numbered(prefix, numbers, suffix string) string {
	var names []string
	for part := range strings.SplitSeq(numbers, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if isRange && err == nil {
			last, err = strconv.Atoi(high)
		}
		if err != nil || last < first || last-first >= maxListed-r.listed-len(names) {
			return r.hostWithDomain(strings.TrimRight(prefix, "-_.") + suffix)
		}
		for n := first; n <= last; n++ {
			digits := strconv.Itoa(n)
			names = append(names, prefix+strings.Repeat("0", max(0, len(low)-len(digits)))+digits+suffix)
		}
	}
	r.listed += len(names)
	var ranges []string
	first, last := 0, -1
	for _, name := range append(names, "") {
		n, err := strconv.Atoi(strings.TrimPrefix(r.Host(name), "host-"))
		switch {
		case err != nil && name != "":
			return prefix + "[" + numbers + "]" + suffix // No hosts after all.
		case n == last+1:
			last = n
			continue
		case first == last:
			ranges = append(ranges, strconv.Itoa(first))
		case first < last:
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, last))
		}
		first, last = n, n
	}
	return "host-[" + strings.Join(ranges, ",") + "]"
}

// exportStandIn is what a folder of a file server becomes.
var exportStandIn = lazy.New(`^/export-[0-9]+$`)

// export redacts the server and the folder of a mounted file system: "server:/folder", "//server/share".
func (r *Redactor) export(source string) string {
	folder := func(name string) string {
		if name == "" || name == "/" || exportStandIn.MatchString(name) {
			return name
		}
		return "/export-" + strconv.Itoa(r.number("export", name))
	}
	if rest, ok := strings.CutPrefix(source, "//"); ok {
		server, share, _ := strings.Cut(rest, "/")
		return "//" + r.hostWithDomain(server) + folder("/"+share)
	}
	servers, name, ok := strings.Cut(source, ":/")
	if !ok {
		return source // A device, or a tag.
	}
	return r.hosts(servers) + ":" + folder("/"+name)
}

// isHostVariable reports whether the value of a variable is a host, or a list of them.
func isHostVariable(name string) bool {
	name = lower(name)
	return slices.ContainsFunc(known().HostVariables, func(v string) bool { return name == v || strings.HasSuffix(name, "_"+v) })
}

func (r *Redactor) hostVariable(value string) string {
	if scheme, rest, ok := strings.Cut(value, "://"); ok {
		return scheme + "://" + r.hosts(rest)
	}
	return r.hosts(value)
}
