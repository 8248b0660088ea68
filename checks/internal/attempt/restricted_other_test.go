//go:build !linux

package attempt

func runRestricted() {}
