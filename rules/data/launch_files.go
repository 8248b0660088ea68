package data

// LaunchFiles returns the table of words in launch files.
var LaunchFiles = reader[LaunchFileTable]("launch_files")

// LaunchFileTable says what the words of a launch file mean, as regular expressions. The
// YAML file says for each what it matches.
type LaunchFileTable struct {
	Sources []string `json:"sources"`
	// RDMAResources match resources of Kubernetes, HostInterfaces network interfaces of a
	// machine, and Loopback addresses of the machine itself.
	RDMAResources  []string `json:"rdma_resources"`
	HostInterfaces []string `json:"host_interfaces"`
	Loopback       []string `json:"loopback"`
	// DriverPackages match packages of distributions, StubFolders folders of a library path.
	DriverPackages []string `json:"driver_packages"`
	StubFolders    []string `json:"stub_folders"`
	// Parts are the parts of a description, for people, by the names of facts.Launch.Lines.
	Parts map[string]string `json:"parts"`
}
