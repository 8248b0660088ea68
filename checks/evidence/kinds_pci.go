package evidence

// pciKinds are the kinds of text of this area.
var pciKinds = []*Kind{}
