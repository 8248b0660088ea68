// Package death reads how the processes of a job ended: tracebacks of Python, signals,
// assertions, exit codes that launchers report, and how far each rank came before a watchdog
// ended it.
package death

import "github.com/gpudoctor/gpudoctor/checks/text/parse"

// New makes the kinds of this package for one reading.
func New(*parse.Sink) parse.Family {
	t := &tracebacks{open: make(map[string]*traceback)}
	return parse.Family{Kinds: []*parse.Kind{
		{
			Name: "traceback", Title: "where a Python program raised an exception or died", Gives: []string{"logs"},
			Anchors: []string{head, frame, ignored, loggingError, chained, spawned, fatal},
			Begins:  t.begins,
			Read:    t.read,
		},
		torchrunKind(t), new(ends).kind(), stepsKind,
	}}
}
