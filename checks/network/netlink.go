package network

// The questions, as a recording names them.
const (
	// AskAddresses is answered with a map from the network interfaces of this network
	// namespace to their IP addresses, "10.0.0.5/24".
	AskAddresses = "addresses"
	// AskFlowControl takes the name of an interface and is answered with a FlowControl.
	AskFlowControl = "flow-control:"
)

// FlowControl is priority flow control of a network interface.
type FlowControl struct {
	// Priorities are those that have it, from 0.
	Priorities []int `json:"priorities"`
}
