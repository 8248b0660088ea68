package host

// What the tests look at.

func CPUList(text string) string { return cpuList(cpuSet(text)) }
