//go:build !linux

package child

import (
	"os"
	"syscall"
)

// Elsewhere than on Linux there is no GPU to examine; children serve the
// tests alone, and the lifeline is what ends them.

func self() (string, error) { return os.Executable() }

func attributes() *syscall.SysProcAttr { return nil }

func kill(proc *os.Process) { _ = proc.Kill() } // It may have ended just now.

func awaitExit(*os.Process) {}

func signalOf(state *os.ProcessState) string { return state.String() }

func settle() {}

func killGroup() {}

func parentOf(int) int { return 0 }
