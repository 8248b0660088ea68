//go:build unix

package main

import "golang.org/x/sys/unix"

// accessible reports whether this user may write at a place (access(2)).
func accessible(at string) error { return unix.Access(at, unix.W_OK) }
