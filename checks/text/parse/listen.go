package parse

import "github.com/gpudoctor/gpudoctor/checks/facts"

// EventKind says what an event is about.
type EventKind uint8

const (
	// VariableSet is a variable that a line sets: Name and Value.
	VariableSet EventKind = iota
	// MessageSaid is a message of the catalogue: Name is the id, Value the role, Fields what its pattern names.
	MessageSaid
	// VersionTold is the version of a piece of software: Name and Value.
	VersionTold
	// Launched is a command line that starts a job or a container: Launch.
	Launched
)

// Event is what a line told, each time that it is told.
type Event struct {
	Kind        EventKind
	Name, Value string
	Fields      map[string]string
	Launch      *facts.Launch
	Line        Line
}

// Listen has a function called with each event. Facts keep what differs, once; who compares parts of a text has to know
// where each thing stands. The lines of events need not be in order: a block's are reported when it is read.
func (s *Sink) Listen(hear func(Event)) { s.listeners = append(s.listeners, hear) }

// Tell tells the listeners of an event.
func (s *Sink) Tell(e Event) {
	for _, hear := range s.listeners {
		hear(e)
	}
}
