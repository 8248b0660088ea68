package nccl

// What the tests look at.

const MaxDiagEvents = maxDiagEvents

// Log is what lines told so far.
type Log = log

var LogKind = logKind
