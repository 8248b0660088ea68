package network

// What the tests look at.

const (
	MaxAddresses  = maxAddresses
	MaxGIDs       = maxGIDs
	MaxInterfaces = maxInterfaces
)
