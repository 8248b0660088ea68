package facts

// StorageFacts is storage: as the kernel shows it (package checks/storage), or as gdscheck prints
// it (checks/text/network). A list that is nil is not known; an empty one is known to be empty. Serial
// numbers, UUIDs and names of volumes are not read.
type StorageFacts struct {
	// Drives are the NVMe controllers of /sys/class/nvme.
	Drives []NVMeDrive `json:"drives,omitzero"`
	// Arrays are the arrays of the md driver, of /sys/block/*/md.
	Arrays []RAIDArray `json:"arrays,omitzero"`
	// GDS is GPUDirect Storage.
	GDS *GDS `json:"gds,omitempty"`
}

// NVMeDrive is an NVMe controller: a drive, or the way to one of another host. Its files are below
// /sys/class/nvme/NAME.
type NVMeDrive struct {
	// Name is the controller's ("nvme0").
	Name string `json:"name"`
	// Model is from model.
	Model string `json:"model,omitempty"`
	// Address is its PCI address, from address; empty for other transports than pcie.
	Address string `json:"address,omitempty"`
	// State is "live", "new", "resetting", "connecting", "deleting" or "dead", from state.
	State string `json:"state,omitempty"`
}

// RAIDArray is an array of the md driver. Its files are below /sys/block/NAME/md
// (Linux Documentation/admin-guide/md.rst).
type RAIDArray struct {
	Name string `json:"name"`
	// Level is "raid0", "raid1", "raid5", ..., from level.
	Level string `json:"level,omitempty"`
	// State is "clean", "active", "read-auto", "inactive", "broken", ..., from array_state.
	State string `json:"state,omitempty"`
	// Disks is how many devices it is meant to have, from raid_disks, and Degraded how many of
	// these are missing, from degraded; nil for levels without redundancy.
	Disks    int  `json:"disks,omitempty"`
	Degraded *int `json:"degraded,omitempty"`
	// Sync is "idle", "resync", "recover", "check", ..., from sync_action; SyncPercent is how far
	// that is, from sync_completed.
	Sync        string   `json:"sync,omitempty"`
	SyncPercent *float64 `json:"sync_percent,omitempty"`
	// Members are its devices, of the folders dev-*.
	Members []RAIDMember `json:"members,omitzero"`
}

// RAIDMember is a device of an array.
type RAIDMember struct {
	// Device is the block device ("nvme1n1p2").
	Device string `json:"device"`
	// State is "in_sync", "faulty", "spare", ... or several of these with commas, from state.
	State string `json:"state,omitempty"`
}

// GDS is GPUDirect Storage: as the machine shows it, or as gdscheck -p does. Source is the folder or
// the text, with the Line; Line is 0 for a folder. Both use the names of gdscheck.
type GDS struct {
	// Loaded is whether the module nvidia_fs is loaded, from /sys/module, and Version its
	// version, from /proc/driver/nvidia-fs/version.
	Loaded  *bool  `json:"loaded,omitempty"`
	Version string `json:"version,omitempty"`
	// Drivers are "supported" or "unsupported" by name ("NVMe", "NFS"): what is registered with
	// nvidia_fs, from /proc/driver/nvidia-fs/modules. "NVMe P2PDMA" is only in texts.
	Drivers map[string]string `json:"drivers,omitempty"`
	// Config is the cufile.json that cuFile reads: that of CUFILE_ENV_PATH_JSON, or
	// /etc/cufile.json; empty if there is none.
	Config string `json:"config,omitempty"`
	// Properties are the settings in force, of this file and of CUFILE_*
	// ("properties.use_pci_p2pdma"); of a machine, only those that rules read. Nil is not known.
	Properties map[string]string `json:"properties,omitzero"`
	// Variables are the variables CUFILE_* that name the file, or set one of these.
	Variables []string `json:"variables,omitempty"`
	// KernelP2PDMA is whether the kernel has CONFIG_PCI_P2PDMA, from its configuration; it is
	// read where cuFile is to use it.
	KernelP2PDMA *bool  `json:"kernel_p2pdma,omitempty"`
	Source       string `json:"source"`
	Line         int    `json:"line"`
}
