package redact

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/lazy"
)

// EncodeJSON writes JSON without a line feed at its end.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// versionName is in the name of a field or of a file that holds a version.
var versionName = lazy.New(`(?i)version|bios|firmware|fw_ver|release`)

// HostFiles hold the name of the host, and nothing else.
var HostFiles = []string{"/etc/hostname", "/proc/sys/kernel/hostname"}

// File redacts the content of a file.
func (r *Redactor) File(name string, data []byte) []byte {
	switch {
	case len(data) == 0:
		return data
	case slices.Contains(HostFiles, name):
		return []byte(r.Host(strings.TrimSpace(string(data))) + "\n")
	case name == "/etc/passwd":
		return r.passwd(data)
	case name == "/proc/cmdline":
		// What follows "--" is for init, not for the kernel (admin-guide/kernel-parameters).
		words, _, _ := strings.Cut(strings.TrimSpace(string(data)), " -- ")
		return []byte(r.Content(words, true) + "\n")
	case strings.HasPrefix(name, "/sys/class/kfd/") && path.Base(name) == "properties":
		return []byte(apply(known().KFD, string(data), r.standIn))
	case strings.HasPrefix(name, "/sys/") && path.Base(name) == "xgmi_hive_id":
		return []byte(r.decimalGUID(strings.TrimSpace(string(data))) + "\n")
	case strings.HasPrefix(name, "/sys/") && path.Base(name) == "config":
		return withoutSerialNumber(data)
	case bytes.ContainsFunc(data[:min(len(data), binaryHead)], isBinary):
		return data
	}
	return []byte(r.Content(string(data), !versionName.MatchString(path.Base(name))))
}

// decimalGUID redacts an identifier that is written as a decimal number.
func (r *Redactor) decimalGUID(s string) string {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return "0"
	}
	return strconv.FormatUint(r.guid(n), 10)
}

// binaryHead is how much of a file tells whether it is a text.
const binaryHead = 4 << 10

// isBinary reports whether a character is in no text. NUL parts the texts in
// /proc/PID/environ, and escape sequences colour them.
func isBinary(c rune) bool { return c < ' ' && !strings.ContainsRune("\t\n\r\x00\x1b", c) }

// passwd redacts a list of accounts, without what people are called and whether they have a password.
func (r *Redactor) passwd(data []byte) []byte {
	const fields, firstUser, nobody = 7, 1000, 65534 // passwd(5), and login.defs(5) for the numbers.
	var out strings.Builder
	for line := range strings.Lines(string(data)) {
		text := strings.TrimSuffix(line, "\n")
		f := strings.Split(text, ":")
		if len(f) != fields {
			out.WriteString(r.Text(line))
			continue
		}
		var uid int
		if _, err := fmt.Sscanf(f[2], "%d", &uid); err == nil && uid >= firstUser && uid != nobody {
			r.LearnHome(f[5])
			f[0] = r.user(f[0])
		}
		f[1], f[4] = "x", ""
		f[5] = r.Text(f[5])
		out.WriteString(strings.Join(f, ":") + line[len(text):])
	}
	return []byte(out.String())
}

// Environ redacts an entry of an environment.
func (r *Redactor) Environ(entry string) string {
	name, value, ok := strings.Cut(entry, "=")
	if !ok || !identifier.MatchString(name) {
		return r.Text(entry)
	}
	return name + "=" + r.setting(name, value)
}

var identifier = lazy.New(`^[A-Za-z_]\w*$`)

// withoutSerialNumber returns a PCI config space in which the serial number of the device, on a NIC made of its MAC
// address, is zero: the extended capability 3, of 12 bytes (PCI Express base specification, 7.9.3).
func withoutSerialNumber(config []byte) []byte {
	const extended, header, length, id = 0x100, 4, 12, 0x0003
	out := bytes.Clone(config)
	// 960: as many headers as fit into extended config space.
	for at, seen := extended, 0; at >= extended && at+header <= len(out) && seen < 960; seen++ {
		word := binary.LittleEndian.Uint32(out[at:])
		if word&0xffff == id {
			clear(out[at+header : min(at+length, len(out))])
		}
		at = int(word >> 20 &^ 3)
	}
	return out
}
