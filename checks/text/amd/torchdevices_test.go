package amd_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestTorchDevices(t *testing.T) {
	for text, want := range map[string]string{
		">>> import torch\n>>> torch.cuda.is_available()\nFalse\n":                       "torch-sees-no-gpu",
		">>> torch.cuda.is_available()\nTrue\n":                                          "torch-sees-gpu",
		"$ python -c \"import torch; print(torch.cuda.is_available())\"\nFalse\n":        "torch-sees-no-gpu",
		"user@node:~$ python3 -c 'import torch; print(torch.cuda.device_count())'\n4\n":  "torch-gpu-count",
		"In [2]: torch.cuda.device_count()\n0\n":                                         "torch-gpu-count",
		"if not torch.cuda.is_available():\n    raise RuntimeError('no GPU')\nFalse\n":   "",
		"$ python -c \"import torch; print(torch.__version__)\"\nFalse\n":                "",
		"device = 'cuda' if torch.cuda.is_available() else 'cpu'\nprint(device)\n":       "",
		"Is CUDA available: False\n":                                                     "torch-sees-no-gpu",
		"print(f'CUDA available: {torch.cuda.is_available()}')\nCUDA available: False\n": "torch-sees-no-gpu",
	} {
		f := texttest.Parse("x", text)
		got := ""
		if f.Logs != nil && len(f.Logs.Messages) > 0 {
			got = f.Logs.Messages[0].ID
		}
		expect.Equal(t, want, got, "%q", text)
	}
}

func FuzzTorchDevices(f *testing.F) {
	f.Add(">>> torch.cuda.is_available()\nFalse\n")
	f.Add("$ python -c 'torch.cuda.device_count()'\n3\n")
	f.Fuzz(testBounded)
}
