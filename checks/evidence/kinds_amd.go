package evidence

// amdKinds are the kinds of text of this area.
var amdKinds = []*Kind{}
