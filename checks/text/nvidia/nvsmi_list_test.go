package nvidia_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The table cuts long names; what lists them in full fills them in.
func TestNvsmiCutName(t *testing.T) {
	f := texttest.Parse("x", "|   0  NVIDIA GeForce ...  Off  | 00000000:01:00.0 Off |                  Off |\n"+
		"$ nvidia-smi -L\nGPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-0a7c1f7a-70f2-83a4-a0fb-000000000001)\n")
	expect.That(t, f.GPUs != nil && len(f.GPUs.Devices) == 1 && f.GPUs.Devices[0].Name == "NVIDIA GeForce RTX 4090", "got %+v", f.GPUs)
}
