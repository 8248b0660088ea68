// Package stdio keeps the standard streams apart from the files that the
// program opens. Where one of them is closed when the program starts, the file
// that is opened next would get its number, and what is meant for the stream
// would be written into it.
//
// Go's runtime opens /dev/null for a closed stream, to which a report can be
// written, and is lost. Before the runtime starts, this package opens something
// on which reads and writes fail. That needs cgo; a program without it behaves
// as the runtime makes it.
//
// It also writes to standard output, and remembers whether that failed, and writes files that are never left
// half-written where that can be helped.
package stdio
