package nccl

// What the tests look at.

const DiagMaxEvents = diagMaxEvents

// Log is what lines told so far.
type Log = log

var LogKind = logKind
