package checks

import "github.com/gpudoctor/gpudoctor/checks/internal/child"

// ChildMain runs the task of a child process and never returns if this
// process is one. It is to be called first thing in main, and in TestMain of a
// test that runs the whole program.
func ChildMain() { child.Main() }
