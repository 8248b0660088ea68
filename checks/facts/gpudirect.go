package facts

// GPUDirectFacts is what a child of gpudoctor really tried with the full probe: whether a NIC and a drive reach
// the memory of GPUs without the host's (package checks/gpudirect). A list that is nil is not known, and
// an outcome that is nil is unknown; an empty list means that there is nothing to try.
type GPUDirectFacts struct {
	// NICs are the RDMA devices that have an active port here.
	NICs []DirectNIC `json:"nics,omitzero"`
	// Reads are the file systems on NVMe drives from which cuFile was to read, where GPUDirect Storage is set up.
	Reads []DirectRead `json:"reads,omitzero"`
}

// DirectNIC is an RDMA device, and what it registers.
type DirectNIC struct {
	// Device is its name ("mlx5_0"), as in nics.rdma.
	Device string `json:"device"`
	// Host is the control: memory of the process, by ibv_reg_mr(3). Call is "ibv_open_device" or
	// "ibv_alloc_pd" if the device itself could not be used.
	Host *Attempt `json:"host,omitempty"`
	// GPUs are those whose memory was to be registered with it: those to which it is the nearest.
	GPUs []DirectGPU `json:"gpus"`
}

// DirectGPU is the memory of a GPU with a NIC.
type DirectGPU struct {
	// Address is its PCI address.
	Address string `json:"address"`
	// DMABuf is cuMemGetHandleForAddressRange and ibv_reg_dmabuf_mr(3). Errno is the name of an error of the
	// kernel, or CUDA_ERROR_NOT_SUPPORTED. Peermem is ibv_reg_mr(3) of the GPU's address, which needs
	// nvidia-peermem.
	DMABuf  *Attempt `json:"dmabuf,omitempty"`
	Peermem *Attempt `json:"peermem,omitempty"`
}

// DirectRead is one file system, and what came of reading 4 MiB from a file on it into the memory of a GPU.
type DirectRead struct {
	// Mount is the mount point, as in storage.mounts, GPU the PCI address.
	Mount string `json:"mount"`
	GPU   string `json:"gpu"`
	// Direct is cuFileRead with the compatibility mode forbidden (CUFILE_ALLOW_COMPAT_MODE=false).
	// Configured is the same as cuFile is set up, tried only where Direct was refused: if it is "ok", cuFile
	// read through host memory.
	Direct     *CuFileRead `json:"direct,omitempty"`
	Configured *CuFileRead `json:"configured,omitempty"`
}

// CuFileRead is the outcome of a read by cuFile.
type CuFileRead struct {
	// Outcome is "ok", "refused", or "corrupt" if cuFile reported success and the memory holds other data.
	Outcome string `json:"outcome" jsonschema:"enum=ok,enum=refused,enum=corrupt"`
	// Call is the function that refused, and Error its error: "CU_FILE_NVFS_DRIVER_ERROR", or of cuFileRead
	// the name of an errno.
	Call  string `json:"call,omitempty"`
	Error string `json:"error,omitempty"`
	// Bytes is the size that was read.
	Bytes int64 `json:"bytes,omitempty"`
}
