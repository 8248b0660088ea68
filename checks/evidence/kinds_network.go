package evidence

// networkKinds are the kinds of text of this area.
var networkKinds = []*Kind{}
