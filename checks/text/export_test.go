package text

// What the tests look at.

const MaxDepth = maxDepth
