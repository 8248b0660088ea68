package lines

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules/data"
)

// TestSpans checks which pieces of a sentence are code.
func TestSpans(t *testing.T) {
	for s, want := range map[string][]string{
		"":                    nil,
		"Reboot the machine.": nil,
		"Run show_gids (or ibv_devinfo -v) to find the index.":                          {"show_gids", "ibv_devinfo -v"},
		"nvidia-smi -q then shows Completed.":                                           {"nvidia-smi -q"},
		"Set NCCL_IB_GID_INDEX to it; NCCL_DEBUG=INFO shows it.":                        {"NCCL_IB_GID_INDEX", "NCCL_DEBUG=INFO"},
		"/dev/shm is 64 MiB (df -h /dev/shm).":                                          {"/dev/shm", "df -h /dev/shm"},
		"Run ulimit -n $(ulimit -Hn) before the job.":                                   {"ulimit -n $(ulimit -Hn)"},
		`Run python -c "import torch; print(torch.cuda.nccl.version())", and compare.`:  {`python -c "import torch; print(torch.cuda.nccl.version())"`},
		"Run env | grep VISIBLE_DEVICES to see them.":                                   {"env | grep VISIBLE_DEVICES"},
		"Mount the cat on the docker ip, ping it and set env in pip.":                   nil,
		"the loss is 5 GB/s, NCCL and CUDA say so, and/or 2/3":                          nil,
		"systemctl start opensm on one machine":                                         {"systemctl start opensm"},
		"docker run --rm --gpus all ubuntu nvidia-smi shows the GPUs.":                  {"docker run --rm --gpus all ubuntu nvidia-smi"},
		"Run ping -M do -s 8972 PEER to check that the path carries it.":                {"ping -M do -s 8972 PEER"},
		`run "nc -l 12345" on one machine`:                                              {"nc -l 12345"},
		"gpudoctor check --from /tmp/a.log --only acs-redirect,p2p-slow, as root; then": {"gpudoctor check --from /tmp/a.log --only acs-redirect,p2p-slow"},
		"Remove amdgpu.pcie_p2p=0 and set pci=realloc, because x = 3.":                  {"amdgpu.pcie_p2p=0", "pci=realloc"},
		"unset NCCL_P2P_DISABLE":                                                        {"unset NCCL_P2P_DISABLE"},
	} {
		code := Filter(Spans(s), func(span Span) bool { return span.Code })
		got := Map(code, func(span Span) string { return span.Text })
		expect.That(t, slices.Equal(got, want), "%q: got %q, want %q", s, got, want)
	}
}

// sentences are those of all remedies.
func sentences(t *testing.T) (all []string, commands []string) {
	t.Helper()
	set := expect.Value(remedies.Load())(t)
	for _, r := range set.Remedies() {
		for _, s := range append([]string{r.Description, r.Cost, r.Caution, r.Undo, r.Verify}, r.Apply.Steps...) {
			all = append(all, remedies.Unfilled(s))
		}
		commands = append(commands, r.Apply.Commands...)
	}
	for _, d := range data.Areas().Decides {
		commands = append(commands, d.Command)
		all = append(all, d.Shows)
	}
	return all, commands
}

// TestSpansJoined checks that the pieces of each sentence are the sentence, and that none
// begins or ends with the punctuation around code.
func TestSpansJoined(t *testing.T) {
	all, _ := sentences(t)
	code := 0
	for _, s := range all {
		joined := ""
		for _, span := range Spans(s) {
			joined += span.Text
			if span.Code {
				code++
				expect.That(t, strings.Trim(span.Text, " ,;:.") == span.Text, "%q in %q", span.Text, s)
			}
		}
		expect.That(t, joined == s, "got %q of %q", joined, s)
	}
	expect.That(t, code >= 100, "%d pieces of code in %d sentences", code, len(all))
}

// TestProgramsOfCommands checks that each program of a command that remedies and rules give
// is known where a sentence names it.
func TestProgramsOfCommands(t *testing.T) {
	_, commands := sentences(t)
	own := []string{"", "export", "find", "chmod", "sudo", "ls", "reboot", "dd", "echo", "awk", "tmp=$(mktemp)"}
	for _, c := range commands {
		name, _, _ := strings.Cut(strings.TrimPrefix(c, "sudo "), " ")
		name = strings.TrimSuffix(name, ";")
		expect.That(t, slices.Contains(programs, name) || slices.Equal(Spans(name), []Span{{name, true}}) || slices.Contains(own, name), "%s of %q", name, c)
	}
	for _, name := range programs {
		expect.That(t, len(Spans("Run "+name+" -v to see it.")) == 3, "%s -v is not found", name)
	}
}

func FuzzSpans(f *testing.F) {
	f.Add(`Run python -c "a b" | grep /dev/shm (or $(nc -l)).`)
	f.Fuzz(func(t *testing.T, s string) {
		expect.Equal(t, s, strings.Join(Map(Spans(s), func(span Span) string { return span.Text }), ""), "its pieces")
	})
}
