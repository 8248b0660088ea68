package checks

import (
	"os"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/internal/child"
)

// TestMain lets this test binary be the child that calls a vendor library.
func TestMain(m *testing.M) {
	child.Main()
	os.Exit(m.Run())
}
