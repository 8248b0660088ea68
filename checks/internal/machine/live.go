package machine

// Live returns the machine that this process runs on.
func Live() Source { return &Memory{} }
