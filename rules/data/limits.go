package data

// Limits returns the table of what counts as good, and from where on a value is bad.
var Limits = reader[LimitTable]("limits")

// LimitTable holds the values with which facts are compared. The YAML file says of each
// where it is from.
type LimitTable struct {
	Sources []string `json:"sources"`
	// Shares are the least good parts of a path's rate, by test of the probe; Collective
	// those of what one GPU's links carry, and Network that of a port's rate.
	Shares     map[string]Share `json:"shares"`
	Collective Share            `json:"collective"`
	Network    float64          `json:"network"`
	// CollectiveBytes and NetworkBytes are the sizes from which on bandwidth shows.
	CollectiveBytes int64 `json:"collective_bytes"`
	NetworkBytes    int64 `json:"network_bytes"`
	// WrongPath is the part of what counts as good below which a path is wrong.
	WrongPath float64 `json:"wrong_path"`
	// Detour are the parts of a link's rate that look like a detour through the root
	// port, and Staged the part below which it looks like staging through host memory.
	Detour Range   `json:"detour"`
	Staged float64 `json:"staged"`
	// StagedFaster and StagedBeatsCrowd are how many times faster host memory must be
	// than peer access alone, and than peer access while all GPUs write.
	StagedFaster     float64 `json:"staged_faster"`
	StagedBeatsCrowd float64 `json:"staged_beats_crowd"`
	// LateUS is the latency from which on a transfer was ended and did not arrive.
	LateUS int `json:"late_us"`

	ShmRecommendedBytes int64 `json:"shm_recommended_bytes"`
	ShmDefaultBytes     int64 `json:"shm_default_bytes"`
	ShmConnectionBytes  int64 `json:"shm_connection_bytes"`
	MemlockTooLowBytes  int64 `json:"memlock_too_low_bytes"`
	MemlockLowBytes     int64 `json:"memlock_low_bytes"`
	BARDefaultBytes     int64 `json:"bar_default_bytes"`
	BARFixedMostBytes   int64 `json:"bar_fixed_most_bytes"`
	// BusyPercent and SpinningPercent are of a GPU's utilization.
	BusyPercent     int `json:"busy_percent"`
	SpinningPercent int `json:"spinning_percent"`
	// CUDADrivers are the least driver branches by major release of CUDA,
	// OldCUDADrivers by release.
	CUDADrivers      map[string]int `json:"cuda_drivers"`
	OldCUDADrivers   map[string]int `json:"old_cuda_drivers"`
	CUDAGraphsDriver int            `json:"cuda_graphs_driver"`
	WatchdogMS       int            `json:"watchdog_ms"`
}

// Share says what part of a path's rate counts as good: of pairs that NVLinks or xGMI
// join, of pairs below one root complex (PCIe), of pairs on different NUMA nodes (Far),
// and of pairs whose way is hidden, as in a virtual machine (Unknown).
type Share struct {
	NVLink  float64 `json:"nvlink,omitempty"`
	PCIe    float64 `json:"pcie,omitempty"`
	Far     float64 `json:"far,omitempty"`
	Unknown float64 `json:"unknown,omitempty"`
	XGMI    float64 `json:"xgmi,omitempty"`
}

// Range is from Least to Most.
type Range struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}
