package facts

// GPUDirectFacts is what a child of gpudoctor really tried with the full probe: whether a NIC reaches the memory of
// GPUs without the host's (package checks/gpudirect). An outcome that is nil is unknown.
type GPUDirectFacts struct {
	// NICs are the RDMA devices that have an active port here.
	NICs []DirectNIC `json:"nics,omitzero"`
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
	// DMABuf is cuMemGetHandleForAddressRange and ibv_reg_dmabuf_mr(3). Errno is the name of an error of the kernel, or
	// CUDA_ERROR_NOT_SUPPORTED. Peermem is ibv_reg_mr(3) of the GPU's address, which needs nvidia-peermem.
	DMABuf  *Attempt `json:"dmabuf,omitempty"`
	Peermem *Attempt `json:"peermem,omitempty"`
}
