package child

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A child keeps a record in memory that its parent shares: which calls of vendors' libraries are running. It outlives the
// child, so that a library is blamed only for what happened inside one of its calls. The Go runtime's last words follow it.
const (
	recordBytes = 64 << 10
	reportBytes = 64 << 10 // A report with the stack of one goroutine has 2 to 6 KiB.

	startedAt = 0  // Not 0: the task has begun.
	calledAt  = 4  // Not 0: a library was called, or loaded.
	slotsAt   = 64 // slots numbers of 4 bytes: 1 + the Call under way, 0 for none.
	// slots bounds the concurrent calls: the probe makes one for each GPU.
	slots   = 64
	namesAt = 4 << 10
	// nameBytes bounds a function's name: NVML's longest has 58. CUDA, HIP and NVML are called by 150 names.
	nameBytes = 96
	maxCalls  = (recordBytes - namesAt) / nameBytes
)

// A Call is a function of a vendor's library, or another step that runs its code, such as loading it.
type Call uint32

// ledger is this process's record: memory of its own if nobody shares it.
var ledger = struct {
	sync.Mutex
	page  []byte
	calls map[string]Call
}{page: alignedBytes(recordBytes), calls: make(map[string]Call)}

func alignedBytes(n int) []byte {
	words := make([]uint64, n/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// CallOf names a function. Above the limit, all others share one name.
func CallOf(function string) Call {
	ledger.Lock()
	defer ledger.Unlock()
	if c, ok := ledger.calls[function]; ok {
		return c
	}
	c := Call(min(len(ledger.calls), maxCalls-1))
	if c == maxCalls-1 {
		function = "another function"
	}
	ledger.calls[function] = c
	name := ledger.page[namesAt+int(c)*nameBytes:][:nameBytes]
	copy(name[:nameBytes-1], function)
	return c
}

func wordAt(at int) *uint32 { return (*uint32)(unsafe.Pointer(&ledger.page[at])) }

// Do makes a call by f, and notes that it is running until f has returned. A panic in f leaves it marked: it ends the process.
func (c Call) Do(f func()) {
	called := wordAt(calledAt)
	if atomic.LoadUint32(called) == 0 {
		atomic.StoreUint32(called, 1)
	}
	for i := range slots {
		slot := wordAt(slotsAt + 4*i)
		if atomic.LoadUint32(slot) == 0 && atomic.CompareAndSwapUint32(slot, 0, uint32(c)+1) {
			f()
			atomic.StoreUint32(slot, 0)
			return
		}
	}
	f()
}

type record struct {
	// known is true if there is a record; otherwise the other fields are meaningless.
	known bool
	// started is true once the task has begun, called once a library was called.
	started, called bool
	// inside are the running functions, without duplicates, in order.
	inside []string
	// report is what the Go runtime printed when it died.
	report string
}

// readRecord reads the record of a child that has ended. A library may have written to it: every number is bounded.
func readRecord(r io.ReaderAt) record {
	b := make([]byte, recordBytes+reportBytes)
	if n, err := r.ReadAt(b, 0); n < len(b) && err != nil {
		return record{}
	}
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(b[at:]) }
	rec := record{known: true, started: word(startedAt) != 0, called: word(calledAt) != 0}
	for i := range slots {
		call := word(slotsAt + 4*i)
		if call == 0 {
			continue
		}
		at := namesAt + int(min(call-1, maxCalls-1))*nameBytes
		name, _, _ := bytes.Cut(b[at:at+nameBytes], []byte{0})
		rec.inside = append(rec.inside, string(bytes.ToValidUTF8(name, []byte("?"))))
	}
	slices.Sort(rec.inside)
	rec.inside = slices.Compact(rec.inside)
	report, _, _ := bytes.Cut(b[recordBytes:], []byte{0})
	rec.report = string(bytes.ToValidUTF8(report, []byte("?")))
	return rec
}
