package evidence

// nvidiaKinds are the kinds of text of this area.
var nvidiaKinds = []*Kind{}
