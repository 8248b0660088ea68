package affinity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
)

// Check is the check of the section "numa".
var Check = &gather.Check{Name: "numa", Gather: collect}

const nodesFolder = "/sys/devices/system/node"

func collect(_ context.Context, g *gather.Gathering) error {
	f := &facts.NUMAFacts{}
	g.Facts.NUMA = f
	if n, err := g.Host.Int("/proc/sys/kernel/numa_balancing"); err == nil {
		f.Balancing = new(int(n))
	} else if !errors.Is(err, fs.ErrNotExist) { // Kernels without the feature have no such file.
		g.Unknown("numa", "balancing", err.Error(), gather.HintFor(err))
	}
	var allowed *big.Int
	if status, err := g.Host.Text("/proc/self/status"); err == nil {
		f.AllowedCPUs = host.Value(status, "Cpus_allowed_list")
		if allowed, err = ParseCPUList(f.AllowedCPUs); err != nil {
			f.AllowedCPUs = ""
		}
	}
	if f.AllowedCPUs == "" {
		g.Unknown("numa", "allowed_cpus", "/proc/self/status does not show the CPUs that this process may use", "")
	}
	names, err := g.Host.Dir(nodesFolder)
	if err != nil {
		g.Unknown("numa", "nodes", fmt.Sprintf("list %s: %s", nodesFolder, gather.Cause(err)), gather.HintFor(err))
		return nil
	}
	f.Nodes = []facts.NUMANode{}
	for _, name := range names {
		number, found := strings.CutPrefix(name, "node")
		if id, err := strconv.Atoi(number); found && err == nil && id >= 0 {
			f.Nodes = append(f.Nodes, readNode(g, id, allowed))
		}
	}
	slices.SortStableFunc(f.Nodes, func(a, b facts.NUMANode) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

// readNode reads one node; allowed is nil if the affinity is not known.
func readNode(g *gather.Gathering, id int, allowed *big.Int) facts.NUMANode {
	dir := nodesFolder + "/node" + strconv.Itoa(id)
	node := facts.NUMANode{ID: id}
	read := func(fact, file string, take func(text string) error) {
		text, err := g.Host.Text(dir + file)
		if err == nil {
			err = take(text)
		}
		if err != nil {
			g.Unknown("numa", "nodes."+fact, err.Error(), gather.HintFor(err))
		}
	}
	read("cpus", "/cpulist", func(text string) error {
		cpus, err := ParseCPUList(text)
		if err != nil {
			return fmt.Errorf("read %s: %w", dir+"/cpulist", err)
		}
		node.CPUs = text
		if allowed != nil {
			node.AllowedCPUs = new(common(cpus, allowed))
		}
		return nil
	})
	read("memory_bytes", "/meminfo", func(text string) error {
		node.MemoryBytes = host.KiB(host.Value(text, fmt.Sprintf("Node %d MemTotal", id)))
		return nil
	})
	return node
}

// maxCPU bounds the numbers in a CPU list: the kernel stops at 8192 (NR_CPUS_RANGE_END, arch/x86/Kconfig).
const maxCPU = 1 << 16

var errCPUList = errors.New("not a list of CPUs")

// ParseCPUList reads the kernel's list format, "0-15,64-79", as a set of bits.
func ParseCPUList(s string) (*big.Int, error) {
	set := new(big.Int)
	s = strings.TrimSpace(s)
	if s == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseUint(first, 10, 32)
		b, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || a > b || b > maxCPU {
			return nil, fmt.Errorf("%w: %.40q", errCPUList, s)
		}
		ones := new(big.Int).Lsh(big.NewInt(1), uint(b-a+1))
		ones.Sub(ones, big.NewInt(1))
		set.Or(set, ones.Lsh(ones, uint(a)))
	}
	return set, nil
}

// ParseMask reads a set of CPUs in words of 32 bits, the highest first ("000000ff,ffff0000"). It is empty for anything else.
func ParseMask(mask string) *big.Int {
	set, ok := new(big.Int).SetString(strings.ReplaceAll(mask, ",", ""), 16)
	if !ok || set.BitLen() > maxCPU || set.Sign() < 0 {
		return new(big.Int)
	}
	return set
}

// CPUList writes a set of CPUs as the kernel does: "0-3,8".
func CPUList(set *big.Int) string {
	var list []string
	for i := 0; i < set.BitLen(); i++ {
		if set.Bit(i) == 0 {
			continue
		}
		first := i
		for set.Bit(i+1) == 1 {
			i++
		}
		item := strconv.Itoa(first)
		if i > first {
			item += "-" + strconv.Itoa(i)
		}
		list = append(list, item)
	}
	return strings.Join(list, ",")
}

func common(a, b *big.Int) int {
	n := 0
	for _, word := range new(big.Int).And(a, b).Bits() {
		n += bits.OnesCount(uint(word))
	}
	return n
}

// CommonCPUs counts the CPUs that are in both of two lists ("0-15,64-79").
func CommonCPUs(a, b string) (int, bool) {
	x, err1 := ParseCPUList(a)
	y, err2 := ParseCPUList(b)
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return common(x, y), true
}
