package text_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/message"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// said is which messages a text holds, with their fields.
func said(content string) []string {
	return expect.Map(texttest.Sections("job.log", content).Logs.Messages, func(m facts.Message) string { return fmt.Sprint(m.ID, m.Fields) })
}

// TestBrokenAddresses checks that a message is the same one where its line is broken in an address, whatever the width,
// unless one of the parts looks like an address by itself.
func TestBrokenAddresses(t *testing.T) {
	t.Parallel()
	address := regexp.MustCompile(`\b\d{1,3}(?:\.\d{1,3}){3}\b`)
	tried := 0
	for _, row := range message.Statements() {
		for _, example := range row.Examples {
			at := address.FindStringIndex(example)
			// Shorter lines are not broken. Hydra's prefix looks like a prompt, and what follows a command is another line.
			if at == nil || len(example) < 80 || strings.HasPrefix(example, "[proxy:") {
				continue
			}
			want := said(example + "\n")
			for cut := at[0] + 1; cut < at[1]; cut++ {
				if address.MatchString(example[at[0]:cut]) || address.MatchString(example[cut:at[1]]) {
					continue
				}
				tried++
				got := said(example[:cut] + "\n" + example[cut:] + "\n")
				for _, m := range want {
					expect.That(t, slices.Contains(got, m), "%q, broken at %d: got %q, want %q", example, cut, got, m)
				}
			}
		}
	}
	expect.That(t, tried > 100, "%d lines tried", tried)
}

// TestNoiseRows checks that every message of the catalogue is the same message, with the same fields, behind whatever
// was put around its line. By day that is one noise for each row, each noise, and every eighth of the rest.
func TestNoiseRows(t *testing.T) {
	t.Parallel()
	tried, try := 0, expect.EachNth(8)
	for i, row := range message.Statements() {
		if testing.Short() && i%256 > 0 || expect.FewRows() && i%8 > 0 {
			continue // The race detector makes each many times as slow.
		}
		for _, example := range row.Examples {
			if strings.HasPrefix(example, "|") {
				continue // A line of a table: TestNoiseTexts.
			}
			want := said(example + "\n")
			for _, how := range slices.Sorted(maps.Keys(texttest.Noises)) {
				if !try("row "+row.ID, how) {
					continue
				}
				noise := texttest.Noises[how]
				tried++
				expect.NoDiff(t, want, said(noise.Do(example+"\n")), "%s: %q", how, example)
			}
			for _, width := range []int{80, 100, 120} {
				if !try(strconv.Itoa(width)) {
					continue
				}
				tried++
				got := said(texttest.Filled(example+"\n", width))
				for _, m := range want { // Pieces may be messages by themselves.
					expect.That(t, slices.Contains(got, m), "broken at blanks to %d: %q: got %q, want %q", width, example, got, m)
				}
			}
		}
	}
	t.Logf("%d lines", tried)
}

// placeless takes out of facts what tells where a line stood and who wrote it: also whether
// an exception was caught and which steps came after it, which "[rank3]:" before the lines
// says. The runs of a transcript, their outcomes and their comparisons stay.
func placeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"texts", "origins", "text", "line", "begins", "lines", "time", "rank", "ranks", "pid", "host", "order", "prompt", "uncaught", "steps_after", "shown"} {
			delete(v, key)
		}
		if logs, ok := v["logs"].(map[string]any); ok {
			delete(logs, "processes")
		}
		for key := range v {
			v[key] = placeless(v[key])
			if where, ok := v[key].(string); ok && key == "source" {
				v[key], _, _ = strings.Cut(where, ":")
			}
		}
	case []any:
		for i := range v {
			v[i] = placeless(v[i])
		}
	}
	return v
}

// toldAnywhere is what a text tells, but for where it tells it and who does.
func toldAnywhere(tb testing.TB, content string) string {
	tb.Helper()
	raw, err := json.Marshal(texttest.Parse("job.log", content))
	expect.NoError(tb, err)
	var v any
	expect.NoError(tb, json.Unmarshal(raw, &v))
	if raw, err = json.MarshalIndent(placeless(v), "", " "); err != nil {
		tb.Fatal(err)
	}
	return string(raw)
}

// TestNoiseTexts checks the same of every text, logs and the outputs of commands, by day with some of the noises each.
func TestNoiseTexts(t *testing.T) {
	t.Parallel()
	try := expect.EachNth(8)
	texts := texttest.EveryText(t)
	delete(texts, "messages") // TestNoiseRows takes them one by one.
	texts["lspci -vvv"], texts["nvidia-smi"], texts["all_reduce_perf"] = texttest.LspciVerbose, texttest.NvsmiTableText, texttest.NCCLTestsTable
	for i, name := range slices.Sorted(maps.Keys(texts)) {
		if testing.Short() && i%128 > 0 || expect.FewRows() && i%4 > 0 {
			continue
		}
		want := toldAnywhere(t, texts[name])
		for _, how := range slices.Sorted(maps.Keys(texttest.Noises)) {
			noise := texttest.Noises[how]
			if noise.Lines && !strings.HasSuffix(name, ".log") {
				continue
			}
			prompted := noise.Do("$ x\n")
			if strings.Contains(prompted, "node7") && strings.HasPrefix(texts[name], "$ ") || strings.Contains(prompted, "]:$") && !strings.HasSuffix(name, ".log") {
				continue // A prompt behind the name of a host tells the host, and one behind a bracket and a colon is another prompt.
			}
			if noise.Breaks && strings.Contains(texts[name], "# nThread ") {
				continue // Rows of tables are not put together again.
			}
			if !try("text "+name, how) {
				continue
			}
			expect.NoDiff(t, want, toldAnywhere(t, noise.Do(texts[name])), "%s: %s", how, name)
		}
	}
}

// TestColumns checks that tables are read however their columns are aligned.
func TestColumns(t *testing.T) {
	t.Parallel()
	for name, table := range map[string]string{
		"topo -m":       "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\tPIX\t0-31\t0\nGPU1\tNV12\t X \tSYS\t0-31\t0\nNIC0\tPIX\tSYS\t X \t\t\n",
		"lspci":         "00:01.1 PCI bridge: Intel Corporation Device 352a (rev 04)\n01:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n",
		"ibstat":        "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.39.1002\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 12\n\t\tSM lid: 3\n\t\tLink layer: InfiniBand\n",
		"ibdev2netdev":  "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Down)\n",
		"lsmod":         "Module                  Size  Used by\nnvidia_peermem         16384  0\nnvidia              54321152  2 nvidia_peermem\n",
		"ip -br addr":   "lo               UNKNOWN        127.0.0.1/8 ::1/128\neth0             UP             10.0.0.5/24\n",
		"df":            "Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   61M  3.1M  96% /dev/shm\n",
		"nvidia-smi -L": "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-0000-0000-0000-000000000001)\n",
	} {
		want := toldAnywhere(t, table)
		expect.That(t, strings.Contains(want, "[") || strings.Contains(want, ": {"), "%s: tells nothing", name)
		for how, aligned := range map[string]string{
			"one blank": oneBlank(table), "tabs to blanks": strings.ReplaceAll(table, "\t", "        "),
		} {
			expect.NoDiff(t, want, toldAnywhere(t, aligned), "%s: %s: %s", name, how, aligned)
		}
	}
}

// oneBlank leaves one blank between the words of a text.
func oneBlank(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.Join(strings.Fields(line), " ") + "\n")
	}
	return b.String()
}
