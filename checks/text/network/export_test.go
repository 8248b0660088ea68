package network

// What the tests look at.

const (
	MaxAddresses  = maxAddresses
	MaxInterfaces = maxInterfaces
)
