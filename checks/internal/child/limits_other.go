//go:build !linux

package child

func (limit) get() (n uint64, set bool) { return 0, false }
