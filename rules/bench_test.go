package rules

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
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
