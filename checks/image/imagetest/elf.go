package imagetest

import "encoding/binary"

// ELF is an ELF file with its string table at one place and its dynamic section at another,
// that names the folders of DT_RPATH and DT_RUNPATH; an empty one is not named.
func ELF(rpath, runpath string, strings, dynamic int) []byte {
	const (
		base, head, program   = 0x10000, 64, 56
		load, dynamicSection  = 1, 2
		strTab, rpathTag, run = 5, 15, 29
	)
	le := binary.LittleEndian
	b := make([]byte, max(strings, dynamic)+8192)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint64(b[32:], head)
	le.PutUint16(b[54:], program)
	le.PutUint16(b[56:], 2)
	for i, p := range [][4]int{{load, 0, base, len(b)}, {dynamicSection, dynamic, base + dynamic, 64}} {
		at := b[head+i*program:]
		le.PutUint32(at, uint32(p[0]))
		le.PutUint64(at[8:], uint64(p[1]))
		le.PutUint64(at[16:], uint64(p[2]))
		le.PutUint64(at[32:], uint64(p[3]))
	}
	next, tags := strings+1, 0
	tag := func(name, value int) {
		le.PutUint64(b[dynamic+tags*16:], uint64(name))
		le.PutUint64(b[dynamic+tags*16+8:], uint64(value))
		tags++
	}
	tag(strTab, base+strings)
	for i, text := range []string{rpath, runpath} {
		if text != "" {
			copy(b[next:], text)
			tag([]int{rpathTag, run}[i], next-strings)
			next += len(text) + 1
		}
	}
	return b
}
