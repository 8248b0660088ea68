package launch

// What the tests look at.

const (
	MaxCommand = maxCommand
	MaxList    = maxList
)

var (
	ParseSize = parseSize
	Ruled     = ruled
)
