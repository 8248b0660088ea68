//go:build !linux

package collective

func limitFiles(int64) error { return nil }
