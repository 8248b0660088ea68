package parse

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestPrompts(t *testing.T) {
	for line, want := range map[string]string{
		"$ nvidia-smi -L":                     "nvidia-smi -L",
		"# lspci -vvv | grep ACSCtl":          "lspci -vvv | grep ACSCtl",
		"root@node7:/workspace# dmesg":        "dmesg",
		"[root@node7 ~]# ip addr":             "ip addr",
		"gpu8-worker-1:~$ pip freeze":         "pip freeze",
		"(base) user@host:~$ nvidia-smi":      "nvidia-smi",
		"# nThread 1 nGpus 8":                 "",
		"#  Rank  0 Group  0 Pid   2214 on x": "",
		"# Using devices":                     "",
		"node7: # Using devices":              "",
		"[node7:1234] # Using devices":        "",
		"logs/job.log:# Using devices":        "",
		"node7: # lspci":                      "lspci",
		"node7: $ ./t.sh":                     "./t.sh",
		"root@node7:# ./t.sh":                 "./t.sh",
		"loss is 3 % of it":                   "",
		"price: $ 5":                          "",

		"*** /proc/driver/nvidia/./version": "cat /proc/driver/nvidia/version",
		"*** /usr/bin/nvidia-smi not found": "",
		"==> /proc/cmdline <==":             "cat /proc/cmdline",
	} {
		p, _ := PromptOf(line)
		expect.Equal(t, want, p.Command, "%q", line)
	}
}

func TestHasCommandBehindARunner(t *testing.T) {
	for line, want := range map[string]bool{
		`ulimit -l`: true, `sudo ulimit -l`: true, `srun --gres=gpu:4 bash -c "ulimit -l"`: true, `ssh node7 'ulimit -l'`: true,
		`kubectl exec -it pod -- ulimit -l`: true, `docker exec c /usr/bin/ulimit -l | tail -1`: true, `srun bash -c "ulimit -la"`: false,
		`echo ulimit -l`: false, `ssh node7 noulimit -l`: false,
	} {
		expect.Equal(t, want, HasCommand(line, "ulimit -l"), "%s", line)
	}
}

// TestDocuments checks which texts tell what may happen, by name or title, and not what did.
func TestDocuments(t *testing.T) {
	for text, want := range map[string]bool{
		"wiki.md": true, "runbook.txt": true, "release-notes-2.md": true, "known_issues.md": true, "node7.log": false, "a.md:# Cluster wiki: jobs that do not start\n": true,
		"a.md:\n## How-To\n": true, "a.md:# Our FAQ\n": true, "a.md:The wiki says so.\n": false, "a.md:# Job 12 hangs, see the wiki\n": false,
	} {
		name, content, _ := strings.Cut(text, ":")
		expect.Equal(t, want, SourceOf(name, content) == Program, "%q is a document", text)
	}
}
