package message

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

func TestPlaceOf(t *testing.T) {
	for line, want := range map[string]string{
		"n7:4:5 [3] misc/shmutils.cc:73 NCCL WARN Error: failed to extend /dev/shm/nccl-X, error Read-only file system (30)":                                     "nccl misc/shmutils.cc shm EROFS",
		"n7:4:5 [3] graph/xml.cc:175 NCCL WARN XML Parse : expected >":                                                                                           "nccl graph/xml.cc topology",
		"n7:4:5 [3] graph/tuning.cc:104 (ncclTopoInitTunerConstants) NCCL WARN Unrecognized element token \"LL256\"":                                             "nccl graph/tuning.cc tuning",
		"n7:4:5 [3] /build/hipify/src/transport/net_ib.cc:17 NCCL WARN NET/IB : Call to ibv_reg_mr failed with error Cannot allocate memory errno 12":            "nccl transport/net_ib.cc verbs ENOMEM",
		"n7:4:5 [3] NCCL INFO transport/p2p.cc:820 -> 1":                                                                                                         "nccl transport/p2p.cc p2p ncclUnhandledCudaError",
		"n7:4:5 [3] init.cc:418 NCCL WARN NCCL_COMM_BLOCKING is not valid":                                                                                       "nccl init.cc general NCCL_COMM_BLOCKING",
		"n7:4:5 [3] misc/cudawrap.cc:188 NCCL WARN Retrieve cuMemCreate version 10020 failed with 500":                                                           "nccl misc/cudawrap.cc cuda NOT_FOUND",
		"n7:4:5 [3] include/checks.h:20 NCCL WARN Cuda failure 'invalid resource handle'":                                                                        "nccl include/checks.h cuda INVALID_HANDLE",
		"n7:4:5 [3] platform_init:420 NCCL WARN NET/OFI something new":                                                                                           "ofi platform_init settings",
		"n7:4:5 [3] virtual int nccl_net_ofi_rdma_ep_t::post_rx(nccl_net_ofi_req*, std::function<void(int)>):420 NCCL WARN NET/OFI it failed; RC: -12":           "ofi nccl_net_ofi_rdma_ep_t::post_rx network-plugin ENOMEM",
		"torch.distributed.DistNetworkError: something new":                                                                                                      "c10d DistNetworkError bootstrap",
		"OCI runtime create failed: nvidia something new":                                                                                                        "container-toolkit OCI runtime create failed driver-in-container",
		"n7:4:5 [3] transport/net_ib/p2p.cc:700 NCCL WARN NET/IB: A new completion with status=IBV_WC_RNR_RETRY_EXC_ERR(13)":                                     "nccl transport/net_ib/p2p.cc verbs RNR_RETRY_EXC_ERR",
		"[1755792160.123456] [node7:4021 :0]     cuda_ipc_cache.c:245  UCX  ERROR cuIpcOpenMemHandle() failed: invalid argument":                                 "ucx cuda_ipc_cache p2p INVALID_VALUE",
		"[1755792160.123456] [node7:4021 :0]        tcp_ep.c:245  UCX  ERROR connect(10.0.0.9) failed: Connection refused":                                       "ucx tcp_ep socket ECONNREFUSED",
		"libfabric:4021:1755792160::efa:core:efa_fork_support_enable_if_requested():190<warn> Fork support requested but ibv_fork_init failed: Invalid argument": "libfabric efa network-plugin EINVAL",
		"libfabric:4021:1755792160:cxi:core:cxip_cq_eq_progress():550<warn> x1000c0s0b0n0: Cassini Event Queue overflow detected.":                               "libfabric cxi network-plugin",
		"[E821 16:02:40.123456789 TCPStoreLibUvBackend.cpp:200] something new":                                                                                   "c10d TCPStoreLibUvBackend bootstrap",
		"nvidia-container-cli: requirement error: unsatisfied condition: something new":                                                                          "container-toolkit requirement error container-requirement",
		"OSError: [Errno 28] No space left on device":                                                                                                            "ENOSPC",
		"RuntimeError: CUDA error: device-side assert triggered":                                                                                                 "ASSERT",
		"hipErrorInvalidDevice was returned":                                                                                                                     "INVALID_DEVICE",
		"[E821 16:02:40 ProcessGroupNCCL.cpp:736] No trace. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value":                       "c10d ProcessGroupNCCL general",
		"n7:4:5 [3] init.cc:4 NCCL WARN It failed; try setting NCCL_P2P_DISABLE=1, or use NCCL_IB_DISABLE (default: NCCL_SHM_DISABLE=0)":                         "nccl init.cc general",
		"step 3: loss 0.2": "",
		"error 3":          "",
	} {
		expect.Equal(t, want, told(new(Statement).PlaceOf(line)), "%s", line)
	}
}

// TestAreasUsed checks that each area is that of files, of words or of a row.
func TestAreasUsed(t *testing.T) {
	table, used, names := data.Areas(), map[string]bool{}, areaNames()
	for _, w := range table.Words {
		used[w.Area] = true
	}
	for _, library := range table.Files {
		for _, f := range library.Files {
			used[f.Area] = true
		}
	}
	for _, row := range Statements() {
		used[row.Area] = true
		expect.That(t, row.Area == "" || slices.Contains(names, row.Area), "%s: there is no area %q", row.ID, row.Area)
	}
	for _, name := range names {
		expect.That(t, used[name], "no file, no words and no row are of area %s", name)
	}
}

// areaNames are the names of all areas.
func areaNames() []string {
	type area struct{ Name string }
	return expect.Map(data.Read[struct{ Areas []area }]("areas").Areas, func(a area) string { return a.Name })
}

// TestPlaceOfRow checks that the area of a row counts more than that of the file, also where the line shows no file.
func TestPlaceOfRow(t *testing.T) {
	row := &Statement{Program: "nccl", Area: "connection"}
	for line, want := range map[string]string{
		"n7:4:5 [3] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer n9<4000>": "nccl misc/socket.cc connection",
		"[rank4]: Connection closed by remote peer":                                                        "nccl connection",
	} {
		expect.Equal(t, want, told(row.PlaceOf(line)), "%s: it is placed at", line)
	}
}

// told is a place in one line.
func told(p *facts.Place) string {
	if p == nil {
		return ""
	}
	parts := []string{p.Library, p.File, p.Area}
	parts = append(parts, expect.Map(p.Codes, func(c facts.Code) string { return c.Name })...)
	parts = append(parts, p.Variables...)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// TestEveryCode checks that each code is found by its name, its words and its number in each form of line that has one,
// and that of two codes whose words overlap the longer counts.
func TestEveryCode(t *testing.T) {
	want := func(line, space, name string) {
		t.Helper()
		p := new(Statement).PlaceOf(line)
		expect.That(t, p != nil && slices.ContainsFunc(p.Codes, func(c facts.Code) bool { return c.Space == space && c.Name == name }), "%s: %+v, want %s", line, p, name)
	}
	const warn = "n7:4:5 [3] misc/new.cc:73 NCCL WARN "
	for _, c := range data.Codes().Errno {
		want(warn+"It failed : "+c.Words, "errno", c.Name)
		want(warn+"It failed with "+c.Name, "errno", c.Name)
		want(fmt.Sprintf("%sIt failed: errno %d", warn, c.Number), "errno", c.Name)
		want(fmt.Sprintf("%sIt returned -%d", warn, c.Number), "errno", c.Name)
	}
	for _, c := range data.DriverErrors().Codes {
		want(warn+"Cuda failure with CUDA_ERROR_"+c.Name, "cuda", c.Name)
		want(fmt.Sprintf("%sCuda failure %d", warn, c.Code), "cuda", c.Name)
		// Two codes of the runtime share a name.
		if c.Runtime != "DeviceAlreadyInUse" {
			want(warn+"hipError"+c.Runtime, "cuda", c.Name)
		}
	}
	for _, c := range data.Codes().Completions {
		want("n7:4:5 [3] transport/net_ib.cc:73 NCCL WARN NET/IB: status=IBV_WC_"+c.Name, "ibverbs", c.Name)
		want(fmt.Sprintf("n7:4:5 [3] transport/net_ib.cc:73 NCCL WARN NET/IB : New completion with error %d", c.Number), "ibverbs", c.Name)
	}
}

// FuzzPlaceOf checks that no line is beyond it, and that a place names an area that there
// is, and no more codes than it may.
func FuzzPlaceOf(f *testing.F) {
	for _, row := range Statements() {
		for _, example := range row.Examples {
			f.Add(example)
		}
	}
	areas := map[string]bool{"": true}
	for _, name := range areaNames() {
		areas[name] = true
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := new(Statement).PlaceOf(line)
		if p == nil {
			return
		}
		expect.That(t, areas[p.Area] && len(p.Variables) <= maxCodes && len(p.Codes) <= maxCodes+1, "%q: %+v", line, p)
	})
}
