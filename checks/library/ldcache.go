package library

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

type cacheEntry struct {
	// name is what programs ask for: "libcuda.so.1".
	name string
	path string
}

// The layout of /etc/ld.so.cache (glibc, sysdeps/generic/dl-cache.h): a header of 48 bytes (magic, number of entries, length
// of the strings, flags), then entries of 24 bytes (flags, offset of the name, offset of the path, OS version, capabilities),
// then strings that end in NUL. Systems before glibc 2.32 put a cache of the older format in front of it.
const (
	cacheMagic      = "glibc-ld.so.cache1.1"
	cacheHeader     = 48
	cacheEntryBytes = 24
	oldCacheMagic   = "ld.so-1.7.0"
	oldCacheHeader  = 16 // The magic of 11 bytes, padding, the number of entries.
	oldCacheEntry   = 12
)

// Flags of an entry: the low byte is the kind of library, the next the
// architecture (FLAG_ELF_LIBC6, FLAG_X8664_LIB64, FLAG_AARCH64_LIB64).
const (
	flagLibc6   = 0x0003
	flagX8664   = 0x0300
	flagAArch64 = 0x0a00
	flagMask    = 0xffff
)

var errNoCache = errors.New("not a cache of the glibc loader")

// parseLdCache returns the libraries of 64 bits that the loader's cache names. Entries that point outside it are left out.
func parseLdCache(b []byte) ([]cacheEntry, error) {
	if bytes.HasPrefix(b, []byte(oldCacheMagic)) {
		if len(b) < oldCacheHeader {
			return nil, errNoCache
		}
		entries := uint64(binary.LittleEndian.Uint32(b[12:]))
		// The new header is aligned to 8 bytes.
		skip := (oldCacheHeader + oldCacheEntry*entries + 7) &^ 7
		if skip > uint64(len(b)) {
			return nil, errNoCache
		}
		b = b[skip:]
	}
	if len(b) < cacheHeader || string(b[:len(cacheMagic)]) != cacheMagic {
		return nil, errNoCache
	}
	count := uint64(binary.LittleEndian.Uint32(b[20:]))
	if room := uint64(len(b)-cacheHeader) / cacheEntryBytes; count > room {
		return nil, fmt.Errorf("the cache is truncated: %d entries, room for %d", count, room)
	}
	var entries []cacheEntry
	for i := range count {
		e := b[cacheHeader+i*cacheEntryBytes:]
		if flags := binary.LittleEndian.Uint32(e) & flagMask; flags != flagX8664|flagLibc6 && flags != flagAArch64|flagLibc6 {
			continue
		}
		name, ok := cacheString(b, binary.LittleEndian.Uint32(e[4:]))
		path, okPath := cacheString(b, binary.LittleEndian.Uint32(e[8:]))
		if ok && okPath {
			entries = append(entries, cacheEntry{name: name, path: path})
		}
	}
	return entries, nil
}

func cacheString(b []byte, offset uint32) (string, bool) {
	const maxPath = 4096 // PATH_MAX, include/uapi/linux/limits.h.
	if uint64(offset) >= uint64(len(b)) {
		return "", false
	}
	rest := b[offset:min(uint64(len(b)), uint64(offset)+maxPath)]
	end := bytes.IndexByte(rest, 0)
	if end <= 0 {
		return "", false
	}
	return string(rest[:end]), true
}
