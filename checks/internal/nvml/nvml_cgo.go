//go:build cgo && linux

package nvml

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// notBuilt is empty: this binary has NVML support.
const notBuilt = ""

// library is the name under which every program loads the library.
const library = "libnvidia-ml.so.1"

func init() { child.Register(task, interview) }

// interview makes all queries, in the child, and sends each piece as it comes. It does not call nvmlShutdown, which can
// hang: the end of the process releases everything.
func interview(_ context.Context, _ json.RawMessage, send func(any) error) error {
	q := &interviewer{lib: nvml.New(), file: dl.New(library, dl.RTLD_LAZY|dl.RTLD_GLOBAL), send: send}
	outcome, err := q.run()
	if err != nil {
		return err
	}
	return send(piece{End: &outcome})
}

type interviewer struct {
	lib  nvml.Interface
	file *dl.DynamicLibrary
	send func(any) error
	// about is what the calls are about now: " of GPU 3", or empty.
	about string
}

// versions are the suffixes of the functions of which go-nvml takes the newest
// that the library has, at last the plain name, by which every other is called.
var versions = map[string][]string{
	"nvmlInit":                             {"_v2"},
	"nvmlDeviceGetCount":                   {"_v2"},
	"nvmlDeviceGetHandleByIndex":           {"_v2"},
	"nvmlDeviceGetPciInfo":                 {"_v3", "_v2"},
	"nvmlDeviceGetNvLinkRemotePciInfo":     {"_v2"},
	"nvmlDeviceGetComputeRunningProcesses": {"_v3", "_v2"},
}

// symbol returns the name by which the library has a function, or "". Calling one that it lacks would end the process:
// go-nvml leaves undefined symbols to the loader.
func (q *interviewer) symbol(function string) string {
	for _, suffix := range append(versions[function], "") {
		if q.file.Lookup(function+suffix) == nil {
			return function + suffix
		}
	}
	return ""
}

// call calls a function if the library has it, and reports it first.
func (q *interviewer) call(function string, f func() nvml.Return) nvml.Return {
	name := q.symbol(function)
	if name == "" {
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	if err := q.send(piece{Stage: name + q.about}); err != nil {
		return nvml.ERROR_UNKNOWN // Nobody is listening; the next message ends the task.
	}
	var ret nvml.Return
	child.CallOf(name).Do(func() { ret = f() })
	return ret
}

// run makes all queries in turn. An error means that nobody receives the answers.
func (q *interviewer) run() (end, error) {
	if err := q.send(piece{Stage: "loading " + library}); err != nil {
		return end{}, err
	}
	var err error
	child.CallOf("loading " + library).Do(func() { err = q.file.Open() })
	if err != nil {
		return loadError(err), nil //nolint:nilerr // The answer says it.
	}
	var driver facts.GPUDriver
	if err := q.send(piece{Driver: &driver}); err != nil {
		return end{}, err
	}
	if ret := q.call("nvmlInit", q.lib.Init); ret != nvml.SUCCESS {
		return failure(ret), nil
	}
	driver.Version, _ = get(q, "nvmlSystemGetDriverVersion", q.lib.SystemGetDriverVersion)
	if n, ret := get(q, "nvmlSystemGetCudaDriverVersion_v2", q.lib.SystemGetCudaDriverVersion_v2); ret == nvml.SUCCESS {
		driver.CUDAVersion = cudaVersion(n)
	}
	if err := q.send(piece{Driver: &driver}); err != nil {
		return end{}, err
	}
	return q.devices()
}

func (q *interviewer) devices() (end, error) {
	count, ret := get(q, "nvmlDeviceGetCount", q.lib.DeviceGetCount)
	if ret != nvml.SUCCESS {
		return failure(ret), nil
	}
	var live []subject
	for i := range count {
		q.about = fmt.Sprintf(" of GPU %d", i)
		out := Device{GPU: facts.GPU{Index: &i, Vendor: "nvidia", InNVML: true}}
		gpu, ret := get(q, "nvmlDeviceGetHandleByIndex", func() (nvml.Device, nvml.Return) { return q.lib.DeviceGetHandleByIndex(i) })
		if ret != nvml.SUCCESS {
			out.Error = nameOf(ret)
		} else {
			s := subject{interviewer: q, gpu: gpu, out: &out}
			s.all()
			if !s.lost && out.Address != "" {
				live = append(live, s)
			}
		}
		if err := q.send(piece{Device: &out}); err != nil {
			return end{}, err
		}
	}
	for _, a := range live {
		q.about = fmt.Sprintf(" of GPU %d", *a.out.Index)
		if err := q.send(piece{P2P: a.peers(live)}); err != nil {
			return end{}, err
		}
	}
	return end{Outcome: OK}, nil
}

// loadError distinguishes a missing library from one that does not load.
func loadError(err error) end {
	// The message is glibc's or musl's; one about a library that this one needs names that instead.
	text := err.Error()
	if strings.Contains(text, library) && strings.Contains(text, "No such file") {
		return end{Outcome: NotFound}
	}
	return end{Outcome: Failed, ErrorName: "LIBRARY_NOT_LOADED", Reason: text}
}

func failure(ret nvml.Return) end { return end{Outcome: Failed, ErrorName: nameOf(ret)} }

func nameOf(ret nvml.Return) string { return errorName(uint32(ret)) }

func get[T any](q *interviewer, function string, f func() (T, nvml.Return)) (T, nvml.Return) {
	var v T
	ret := q.call(function, func() (ret nvml.Return) {
		v, ret = f()
		return ret
	})
	return v, ret
}
