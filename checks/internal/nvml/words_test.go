package nvml

import (
	"encoding/binary"
	"math"
	"regexp"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"00000000:3B:00.0": "0000:3b:00.0",
		"0000:3b:00.0":     "0000:3b:00.0",
		"00010000:01:1F.7": "10000:01:1f.7",
		"00000000:00:06.0": "0000:00:06.0",
		"00000000:00:00.0": "",
		"FFFFFFFF:FF:FF.0": "", // A hidden NVSwitch, driver 580 in a VM.
		"FFFFFFFF:FF:1F.7": "",
		"0000:3b:20.0":     "",
		"0000:3b:00.8":     "",
		"0000:3b:00":       "",
		"3b:00.0":          "",
		"0000.3b.00.0":     "",
		"":                 "",
		"garbage":          "",
		"0000:-1:00.0":     "",
	} {
		expect.Equal(t, want, address(in), "address(%q)", in)
	}
}

func TestUnhealthy(t *testing.T) {
	for mask, want := range map[uint32][]string{
		0:                     nil,
		0b10_0001_10_10_10_10: nil, // All good.
		0b10_10_10_01:         {"degraded-bandwidth"},
		0b01_01_01_01:         {"degraded-bandwidth", "route-recovery", "route-unhealthy", "access-timeout-recovery"},
		5 << 8:                {"incorrect-configuration"},
		0xffffffff:            {"incorrect-configuration"}, // 3 means nothing.
	} {
		expect.NoDiff(t, want, unhealthy(mask), "unhealthy(%#x)", mask)
	}
}

func TestFieldNumber(t *testing.T) {
	bits := func(n uint64) (b [8]byte) {
		binary.NativeEndian.PutUint64(b[:], n)
		return b
	}
	word := func(n uint32) (b [8]byte) {
		binary.NativeEndian.PutUint32(b[:], n)
		return b
	}
	for _, tt := range []struct {
		kind  uint32
		value [8]byte
		want  int64
		ok    bool
	}{
		{1, word(26562), 26562, true},
		{1, word(math.MaxUint32), math.MaxUint32, true},
		{2, bits(1 << 40), 1 << 40, true},
		{3, bits(math.MaxUint64), 0, false},
		{7, bits(1), 0, false},
	} {
		got, ok := fieldNumber(tt.kind, tt.value)
		expect.That(t, got == tt.want && ok == tt.ok, "fieldNumber(%d, %x) = %d, %t, want %d, %t", tt.kind, tt.value, got, ok, tt.want, tt.ok)
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{errorName(15), "GPU_IS_LOST"},
		{errorName(12345), "ERROR_12345"},
		{cudaVersion(13000), "13.0"},
		{cudaVersion(12080), "12.8"},
		{cudaVersion(0), ""},
	} {
		expect.Equal(t, tt.want, tt.got, "it")
	}
	expect.NoDiff(t, nil, bytesOf(math.MaxUint64), "bytesOf of the value that is not available")
}

func TestConclude(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result child.Result
		want   Answer
	}{
		{"a hang that stays", child.Result{TimedOut: true, Left: true, Signal: "SIGKILL"}, Answer{Outcome: Hang, Stage: "nvmlInit_v2", Left: true}},
		{"a stall", child.Result{Silent: true, Signal: "SIGKILL"}, Answer{Outcome: Hang, Stage: "nvmlInit_v2"}},
		{"a signal", child.Result{Signal: "SIGABRT", Death: child.DeathByLibrary, Stderr: "r15 0x0\n"}, Answer{Outcome: Crashed, ErrorName: "SIGABRT", Stage: "nvmlInit_v2"}},
		{
			"the loader",
			child.Result{Exited: true, Code: 127, Death: child.DeathByLibrary, Stderr: "a\nsymbol lookup error: undefined symbol\n\n"},
			Answer{Outcome: Crashed, Reason: "symbol lookup error: undefined symbol", Stage: "nvmlInit_v2"},
		},
		{
			"a stall outside any call",
			child.Result{Silent: true, Signal: "SIGKILL", Recorded: true},
			Answer{Outcome: Ended, Death: child.DeathUnknown, Reason: "it made no progress in time, outside any call of the library", Stage: "nvmlInit_v2"},
		},
		{
			"the OOM killer",
			child.Result{Signal: "SIGKILL", Death: child.DeathByOther, Why: "such as by the kernel's OOM killer", Recorded: true, Inside: []string{"nvmlInit_v2"}},
			Answer{Outcome: Ended, Death: child.DeathByOther, Reason: "SIGKILL, such as by the kernel's OOM killer", Stage: "nvmlInit_v2"},
		},
		{
			"no thread",
			child.Result{Exited: true, Code: 2, Signal: "SIGABRT", Death: child.DeathByShortage, Why: "no thread could be created", Recorded: true},
			Answer{Outcome: Ended, Death: child.DeathByShortage, Reason: "SIGABRT, no thread could be created", Stage: "nvmlInit_v2"},
		},
		{"the task", child.Result{Finished: true, Failure: "no task"}, Answer{Outcome: Failed, Reason: "no task", Stage: "nvmlInit_v2"}},
	} {
		var a Answer
		a.take([]byte(`{"stage":"nvmlInit_v2"}`))
		a.take([]byte(`noise`))
		a.conclude(tt.result)
		expect.NoDiff(t, tt.want, a, "%s", tt.name)
	}
}

var kernelForm = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"00000000:3B:00.0", "FFFFFFFF:FF:1F.7", "::.", "0000:3b:00.0.0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := address(s)
		if got == "" {
			return
		}
		expect.That(t, kernelForm.MatchString(got), "address(%q) = %q, which is no address", s, got)
		expect.Equal(t, got, address(got), "address(%q)", got)
	})
}

func FuzzPieces(f *testing.F) {
	f.Add([]byte(`{"device":{"index":1,"address":"0000:3b:00.0","processes":[{"pid":1}]}}`))
	f.Add([]byte(`{"p2p":[{"a":"x","b":"y"}],"end":{"outcome":"ok"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var a Answer
		a.take(b)
		a.conclude(child.Result{Finished: true})
		expect.That(t, a.Outcome != "", "no outcome after %q", b)
	})
}
