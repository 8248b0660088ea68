package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// LoaderPaths are the folders in which a library has those searched that it needs
// (ld.so(8)): DT_RPATH before LD_LIBRARY_PATH, DT_RUNPATH after it.
type LoaderPaths struct {
	RPath   string `json:"rpath,omitempty"`
	RunPath string `json:"runpath,omitempty"`
}

// Bounds of an ELF file (elf(5)). The libraries of PyTorch 2.7 have 10 program headers,
// and 60 entries in their dynamic section.
const (
	elfHead      = 64
	elfProgram   = 56
	maxPrograms  = 64
	maxDynamic   = 16 << 10
	maxLoadPath  = 4 << 10
	maxSegments  = 64
	elfHeadPart  = elfHead + maxPrograms*elfProgram
	elfDynEntry  = 16
	ptLoad       = 1
	ptDynamic    = 2
	dtStrTab     = 5
	dtRPath      = 15
	dtRunPath    = 29
	originMarker = "$ORIGIN"
)

var errNotELF = errors.New("not a 64-bit ELF file")

// program is a program header of an ELF file.
type program struct {
	kind                  uint32
	offset, address, size uint64
}

// programs reads the program headers.
func programs(r io.ReaderAt) ([]program, error) {
	head := make([]byte, elfHead)
	if _, err := r.ReadAt(head, 0); err != nil || string(head[:4]) != "\x7fELF" || head[4] != 2 || head[5] != 1 {
		return nil, errNotELF
	}
	le := binary.LittleEndian
	at, count := le.Uint64(head[32:]), int(le.Uint16(head[56:]))
	if le.Uint16(head[54:]) != elfProgram || count > maxPrograms || at > 1<<62 {
		return nil, errNotELF
	}
	raw := make([]byte, count*elfProgram)
	if _, err := r.ReadAt(raw, int64(at)); err != nil {
		return nil, errNotELF
	}
	all := make([]program, count)
	for i := range all {
		p := raw[i*elfProgram:]
		all[i] = program{le.Uint32(p), le.Uint64(p[8:]), le.Uint64(p[16:]), le.Uint64(p[32:])}
	}
	return all, nil
}

// dynamic is where the dynamic section lies.
func dynamic(all []program) (at, size int64) {
	for _, p := range all {
		if p.kind == ptDynamic && p.offset < 1<<62 {
			return int64(p.offset), int64(min(p.size, maxDynamic))
		}
	}
	return 0, 0
}

// loaderPaths reads the paths of an ELF file.
func loaderPaths(r io.ReaderAt) (LoaderPaths, error) {
	all, err := programs(r)
	if err != nil {
		return LoaderPaths{}, err
	}
	at, size := dynamic(all)
	raw := make([]byte, size)
	if _, err := r.ReadAt(raw, at); err != nil {
		return LoaderPaths{}, errNotELF
	}
	tags := map[uint64]uint64{}
	for ; len(raw) >= elfDynEntry; raw = raw[elfDynEntry:] {
		tags[binary.LittleEndian.Uint64(raw)] = binary.LittleEndian.Uint64(raw[8:])
	}
	text := func(tag uint64) string {
		offset, ok := tags[tag]
		address := tags[dtStrTab] + offset
		for _, p := range all {
			if ok && p.kind == ptLoad && address >= p.address && address-p.address < p.size && p.offset < 1<<62 {
				b := make([]byte, maxLoadPath)
				n, _ := r.ReadAt(b, int64(p.offset+address-p.address)) // It may be the end.
				if end := bytes.IndexByte(b[:n], 0); end >= 0 {
					return string(b[:end])
				}
			}
		}
		return ""
	}
	return LoaderPaths{RPath: text(dtRPath), RunPath: text(dtRunPath)}, nil
}

// loaderPathsOf reads the paths of a library on this machine.
func loaderPathsOf(name string) (LoaderPaths, error) {
	f, err := open(name, regular)
	if err != nil {
		return LoaderPaths{}, err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	return loaderPaths(f)
}

// PathFinder finds the paths of a library that is written to it as a stream. It keeps what
// they are read from: the heads, the dynamic section, and texts with $ORIGIN.
type PathFinder struct {
	at       int64  // How much was written.
	buf      []byte // What is looked at: between two calls the end of what was written.
	segments []segment
	dyn      segment
	known    bool
}

// segment is a part of a file.
type segment struct {
	at   int64
	data []byte
	size int64
}

// Write looks at a part of the library.
func (f *PathFinder) Write(part []byte) (int, error) {
	start := f.at - int64(len(f.buf))
	f.buf = append(f.buf, part...)
	buf := f.buf
	f.at += int64(len(part))
	f.origins(buf, start)
	if !f.known && start == 0 {
		f.segments = append(f.segments[:0:0], append([]segment{{data: bytes.Clone(buf[:min(len(buf), elfHeadPart)])}}, f.segments...)...)
		if all, err := programs(f); err == nil || len(buf) >= elfHeadPart {
			f.known = true
			f.dyn.at, f.dyn.size = dynamic(all)
		} else {
			f.segments = f.segments[1:]
		}
	}
	f.dynamicPart(buf, start)
	f.buf = f.buf[:copy(f.buf, f.buf[max(0, len(f.buf)-maxLoadPath):])]
	return len(part), nil
}

// dynamicPart keeps what a part holds of the dynamic section.
func (f *PathFinder) dynamicPart(buf []byte, start int64) {
	from := f.dyn.at + int64(len(f.dyn.data))
	end := min(f.dyn.at+f.dyn.size, start+int64(len(buf)))
	if from >= start && from < end {
		f.dyn.data = append(f.dyn.data, buf[from-start:end-start]...)
	}
}

// origins keeps the texts with $ORIGIN that a part holds whole.
func (f *PathFinder) origins(buf []byte, start int64) {
	for at := 0; len(f.segments) < maxSegments; {
		i := bytes.Index(buf[at:], []byte(originMarker))
		if i < 0 {
			return
		}
		begin := bytes.LastIndexByte(buf[:at+i], 0) + 1
		end := bytes.IndexByte(buf[at+i:], 0)
		if end < 0 {
			return // The next part has it whole.
		}
		end += at + i + 1
		if end-begin <= maxLoadPath {
			f.segments = append(f.segments, segment{at: start + int64(begin), data: bytes.Clone(buf[begin:end])})
		}
		at = end
	}
}

// ReadAt reads what was kept.
func (f *PathFinder) ReadAt(p []byte, off int64) (int, error) {
	for _, s := range append(f.segments, f.dyn) {
		if off >= s.at && off < s.at+int64(len(s.data)) {
			n := copy(p, s.data[off-s.at:])
			if n < len(p) {
				return n, io.ErrUnexpectedEOF
			}
			return n, nil
		}
	}
	return 0, io.EOF
}

// Paths returns the paths when all parts were written. A library without any has none.
func (f *PathFinder) Paths() LoaderPaths {
	paths, err := loaderPaths(f)
	if err != nil {
		return LoaderPaths{} // No library names folders that cannot be read.
	}
	return paths
}
