package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestWatch checks that a change is put down to a line only until another one is looked at.
func TestWatch(t *testing.T) {
	s := NewSink()
	s.begin("a.txt", "", &Prompt{})
	g := s.GPU("0000:01:00.0", Line{Number: 1})
	g.Name = "in line 1"
	s.ledger.reached(2)
	g.UUID = "too late"
	s.Watch("gpus.devices[0000:01:00.0]", g, Line{Number: 3})
	g.Architecture = "in line 3"
	s.Device("0000:02:00.0", Line{Number: 4})
	g.ComputeMode = "too late as well"
	s.ledger.close()
	s.join()
	got := map[string]int{}
	for _, o := range s.ledger.origins(s.Facts) {
		got[o.Fact[strings.LastIndexByte(o.Fact, '.')+1:]] = o.Line
	}
	expect.That(t, fmt.Sprint(got) == "map[architecture:3 name:1]", "got %v", got)
}
