package launch_test

import (
	"fmt"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// BenchmarkManifests reads a folder of 400 small manifests and scripts.
func BenchmarkManifests(b *testing.B) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec:\n  containers:\n  - name: a\n    image: i\n    command: [bash, -c, 'export NCCL_DEBUG=INFO; torchrun --nproc-per-node=8 x.py']\n    resources: {limits: {nvidia.com/gpu: 8}}\n"
	script := "#!/bin/bash\n#SBATCH --gpus-per-node=8\nexport NCCL_DEBUG=INFO\nif x; then\n  ulimit -l 64\nfi\nsrun torchrun --nnodes=%d x.py\n"
	for b.Loop() {
		r := text.NewReading()
		for i := range 200 {
			texttest.Text(r, fmt.Sprintf("p%d.yaml", i), fmt.Sprintf(pod, i))
			texttest.Text(r, fmt.Sprintf("p%d.sh", i), fmt.Sprintf(script, i+1))
		}
		n := len(r.Finish().Launches)
		expect.Must(b, n >= 600, "%d launches", n)
	}
}
