package rdma

// What the tests look at.

const MaxGIDs = maxGIDs
