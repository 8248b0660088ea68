package launch

// What the tests look at.

const (
	MaxCommand = maxCommand
	MaxList    = maxList
)

var Ruled = ruled
