package probe

// Compared returns the bus bandwidth of the largest all-reduce that both arms ran correctly and timed, and
// its size. ok is false where that is smaller than least bytes, or there is none.
func Compared(one, other *Arm, least int64) (oneGBps, otherGBps float64, bytes int64, ok bool) {
	for i := range one.Operations {
		a := &one.Operations[i]
		if !a.timedSum() || a.Bytes < max(least, bytes+1) {
			continue
		}
		for k := range other.Operations {
			if b := &other.Operations[k]; b.timedSum() && b.Bytes == a.Bytes {
				oneGBps, otherGBps, bytes, ok = *a.BusGBps, *b.BusGBps, a.Bytes, true
			}
		}
	}
	return oneGBps, otherGBps, bytes, ok
}

// timedSum reports whether it is an all-reduce that is correct and has a rate.
func (op *Operation) timedSum() bool {
	return op.Name == AllReduce && op.Outcome.Correct() && op.BusGBps != nil && *op.BusGBps > 0
}
