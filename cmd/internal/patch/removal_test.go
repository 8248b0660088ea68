package patch

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies/plan"
)

// TestRemovalTakesItsComment checks that a removed line takes the comment directly above with it, in each form of
// file, and that headings of groups, options of batch systems and other comments stay.
func TestRemovalTakesItsComment(t *testing.T) {
	for name, form := range map[string]string{
		"job.sh":       "#!/bin/bash\n%sexport NCCL_P2P_DISABLE=1\n%storchrun --nproc-per-node=8 train.py\n",
		"job.sbatch":   "#!/bin/bash\n#SBATCH --gpus-per-node=8\n%sexport NCCL_P2P_DISABLE=1\n%ssrun python train.py\n",
		"Dockerfile":   "FROM a\n%sENV NCCL_P2P_DISABLE=1\n%sCMD torchrun train.py\n",
		"nccl.env":     "NCCL_DEBUG=WARN\n%sNCCL_P2P_DISABLE=1\n%sNCCL_IB_HCA=mlx5\n",
		"compose.yaml": "services:\n  a:\n    image: a\n    gpus: all\n    environment:\n      A: b\n%s      NCCL_P2P_DISABLE: \"1\"\n%s      NCCL_DEBUG: INFO\n",
	} {
		margin := ""
		if name == "compose.yaml" {
			margin = "      "
		}
		comment, other := margin+"# The old nodes hang with P2P.\n", margin+"# This stays.\n"
		for _, c := range []struct{ above, below, left string }{
			{"", "", ""},
			{comment, "", ""},
			{comment + comment, "", ""},
			{comment, other, other},
			{"\n" + comment, "\n", "\n\n"},
			{"\n" + comment, "", "\n" + comment}, // It heads the lines that follow.
		} {
			text := strings.Replace(strings.Replace(form, "%s", c.above, 1), "%s", c.below, 1)
			want := Want{Setting: plan.Setting{Kind: plan.Unset, Name: "NCCL_P2P_DISABLE"}, Values: []string{"1"}}
			got, err := Make(t.Context(), Request{Name: name, Text: text, Wants: []Want{want}, GPUs: 8, Vendor: "nvidia"})
			expect.Must(t, err == nil, "%s: %v", name, err)
			expect.That(t, !strings.Contains(got.Text, "P2P_DISABLE"), "%s: not removed from %q: %v", name, text, got.Manual)
			n := strings.Count(got.Text, "The old nodes")
			expect.That(t, n == strings.Count(c.left, "The old nodes") && strings.Contains(got.Text, "This stays") == strings.Contains(c.left, "This stays"), "%s: from %q\ngot  %q", name, text, got.Text)
		}
	}
}
