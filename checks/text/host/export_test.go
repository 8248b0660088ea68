package host

// What the tests look at.

var NumactlList = numactlList
