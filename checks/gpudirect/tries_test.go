//go:build linux

package gpudirect

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const gpu0, gpu1 = "0000:06:00.0", "0000:07:00.0"

// allWays are the ways to register memory of one GPU with one NIC, the control first.
var allWays = []Try{{Way: wayHost, Device: "mlx5_0"}, {Way: wayDMABuf, Device: "mlx5_0", GPU: gpu0}, {Way: wayPeermem, Device: "mlx5_0", GPU: gpu0}}

// simulated is a runner on the simulated libraries.
func simulated(t *testing.T, task string, libraries []string, env ...string) *runner {
	t.Helper()
	dirs := expect.Map(libraries, func(name string) string { return drivers.Build(t, name) })
	return &runner{task: task, env: append([]string{"LD_LIBRARY_PATH=" + strings.Join(dirs, ":")}, env...), limits: Limits{Step: 2 * time.Minute, All: 5 * time.Minute}}
}

// brief is a result in a few words: "ok", "refused ibv_reg_mr EFAULT", "unknown".
func brief(r attempt.Result) string {
	if r.Outcome == attempt.Unknown && r.Reason == "" {
		return "unknown without a reason"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Outcome, r.Call, r.Errno))
}

// fault is what befalls one way: how it is ordered, and its outcome.
type fault struct{ verbs, cuda, want string }

// TestRegister checks each way's outcome under each fault, whatever befalls the others: a way that hangs or crashes
// costs its own outcome and no other.
func TestRegister(t *testing.T) {
	t.Parallel()
	ways := map[string][]fault{
		wayHost: {{want: "ok"}, {verbs: "error-host=12", want: "refused ibv_reg_mr ENOMEM"}, {verbs: "crash-host", want: "unknown"}},
		wayDMABuf: {
			{want: "ok"},
			{verbs: "error-dmabuf-mr=95", want: "refused ibv_reg_dmabuf_mr EOPNOTSUPP"},
			{cuda: "no-dmabuf", want: "refused cuMemGetHandleForAddressRange CUDA_ERROR_NOT_SUPPORTED"},
			{cuda: "error-dmabuf=2", want: "unknown"},
			{verbs: "crash-dmabuf-mr", want: "unknown"},
		},
		wayPeermem: {{want: "ok"}, {verbs: "error-peermem=14", want: "refused ibv_reg_mr EFAULT"}, {verbs: "exit-peermem=3", want: "unknown"}},
	}
	for _, h := range ways[wayHost] {
		for _, d := range ways[wayDMABuf] {
			for _, p := range ways[wayPeermem] {
				verbs := strings.Join([]string{h.verbs, d.verbs, p.verbs}, ",")
				name := strings.Join([]string{verbs, d.cuda}, " ")
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					r := simulated(t, registerTask, []string{"verbs", "cuda"}, "GPUDOCTOR_SIM_VERBS_FAULT="+verbs, "GPUDOCTOR_SIM_CUDA_FAULT="+d.cuda)
					a := expect.Value(r.run(t.Context(), allWays))(t)
					for i, want := range []string{h.want, d.want, p.want} {
						expect.Equal(t, want, brief(a.Tried[i].Result), "%s (%s)", allWays[i].Way, a.Tried[i].Result.Reason)
					}
				})
			}
		}
	}
}

// TestRegisterHangs checks that a way that hangs ends at its limit, names the call, and costs no other.
func TestRegisterHangs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ way, verbs, cuda, call string }{
		{wayHost, "hang-host", "", "ibv_reg_mr"},
		{wayDMABuf, "hang-dmabuf-mr", "", "ibv_reg_dmabuf_mr"},
		{wayDMABuf, "", "hang-dmabuf", "cuMemGetHandleForAddressRange"},
		{wayPeermem, "hang-peermem", "", "ibv_reg_mr"},
	} {
		t.Run(tt.verbs+tt.cuda, func(t *testing.T) {
			t.Parallel()
			r := simulated(t, registerTask, []string{"verbs", "cuda"}, "GPUDOCTOR_SIM_VERBS_FAULT="+tt.verbs, "GPUDOCTOR_SIM_CUDA_FAULT="+tt.cuda)
			r.limits.Step = 3 * time.Second
			a := expect.Value(r.run(t.Context(), allWays))(t)
			for _, tried := range a.Tried {
				want := attempt.OK
				if tried.Way == tt.way {
					want = attempt.Unknown
				}
				expect.That(t, tried.Result.Outcome == want && (want != attempt.Unknown || strings.HasPrefix(tried.Result.Reason, tt.call+" did not return within")), "%s: got %+v", tried.Way, tried.Result)
			}
		})
	}
}

// TestRegisterWithout checks the outcomes where something that all ways need is missing or broken: none is ok, and
// none is refused but the control where the NIC itself refuses.
func TestRegisterWithout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name           string
		libraries, env []string
		want           [3]string
		why            string
	}{
		{"no libibverbs", []string{"cuda"}, nil, [3]string{"unknown", "unknown", "unknown"}, "ibv"}, // It cannot be loaded, or, where the machine has it, lists nothing.
		{"no libcuda", []string{"verbs"}, nil, [3]string{"ok", "unknown", "unknown"}, "load the CUDA driver"},
		{"no list", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_VERBS_FAULT=error-list=38"}, [3]string{"unknown", "unknown", "unknown"}, "ibv_get_device_list"},
		{"another device", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_NICS=0"}, [3]string{"unknown", "unknown", "unknown"}, "does not list the device"},
		{"no access", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_VERBS_FAULT=error-open=13"}, [3]string{"refused ibv_open_device EACCES", "unknown", "unknown"}, "the device could not be used: ibv_open_device: EACCES"},
		{"no domain", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_VERBS_FAULT=error-pd=12"}, [3]string{"refused ibv_alloc_pd ENOMEM", "unknown", "unknown"}, "the device could not be used: ibv_alloc_pd: ENOMEM"},
		{"cuInit fails", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_CUDA_FAULT=error-init=802"}, [3]string{"ok", "unknown", "unknown"}, "CUDA_ERROR_SYSTEM_NOT_READY"},
		{"no memory", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_CUDA_FAULT=error-alloc=2"}, [3]string{"ok", "unknown", "unknown"}, "CUDA_ERROR_OUT_OF_MEMORY"},
		{"another GPU", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_ADDRESSES=0000:99:00.0"}, [3]string{"ok", "unknown", "unknown"}, "CUDA does not offer GPU"},
		{"crash in the list", []string{"verbs", "cuda"}, []string{"GPUDOCTOR_SIM_VERBS_FAULT=crash-list"}, [3]string{"unknown", "unknown", "unknown"}, "ibv_get_device_list crashed: SIGSEGV"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := expect.Value(simulated(t, registerTask, tt.libraries, tt.env...).run(t.Context(), allWays))(t)
			for i, want := range tt.want {
				r := a.Tried[i].Result
				got := brief(r)
				expect.That(t, got == want && (want != "unknown" || strings.Contains(r.Reason, tt.why)), "%s: got %s (%s), want %s", a.Tried[i].Way, got, r.Reason, want)
			}
		})
	}
}

// TestRegisterOldLibraries checks that libraries without DMA-BUF leave it unknown and peermem as it is.
func TestRegisterOldLibraries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ verbs, cuda []string }{{[]string{"-DOLD_VERBS"}, nil}, {nil, []string{"-DOLD_DRIVER"}}} {
		r := &runner{task: registerTask, env: []string{"LD_LIBRARY_PATH=" + drivers.Build(t, "verbs", tt.verbs...) + ":" + drivers.Build(t, "cuda", tt.cuda...)}}
		a := expect.Value(r.run(t.Context(), []Try{{Way: wayDMABuf, Device: "mlx5_0", GPU: gpu0}, {Way: wayPeermem, Device: "mlx5_0", GPU: gpu0}}))(t)
		expect.Equal(t, "unknown, ok", brief(a.Tried[0].Result)+", "+brief(a.Tried[1].Result), "%v: %s", tt, a.Tried[0].Result.Reason)
	}
}

// TestRegisterPairs checks that each pair has its own outcome, and that no more children are started than
// allowed where one after the other crashes.
func TestRegisterPairs(t *testing.T) {
	t.Parallel()
	var tries []Try
	for i := range 4 {
		device := fmt.Sprintf("mlx5_%d", i)
		tries = append(tries, Try{Way: wayHost, Device: device}, Try{Way: wayDMABuf, Device: device, GPU: gpu0}, Try{Way: wayDMABuf, Device: device, GPU: gpu1})
	}
	for order, want := range map[string]map[string]int{
		"":                       {"ok": 12},
		"error-dmabuf-mr=95@1>2": {"ok": 11, "refused ibv_reg_dmabuf_mr EOPNOTSUPP": 1},
		"error-dmabuf-mr=95@0":   {"ok": 8, "refused ibv_reg_dmabuf_mr EOPNOTSUPP": 4},
		"error-open=13@*>3":      {"ok": 9, "refused ibv_open_device EACCES": 1, "unknown": 2},
		"crash-dmabuf-mr@1>2":    {"ok": 11, "unknown": 1},
		"crash-dmabuf-mr@0":      {"ok": 5, "unknown": 7}, // The third child ends at the third crash.
		"error-dereg=22":         {"ok": 12},
	} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			a := expect.Value(simulated(t, registerTask, []string{"verbs", "cuda"}, "GPUDOCTOR_SIM_NICS=4", "GPUDOCTOR_SIM_VERBS_FAULT="+order).run(t.Context(), tries))(t)
			got := map[string]int{}
			for _, tried := range a.Tried {
				got[brief(tried.Result)]++
			}
			expect.That(t, fmt.Sprint(got) == fmt.Sprint(want), "got %v, want %v: %+v", got, want, a.Tried)
		})
	}
}

// TestCanceled checks that nothing is said where the time ran out before, and that no process is left.
func TestCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	expect.Fails(register(ctx, []Try{{Way: wayHost}}, Limits{}))(t, nil, "canceled")
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	a := expect.Value(simulated(t, registerTask, []string{"verbs", "cuda"}, "GPUDOCTOR_SIM_VERBS_FAULT=hang-host").run(ctx, []Try{{Way: wayHost, Device: "mlx5_0"}, {Way: wayHost, Device: "mlx5_0"}}))(t)
	for _, tried := range a.Tried {
		expect.Equal(t, "unknown", brief(tried.Result), "it")
	}
}

// directFolder is a folder whose file system takes files without a name past the page cache.
func directFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Skipf("%s takes no file without a name past the page cache: %v", dir, err)
	}
	var st unix.Statfs_t
	expect.NoError(t, unix.Fstatfs(fd, &st))
	expect.NoError(t, unix.Close(fd))
	if free := st.Bavail * uint64(st.Bsize); free < leastFree || free < st.Blocks*uint64(st.Bsize)/leastShare {
		t.Skipf("%s is nearly full", dir)
	}
	return dir
}

// TestRead checks the outcome of a read in both ways under each fault, and that nothing is left on the mount or in
// the working directory.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ cufile, cuda, direct, configured string }{
		{"", "", "ok", "ok"},
		{"log", "", "ok", "ok"},
		{"no-gds=5008", "", "refused cuFileHandleRegister CU_FILE_IO_NOT_SUPPORTED", "ok"},
		{"error-driver=5010", "", "refused cuFileDriverOpen CU_FILE_NVFS_DRIVER_ERROR", "refused cuFileDriverOpen CU_FILE_NVFS_DRIVER_ERROR"},
		{"error-properties=5001", "", "refused cuFileDriverGetProperties CU_FILE_DRIVER_NOT_INITIALIZED", "refused cuFileDriverGetProperties CU_FILE_DRIVER_NOT_INITIALIZED"},
		{"error-handle=5018", "", "refused cuFileHandleRegister CU_FILE_INVALID_FILE_TYPE", "refused cuFileHandleRegister CU_FILE_INVALID_FILE_TYPE"},
		{"error-buffer=5036", "", "refused cuFileBufRegister CU_FILE_GPU_MEMORY_PINNING_FAILED", "refused cuFileBufRegister CU_FILE_GPU_MEMORY_PINNING_FAILED"},
		{"error-read=5011", "", "refused cuFileRead CU_FILE_CUDA_DRIVER_ERROR", "refused cuFileRead CU_FILE_CUDA_DRIVER_ERROR"},
		{"error-read=5021", "", "refused cuFileRead CU_FILE_ERROR_5021", "refused cuFileRead CU_FILE_ERROR_5021"},
		{"errno-read=5", "", "refused cuFileRead EIO", "refused cuFileRead EIO"},
		{"errno-read=0", "", "unknown", "unknown"},
		{"wrong-data", "", "corrupt cuFileRead", "corrupt cuFileRead"},
		{"nothing", "", "corrupt cuFileRead", "corrupt cuFileRead"},
		{"short", "", "unknown", "unknown"},
		{"stubborn", "", "unknown", "ok"},
		{"crash-driver", "", "unknown", "unknown"},
		{"crash-handle", "", "unknown", "unknown"},
		{"kill-handle", "", "unknown", "unknown"},
		{"exit-handle=1", "", "unknown", "unknown"},
		{"exit-read=0", "", "unknown", "unknown"},
		{"", "error-init=802", "unknown", "unknown"},
		{"", "error-alloc=2", "unknown", "unknown"},
		{"", "error-to-host=719", "unknown", "unknown"},
		{"", "error-memset=719", "unknown", "unknown"},
		{"", "error-host-alloc=2", "unknown", "unknown"},
		{"", "error-stream=2", "unknown", "unknown"},
	} {
		t.Run(tt.cufile+tt.cuda, func(t *testing.T) {
			t.Parallel()
			dir := directFolder(t)
			for way, want := range map[string]string{wayDirect: tt.direct, wayConfigured: tt.configured} {
				env := []string{"GPUDOCTOR_SIM_CUFILE_FAULT=" + tt.cufile, "GPUDOCTOR_SIM_CUDA_FAULT=" + tt.cuda}
				if way == wayDirect {
					env = append(env, forbidCompat)
				}
				a := expect.Value(readOn(t.Context(), simulated(t, readTask, []string{"cufile", "cuda"}, env...), Try{Way: way, GPU: gpu0, Mount: dir}))(t)
				expect.Equal(t, want, brief(a.Tried[0].Result), "%s (%s)", way, a.Tried[0].Result.Reason)
			}
			left, err := os.ReadDir(dir)
			_, log := os.Stat("cufile.log")
			expect.That(t, err == nil && len(left) == 0 && log != nil, "left: %v, %v, cufile.log: %v", left, err, log)
		})
	}
}

// TestReadHangs checks that a file is not left with its name if cuFile hangs while it opens it.
func TestReadHangs(t *testing.T) {
	t.Parallel()
	dir := directFolder(t)
	r := simulated(t, readTask, []string{"cufile", "cuda"}, "GPUDOCTOR_SIM_CUFILE_FAULT=hang-handle")
	r.limits.Step = 3 * time.Second
	a := expect.Value(readOn(t.Context(), r, Try{Way: wayConfigured, GPU: gpu0, Mount: dir}))(t)
	left, err := os.ReadDir(dir)
	got := a.Tried[0].Result
	expect.That(t, got.Outcome == attempt.Unknown && strings.HasPrefix(got.Reason, "cuFileHandleRegister did not return") && err == nil && len(left) == 0, "got %+v, left %v, %v", got, left, err)
}

// TestReadNoFile checks that no read is tried where no file can be made.
func TestReadNoFile(t *testing.T) {
	t.Parallel()
	for _, mount := range []string{"/proc", "/nonexistent", "/dev/null"} {
		a := expect.Value(readOn(t.Context(), simulated(t, readTask, []string{"cufile", "cuda"}), Try{Way: wayConfigured, GPU: gpu0, Mount: mount}))(t)
		r := a.Tried[0].Result
		expect.That(t, r.Outcome == attempt.Unknown && strings.Contains(r.Reason, mount), "%s: got %+v", mount, r)
	}
	a, err := readOn(t.Context(), simulated(t, readTask, []string{"cuda"}), Try{Way: wayConfigured, GPU: gpu0, Mount: "/tmp"})
	expect.That(t, err == nil && a.Tried[0].Result.Outcome == attempt.Unknown && strings.Contains(a.Tried[0].Result.Reason, "load cuFile"), "without libcufile: got %+v, %v", a, err)
}

// TestReadWays checks that the second way is tried exactly where the first is refused.
func TestReadWays(t *testing.T) {
	dir := directFolder(t)
	t.Setenv("LD_LIBRARY_PATH", drivers.Build(t, "cufile")+":"+drivers.Build(t, "cuda"))
	for order, want := range map[string]string{"": "direct ok", "no-gds=5010": "direct refused, configured ok", "wrong-data": "direct corrupt", "short": "direct unknown"} {
		t.Setenv("GPUDOCTOR_SIM_CUFILE_FAULT", order)
		a := readMount(t.Context(), gpu0, dir, Limits{})
		got := expect.Map(a.Tried, func(tried Tried) string { return tried.Way + " " + tried.Result.Outcome })
		expect.That(t, strings.Join(got, ", ") == want, "%s: got %v, want %s", order, got, want)
	}
}

// TestPattern checks that no two words of the file are equal, and none is the poison.
func TestPattern(t *testing.T) {
	b := pattern()
	expect.Must(t, len(b) == readBytes, "%d bytes", len(b))
	words := make([]string, 0, len(b)/8)
	for i := 0; i < len(b); i += 8 {
		words = append(words, string(b[i:i+8]))
	}
	slices.Sort(words)
	n := len(slices.Compact(words))
	expect.That(t, n == readBytes/8 && !slices.Contains(words, "\x97\xe1\xc3\xa5\x97\xe1\xc3\xa5"), "%d different words", n)
}
