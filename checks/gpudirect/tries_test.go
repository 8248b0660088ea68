//go:build linux

package gpudirect

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/attempt"
	"github.com/gpudoctor/gpudoctor/fixtures/drivers"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const gpu0, gpu1 = "0000:06:00.0", "0000:07:00.0"

// allWays are the ways to register memory of one GPU with one NIC, the control first.
var allWays = []Try{{Way: wayHost, Device: "mlx5_0"}, {Way: wayDMABuf, Device: "mlx5_0", GPU: gpu0}, {Way: wayPeermem, Device: "mlx5_0", GPU: gpu0}}

// simulated makes tries on the simulated libraries.
func simulated(t *testing.T, tries []Try, step time.Duration, libraries []string, env ...string) *Answer {
	t.Helper()
	dirs := expect.Map(libraries, func(name string) string { return drivers.Build(t, name) })
	return expect.Value(register(t.Context(), tries, step, 5*time.Minute, append(env, "LD_LIBRARY_PATH="+strings.Join(dirs, ":"))...))(t)
}

// long is enough on any machine, both are the libraries that all ways need.
const long = 2 * time.Minute

var both = []string{"verbs", "cuda"}

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
					a := simulated(t, allWays, long, both, "GPUDOCTOR_SIM_VERBS_FAULT="+verbs, "GPUDOCTOR_SIM_CUDA_FAULT="+d.cuda)
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
			a := simulated(t, allWays, 3*time.Second, both, "GPUDOCTOR_SIM_VERBS_FAULT="+tt.verbs, "GPUDOCTOR_SIM_CUDA_FAULT="+tt.cuda)
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
		{"no list", both, []string{"GPUDOCTOR_SIM_VERBS_FAULT=error-list=38"}, [3]string{"unknown", "unknown", "unknown"}, "ibv_get_device_list"},
		{"another device", both, []string{"GPUDOCTOR_SIM_NICS=0"}, [3]string{"unknown", "unknown", "unknown"}, "does not list the device"},
		{"no access", both, []string{"GPUDOCTOR_SIM_VERBS_FAULT=error-open=13"}, [3]string{"refused ibv_open_device EACCES", "unknown", "unknown"}, "the device could not be used: ibv_open_device: EACCES"},
		{"no domain", both, []string{"GPUDOCTOR_SIM_VERBS_FAULT=error-pd=12"}, [3]string{"refused ibv_alloc_pd ENOMEM", "unknown", "unknown"}, "the device could not be used: ibv_alloc_pd: ENOMEM"},
		{"cuInit fails", both, []string{"GPUDOCTOR_SIM_CUDA_FAULT=error-init=802"}, [3]string{"ok", "unknown", "unknown"}, "CUDA_ERROR_SYSTEM_NOT_READY"},
		{"no memory", both, []string{"GPUDOCTOR_SIM_CUDA_FAULT=error-alloc=2"}, [3]string{"ok", "unknown", "unknown"}, "CUDA_ERROR_OUT_OF_MEMORY"},
		{"another GPU", both, []string{"GPUDOCTOR_SIM_ADDRESSES=0000:99:00.0"}, [3]string{"ok", "unknown", "unknown"}, "CUDA does not offer GPU"},
		{"crash in the list", both, []string{"GPUDOCTOR_SIM_VERBS_FAULT=crash-list"}, [3]string{"unknown", "unknown", "unknown"}, "ibv_get_device_list crashed: SIGSEGV"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := simulated(t, allWays, long, tt.libraries, tt.env...)
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
		env := "LD_LIBRARY_PATH=" + drivers.Build(t, "verbs", tt.verbs...) + ":" + drivers.Build(t, "cuda", tt.cuda...)
		a := expect.Value(register(t.Context(), allWays[1:], long, long, env))(t)
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
			a := simulated(t, tries, long, both, "GPUDOCTOR_SIM_NICS=4", "GPUDOCTOR_SIM_VERBS_FAULT="+order)
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
	expect.Fails(register(ctx, allWays, long, long))(t, nil, "canceled")
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	env := []string{"LD_LIBRARY_PATH=" + drivers.Build(t, "verbs"), "GPUDOCTOR_SIM_VERBS_FAULT=hang-host"}
	for _, tried := range expect.Value(register(ctx, []Try{allWays[0], allWays[0]}, long, long, env...))(t).Tried {
		expect.Equal(t, "unknown", brief(tried.Result), "it")
	}
}
