package container_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/container"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestParse checks what the parser of github.com/moby/sys does not read.
func TestParse(t *testing.T) {
	got, err := container.ParseMounts([]byte("21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 1 0:4 / /proc rw - pr"))
	expect.That(t, err == nil && len(got) == 1 && got[0].Mountpoint == "/", "a truncated last line: %v, %v", got, err)
	for text, want := range map[string]string{
		"21 1 8:1 / /\n":              `line "21 1 8:1 / /" is no mount: it lacks fields`,
		"21 1 8:1 / / rw a b c d e\n": "it lacks fields",
	} {
		_, err := container.ParseMounts([]byte(text))
		expect.That(t, err != nil && strings.Contains(err.Error(), want), "%q: %v", text, err)
	}
}
