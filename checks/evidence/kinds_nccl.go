package evidence

// ncclFamily are the kinds of text of this area.
func ncclFamily(s *Sink) Family {
	n, d := newNCCLLog(), &ncclDiag{}
	return Family{Kinds: []*Kind{ncclDiagKind(d), ncclKind(n)}, Finish: func() {
		d.finish(s)
		n.finish(s)
	}}
}
