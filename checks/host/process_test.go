package host

import (
	"os"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestProcessSeen(t *testing.T) {
	own, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Skipf("this system shows no processes: %v", err)
	}
	for name, want := range map[string]bool{strings.TrimSpace(string(own)): true, "no such name": false, "": false} {
		got, err := processSeen(name)
		expect.That(t, got == want && err == nil, "processSeen(%q) = %t, %v, want %t", name, got, err, want)
	}
}
