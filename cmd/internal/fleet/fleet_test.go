package fleet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// simulated is a fleet of like nodes that each measure four figures with five per cent of noise.
func simulated(rnd *rand.Rand, size int) []*Node {
	nodes := make([]*Node, size)
	for i := range nodes {
		n := &Node{Name: fmt.Sprintf("r%02d-n%02d", i/16, i%16), Hardware: "8 x H200", Traits: map[string]string{}, Figures: map[string]Figure{}}
		for j, mean := range []float64{380, 54, 12.5, 48} {
			n.Figures[fmt.Sprint("figure ", j)] = Figure{Value: mean * (1 + 0.05*rnd.NormFloat64())}
		}
		n.Traits["rack"] = fmt.Sprintf("r%02d", i/16)
		n.Traits["driver"] = []string{"570.86", "570.124", "575.51"}[rnd.IntN(3)]
		n.Traits["kernel"] = []string{"6.8.0-60", "6.8.0-64"}[rnd.IntN(2)]
		nodes[i] = n
	}
	return nodes
}

func outliersOf(nodes []*Node) []Outlier { return Fold(&Reading{Nodes: nodes}, nil, "test").Outliers }

// TestOutliers checks that planted outliers are found and nothing else, and nothing where none is planted.
func TestOutliers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // Only a test.
		nodes := simulated(rnd, 1000)
		expect.Len(t, 0, outliersOf(nodes), "seed %d: nothing was planted", seed)
		planted := map[string]bool{}
		for len(planted) < 12 {
			n, name := nodes[rnd.IntN(len(nodes))], fmt.Sprint("figure ", rnd.IntN(4))
			if planted[n.Name] {
				continue
			}
			planted[n.Name] = true
			f := n.Figures[name]
			f.Value *= 0.5
			n.Figures[name] = f
		}
		found := map[string]bool{}
		for _, o := range outliersOf(nodes) {
			found[o.Node] = true
			expect.That(t, planted[o.Node], "seed %d: %s is called an outlier (%.1f sigmas)", seed, o.Node, o.Sigmas)
		}
		expect.Equal(t, len(planted), len(found), "seed %d: found", seed)
	}
}

// TestOutlierCounts checks that a node that is slower than like nodes makes the exit code 1 and fails in JUnit, and one that is faster
// does not.
func TestOutlierCounts(t *testing.T) {
	t.Parallel()
	for factor, code := range map[float64]int{0.5: exitFindings, 1: 0, 2: 0} {
		nodes := simulated(rand.New(rand.NewPCG(3, 7)), 64) //nolint:gosec // Only a test.
		for _, n := range nodes {
			n.State = "healthy"
		}
		figure := nodes[7].Figures["figure 1"]
		figure.Value *= factor
		nodes[7].Figures["figure 1"] = figure
		f := Fold(&Reading{Nodes: nodes}, nil, "test")
		expect.Equal(t, factor != 1, len(f.Outliers) > 0, "%g times as fast: an outlier", factor)
		expect.Equal(t, code, f.ExitCode, "%g times as fast: exit code", factor)
		expect.Equal(t, code != 0, strings.Contains(f.Headline(), "healthy by themselves"), "%g times as fast: %s", factor, f.Headline())
		var junit bytes.Buffer
		expect.NoError(t, f.Write(&junit, "junit", report.Style{}))
		expect.Equal(t, code, strings.Count(junit.String(), "<failure "), "%g times as fast: failures of JUnit", factor)
	}
}

// TestFewNodes checks that small fleets give no false alarm either.
func TestFewNodes(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 7)) //nolint:gosec // Only a test.
	alarms := 0
	for range 2000 {
		if len(outliersOf(simulated(rnd, 8+rnd.IntN(24)))) > 0 {
			alarms++
		}
	}
	expect.That(t, alarms <= 8, "%d of 2000 small fleets have an outlier by chance", alarms)
}

// TestCommon checks that what the nodes with a cause share is found, by chance alone in few fleets, and that traits of
// the same nodes stand together.
func TestCommon(t *testing.T) {
	t.Parallel()
	chance := 0
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // Only a test.
		nodes := simulated(rnd, 128)
		groups := groupsOf(nodes)
		random, rack := set{}, set{}
		for len(random) < 7 {
			random[rnd.IntN(len(nodes))] = true
		}
		for len(rack) < 7 {
			rack[5*16+rnd.IntN(16)] = true
		}
		if len(commonTo(random, len(nodes), groups, 2*len(groups))) > 0 {
			chance++
		}
		found := commonTo(rack, len(nodes), groups, 2*len(groups))
		expect.Must(t, len(found) > 0, "seed %d: the rack is not found", seed)
		expect.Equal(t, Trait{"rack", "r05"}, found[0].Traits[0], "seed %d", seed)
	}
	expect.That(t, chance <= 4, "in %d of 200 fleets something is common by chance", chance)
}
