package evidence

// launchKinds are the kinds of text of this area.
var launchKinds = []*Kind{}
