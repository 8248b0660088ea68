//go:build race

package main

// raceFlags build the program as the tests are built.
var raceFlags = []string{"-race"}
