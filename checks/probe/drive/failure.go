package drive

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
	"github.com/gpudoctor/gpudoctor/checks/internal/gpudriver"
	"github.com/gpudoctor/gpudoctor/checks/probe"
)

// Failure is why something cannot go on.
type Failure struct {
	Outcome   probe.Outcome `json:"outcome"`
	Reason    string        `json:"reason"`
	Cause     probe.Cause   `json:"cause,omitempty"`
	ErrorCode int           `json:"error_code,omitempty"`
	ErrorName string        `json:"error_name,omitempty"`
	Call      string        `json:"call,omitempty"`
	LastError string        `json:"last_error,omitempty"` // What ncclGetLastError says.
}

// causes are the errors that say nothing of the driver, but why it was not tried.
var causes = []struct {
	err   error
	cause probe.Cause
}{
	{ErrBroken, probe.CauseJudge},
	{gpudriver.ErrMissing, probe.CauseIncompatible},
	{gpudriver.ErrVersion, probe.CauseIncompatible},
	{gpudriver.ErrStatic, probe.CauseStatic},
	{gpudriver.ErrLoad, probe.CauseNoLibrary},
}

// Of turns an error into a failure, and nil into nil.
func Of(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Outcome: probe.Error, Reason: err.Error()}
	var de *gpudriver.Error
	switch {
	case errors.As(err, &de):
		f.ErrorCode, f.ErrorName, f.Call, f.LastError = int(de.Result), de.Name, de.Call, de.Last
		return f
	case errors.Is(err, ErrHang):
		f.Outcome = probe.Hang
		return f
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			f.Outcome, f.Cause = probe.Unknown, c.cause
			break
		}
	}
	return f
}

// OnGPU is Of for a call that allocates something on a GPU: if others hold it,
// or the machine gives this process no more, that does not indicate a fault.
func OnGPU(err error) *Failure {
	f := Of(err)
	switch {
	case errors.Is(err, gpudriver.OutOfMemory):
		f.Outcome, f.Cause = probe.Unknown, probe.CauseNoMemory
	case errors.Is(err, gpudriver.DeviceUnavail):
		f.Outcome, f.Cause = probe.Unknown, probe.CauseBusy
	}
	return f
}

// deathCauses are the causes of what a process was at that ended, and not by a library.
var deathCauses = map[child.Death]probe.Cause{
	child.DeathByOther: probe.CauseKilled, child.DeathByShortage: probe.CauseShortage, child.DeathByBug: probe.CauseBug,
}

// Ended is how a process ended that had more to do. library names whose calls it makes: "the driver".
func Ended(r child.Result, library string) Failure {
	switch {
	case r.Flooded != "":
		return Failure{Outcome: probe.Error, Cause: probe.CauseFlooded, Reason: fmt.Sprintf("%s wrote endlessly to %s, and its process was killed", library, r.Flooded)}
	case r.Unsent > 0:
		return Failure{Outcome: probe.Unknown, Cause: probe.CauseProtocol, Reason: "the process could not report its results: " + r.UnsentReason}
	case r.Death == child.DeathByLibrary && r.Signal != "":
		return Failure{Outcome: probe.Error, Reason: fmt.Sprintf("%s crashed: %s", library, r.Signal), Call: Call(r)}
	case r.Death == child.DeathByLibrary:
		return Failure{Outcome: probe.Error, Cause: probe.CauseExited, Reason: fmt.Sprintf("%s ended the process with exit code %d", library, r.Code), Call: Call(r)}
	case r.Failure != "":
		return Failure{Outcome: probe.Unknown, Cause: probe.CauseBug, Reason: "the probe failed: " + r.Failure + "; this is a bug in gpudoctor, please report it"}
	case r.Finished:
		return Failure{Outcome: probe.Unknown, Cause: probe.CauseProtocol, Reason: "the process ended before its work was done"}
	}
	return Failure{Outcome: probe.Unknown, Cause: cmp.Or(deathCauses[r.Death], probe.CauseEnded), Reason: "the process was ended: " + r.End()}
}

// Call is the function of a library that was under way; empty if several were.
func Call(r child.Result) string {
	if len(r.Inside) == 1 {
		return r.Inside[0]
	}
	return ""
}
