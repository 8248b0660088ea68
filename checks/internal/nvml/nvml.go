// Package nvml queries NVIDIA's management library, libnvidia-ml.so.1. It does so in a child process, because on a
// faulty GPU the library hangs or crashes, and it keeps what was answered before that. It only reads: no function that
// it calls changes any state.
package nvml

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// The outcomes of a query.
const (
	// OK means that every query was answered, possibly with an error for one GPU.
	OK = "ok"
	// Hang means that a call did not return. Answer.Stage names it.
	Hang = "hang"
	// Crashed means that the library ended its process, inside one of its calls or in a thread of its own.
	Crashed = "crashed"
	// Ended means that the process ended in another or an unknown way:
	// Answer.Death. That says nothing about the library.
	Ended = "ended"
	// NotFound means that the loader finds no such library.
	NotFound = "not-found"
	// NotBuilt means that this binary was built without NVML support.
	NotBuilt = "not-built"
	// Failed means that the library answered with an error, Answer.ErrorName.
	Failed = "error"
)

// Answer is what the library answered. A field that it does not support is nil or
// empty, never zero. Names of errors are NVML's without "NVML_ERROR_".
type Answer struct {
	// Outcome is one of the constants above.
	Outcome string `json:"outcome"`
	// ErrorName is NVML's error ("LIB_RM_VERSION_MISMATCH"), or the signal
	// of a crash ("SIGSEGV"). Reason gives details, if there are any.
	ErrorName string `json:"error_name,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Death says what ended the process.
	Death child.Death `json:"death,omitempty"`
	// Stage is the step during which the library hung, crashed or failed: "nvmlDeviceGetHandleByIndex of GPU 3".
	Stage string `json:"stage,omitempty"`
	// Left is true when the child could not be killed: it is blocked in the kernel.
	Left bool `json:"left,omitempty"`
	// Driver is the driver as NVML names it.
	Driver facts.GPUDriver `json:"driver"`
	// Devices are the GPUs in the library's order. After a hang they are those that were queried before it.
	Devices []Device `json:"devices"`
	// P2P is the status of each pair, once; nil when it was not queried.
	P2P []facts.GPUPeer `json:"p2p"`
}

// Device is one GPU. After an error for the whole GPU, the facts are those that were read before it.
type Device struct {
	facts.GPU
	// Own counts gpudoctor's own processes, which are left out of Processes.
	Own int `json:"-"`
	// Refused are the queries that this GPU answered with an error, other than that it does not support them.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal is a query that was answered with an error.
type Refusal struct {
	// Function is NVML's, Error the name of the error.
	Function string `json:"function"`
	Error    string `json:"error"`
}

type piece struct {
	// Stage is the step that begins now.
	Stage  string           `json:"stage,omitempty"`
	Driver *facts.GPUDriver `json:"driver,omitempty"`
	Device *Device          `json:"device,omitempty"`
	P2P    []facts.GPUPeer  `json:"p2p,omitempty"`
	End    *end             `json:"end,omitempty"`
}

type end struct {
	Outcome   string `json:"outcome"`
	ErrorName string `json:"error_name,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

const task = "nvml"

// Limits bound how long the library may take: Call for each call, All for all of
// them; 0 means deadline.NVMLCall and three times Call.
type Limits struct{ Call, All time.Duration }

// Ask queries everything that Answer holds, within the limits. An error means that the library could not be queried; a
// library that is missing, hangs, crashes or fails is an answer.
func Ask(ctx context.Context, limits Limits) (*Answer, error) {
	if notBuilt != "" {
		return &Answer{Outcome: NotBuilt, Reason: notBuilt}, nil
	}
	call := cmp.Or(limits.Call, deadline.NVMLCall)
	all := deadline.NVML / deadline.NVMLCall * call
	if limits.All > 0 {
		all = min(all, limits.All)
	}
	step, spawn := min(call, all), min(deadline.Spawn, all)
	a := &Answer{}
	result, err := child.Run(ctx, child.Spec{Task: task, Deadline: spawn + all, Receive: func(m json.RawMessage) { a.take(m) }, Silence: func() time.Duration {
		if a.Stage == "" {
			return max(step, spawn)
		}
		return step
	}})
	if err == nil && result.Canceled {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("ask NVML: %w", err)
	}
	a.conclude(result)
	return a, nil
}

func (a *Answer) take(message []byte) {
	var p piece
	if json.Unmarshal(message, &p) != nil {
		return // The child is of this binary; only a broken one sends such.
	}
	a.Stage = cmp.Or(p.Stage, a.Stage)
	if p.Driver != nil {
		a.Driver = *p.Driver
	}
	if d := p.Device; d != nil {
		named := len(d.Processes)
		d.Processes = slices.DeleteFunc(d.Processes, func(p facts.GPUProcess) bool { return child.Own(p.PID) }) // Its probe runs meanwhile.
		d.Own = named - len(d.Processes)
		a.Devices = append(a.Devices, *d)
	}
	a.P2P = append(a.P2P, p.P2P...)
	if p.End != nil {
		a.Outcome, a.ErrorName, a.Reason = p.End.Outcome, p.End.ErrorName, p.End.Reason
	}
}

func (a *Answer) conclude(r child.Result) {
	a.Left = r.Left
	switch {
	case a.Outcome == OK:
		a.Stage = ""
	case a.Outcome != "": // The child has said it all.
	case (r.TimedOut || r.Silent) && r.InLibrary():
		a.Outcome = Hang
	case r.TimedOut || r.Silent:
		a.Outcome, a.Death, a.Reason = Ended, child.DeathUnknown, "it made no progress in time, outside any call of the library"
	case r.Flooded != "":
		a.Outcome, a.Reason = Crashed, fmt.Sprintf("it wrote endlessly to %s and was killed", r.Flooded)
	case r.Finished:
		a.Outcome, a.Reason = Failed, r.Failure
	case r.Death == child.DeathByLibrary:
		a.Outcome, a.ErrorName, a.Reason = Crashed, r.Signal, lastWords(r)
	default:
		a.Outcome, a.Death, a.Reason = Ended, r.Death, r.End()
	}
}

// lastWords is the last line that a library wrote before it ended its own process. After a signal the lines are the Go
// runtime's registers, and the signal's name says enough.
func lastWords(r child.Result) string {
	if r.Signal != "" {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(r.Stderr), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	return strings.ToValidUTF8(last[:min(len(last), 200)], "?")
}
