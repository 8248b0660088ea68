//go:build !linux

package attempt

func prepare() {}

func perform(string, Sizes) Result {
	return Result{Outcome: Unknown, Reason: "it is tried only on Linux"}
}
