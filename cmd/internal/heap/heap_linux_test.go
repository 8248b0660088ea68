package heap_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/heap"
)

// TestPrepare holds that the memory is there for the heap, and that none of it is used yet.
func TestPrepare(t *testing.T) {
	const size, least = 64 << 20, 60 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used := resident(t)
	heap.Prepare()
	runtime.ReadMemStats(&after)
	if after.HeapIdle < least || after.HeapAlloc > before.HeapAlloc+size/8 {
		t.Errorf("%d bytes of the heap are idle, %d are used", after.HeapIdle, after.HeapAlloc)
	}
	if grown := resident(t) - used; grown > size/4 {
		t.Errorf("it made %d bytes resident", grown)
	}
}

// resident is the resident memory of this process.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
