package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/fleet"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// mould is the report on a recorded machine as text, cut where the name of a node and its rates stand.
type mould struct {
	transfers []probe.Transfer
	texts     []string // One more than there are cuts.
	cuts      []string // "name", or the number of a transfer.
}

func mouldOf(tb testing.TB, example string) (m mould) {
	tb.Helper()
	code, out, said := inProcess("check", "--from", "example:"+example, "--format", "json")
	expect.Must(tb, code == exitOK, "%s: %s", example, said)
	doc := decoded[map[string]json.RawMessage](tb, out)
	host, transfers := decoded[report.Host](tb, []byte(doc["host"])), decoded[probe.Report](tb, []byte(doc["transfers"]))
	m.transfers = transfers.Transfers
	transfers.Transfers = slices.Clone(transfers.Transfers)
	for j, one := range transfers.Transfers {
		if one.GBps != nil {
			transfers.Transfers[j].GBps = new(-1e6 - float64(j)) // No rate is below 0.
		}
	}
	host.Hostname = "-name"
	doc["host"], doc["transfers"] = expect.Value(json.Marshal(host))(tb), expect.Value(json.Marshal(transfers))(tb)
	text := expect.Value(json.Marshal(doc))(tb)
	cut := regexp.MustCompile(`-(name|1\d{6})\b`)
	m.texts = cut.Split(string(text), -1)
	for _, found := range cut.FindAllStringSubmatch(string(text), -1) {
		m.cuts = append(m.cuts, strings.TrimLeft(strings.TrimPrefix(found[1], "1"), "0"))
	}
	return m
}

// simulatedFleet writes the reports of a thousand nodes, two thirds like one recorded machine and the others like another,
// with five per cent of noise between nodes and between the pairs of a node. Of the slow nodes, every other one has all
// copies at half the rate, and the others one copy at a quarter.
func simulatedFleet(tb testing.TB, w io.Writer, rnd *rand.Rand, moulds []mould, slow map[int]bool) {
	tb.Helper()
	for i := range 1000 {
		m := moulds[i%3/2]
		node, rates := map[string]float64{}, map[string]float64{}
		broken := rnd.IntN(len(m.transfers))
		for m.transfers[broken].GBps == nil {
			broken = rnd.IntN(len(m.transfers))
		}
		for j, one := range m.transfers {
			test := one.Test
			if node[test] == 0 {
				node[test] = 1 + 0.05*rnd.NormFloat64()
			}
			if one.GBps == nil {
				continue
			}
			rate := *one.GBps * node[test] * (1 + 0.05*rnd.NormFloat64())
			switch {
			case slow[i] && i%2 == 0 && test == probe.TestCopy:
				rate /= 2
			case slow[i] && i%2 == 1 && j == broken:
				rate /= 4
			}
			rates[strings.TrimLeft(strconv.Itoa(j), "0")] = rate
		}
		var b bytes.Buffer
		for k, cut := range m.cuts {
			b.WriteString(m.texts[k])
			if cut == "name" {
				fmt.Fprintf(&b, "r%02d-n%02d", i/16, i%16)
			} else {
				fmt.Fprint(&b, rates[cut])
			}
		}
		b.WriteString(m.texts[len(m.cuts)] + "\n")
		_, err := w.Write(b.Bytes())
		expect.NoError(tb, err)
	}
}

// TestSimulatedFleet checks, for fifty seeds, that of a thousand nodes exactly the twelve that are slow are found and
// named on one screen, and none where none is slow. By day that is one seed, with slow nodes.
func TestSimulatedFleet(t *testing.T) {
	t.Parallel()
	moulds := []mould{mouldOf(t, "model-8x-pcie"), mouldOf(t, "model-mi300x8")}
	for seed := range uint64(50) {
		if expect.FewRows() && seed > 0 {
			break
		}
		rnd := rand.New(rand.NewPCG(seed, 37)) //nolint:gosec // Only a test.
		slow := map[int]bool{}
		for len(slow) < 12 {
			slow[rnd.IntN(1000)] = true
		}
		for _, planted := range expect.SomeRows(2, []map[int]bool{slow, nil}) {
			in, out := io.Pipe()
			go func() {
				simulatedFleet(t, out, rnd, moulds, planted)
				_ = out.Close() // It never fails.
			}()
			read := expect.Value(fleet.Read(t.Context(), []string{"-"}, in, nil))(t)
			f := fleet.Fold(read, nil, version)
			var want []string
			found := lines.Unique(expect.Map(f.Outliers, func(o fleet.Outlier) string { return o.Node }))
			for i := range planted {
				want = append(want, fmt.Sprintf("r%02d-n%02d", i/16, i%16))
			}
			expect.Equal(t, map[bool]int{true: exitFindings}[planted != nil], f.ExitCode, "seed %d: exit code", seed)
			slices.Sort(found)
			slices.Sort(want)
			expect.NoDiff(t, want, found, "seed %d: nodes with outliers", seed)
			var text bytes.Buffer
			expect.NoError(t, f.Write(&text, "text", report.Style{Width: 80}))
			for _, name := range want {
				expect.That(t, strings.Contains(text.String(), "  "+name+": "), "seed %d: %s is not named:\n%s", seed, name, &text)
			}
			expect.That(t, strings.Count(text.String(), "\n") <= 40, "seed %d: not one screen:\n%s", seed, &text)
		}
	}
}
