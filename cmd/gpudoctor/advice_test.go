package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

type situation struct {
	name    string
	request request
	facts   *facts.Facts
	// textsOnly is true where no machine was examined.
	textsOnly bool
	// told is what all tests share of it; nil for a situation that a test made.
	told *told
}

// told is a verdict and a report that several tests look at, and that none changes.
type told struct {
	facts  *facts.Facts // What they are about.
	once   sync.Once
	err    error
	judged *rules.Result
	report *report.Document
}

var (
	situationsMade sync.Mutex
	allSituations  []situation
)

// situations gives every case, recorded machine and text of this repository,
// and every incident where the folder of incidents is beside it.
func situations(t *testing.T, visit func(situation)) {
	t.Helper()
	situationsMade.Lock()
	if allSituations == nil {
		makeSituations(t, func(s situation) {
			s.told = &told{facts: s.facts}
			allSituations = append(allSituations, s)
		})
	}
	situationsMade.Unlock()
	for _, s := range allSituations {
		visit(s)
	}
}

func makeSituations(t *testing.T, visit func(situation)) {
	t.Helper()
	cases := expect.Value(fixtures.Cases(os.DirFS("../../fixtures")))(t)
	for _, c := range cases {
		for _, profile := range []rules.Profile{rules.Training, rules.Image} {
			visit(situation{
				name: "case " + c.Name + " " + string(profile), facts: c.Facts,
				request: requestFor(profile, c.Name+"/facts.json"),
			})
		}
	}
	from := expect.Map(fixtures.Examples(), func(name string) string { return examplePrefix + name })
	texts, err := filepath.Glob("../../fixtures/texts/*.txtar")
	expect.Must(t, err == nil && len(texts) != 0 && len(from) != 0 && len(cases) != 0, "%d cases, %d machines, %d texts: %v", len(cases), len(from), len(texts), err)
	for _, file := range append(from, texts...) {
		visit(gatherFrom(t, file, file))
	}
	incidents := expect.Value(filepath.Glob("../../../shared/incidents/*/case.yaml"))(t)
	for _, file := range incidents {
		visit(gatherFrom(t, "incident "+filepath.Base(filepath.Dir(file)), withoutAnswer(t, filepath.Dir(file))))
	}
	t.Logf("%d cases, %d machines, %d texts, %d incidents", len(cases), len(from), len(texts), len(incidents))
}

func gatherFrom(t *testing.T, name, from string) situation {
	t.Helper()
	r := requestFor(rules.Training, from)
	g := collect(t.Context(), r.source, r.options)
	expect.Must(t, g.facts != nil, "%s: %v", name, g.err)
	return situation{name: name, request: r, facts: g.facts, textsOnly: g.textsOnly}
}

// withoutAnswer copies an incident without the file that says what is wrong.
func withoutAnswer(t *testing.T, dir string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), filepath.Base(dir))
	expect.NoError(t, os.CopyFS(folder, os.DirFS(dir)))
	expect.NoError(t, os.Remove(filepath.Join(folder, "case.yaml")))
	return folder
}

func tellOf(ctx context.Context, t *testing.T, known knowledge, s situation) *report.Document {
	t.Helper()
	_, d := judgedAndTold(ctx, t, known, s)
	return d
}

// judgedAndTold makes the verdict and the report of a situation; those of one that tests
// share are made once, by the first of them.
func judgedAndTold(ctx context.Context, t *testing.T, known knowledge, s situation) (*rules.Result, *report.Document) {
	t.Helper()
	shared := s.told
	if shared == nil || shared.facts != s.facts {
		shared = &told{facts: s.facts}
	}
	shared.once.Do(func() {
		if shared.judged, shared.err = known.rules.Evaluate(ctx, s.facts, rules.Options{Profile: s.request.profile, Memory: ruleMemory}); shared.err != nil {
			return
		}
		ranking := s.request.rank(known.remedies, shared.judged.Findings, s.facts)
		shared.report = report.New(report.Input{
			Version: version, Sources: s.request.source.names(), Profile: s.request.profile, FailOn: s.request.failOn, TextsOnly: s.textsOnly, Rules: known.rules.Rules(),
			Facts: s.facts, Verdict: *shared.judged, Advice: ranking.Advice, Withheld: ranking.Withheld, Recheck: s.request.again,
		})
	})
	expect.NoError(t, shared.err)
	return shared.judged, shared.report
}

// adviceTally counts what was looked at, so that no check can hold for want of anything to look at.
type adviceTally map[string]int

// TestAdviceFits checks, for all situations, that no advice sets what is in force already, that no variable is both set
// and unset, that no command has a gap, and that all formats tell the advice in one order.
func TestAdviceFits(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	known := learnt(t)
	seen := adviceTally{}
	hold := func(t *testing.T, s situation) *report.Document {
		t.Helper()
		d := tellOf(t.Context(), t, known, s)
		seen["documents"]++
		for _, a := range d.Advice {
			seen["advice"]++
			setsNothingInForce(t, s.facts, a, seen)
			hasNoGap(t, a, seen)
		}
		repeatsNothing(t, d.Advice)
		checksAgain(t, s.request, d, seen)
		setsOrUnsets(t, d.Advice, seen)
		keepsWhatIsNeeded(t, known, d)
		seen["withheld"] += len(d.Withheld)
		formatsHaveNoGap(t, d)
		oneOrder(t, d, seen)
		return d
	}
	try := expect.EachNth(5) // Profiles alternate.
	situations(t, func(s situation) {
		if !try(string(s.request.profile)) {
			return
		}
		t.Run(s.name, func(t *testing.T) {
			d := hold(t, s)
			for _, followed := range following(s, d.Advice) {
				seen["advice followed"]++
				hold(t, followed)
			}
		})
	})
	for _, what := range []string{
		"documents", "advice", "advice followed", "withheld", "set", "unset", "edits", "kernel parameters", "docker flags", "commands", "steps",
		"told in text", "told in verbose text", "told in markdown", "check again in text", "check again in markdown",
	} {
		expect.That(t, seen[what] != 0 || expect.FewRows(), "nothing was seen of: %s", what)
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%-20s %d", what, seen[what])
	}
}

// following are the situations after one advice was followed and nothing became better: what it sets is in force, for a
// variable in each of the places where it may be set.
func following(s situation, all []remedies.Advice) []situation {
	var after []situation
	add := func(change func(*facts.Facts)) {
		f := *s.facts
		change(&f)
		next := s
		next.facts = &f
		after = append(after, next)
	}
	for _, a := range all {
		for name, value := range a.Apply.Environment {
			for _, source := range []string{"environment", "/etc/nccl.conf", "/root/.nccl.conf"} {
				add(func(f *facts.Facts) {
					f.Env = withVariable(f.Env, facts.Variable{Name: name, Value: value, Source: source})
				})
			}
			add(func(f *facts.Facts) {
				f.Env = withVariable(f.Env, facts.Variable{Name: name, Value: value, Source: "pod.yaml", Line: 12})
				pod := facts.Launch{Kind: "kubernetes", Name: "train", Variables: map[string]string{name: value}, Source: "pod.yaml", Line: 9}
				f.Launches = append(slices.Clone(f.Launches), pod)
			})
		}
		for _, parameter := range a.Apply.KernelCommandLine {
			add(func(f *facts.Facts) {
				host := facts.HostFacts{}
				if f.Host != nil {
					host = *f.Host
				}
				host.CommandLine = append(slices.Clone(host.CommandLine), parameter)
				f.Host = &host
			})
		}
	}
	for _, a := range all {
		for _, flag := range a.Apply.Docker {
			add(func(f *facts.Facts) {
				launches := []facts.Launch{{Kind: "docker-run", Name: "train", Source: "run.sh", Line: 1}}
				if len(f.Launches) > 0 {
					launches = slices.Clone(f.Launches)
				}
				for i := range launches {
					give(&launches[i], flag)
				}
				f.Launches = launches
			})
		}
	}
	return after
}

// give starts a container with a flag of docker run.
func give(l *facts.Launch, flag string) {
	name, value, _ := strings.Cut(flag, "=")
	switch name {
	case "--ipc":
		l.IPC = value
	case "--network":
		l.Network = value
	case "--cap-add":
		if !slices.Contains(l.CapAdd, value) {
			l.CapAdd = append(slices.Clone(l.CapAdd), value)
		}
	case "--device":
		if !slices.Contains(l.Devices, value) {
			l.Devices = append(slices.Clone(l.Devices), value)
		}
	}
}

func withVariable(env *facts.EnvFacts, v facts.Variable) *facts.EnvFacts {
	v.Effective = true
	if env == nil {
		env = &facts.EnvFacts{}
	}
	others := lines.Filter(env.Variables, func(other facts.Variable) bool { return other.Name != v.Name })
	return &facts.EnvFacts{Variables: append([]facts.Variable{v}, others...)}
}

// keepsWhatIsNeeded checks that no advice unsets what a finding of medium severity
// or above names as its cure, but where that finding names the opposite first.
func keepsWhatIsNeeded(t *testing.T, known knowledge, d *report.Document) {
	t.Helper()
	removed := map[string]string{}
	for _, a := range d.Advice {
		for _, name := range a.Apply.Unset {
			removed[name] = a.Remedy
		}
		for _, e := range a.Apply.Edits {
			name, _, _ := strings.Cut(e.Remove, "=")
			removed[name] = a.Remedy
		}
	}
	for _, f := range grave(d.Findings) {
		for _, id := range f.Remedies {
			r, _ := known.remedies.Remedy(id)
			if len(r.Apply.Unset) > 0 && f.Params["variable"] != nil {
				break // What it unsets is its own to say.
			}
			for name := range r.Apply.Environment {
				expect.That(t, removed[name] == "", "%s unsets %s, by which %s is cured", removed[name], name, f.Rule)
			}
		}
	}
}

// exportedBySlurm and setForDocker are variables as advice sets them.
var (
	setInShell      = regexp.MustCompile(`(?m)^export ([A-Z][A-Z0-9_]*)=(\S+)$`)
	setForDocker    = regexp.MustCompile(`(?m)^-e ([A-Z][A-Z0-9_]*)=(\S*)$`)
	exportedBySlurm = regexp.MustCompile(`[=,]([A-Z][A-Z0-9_]*)=([^,\s]*)`)
	setInPod        = regexp.MustCompile(`\{name: ([A-Z][A-Z0-9_]*), value: "?([^"}]*)"?\}`)
)

func setsNothingInForce(t *testing.T, f *facts.Facts, a remedies.Advice, seen adviceTally) {
	t.Helper()
	inForce := map[string][]string{}
	if f.Env != nil {
		for _, v := range f.Env.Variables {
			if v.Effective {
				inForce[v.Name] = append(inForce[v.Name], strings.ToLower(strings.TrimSpace(v.Value)))
			}
		}
	}
	for _, l := range f.Launches {
		for name, value := range l.Variables {
			if f.Env != nil && slices.ContainsFunc(f.Env.Variables, func(v facts.Variable) bool { return v.Trial && v.Name == name && v.Value == value }) {
				continue // Somebody tried it, and it helped.
			}
			inForce[name] = append(inForce[name], strings.ToLower(strings.TrimSpace(value)))
		}
	}
	set := map[string]string{}
	maps.Copy(set, a.Apply.Environment)
	for pattern, texts := range map[*regexp.Regexp][]string{
		setInShell: a.Apply.Commands, setForDocker: a.Apply.Docker, exportedBySlurm: a.Apply.Slurm, setInPod: {a.Apply.Kubernetes},
	} {
		for _, m := range pattern.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
			set[m[1]] = m[2]
		}
	}
	for name, value := range set {
		seen["set"]++
		expect.That(t, !slices.Contains(inForce[name], strings.ToLower(value)), "%s sets %s=%s, which is set already", a.Remedy, name, value)
	}
	var commandLine []string
	if f.Host != nil {
		commandLine = append(commandLine, f.Host.CommandLine...)
	}
	if f.IOMMU != nil {
		commandLine = append(commandLine, f.IOMMU.CommandLine...)
	}
	for _, parameter := range a.Apply.KernelCommandLine {
		seen["kernel parameters"]++
		expect.That(t, !slices.Contains(commandLine, parameter), "%s adds %s, which is on the kernel's command line already", a.Remedy, parameter)
	}
	balancing := a.Apply.Sysctl["kernel.numa_balancing"]
	expect.That(t, balancing == "" || f.NUMA == nil || f.NUMA.Balancing == nil || strconv.Itoa(*f.NUMA.Balancing) != balancing, "%s sets kernel.numa_balancing=%s, which it is already", a.Remedy, balancing)
	for _, flag := range a.Apply.Docker {
		seen["docker flags"]++
		started, changed := 0, 0
		for _, l := range f.Launches {
			with := l
			give(&with, flag)
			if slices.Contains([]string{"docker-run", "compose", "kubernetes", "docker-inspect"}, l.Kind) {
				started++
				changed += map[bool]int{false: 1}[reflect.DeepEqual(with, l)]
			}
		}
		known := slices.ContainsFunc([]string{"--ipc=", "--network=", "--cap-add=", "--device="}, func(s string) bool { return strings.HasPrefix(flag, s) })
		expect.That(t, !known || started == 0 || changed > 0, "%s gives docker run %s, with which each container is started already", a.Remedy, flag)
	}
}

func setsOrUnsets(t *testing.T, all []remedies.Advice, seen adviceTally) {
	t.Helper()
	set, unset := map[string]string{}, map[string]string{}
	for _, a := range all {
		for name := range a.Apply.Environment {
			set[name] = a.Remedy
		}
		for _, name := range a.Apply.Unset {
			unset[name] = a.Remedy
			seen["unset"]++
		}
		for _, e := range a.Apply.Edits {
			name, _, _ := strings.Cut(e.Remove, "=")
			unset[name] = a.Remedy
			seen["edits"]++
		}
	}
	for name, by := range set {
		expect.That(t, unset[name] == "", "%s sets %s, and %s unsets it", by, name, unset[name])
	}
}

// gap is what a person would have to fill in. A word of capitals stands for a value, too, where it stands in a command.
var (
	gap     = regexp.MustCompile(`<[^<>=\s][^<>=]*>|\{\{|\}\}`)
	capital = regexp.MustCompile(`(?:^|[^$\w])[A-Z]{4,}\b`)
)

func hasNoGap(t *testing.T, a remedies.Advice, seen adviceTally) {
	t.Helper()
	for _, text := range textsOf(t, a) {
		expect.Equal(t, "", gap.FindString(text), "%s: the gap in %q", a.Remedy, text)
	}
	seen["commands"] += len(a.Apply.Commands)
	seen["steps"] += len(a.Apply.Steps)
	for _, line := range slices.Concat(a.Apply.Commands, a.Apply.KernelCommandLine, a.Apply.Unset) {
		expect.Equal(t, "", capital.FindString(line), "%s: what %q leaves to be filled in", a.Remedy, line)
	}
}

func textsOf(t *testing.T, v any) []string {
	t.Helper()
	var all []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				all = append(all, key)
				walk(item)
			}
		}
	}
	walk(asJSON(t, v))
	return all
}

// formatsHaveNoGap looks for gaps in what is written of advice and steps. What is
// quoted from the input, which may hold anything, is left out.
func formatsHaveNoGap(t *testing.T, d *report.Document) {
	t.Helper()
	own := *d
	own.Findings = slices.Clone(d.Findings)
	for i := range own.Findings {
		f := &own.Findings[i]
		f.Evidence, f.Message, f.Explains, f.Subject = nil, "-", nil, "-"
	}
	own.Advice = slices.Clone(d.Advice)
	for i := range own.Advice {
		own.Advice[i].Cures = slices.Clone(own.Advice[i].Cures)
		for j := range own.Advice[i].Cures {
			own.Advice[i].Cures[j].Subject = "-"
		}
	}
	own.Unknown, own.Skipped, own.NotApplicable, own.Texts, own.Transfers = nil, nil, nil, nil, nil
	for _, text := range textsOf(t, own.Findings) {
		expect.Equal(t, "", gap.FindString(text), "a step of a finding has a gap")
	}
	for _, format := range []string{"text", "markdown"} {
		for _, style := range []report.Style{{}, {Verbose: true}} {
			written := markup.ReplaceAllString(writtenAs(format, &own, style), "")
			written = strings.NewReplacer("&lt;", "<", "&gt;", ">").Replace(written)
			expect.Equal(t, "", gap.FindString(written), "%s has a gap", format)
		}
	}
}

// markup is what Markdown writes between angle brackets.
var markup = regexp.MustCompile(`</?(?:details|summary)>|<!-- -->|<https?://[^<>]*>`)

// oneOrder renders the report with the advice numbered by rank, and reads the
// numbers where text and Markdown tell them.
func oneOrder(t *testing.T, d *report.Document, seen adviceTally) {
	t.Helper()
	numbered := *d
	numbered.Advice = slices.Clone(d.Advice)
	for i := range numbered.Advice {
		a := &numbered.Advice[i]
		a.Title = fmt.Sprintf("Advice %d", i+1)
		a.Caution = fmt.Sprintf("rank %d", i+1)
	}
	for _, tt := range []struct {
		name, format string
		style        report.Style
		all          bool
		told         *regexp.Regexp
	}{
		{"text", "text", report.Style{}, false, regexp.MustCompile(`caution: rank (\d+)\n|\n +or +Advice (\d+) \(`)},
		{"verbose text", "text", report.Style{Verbose: true}, false, regexp.MustCompile(`caution: rank (\d+)\n`)},
		{"markdown", "markdown", report.Style{}, false, regexp.MustCompile(`\n- \*\*(?:Now|Fix|Or):\*\* Advice (\d+)\b`)},
		{"all in markdown", "markdown", report.Style{}, true, regexp.MustCompile(`\bAdvice (\d+)\b`)},
	} {
		var order []int
		for _, m := range tt.told.FindAllStringSubmatch(writtenAs(tt.format, &numbered, tt.style), -1) {
			rank, _ := strconv.Atoi(strings.Join(m[1:], ""))
			if !slices.Contains(order, rank) {
				order = append(order, rank)
			}
		}
		seen["told in "+tt.name] += len(order)
		expect.That(t, tt.all || slices.IsSorted(order), "%s tells advice in the order %v", tt.name, order)
		expect.That(t, !tt.all || len(order) == len(d.Advice), "%s tells %d of %d", tt.name, len(order), len(d.Advice))
	}
}

// repeatsNothing checks that no two remedies for a finding are the same action.
func repeatsNothing(t *testing.T, all []remedies.Advice) {
	t.Helper()
	seen := map[string]string{}
	for _, a := range all {
		act := a.Apply
		act.Steps = nil
		if reflect.DeepEqual(act, remedies.Apply{}) {
			continue
		}
		for _, c := range a.Cures {
			key := fmt.Sprintf("%+v %+v %s %s", c, act, a.Kind, a.Lasts)
			if other, ok := seen[key]; ok && other != a.Remedy { // One stands once for each band of findings.
				t.Errorf("%s and %s do the same for %s: %+v", other, a.Remedy, c.Rule, act)
			}
			seen[key] = a.Remedy
		}
	}
}

func checksAgain(t *testing.T, r request, d *report.Document, seen adviceTally) {
	t.Helper()
	want := "gpudoctor check --from " + remedies.Quote(r.source.from[0])
	if r.profile != rules.Training {
		want += " --profile " + string(r.profile)
	}
	want += " --only "
	for _, a := range d.Advice {
		expect.That(t, strings.HasPrefix(a.Verify, want), "%s: verify = %q, want it to begin with %q", a.Remedy, a.Verify, want)
	}
	for _, format := range []string{"text", "markdown"} {
		for _, style := range []report.Style{{}, {Verbose: true}} {
			for _, m := range checkAgain.FindAllStringSubmatch(writtenAs(format, d, style), -1) {
				seen["check again in "+format]++
				expect.That(t, strings.HasPrefix(m[1], want), "%s: check again with %q, want it to begin with %q", format, m[1], want)
			}
		}
	}
}

// checkAgain is where a format tells the command: alone on a line, or as code, where
// nothing breaks it.
var checkAgain = regexp.MustCompile("(?m)^(?: +check +(?:with new evidence: )?|- \\*\\*Check:\\*\\* (?:with new evidence: )?`+ ?)?(gpudoctor check --from .*?)`*$")

// TestAdviceIsAccepted checks that what advise writes for a machine is right for gpudoctor itself:
// check --profile launch finds nothing wrong with it on that machine, but for faults of the
// machine. Without the size of /dev/shm it does.
func TestAdviceIsAccepted(t *testing.T) {
	expect.NotShort(t, "it starts some hundred programs, one after the other; the run without -short has it")
	t.Parallel()
	extension := map[string]string{"compose": ".compose.yaml", "kubernetes": ".pod.yaml", "slurm": ".sbatch", "docker": ".sh", "torchrun": ".sh", "mpi": ".sh"}
	for _, example := range expect.SomeRows(12, fixtures.Examples()) {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for target, end := range extension {
				file := filepath.Join(dir, target+end)
				out, code := runIn(t, dir, "gpudoctor advise --from "+examplePrefix+example+" --for "+target+" -o "+file)
				expect.Must(t, code == exitOK, "%s: exit %d\n%s", target, code, out)
				for _, fault := range launchFaults(t, example, file) {
					t.Errorf("%s: %s\n%s", target, fault, expect.Value(os.ReadFile(file))(t))
				}
				if target != "docker" {
					continue
				}
				expect.NoError(t, os.WriteFile(file, bytes.ReplaceAll(expect.Value(os.ReadFile(file))(t), []byte("--shm-size=16g"), nil), 0o600))
				expect.That(t, len(launchFaults(t, example, file)) != 0, "without the size of /dev/shm it is accepted as well:\n%s", expect.Value(os.ReadFile(file))(t))
			}
		})
	}
}

// launchFaults are the findings about a file of a job for the machine of an example.
func launchFaults(t *testing.T, example, file string) []string {
	t.Helper()
	judged := file + ".json"
	out, code := runIn(t, filepath.Dir(file), "gpudoctor check --profile "+string(rules.Launch)+" --target "+examplePrefix+example+" --from "+file+" -o "+judged)
	expect.Must(t, code != exitError, "%s\n%s", out, expect.Value(os.ReadFile(file))(t))
	d := decoded[report.Document](t, expect.Value(os.ReadFile(judged))(t))
	var faults []string
	for _, f := range d.Findings {
		for _, e := range f.Evidence {
			if strings.HasPrefix(e.Fact, "launches") {
				faults = append(faults, string(f.Severity)+" "+f.Rule+": "+f.Message)
			}
		}
	}
	return faults
}
