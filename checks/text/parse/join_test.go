package parse

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestNameGPUs checks, for every way in which three GPUs can share two indices, that a
// GPU known by its index alone is the one GPU with that index, and none where several
// have it; and that the order in which a map is walked decides nothing.
func TestNameGPUs(t *testing.T) {
	t.Parallel()
	for indices := range 8 {
		var first *facts.Facts
		for range 16 {
			s := NewSink()
			owners := map[int][]string{}
			for i := range 3 {
				index := indices >> i & 1
				address := fmt.Sprintf("0000:%02x:00.0", i+1)
				s.GPU(address, Line{}).Index = &index
				owners[index] = append(owners[index], address)
			}
			for index := range 2 {
				s.GPU(GPUName(index), Line{}).Index = &index
				s.GPU(GPUName(index), Line{}).Name = fmt.Sprintf("model %d", index)
			}
			s.join()
			for _, g := range s.Facts.GPUs.Devices {
				same := owners[*g.Index]
				alone := len(same) == 1
				if named := g.Name != ""; named != (alone || g.Address == GPUName(*g.Index)) || alone && g.Address != same[0] {
					t.Errorf("indices %03b: GPU %s has index %d and name %q; the index is that of %v", indices, g.Address, *g.Index, g.Name, same)
				}
			}
			if first == nil {
				first = s.Facts
			} else {
				expect.NoDiff(t, first.GPUs, s.Facts.GPUs, "indices %03b", indices)
			}
		}
	}
}
