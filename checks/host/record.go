package host

import (
	"io"

	"github.com/gpudoctor/gpudoctor/checks/internal/machine"
)

// Recording collects what a host was asked and what it answered.
type Recording struct {
	recorder *machine.Recorder
}

// RecordOptions says how a recording is written.
type RecordOptions struct {
	// Version is that of gpudoctor; the head of the snapshot states it.
	Version string
	// KeepNames leaves names, addresses, serial numbers and secrets as they are.
	// By default they are replaced by stand-ins.
	KeepNames bool
}

// Record returns a host that answers as h does, and the recording of everything that
// it is asked.
func (h *Host) Record() (*Host, *Recording) {
	r := machine.NewRecorder(h.src)
	return New(r), &Recording{recorder: r}
}

// Write writes what was recorded so far as a snapshot. The same content gives
// the same bytes.
func (r *Recording) Write(w io.Writer, opts RecordOptions) error {
	return r.recorder.Write(w, machine.WriteOptions{Version: opts.Version, KeepNames: opts.KeepNames})
}

// ParseSnapshot returns the host that a snapshot records. Errors name the place in the
// file that is called name.
func ParseSnapshot(name string, data []byte) (*Host, error) {
	m, err := machine.Parse(name, data)
	if err != nil {
		return nil, err
	}
	return New(m), nil
}
