package parse

// WithoutSkips makes a reading offer each line to every kind whose anchors it holds.
func (r *Reading) WithoutSkips() {
	anchors := *r.anchors
	anchors.skips = nil
	r.anchors = &anchors
}
