package evidence

// softwareKinds are the kinds of text of this area.
var softwareKinds = []*Kind{}
