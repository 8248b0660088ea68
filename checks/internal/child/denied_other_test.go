//go:build !linux

package child

func denied() {}

func root() {}
