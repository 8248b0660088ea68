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
	// DriverPackages match packages of distributions.
	DriverPackages []string `json:"driver_packages"`
	// MisplacedFolders are folders that have no place on a library path, HostFolders match those of
	// the host's own libraries.
	MisplacedFolders []MisplacedFolder `json:"misplaced_folders"`
	HostFolders      []string          `json:"host_folders"`
	// WithoutNCCL match images and programs that need no shared memory for their GPUs, NodeServices
	// images of services that see all GPUs of a node, OtherProcessors images for no GPU.
	WithoutNCCL     []string `json:"without_nccl"`
	NodeServices    []string `json:"node_services"`
	OtherProcessors []string `json:"other_processors"`
	// UnlimitedMemlock match resources of nodes without a limit.
	UnlimitedMemlock []string `json:"unlimited_memlock"`
	// Providers are settings that providers document for their own networks.
	Providers []Provider `json:"providers"`
	// Lacking says what a container lacks that has no GPUs, no right to lock memory, or no network of its
	// host, by the kind of container.
	Lacking map[string]map[string]string `json:"lacking"`
	// Parts are the parts of a description, for people, by the names of facts.Launch.Lines.
	Parts map[string]string `json:"parts"`
}

// Provider is what a provider documents for its network. Any of the lists recognises it.
type Provider struct {
	Name string `json:"name"`
	// Image, Mounts and Resources match those of a container, Beside a variable that is set with the
	// settings.
	Image     []string `json:"image"`
	Beside    []string `json:"beside"`
	Mounts    []string `json:"mounts,omitempty"`
	Resources []string `json:"resources,omitempty"`
	// Settings are patterns of values by patterns of names. An empty pattern matches any value.
	Settings map[string]string `json:"settings"`
	Source   string            `json:"source"`
}

// MisplacedFolder says what is in folders, matched by regular expressions, and why no program is to load it.
type MisplacedFolder struct {
	What     string   `json:"what"`
	Folders  []string `json:"folders"`
	Severity string   `json:"severity"`
	Why      string   `json:"why"`
	// EmptyIn match images in which the folder holds nothing, so that it does little harm.
	EmptyIn []string `json:"empty_in"`
}
