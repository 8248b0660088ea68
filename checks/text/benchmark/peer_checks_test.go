package benchmark_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const peerChecksHIP = `$ ./hip_p2p_min
GPU count: 2

[Step 1] hipDeviceCanAccessPeer matrix
0 -> 0 : 0
0 -> 1 : 1
1 -> 0 : 0
1 -> 1 : 0

[Step 2] Enable peer access
Enabled peer access from GPU 0 to GPU 1

[Step 3] Do one hipMemcpyPeerAsync
P2P copy success: GPU 0 -> GPU 1, bytes = 67108864
`

func TestPeerMatrix(t *testing.T) {
	f := texttest.Parse("x.txt", peerChecksHIP)
	var got []string
	for _, p := range f.GPUs.P2P {
		got = append(got, fmt.Sprintf("%s>%s %s", p.A, p.B, p.Read))
	}
	expect.NoDiff(t, []string{"GPU0>GPU1 ok", "GPU1>GPU0 not-supported"}, got, "it")
	expect.That(t, len(f.GPUs.Devices) == 2 && f.GPUs.Devices[0].Vendor == "amd", "got %+v", f.GPUs.Devices)
	expect.That(t, len(f.Benchmarks) == 1 && f.Benchmarks[0].Wrong == nil && f.Benchmarks[0].Points[0].B == "GPU1", "got %+v", f.Benchmarks)
}

func TestPeerCopy(t *testing.T) {
	for line, want := range map[string]string{
		"copy cuda:0 -> cuda:1 : max abs diff 3.9921875, all zeros on target: True": "wrong",
		"copy cuda:0 -> cuda:1 : max abs diff 0.0, all zeros on target: False":      "right",
		"Copy from GPU 0 to GPU 1: MISMATCH":                                        "wrong",
		"memcpy GPU0 -> GPU1: 12 mismatches: 12":                                    "wrong",
		"copied GPU 2 -> GPU 3, mismatches=0":                                       "right",
		"P2P copy success: GPU 0 -> GPU 1, bytes = 67108864":                        "not compared",
		"Enabled peer access from GPU 0 to GPU 1":                                   "",
		"transfer GPU 0 -> GPU 1 took 3 ms":                                         "",
		"copying layer 12 from cuda:0 to cuda:1":                                    "",
	} {
		got := ""
		for _, b := range texttest.Parse("x.txt", line+"\n").Benchmarks {
			switch {
			case b.Wrong == nil:
				got = "not compared"
			case *b.Wrong > 0:
				got = "wrong"
			default:
				got = "right"
			}
		}
		expect.NoDiff(t, want, got, "%s", line)
	}
}

func FuzzPeerChecks(f *testing.F) {
	f.Add(peerChecksHIP)
	f.Add("torch.cuda.can_device_access_peer(0, 1) = True\n" + strings.Repeat("copy cuda:0 -> cuda:1 mismatch\n", 3))
	f.Fuzz(func(t *testing.T, text string) {
		n := len(texttest.Parse("x", text).Benchmarks)
		expect.That(t, n <= parse.MaxEntries, "%d tables", n)
	})
}
