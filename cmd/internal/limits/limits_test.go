package limits

import (
	"fmt"
	"os"
	"regexp"
	"testing"
)

// TestNumbers holds that the numbers of the C code are those of the Go code.
func TestNumbers(t *testing.T) {
	text, err := os.ReadFile("limits.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{"LEAST_ADDRESS_SPACE": leastAddressSpace, "LEAST_DATA": leastData, "LEAST_FILES": leastFiles} {
		m := regexp.MustCompile(`#define ` + name + ` \(?(\d+)(?:UL << (\d+)\))?`).FindSubmatch(text)
		if m == nil {
			t.Errorf("limits.h has no %s", name)
			continue
		}
		var n, shift uint64
		_, _ = fmt.Sscan(string(m[1]), &n)
		_, _ = fmt.Sscan(string(m[2]), &shift)
		if n<<shift != want {
			t.Errorf("%s is %d in limits.h, and %d in limits.go", name, n<<shift, want)
		}
	}
}
