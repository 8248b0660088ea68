package host

import (
	"bytes"
	"debug/elf"
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
	originMarker = "$ORIGIN"
)

var errNotELF = errors.New("not a 64-bit ELF file")

// programs reads the program headers. elf.NewFile would also read those of the sections, which
// are at the end of the file: a stream has not come there yet.
func programs(r io.ReaderAt) ([]elf.Prog64, error) {
	var head elf.Header64
	err := binary.Read(io.NewSectionReader(r, 0, elfHead), binary.LittleEndian, &head)
	if err != nil || string(head.Ident[:6]) != elf.ELFMAG+"\x02\x01" || head.Phentsize != elfProgram || head.Phnum > maxPrograms {
		return nil, errNotELF
	}
	all := make([]elf.Prog64, head.Phnum)
	if binary.Read(part(r, head.Phoff, elfHeadPart), binary.LittleEndian, all) != nil {
		return nil, errNotELF
	}
	return all, nil
}

// part reads a part of a file; nothing of one that begins where no file has anything.
func part(r io.ReaderAt, offset uint64, size int64) io.Reader {
	if offset > 1<<62 {
		size = 0
	}
	return io.NewSectionReader(r, int64(offset), size)
}

// dynamic returns the header of the dynamic section, with its bound.
func dynamic(all []elf.Prog64) elf.Prog64 {
	for _, p := range all {
		if elf.ProgType(p.Type) == elf.PT_DYNAMIC && p.Off < 1<<62 {
			p.Filesz = min(p.Filesz, maxDynamic)
			return p
		}
	}
	return elf.Prog64{}
}

// loaderPaths reads the paths of an ELF file.
func loaderPaths(r io.ReaderAt) (LoaderPaths, error) {
	all, err := programs(r)
	if err != nil {
		return LoaderPaths{}, err
	}
	section := dynamic(all)
	entries := make([]elf.Dyn64, section.Filesz/uint64(binary.Size(elf.Dyn64{})))
	if binary.Read(part(r, section.Off, maxDynamic), binary.LittleEndian, entries) != nil {
		return LoaderPaths{}, errNotELF
	}
	tags := map[elf.DynTag]uint64{}
	for _, e := range entries {
		tags[elf.DynTag(e.Tag)] = e.Val
	}
	text := func(tag elf.DynTag) string {
		offset, ok := tags[tag]
		address := tags[elf.DT_STRTAB] + offset
		for _, p := range all {
			if ok && elf.ProgType(p.Type) == elf.PT_LOAD && address >= p.Vaddr && address-p.Vaddr < p.Filesz {
				b, _ := io.ReadAll(part(r, p.Off+address-p.Vaddr, maxLoadPath)) // What follows it may not be there.
				path, _, whole := bytes.Cut(b, []byte{0})
				if whole {
					return string(path)
				}
			}
		}
		return ""
	}
	return LoaderPaths{RPath: text(elf.DT_RPATH), RunPath: text(elf.DT_RUNPATH)}, nil
}

// PathFinder finds the paths of a library that is written to it as a stream. It keeps what
// they are read from: the heads, the dynamic section, and texts with $ORIGIN.
type PathFinder struct {
	at        int64  // How much was written.
	buf       []byte // What is looked at: between two calls the end of what was written.
	head, dyn segment
	known     bool // Where dyn is.
	segments  []segment
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
		f.head.data = bytes.Clone(buf[:min(len(buf), elfHeadPart)])
		if all, err := programs(f); err == nil || len(buf) >= elfHeadPart {
			f.known = true
			section := dynamic(all)
			f.dyn.at, f.dyn.size = int64(section.Off), int64(section.Filesz)
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
	for _, s := range append([]segment{f.head, f.dyn}, f.segments...) {
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
