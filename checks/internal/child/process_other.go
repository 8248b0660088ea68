//go:build !linux

package child

import (
	"io"
	"os"
	"syscall"
)

// On systems other than Linux there is no GPU to examine; children only serve the tests, and the lifeline ends them.

func self() (string, error) { return os.Executable() }

func attributes() *syscall.SysProcAttr { return nil }

func kill(proc *os.Process) { _ = proc.Kill() } // It may have ended just now.

func awaitExit(*os.Process) {}

func reap(proc *os.Process) *ending {
	state, err := proc.Wait()
	if err != nil {
		return &ending{}
	}
	if !state.Exited() {
		return &ending{signal: state.String()}
	}
	return &ending{exited: true, code: state.ExitCode()}
}

func settle() {}

func killGroup() {}

func endChildren() {}

func parentOf(int) int { return 0 }

func claim() {}

func sweep() {}

// readNow treats a timeout as the end of the pipe.
func readNow(*os.File, []byte) (int, error) { return 0, io.EOF }
