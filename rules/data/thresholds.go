package data

// Thresholds returns the table of thresholds between good and bad values.
var Thresholds = reader[ThresholdTable]("thresholds")

// ThresholdTable holds the values with which facts are compared. The YAML file says for each
// where it comes from.
type ThresholdTable struct {
	Sources []string `json:"sources"`
	// WrongPath is the fraction of the good rate below which a path is wrong.
	WrongPath float64 `json:"wrong_path"`
	// Detour are the fractions of a link's rate that look like a detour through the root
	// port, and Staged the fraction below which it looks like staging through host memory.
	Detour Range   `json:"detour"`
	Staged float64 `json:"staged"`
	// StagedFaster and StagedBeatsCrowd are how many times faster host memory must be
	// than peer access alone, and than peer access while all GPUs write.
	StagedFaster     float64 `json:"staged_faster"`
	StagedBeatsCrowd float64 `json:"staged_beats_crowd"`
	// NodePairShare is the share of the median bandwidth of all pairs of nodes below which one is slow.
	NodePairShare float64 `json:"node_pair_share"`
	// CollectiveFaster is how many times faster an all-reduce must be than another one that
	// differs by the environment, and CollectiveLeastBytes the smallest that is compared.
	CollectiveFaster     float64 `json:"collective_faster"`
	CollectiveLeastBytes int64   `json:"collective_least_bytes"`
	// LateUS is the latency from which a transfer counts as aborted rather than completed.
	LateUS int `json:"late_us"`

	ShmRecommendedBytes  int64 `json:"shm_recommended_bytes"`
	ShmDefaultBytes      int64 `json:"shm_default_bytes"`
	ShmConnectionBytes   int64 `json:"shm_connection_bytes"`
	GroupMemoryLeftBytes int64 `json:"group_memory_left_bytes"`
	GroupTasksLeft       int64 `json:"group_tasks_left"`
	MemlockTooLowBytes   int64 `json:"memlock_too_low_bytes"`
	MemlockLowBytes      int64 `json:"memlock_low_bytes"`
	BARDefaultBytes      int64 `json:"bar_default_bytes"`
	// OpenFiles is the kernel's default of RLIMIT_NOFILE.
	OpenFiles int64 `json:"open_files"`
	// SpinningPercent is a utilization of a GPU.
	SpinningPercent int `json:"spinning_percent"`
	// LinkErrors are the rates of counters of an RDMA port, in an hour, from which its link is
	// bad, and LostPacketsPerHour that of repeated packets.
	LinkErrors         map[string]float64 `json:"link_errors"`
	LostPacketsPerHour float64            `json:"lost_packets_per_hour"`
	// CUDADrivers are the minimum driver branches by major release of CUDA.
	CUDADrivers      map[string]int `json:"cuda_drivers"`
	CUDAGraphsDriver int            `json:"cuda_graphs_driver"`
	WatchdogMS       int            `json:"watchdog_ms"`
}

// Range is from Least to Most.
type Range struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}
