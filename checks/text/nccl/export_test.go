package nccl

// What the tests look at.

const DiagMaxEvents = diagMaxEvents

var (
	LogKind = logKind
	NewLog  = newLog
)
