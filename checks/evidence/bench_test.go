package evidence

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
)

// writeLog writes the debug log of a job as its launcher collects it: ranks
// interleaved, in the forms of NCCL 2.28, and one rank that fails at the end.
func writeLog(out io.Writer, size int64, ranks int) error {
	w := bufio.NewWriterSize(out, 1<<20)
	written := int64(0)
	put := func(format string, args ...any) {
		n, _ := fmt.Fprintf(w, format, args...)
		written += int64(n)
	}
	head := func(rank int) string {
		return fmt.Sprintf("%d: node%03d:%d:%d [%d] NCCL INFO ", rank, rank/8, 4000+rank%8, 4100+rank%8, rank%8)
	}
	for r := range ranks {
		put("%sBootstrap: Using eth0:10.1.%d.%d<0>\n", head(r), r/8/250, r/8%250)
		put("%sNCCL_IB_HCA set by environment to mlx5\n", head(r))
		put("%sNET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.1.0.%d<0>\n", head(r), r/8%250)
		put("%sUsing network IB\n", head(r))
		put("%sncclCommInitRankConfig comm 0x55d7e8a1c2f0 rank %d nranks %d cudaDev %d nvmlDev %d busId 19000 commId 0x9a41c07be2d6f318 - Init START\n", head(r), r, ranks, r%8, r%8)
	}
	for channel := 0; written < size; channel = (channel + 1) % 32 {
		for r := 0; r < ranks && written < size; r++ {
			if r%8 == 7 {
				put("%sChannel %02d/0 : %d[%d] -> %d[0] [send] via NET/IB/%d/GDRDMA\n", head(r), channel, r, r%8, (r+1)%ranks, r%8)
			} else {
				put("%sChannel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM\n", head(r), channel, r, r%8, r+1, (r+1)%8)
			}
			if r%4 == 0 {
				put("%sTrees [0] %d/-1/-1->%d->%d [1] %d/-1/-1->%d->%d [2] -1/-1/-1->%d->%d\n", head(r), r+1, r, r-1, r+1, r, r-1, r, r-1)
			}
		}
	}
	for r := range ranks {
		put("%sncclCommInitRankConfig comm 0x55d7e8a1c2f0 rank %d nranks %d cudaDev %d nvmlDev %d busId 19000 commId 0x9a41c07be2d6f318 - Init COMPLETE\n", head(r), r, ranks, r%8, r%8)
	}
	put("\n37: node004:4005:4105 [5] transport/net_ib.cc:1237 NCCL WARN NET/IB: Got completion from peer 10.1.0.9<44718> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_1\n")
	return w.Flush()
}

// BenchmarkReadLog reads the interleaved log of 1024 ranks.
func BenchmarkReadLog(b *testing.B) {
	var log bytes.Buffer
	if err := writeLog(&log, 32<<20, 1024); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(log.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r := newReading()
		if err := r.read(b.Context(), "log", bytes.NewReader(log.Bytes())); err != nil {
			b.Fatal(err)
		}
		r.finish()
	}
}

// BenchmarkScan looks for anchors alone.
func BenchmarkScan(b *testing.B) {
	var log bytes.Buffer
	if err := writeLog(&log, 32<<20, 1024); err != nil {
		b.Fatal(err)
	}
	anchors := newReading().anchors
	b.SetBytes(int64(log.Len()))
	for b.Loop() {
		s := anchors.scan(bytes.NewReader(log.Bytes()))
		for s.fill() {
			s.at = len(s.now.lines)
		}
	}
}

// TestWriteLog writes a log of the size that GPUDOCTOR_LOG_BYTES says to the
// file that GPUDOCTOR_LOG names, for measuring the whole program on it.
func TestWriteLog(t *testing.T) {
	path, size := os.Getenv("GPUDOCTOR_LOG"), os.Getenv("GPUDOCTOR_LOG_BYTES")
	if path == "" {
		path, size = t.TempDir()+"/log", "1000000"
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeLog(f, n, 1024); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(); err != nil || info.Size() < n {
		t.Errorf("wrote %d of %d bytes: %v", info.Size(), n, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
