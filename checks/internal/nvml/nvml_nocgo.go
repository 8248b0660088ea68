//go:build !cgo || !linux

package nvml

// notBuilt says why the library cannot be queried.
const notBuilt = "this binary was built without cgo, so it lacks NVML"
