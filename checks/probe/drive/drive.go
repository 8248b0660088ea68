// Package drive is what the probes have in common: how a driver is started and waited for, what an error, or the end of
// a process, says about it, and the kernels that write patterns into the memory of GPUs and say what is there later.
package drive

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Environment is added to that of each process that drives GPUs: compilers write nothing to the disk.
func Environment() []string { return []string{"CUDA_CACHE_DISABLE=1", "AMD_COMGR_CACHE=0"} }

// Numbered sends messages with their numbers from 1, so that the parent notices one that was lost, repeated or reordered.
// One that cannot be sent leaves a gap.
func Numbered[M any](send func(any) error, number func(m *M, n int)) func(M) {
	var mu sync.Mutex // Messages leave in the order of their numbers.
	n := 0
	return func(m M) {
		mu.Lock()
		defer mu.Unlock()
		n++
		number(&m, n)
		_ = send(m)
	}
}

// The two APIs, as Report.API names them.
const (
	CUDA = "cuda"
	HIP  = "hip"
)

// The stages of starting a driver.
const (
	StageLibrary = "load library"
	StageInit    = "cuInit" // CUDA's; that of HIP is called hipInit.
)

// Library is a driver's library.
type Library struct {
	API     string `json:"api"`
	Path    string `json:"path"`
	Version string `json:"version"`
}

// Start loads a vendor's library and starts it: that of an API or, without one, CUDA's, and HIP's
// where there is no CUDA, or no GPU for it. tell is called with each stage as it begins, and with
// what is known of the library. A driver that failed is not to be used.
func Start(api string, tell func(stage string, l *Library)) (gpudriver.Driver, *Failure) {
	tell(StageLibrary, nil)
	var first *Failure
	var lib *Library
	if api != HIP {
		d, err := gpudriver.LoadCUDA()
		if err != nil {
			first = Of(err)
		} else if lib, first = startWith(d, "libcuda", tell); first == nil || first.ErrorCode != int(gpudriver.NoDevice) {
			return d, first
		}
		if api == CUDA {
			return d, first
		}
	}
	d, err := gpudriver.LoadHIP()
	second := Of(err)
	if err == nil {
		_, second = startWith(d, "libamdhip64", tell)
	}
	if second == nil || first == nil || lib == nil && amdDriver() {
		return d, second
	}
	// HIP has no GPU either. Report the outcome of CUDA.
	stage := StageInit
	if lib == nil {
		stage, lib = StageLibrary, &Library{}
	}
	tell(stage, nil)
	tell("", lib)
	return d, first
}

func amdDriver() bool {
	_, err := os.Stat("/sys/module/amdgpu")
	return err == nil
}

// startWith starts a library that was loaded. file is the name of its file.
func startWith(d gpudriver.Driver, file string, tell func(stage string, l *Library)) (*Library, *Failure) {
	lib := &Library{API: d.Names.API}
	if missing := d.Missing; len(missing) > 0 {
		reason := fmt.Sprintf("%s lacks %v: it is too old for the probe, or is not a driver library", d.Names.Library, missing)
		return lib, &Failure{Outcome: probe.Unknown, Reason: reason, Cause: probe.CauseIncompatible}
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		lib.Path = gpudriver.Path(maps, file)
	}
	tell("", lib) // It is told also where the start does not come back.
	tell(d.Names.Init, nil)
	if err := d.Init(); err != nil {
		f := Of(err)
		if errors.Is(err, gpudriver.OutOfMemory) {
			// No GPU memory was requested yet: host memory, or a limit on it, ran out.
			f.Outcome, f.Cause = probe.Unknown, probe.CauseShortage
		}
		if d.Names.API == HIP && (errors.Is(err, gpudriver.NoDevice) || errors.Is(err, gpudriver.InvalidDevice)) {
			// The runtime for AMD GPUs is also on machines without them: HIP 5.2 says hipErrorInvalidDevice then.
			f.Outcome, f.Reason, f.Cause = probe.Unknown, "HIP offers no GPU to this process: "+f.Reason, probe.CauseNoDevice
		}
		return lib, f
	}
	v, err := d.Version()
	lib.Version = v
	tell("", lib)
	if errors.Is(err, gpudriver.ErrVersion) {
		return lib, Of(err)
	}
	return lib, nil
}

// Usable reports whether a time between two events can be one.
func Usable(seconds float64) bool { return seconds > 0 && !math.IsInf(seconds, 1) } // NaN is not above 0.

// AllocateMost allocates what n bytes of data need, or half of them and so on where a GPU is nearly full, but no fewer than
// least; n is a multiple of align.
func AllocateMost(d gpudriver.Driver, n, least, align uint64, need func(n uint64) uint64) (gpudriver.Pointer, uint64, error) {
	for ; ; n = n / 2 &^ (align - 1) {
		p, err := d.Alloc(need(n))
		if err == nil || !errors.Is(err, gpudriver.OutOfMemory) || n/2 < least {
			return p, n, err
		}
	}
}

// Pinned returns n bytes of pinned host memory: of what is kept, or of more that is kept from then on.
func Pinned(d gpudriver.Driver, kept *[]byte, n uint64) ([]byte, error) {
	if uint64(len(*kept)) < n {
		b, err := d.AllocHost(n)
		if err != nil {
			return nil, err
		}
		*kept = b
	}
	return (*kept)[:n], nil
}

// RoundTo rounds to 1/parts: a clock tells no more.
func RoundTo(v, parts float64) float64 { return math.Round(v*parts) / parts }

// ErrHang says that work did not end in time.
var ErrHang = errors.New("not finished within the deadline")

// Clock is a stream of a device, and two events between which the time is taken.
type Clock struct {
	Driver   gpudriver.Driver
	Stream   gpudriver.Stream
	From, To gpudriver.Event
}

// NewClock creates a stream and its events in the current context.
func NewClock(d gpudriver.Driver) (c Clock, err error) {
	c.Driver = d
	if c.Stream, err = d.NewStream(); err != nil {
		return c, err
	}
	if c.From, err = d.NewEvent(); err != nil {
		return c, err
	}
	c.To, err = d.NewEvent()
	return c, err
}

// Begin puts work into the stream so many times, between the events. put is told which time it is.
func (c *Clock) Begin(times int, put func(time uint64, s gpudriver.Stream) error) error {
	if err := c.Driver.Record(c.From, c.Stream); err != nil {
		return err
	}
	for n := range times {
		if err := put(uint64(n), c.Stream); err != nil {
			return err
		}
	}
	return c.Driver.Record(c.To, c.Stream)
}

// Seconds is the time that the work took. It may be no time at all.
func (c *Clock) Seconds() (float64, error) { return c.Driver.Seconds(c.From, c.To) }

// Wait waits for the end of the stream, polling so that a hang is detected, and calls meanwhile now and then.
func (c *Clock) Wait(patience time.Duration, meanwhile func() error) error {
	waited, since := time.Duration(0), time.Now()
	for n := 0; ; n++ {
		done, err := c.Driver.Done(c.Stream)
		if done || err != nil {
			return err
		}
		if n <= 200 { // Short work is polled without a pause.
			continue
		}
		if meanwhile != nil && n%64 == 0 {
			if err := meanwhile(); err != nil {
				return err
			}
		}
		if waited > patience {
			return ErrHang
		}
		// A twentieth of the time so far, so that long waits leave the processors to others.
		time.Sleep(min(max(20*time.Microsecond, waited/20), time.Millisecond))
		// A process that was not scheduled for a while, or was stopped, has not waited: it polls at least ten times.
		now := time.Now()
		waited += min(now.Sub(since), patience/10)
		since = now
	}
}
