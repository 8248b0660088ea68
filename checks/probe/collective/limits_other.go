//go:build !linux

package collective

// raisable is empty where there is no driver to run.
func raisable(int64) map[string]int64 { return nil }

func (l limits) apply() error { return nil }
