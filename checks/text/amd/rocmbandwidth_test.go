package amd_test

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const rocmBandwidthText = `.....
          RocmBandwidthTest Version: 2.6.0

          Launch Command is: rocm-bandwidth-test (rocm_bandwidth -a + rocm_bandwidth -A)


          Device: 0,  AMD EPYC 7763 64-Core Processor
          Device: 1,  AMD Instinct MI210,  GPU-2ff7d1a90e1b6a2c,  63:0.0
          Device: 2,  AMD Instinct MI210,  GPU-6c77bd1c5bdfa7d7,  43:0.0

          Inter-Device Access

          D/D       0         1         2         

          0         1         1         1         

          1         1         1         0         

          2         1         0         1         


          Unidirectional copy peak bandwidth GB/s

          D/D       0           1           2           

          0         N/A         28.303      28.314      

          1         28.293      1110.000    22.100      

          2         28.294      24.700      1112.000    


          Bidirectional copy peak bandwidth GB/s

          D/D       0           1           2           

          0         N/A         50.000      50.000      

          1         50.000      N/A         41.000      

          2         50.000      41.000      N/A         
`

func TestROCmBandwidth(t *testing.T) {
	f := texttest.Parse("x", rocmBandwidthText)
	expect.Must(t, len(f.Benchmarks) == 2, "got %+v", f.Benchmarks)
	b := f.Benchmarks[0]
	expect.That(t, b.Tool == "rocm-bandwidth-test" && b.What == "copy" && len(b.Points) == 6 && b.Complete, "got %+v", b)
	expect.That(t, f.Benchmarks[1].What == "bidirectional", "got %+v", f.Benchmarks[1])
	p := testPoint(b, "GPU0", "GPU1")
	expect.That(t, p != nil && *p.GBps == 22.1, "got %+v", b.Points)
	pair := f.Links.Between("0000:63:00.0", "0000:43:00.0")
	expect.That(t, pair != nil && pair.Accessible != nil && !*pair.Accessible, "got %+v", f.Links)
}

func testPoint(b facts.Benchmark, a, to string) *facts.BenchmarkPoint {
	if i := slices.IndexFunc(b.Points, func(p facts.BenchmarkPoint) bool { return p.A == a && p.B == to }); i >= 0 {
		return &b.Points[i]
	}
	return nil
}

const transferBenchText = `Bytes Per Direction 67108864
Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
 SRC+EXE\DST    CPU 00       GPU 00    GPU 01
  CPU 00  ->     42.75        41.97     42.33

  GPU 00  ->     55.23      1689.85     48.46
  GPU 01  ->     55.23        46.51   1672.91
                           CPU->CPU  CPU->GPU  GPU->CPU  GPU->GPU
Averages (During UniDir):     37.24     41.87     55.24     48.28

Bidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
     SRC\DST    CPU 00       GPU 00    GPU 01
  GPU 00  ->       N/A          N/A     43.10
  GPU 00 <-        N/A          N/A     44.20
  GPU 00 <->       N/A          N/A     87.30
`

func TestTransferBench(t *testing.T) {
	f := texttest.Parse("x", transferBenchText)
	expect.Must(t, len(f.Benchmarks) == 2, "got %+v", f.Benchmarks)
	b := f.Benchmarks[0]
	expect.That(t, b.What == "copy" && b.Tool == "TransferBench" && *b.Points[3].GBps == 48.46 && testPoint(b, "GPU1", "GPU0") != nil && testPoint(b, "GPU0", "GPU0") == nil, "got %+v", b)
	b = f.Benchmarks[1]
	expect.That(t, b.What == "bidirectional" && testPoint(b, "GPU0", "GPU1") != nil, "got %+v", b)
}

func TestTransferBenchAllToAll(t *testing.T) {
	f := texttest.Parse("x", `Summary:
==========================================================
SRC\DST  GPU 00     GPU 01        STotal      Actual
GPU 00      N/A     51.295        51.295      51.295
GPU 01   51.133        N/A        51.133      51.133

RTotal   51.133     51.295       102.428
`)
	expect.That(t, len(f.Benchmarks) == 1 && f.Benchmarks[0].Test == "a2a" && f.Benchmarks[0].What == "other" && len(f.Benchmarks[0].Points) == 2, "got %+v", f.Benchmarks)
}
