//go:build static

package gpudriver

// A static binary has no dynamic loader: it does not use GPUs.

func open(string) (uintptr, error) { return 0, ErrStatic }

func symbol(uintptr, string) (uintptr, error) { return 0, ErrStatic }

func register(any, uintptr) {}
