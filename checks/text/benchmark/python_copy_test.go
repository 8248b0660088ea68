package benchmark_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
)

// Tensors of several rows, whose device may stand on a line of its own.
func TestPythonCopyRows(t *testing.T) {
	const values = "tensor([[ 0.5, -0.7,  ...,  0.3,  0.4],\n        [ 0.1, -0.2,  ...,  0.6,  0.8]],\n       device='cuda:0', dtype=torch.float16)\n"
	for _, test := range []struct {
		name, text string
		wrong      bool
	}{
		{"lost", values + "tensor([[0., 0.,  ..., 0., 0.],\n        [0., 0.,  ..., 0., 0.]], device='cuda:1',\n       dtype=torch.float16)\n", true},
		{"arrived", values + "tensor([[ 0.5, -0.7,  ...,  0.3,  0.4],\n        [ 0.1, -0.2,  ...,  0.6,  0.8]],\n       device='cuda:1', dtype=torch.float16)\n", false},
		{"another shape", values + "tensor([[0., 0.],\n        [0., 0.]], device='cuda:1')\n", false},
		{"a row of zeros", values + "tensor([[0., 0.,  ..., 0., 0.],\n        [0.1, 0.,  ..., 0., 0.]], device='cuda:1')\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := texttest.Parse("a.txt", test.text)
			if got := len(facts.Benchmarks) == 1 && facts.Benchmarks[0].Wrong != nil; got != test.wrong {
				t.Errorf("wrong copy = %v, want %v: %+v", got, test.wrong, facts.Benchmarks)
			}
		})
	}
}
