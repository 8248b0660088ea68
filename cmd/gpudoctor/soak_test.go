//go:build linux && cgo

package main

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The soak runs the program many times, many at once, on healthy machines, and
// disturbs it: signals to it and to its children, low limits. In full:
//
//	GPUDOCTOR_TESTS=night go test ./cmd/gpudoctor -run TestSoak -v -timeout 2h -soak.runs 1000 -soak.at-once 50
var (
	soakRuns   = flag.Int("soak.runs", 0, "how many runs TestSoak makes; 0 is a few")
	soakAtOnce = flag.Int("soak.at-once", 0, "how many runs of TestSoak are under way at once; 0 is three for each core")
	soakSeed   = flag.Uint64("soak.seed", 0, "what TestSoak chooses its disturbances by; 0 is a new one")
)

// soakPatience is how long a run may take: fifty at once on two cores make one of a second last a minute.
const soakPatience = 10 * time.Minute

// old is what stands in the files of a run that is to overwrite them.
const old = "an old report\n"

// limitsVariable orders the limits of a run, as NUMBER=VALUE by spaces, and limitedProgram is what sets them.
const (
	limitsVariable = "GPUDOCTOR_TEST_LIMITS"
	limitedProgram = "gpudoctor-limited"
)

func init() { programs[limitedProgram] = limited }

func limited() {
	for order := range strings.FieldsSeq(os.Getenv(limitsVariable)) {
		var resource int
		var value uint64
		if _, err := fmt.Sscanf(order, "%d=%d", &resource, &value); err != nil {
			panic(err)
		}
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value}); err != nil {
			panic(err)
		}
	}
	program, err := exec.LookPath(os.Args[1])
	if err == nil {
		err = syscall.Exec(program, os.Args[1:], os.Environ())
	}
	panic(err)
}

type soakSource struct {
	name string
	// live is true where the simulated drivers are run.
	live      bool
	arguments []string
	// files are what it writes.
	files []string
}

type soakRun struct {
	number int
	source soakSource
	// overwrites is true where there are files of the names that it writes.
	overwrites bool
	signal     syscall.Signal // 0 for none.
	child      bool           // The signal goes to a child.
	after      time.Duration
	limit      string // The name of the limit; empty for none.
	resource   int
	value      uint64
}

func (r soakRun) String() string {
	return fmt.Sprintf("run %d of %s, over old files %t, signal %q, to a child %t, after %s, limit %q %d", r.number, r.source.name, r.overwrites, unix.SignalName(r.signal), r.child, r.after, r.limit, r.value)
}

func (r soakRun) calm() bool { return r.signal == 0 && r.limit == "" }

// choose chooses a run by its number and the seed alone. Signals come within the time that a run takes: a third of a
// second of a processor, shared with the others.
func choose(number int, seed uint64, atOnce int, sources []soakSource) soakRun {
	random := mathrand.New(mathrand.NewPCG(seed, uint64(number)))
	takes := max(1000, 333*atOnce/runtime.NumCPU())
	r := soakRun{number: number, source: sources[random.IntN(len(sources))], overwrites: random.IntN(2) == 0}
	switch random.IntN(3) {
	case 0:
		all := []syscall.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGKILL}
		r.child = r.source.live && random.IntN(2) == 0
		if r.child {
			all = []syscall.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGSEGV, unix.SIGABRT, unix.SIGXCPU}
		}
		r.signal, r.after = all[random.IntN(len(all))], time.Duration(random.IntN(takes))*time.Millisecond
	case 1:
		limits := []struct {
			name     string
			resource int
			values   []uint64
		}{
			{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, []uint64{4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64}},
			{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, []uint64{0, 1, 100, 4 << 10, 8 << 10, 16 << 10, 64 << 10}},
			// Below 2 GiB the Go runtime may end before main: of 1,800 starts 79 did at 1.5 GiB, and none at 1.7 GiB or more.
			{"RLIMIT_AS", unix.RLIMIT_AS, []uint64{2 << 30, 9 << 28, 5 << 29, 3 << 30, 4 << 30, 8 << 30}},
		}
		if withRace() {
			limits = limits[:2] // The race detector needs more address space than any limit leaves.
		}
		l := limits[random.IntN(len(limits))]
		r.limit, r.resource, r.value = l.name, l.resource, l.values[random.IntN(len(l.values))]
	}
	return r
}

// soakBench is what all runs of a soak have in common.
type soakBench struct {
	// dir holds a folder for each run, and recordings; libraries are where the simulated ones are.
	dir, libraries string
	// calm is what an undisturbed run of each source says.
	calm map[string]soakVerdict
}

// soakVerdict is what a run says, in short.
type soakVerdict struct {
	Exit     int
	State    report.State
	Findings []string
}

// TestSoak checks that whatever disturbs the program on a healthy machine, it names no fault that is not there, leaves
// no process and no file behind, writes its files whole or not at all, and tells a person in one line what went wrong.
func TestSoak(t *testing.T) {
	expect.NotByDay(t, "its runs are others each time")
	t.Parallel()
	needsNoGPU(t)
	usual := 30
	if testing.Short() {
		usual = 8
	}
	runs, atOnce := stdcmp.Or(*soakRuns, usual), stdcmp.Or(*soakAtOnce, 3*runtime.NumCPU())
	seed := *soakSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	b := &soakBench{dir: t.TempDir(), calm: map[string]soakVerdict{}}
	for _, entry := range (simulated{}).environment(t) {
		if dirs, ok := strings.CutPrefix(entry, "LD_LIBRARY_PATH="); ok {
			b.libraries = dirs
		}
	}
	sources := b.sources(t)
	for i, s := range sources {
		b.calm[s.name] = expect.Value(b.once(t, soakRun{number: runs + i, source: s}))(t)
	}
	var mu sync.Mutex // Guards failed and exits.
	failed, exits := 0, map[string]int{}
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(atOnce, runs) {
		workers.Go(func() {
			for n := range next {
				r := choose(n, seed, atOnce, sources)
				v, err := b.once(t, r)
				mu.Lock()
				exits[fmt.Sprintf("exit %3d", v.Exit)]++
				if err != nil {
					failed++
					t.Errorf("%s (again by -soak.seed %d -soak.at-once %d): %v", r, seed, atOnce, err)
				}
				mu.Unlock()
			}
		})
	}
	for n := range runs {
		next <- n
	}
	close(next)
	workers.Wait()
	t.Logf("%d runs, %d at once, %d failed", runs, atOnce, failed)
	for _, exit := range slices.Sorted(maps.Keys(exits)) {
		t.Logf("%s: %d", exit, exits[exit])
	}
}

// sources are what runs examine: the simulated drivers, recorded machines and texts.
func (b *soakBench) sources(t *testing.T) []soakSource {
	t.Helper()
	reports := []string{"report.json", "report.md"}
	written := []string{"-o", "report.json", "-o", "report.md"}
	check := append([]string{"check", "--skip", strings.Join(surroundings, ",")}, written...)
	all := []soakSource{
		{"live", true, check, reports},
		{"live in full", true, append(slices.Clone(check), "--probe", string(probe.Full)), reports},
		{"snapshot", true, []string{"snapshot", "-o", "host.txtar"}, []string{"host.txtar"}},
		{"facts", true, []string{"facts"}, nil},
	}
	for _, from := range []string{
		"hosts/h200x2.txtar", "hosts/model-8x-pcie.txtar", "hosts/model-mi300x8.txtar", "texts/h200x2-healthy-tree.txtar", "texts/h200x2-ifname-missing.txtar",
	} {
		raw := expect.Value(os.ReadFile(filepath.Join("..", "..", "fixtures", from)))(t)
		file := filepath.Join(b.dir, filepath.Base(from))
		expect.NoError(t, os.WriteFile(file, raw, 0o644))
		all = append(all, soakSource{from, false, append([]string{"check", "--from", file}, written...), reports})
	}
	return all
}

func (b *soakBench) once(t *testing.T, r soakRun) (soakVerdict, error) {
	t.Helper()
	dir := filepath.Join(b.dir, strconv.Itoa(r.number))
	scratch := dir + "-tmp"
	made := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(scratch, 0o700))
	for _, name := range r.source.files {
		if r.overwrites {
			made = errors.Join(made, os.WriteFile(filepath.Join(dir, name), []byte(old), 0o600))
		}
	}
	if made != nil {
		return soakVerdict{}, made
	}
	marker := runMarker + "=" + rand.Text()
	ctx, cancel := context.WithTimeout(t.Context(), soakPatience)
	defer cancel()
	line := append([]string{"gpudoctor"}, r.source.arguments...)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + scratch, "TMPDIR=" + scratch, "GPUDOCTOR_SIM_GPUS=2", marker}
	if r.source.live {
		env = append(env, "LD_LIBRARY_PATH="+b.libraries)
	}
	if r.limit != "" {
		line = append([]string{limitedProgram}, line...)
		env = append(env, fmt.Sprintf("%s=%d=%d", limitsVariable, r.resource, r.value))
	}
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, env, &stdout, &stderr
	if err := c.Start(); err != nil {
		return soakVerdict{}, err
	}
	if r.signal != 0 {
		time.AfterFunc(r.after, func() { r.disturb(c.Process.Pid, marker) })
	}
	err := c.Wait()
	var exit *exec.ExitError
	v := soakVerdict{Exit: c.ProcessState.ExitCode()}
	switch {
	case ctx.Err() != nil:
		return v, fmt.Errorf("it did not end within %s", soakPatience)
	case err != nil && !errors.As(err, &exit):
		return v, err
	}
	v, err = b.judge(r, c.ProcessState, dir, stdout.String(), stderr.String())
	if !within(gone, func() bool { return len(processes(marker)) == 0 }) {
		err = errors.Join(err, fmt.Errorf("these processes are left: %v", processes(marker)))
	}
	for _, d := range []string{dir, scratch} {
		for _, name := range names(t, d) {
			if d == scratch || !slices.Contains(r.source.files, name) {
				err = errors.Join(err, fmt.Errorf("%s is left", name))
			}
		}
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(dir), os.RemoveAll(scratch))
	}
	return v, err
}

// disturb sends the signal to the program, or to one of its children if there is any.
func (r soakRun) disturb(pid int, marker string) {
	if !r.child {
		_ = syscall.Kill(pid, r.signal) // It may have ended.
		return
	}
	for child := range processes(marker) {
		if child != pid {
			_ = syscall.Kill(child, r.signal)
			return
		}
	}
}

// forbidden are words that no run on a healthy machine may say: those of the Go
// runtime's tracebacks, and those of a driver that is blamed.
var forbidden = []string{"goroutine ", "runtime:", "runtime/cgo", "fatal error", "panic:", "SIGABRT: abort", "[signal ", "crashed", "did not return", `"outcome": "hang"`}

func (b *soakBench) judge(r soakRun, state *os.ProcessState, dir, stdout, stderr string) (soakVerdict, error) {
	v := soakVerdict{Exit: state.ExitCode()}
	var wrong []error
	complain := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf(format, args...))
	}
	said := map[string]string{"standard output": stdout, "standard error": stderr}
	for _, name := range r.source.files {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			complain("%w", err)
		default:
			said[name] = string(raw)
		}
	}
	for where, text := range said {
		for _, word := range forbidden {
			if i := strings.Index(text, word); i >= 0 {
				complain("%s says %q: %q", where, word, text[max(0, i-200):min(len(text), i+300)])
				break
			}
		}
	}
	signal := syscall.Signal(0)
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		signal = status.Signal()
	}
	whole := 0
	for _, name := range r.source.files {
		switch text, there := said[name], said[name] != ""; {
		case there && text != old:
			whole++
			if err := v.read(name, text); err != nil {
				complain("%s: %w", name, err)
			}
		case there != r.overwrites:
			complain("%s was there: %t, and is: %t", name, r.overwrites, there)
		}
	}
	switch {
	case signal != 0:
		if r.child || signal != r.signal { // One that comes before main ends it at once.
			complain("%s ended it", unix.SignalName(signal))
		}
	case v.Exit == exitError:
		if !strings.HasPrefix(stderr, "gpudoctor: ") {
			complain("exit 2, and standard error says %q", stderr)
		}
		rest := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")[1:]
		if i := slices.IndexFunc(rest, func(l string) bool { return !strings.HasPrefix(l, "hint: ") }); i >= 0 {
			complain("exit 2, and standard error has the line %q", rest[i])
		}
		if r.calm() {
			complain("exit 2: %s", stderr)
		}
	case v.Exit > signalExitBase:
		if r.child || v.Exit != signalExitBase+int(r.signal) {
			complain("exit %d", v.Exit)
		}
	case whole < len(r.source.files):
		complain("exit %d, and %d of %d files are written; standard error: %s", v.Exit, whole, len(r.source.files), stderr)
	}
	calm, known := b.calm[r.source.name]
	for _, f := range v.Findings {
		if known && !slices.Contains(calm.Findings, f) && (r.limit == "" || !strings.HasPrefix(f, "process-limits ")) {
			complain("it finds %s", f)
		}
	}
	// So many at once may take more time than one has; then it says that.
	late := *soakAtOnce > 3*runtime.NumCPU() && v.State == report.Inconclusive && (v.Exit == exitOK || v.Exit == exitUnproven) && v.Findings == nil
	if diff := cmp.Diff(calm, v); known && r.calm() && !late && diff != "" {
		complain("nothing disturbed it (-want +got):\n%s", diff)
	}
	return v, errors.Join(wrong...)
}

func (v *soakVerdict) read(name, text string) error {
	switch filepath.Ext(name) {
	case ".json":
		var d report.Document
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			return err
		}
		switch {
		case v.Exit < 0 || v.Exit > signalExitBase: // The signal came once the report was written.
			if !slices.Contains([]int{exitOK, exitFindings, exitUnproven}, d.Verdict.ExitCode) {
				return fmt.Errorf("it says exit code %d", d.Verdict.ExitCode)
			}
		case d.Verdict.ExitCode != v.Exit:
			return fmt.Errorf("it says exit code %d, and it is %d", d.Verdict.ExitCode, v.Exit)
		}
		v.State = d.Verdict.State
		for _, f := range d.Findings {
			v.Findings = append(v.Findings, fmt.Sprintf("%s %s", f.Rule, f.Subject))
		}
	case ".txtar":
		if _, _, err := host.OpenRecording(name, strings.NewReader(text)); err != nil {
			return err
		}
	default:
		if !strings.HasSuffix(text, "\n") {
			return fmt.Errorf("it ends in %q", text[max(0, len(text)-80):])
		}
	}
	return nil
}
