package main

import (
	"fmt"
	"strings"
)

// verdictError makes the program exit with the code of a verdict. It has no message:
// the report contains it.
type verdictError struct{ code int }

func (e verdictError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// verdict is the error of an exit code, nil for 0.
func verdict(code int) error {
	if code == exitOK {
		return nil
	}
	return verdictError{code}
}

// join lists names with commas between.
func join(names []string) string { return strings.Join(names, ", ") }
