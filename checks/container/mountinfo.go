package container

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mount is one mount, a line of proc_pid_mountinfo(5).
type Mount struct {
	// Root is the folder in the file system that is mounted, Mountpoint where.
	Root, Mountpoint    string
	Options, VFSOptions string
	// FSType is the type of the file system.
	FSType string
}

// ReadOnly reports whether a mount, or its whole file system, is read-only.
func (m *Mount) ReadOnly() bool {
	return slices.Contains(strings.Split(m.Options+","+m.VFSOptions, ","), "ro")
}

// ParseMounts parses /proc/self/mountinfo: the parser of github.com/moby/sys exists on Linux only. A last line that lacks its
// newline was truncated and is left out.
func ParseMounts(b []byte) ([]*Mount, error) {
	var all []*Mount
	for line := range bytes.Lines(b) {
		whole, complete := bytes.CutSuffix(line, []byte("\n"))
		if !complete {
			break
		}
		m, err := parseMount(string(bytes.TrimSuffix(whole, []byte("\r"))))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func parseMount(line string) (*Mount, error) {
	// The options of the file system may contain spaces (cifs before Linux 3.10).
	before, after, found := strings.Cut(line, " - ")
	fields, behind := strings.Split(before, " "), strings.Split(after, " ")
	if !found || len(fields) < 6 || len(behind) < 3 {
		return nil, fmt.Errorf("line %q is no mount: it lacks fields", line)
	}
	return &Mount{
		Root: unescapeMount(fields[3]), Mountpoint: unescapeMount(fields[4]), Options: fields[5],
		FSType: unescapeMount(behind[0]), VFSOptions: behind[2],
	}, nil
}

// unescapeMount decodes what the kernel writes as a backslash and three octal digits (fs/seq_file.c, mangle_path).
func unescapeMount(field string) string {
	if !strings.Contains(field, `\`) {
		return field
	}
	var b strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && len(field)-i > 3 {
			if c, err := strconv.ParseUint(field[i+1:i+4], 8, 7); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(field[i])
	}
	return b.String()
}
