package rules

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// eightGPUs is a machine with eight GPUs, and 200 further PCI functions, as a large server has.
func eightGPUs() *facts.Facts {
	m := hgx()
	for i := range 200 {
		m.PCI.Devices = append(m.PCI.Devices, facts.PCIDevice{
			Address: fmt.Sprintf("0001:%02x:00.0", i), Class: "0x060400", Kind: "bridge", Extended: true,
			ACS: &facts.ACS{Control: []string{"SrcValid"}},
		})
	}
	return m.Facts
}

// BenchmarkLoad is what listing the rules takes.
func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		expect.Value(Load())(b)
	}
}

// BenchmarkCompile is what parsing and compiling all rules takes.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		s := wholeSet(b)
		expect.Value(s.program(s.everything()))(b)
	}
}

// BenchmarkEvaluate is what a judgement takes beyond BenchmarkLoad: it compiles what the facts need.
func BenchmarkEvaluate(b *testing.B) {
	s := expect.Value(Load())(b)
	f := eightGPUs()
	for b.Loop() {
		expect.Value(s.Evaluate(b.Context(), f, Options{}))(b)
	}
}

// BenchmarkGrowth is what each rule takes on all lists of a case that fires it, 16, 32
// and 64 times as long. It fails where the time grows by more than 2.5 per doubling:
// what one call of a function does is no step that TestGrowth counts.
func BenchmarkGrowth(b *testing.B) {
	m := newMeter(b)
	all := expect.Value(fixtures.Cases(os.DirFS("../fixtures")))(b)
	for _, c := range all {
		for _, f := range c.Want.Findings {
			b.Run(c.Name+"/"+f.Rule, func(b *testing.B) {
				g := ways(reread[map[string]any](b, c.Facts))["all lists: copies of other places"]
				documents := []*facts.Facts{g.times(b, 16), g.times(b, 32), g.times(b, 64)}
				took := make([]time.Duration, len(documents))
				for b.Loop() {
					for i, document := range documents {
						start := time.Now()
						if document == nil || m.evaluate(b, f.Rule, document) != nil {
							b.Skip("no Go type holds the copies, or two of one address differ")
						}
						if d := time.Since(start); took[i] == 0 || d < took[i] {
							took[i] = d
						}
					}
				}
				expect.Must(b, took[2] <= time.Millisecond || took[2] <= took[1]*5/2 || took[1] <= took[0]*5/2, "%v at 16, 32 and 64 times the size", took)
			})
		}
	}
}
