package evidence

// ncclKinds are the kinds of text of this area.
var ncclKinds = []*Kind{ncclDiagKind, ncclKind}
