package nccl_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/nccl"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const diagHealthy = `node7:4021 NCCL DIAG === RAS Diagnostics ===
node7:4021 NCCL DIAG [OK]   GPU inventory: 2x NVIDIA H200 per node consistent across 2 ranks in comm 0x1234
node7:4021 NCCL DIAG [OK]   CUDA driver version: 13010 consistent across 2 ranks in comm 0x1234
node7:4021 NCCL DIAG [OK]   NVIDIA driver version: 590.48.01 consistent across 2 ranks in comm 0x1234
node7:4021 NCCL DIAG [OK]   ECC: no uncorrected volatile errors across 2 ranks in comm 0x1234
node7:4021 NCCL DIAG [OK]   NVLink: 18 links per GPU, all active at consistent speed across 2 ranks in comm 0x1234
node7:4021 NCCL DIAG [OK]   NCCL environment: NCCL_* env vars consistent across 2 ranks in comm 0x1234
node7:4021 NCCL DIAG [OK]   IOMMU mode: passthrough for 4 relevant device(s) across 2/2 ranks in comm 0x1234
node7:4021 NCCL DIAG [OK]   Net device mlx5_0:1: net device type=Host, speed=400000 Mbps, link layer=InfiniBand, state=ACTIVE/LinkUp across 2 nodes in comm 0x1234
node7:4021 NCCL DIAG [OK]   Xid/SXid: no events requiring immediate attention across 1 host
node7:4021 NCCL DIAG [INFO] Xid 13 detected 1 time on host node7. No user action or further investigation is required for this Xid.
node7:4021 NCCL DIAG RAS diagnostics completed in 38.4 ms across 2 ranks
node7:4021 NCCL DIAG === NCCL Diagnostics ===
node7:4021 NCCL DIAG [INFO] p2p: temporarily enabled context-wide CUDA peer access rank=1 cudaDev=1; avoid concurrent CUDA use on this context until diagnostics completes
node7:4021 NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (2 peer accesses)
node7:4021 NCCL DIAG [OK] net bw: 376.1/391.5/398.2 Gbit/s min/median/max same-nic bw (across 8 ranks) in comm 0x7a3f
node7:4021 NCCL DIAG NCCL diagnostics completed in 245.3 ms across 2 ranks
`

func TestNCCLDiagnostics(t *testing.T) {
	f := texttest.Parse("x.txt", diagHealthy)
	expect.Len(t, 0, f.Logs.Messages, "messages of a report without a complaint")
	k := f.Texts[0].Kinds
	expect.That(t, len(k) == 1 && k[0].Kind == "nccl-diagnostics" && k[0].Lines == 17, "recognised as %+v", k)
	expect.That(t, f.KernelLog == nil, "an Xid of which nobody need care is in %+v", f.KernelLog)
	expect.That(t, len(f.Benchmarks) == 1 && *f.Benchmarks[0].Wrong == 0 && f.Benchmarks[0].Line == 15, "got %+v", f.Benchmarks)
}

func TestNCCLDiagnosticsComplaints(t *testing.T) {
	edge := "srcRank=4 srcCudaDev=0 srcNvmlDev=0 dstRank=5 dstCudaDev=1 dstNvmlDev=1 path=PHB handle=CUMEM_POSIX_FD"
	for line, want := range map[string]struct {
		id     string
		fields map[string]string
	}{
		"[INFO] p2p: write mismatch " + edge + " expected=0x1 got=0x0 verify=0x0; check": {
			"nccl-diag-p2p-mismatch", map[string]string{"rank": "4", "what": "write", "from": "0", "to": "1", "path": "PHB", "handle": "CUMEM_POSIX_FD"},
		},
		"[INFO] p2p: peer-memory import failed " + edge + " reason=import; check": {
			"nccl-diag-p2p-import", map[string]string{"rank": "4", "what": "peer-memory import failed", "from": "0", "to": "1", "path": "PHB", "handle": "CUMEM_POSIX_FD"},
		},
		"[INFO] p2p: only 52/56 GPU-to-GPU peer accesses passed verification": {"nccl-diag-p2p-failed", nil},
		"[INFO] net bw: same-nic rank 3 (node0): 265.1 Gbit/s, >30% off median 391.5 Gbit/s in comm 0x7a": {
			"nccl-diag-net-slow", map[string]string{"rank": "3", "mode": "same-nic", "slow_host": "node0", "rate": "265.1", "median": "391.5"},
		},
		"[INFO] ECC: uncorrected volatile errors on rank(s) {1,3,...} (N=40) (worst=2) across 64 ranks in comm 0x12": {"nccl-diag-ecc", map[string]string{"ranks": "{1,3,...}", "worst": "2"}},
		"[INFO] NVLink: inactive link(s) on rank(s) {2} across 8 ranks in comm 0x12":                                 {"nccl-diag-link-down", map[string]string{"ranks": "{2}"}},
		"[INFO] NCCL environment: mismatch across 8 ranks in comm 0x12 for NCCL_PROTO":                               {"nccl-diag-environment", map[string]string{"count": "8", "variable": "NCCL_PROTO"}},
	} {
		f := texttest.Parse("x.txt", "node7:4021 NCCL DIAG "+line+"\n")
		expect.Must(t, len(f.Logs.Messages) == 1 && f.Logs.Messages[0].ID == want.id, "%s:\ngot %+v", line, f.Logs.Messages)
		expect.NoDiff(t, want.fields, f.Logs.Messages[0].Fields, "%s", line)
	}
}

func TestNCCLDiagnosticsXid(t *testing.T) {
	f := texttest.Parse("x.txt", `node7:4021 NCCL DIAG [INFO] Xid 79 detected 2 times on host node7.cluster.local. The NVIDIA Xid catalog recommends resetting the affected GPU.
node7:4021 NCCL DIAG [INFO] SXid 20034 detected 1 time (NVSwitch driver reported Fatal, link(s) {3,4}) on host node8. See the NVIDIA Fabric Manager documentation
`)
	var got []string
	for _, e := range f.KernelLog.Events {
		fatal := ""
		if e.Fatal != nil && *e.Fatal {
			fatal = " fatal"
		}
		got = append(got, e.ID+" "+e.Kind+" "+e.Host+fatal+" "+strings.Repeat("+", e.Count))
		expect.That(t, e.Code != nil && e.Source == "x.txt", "got %+v", e)
	}
	expect.NoDiff(t, []string{"nccl-diag-xid xid node7.cluster.local ++", "nccl-diag-sxid sxid node8 fatal +"}, got, "it")
}

func FuzzNCCLDiagnostics(f *testing.F) {
	f.Add(diagHealthy)
	f.Add("a:1 NCCL DIAG [INFO] Xid 79 detected at least 65535 times on host a. b\nNCCL DIAG [OK] GPU inventory: 999x X per node consistent across 1 ranks\n")
	f.Fuzz(func(t *testing.T, text string) {
		events := len(texttest.Sections("x", text).KernelLog.Events)
		expect.That(t, events <= 10*nccl.MaxDiagEvents, "%d events", events)
	})
}
