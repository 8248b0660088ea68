package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/contract"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

var schemaFile = filepath.Join("..", "..", "..", "docs", "diff.schema.json")

// TestGoldenSchema checks that the published contract equals the Go types.
func TestGoldenSchema(t *testing.T) {
	s := contract.Schema(t, Schema, &Difference{}, map[reflect.Type][]any{
		reflect.TypeFor[Form]():         {FormReport, FormRecording},
		reflect.TypeFor[Kind]():         {Finding, Part, Version, Setting, Figure, Fact, Reading},
		reflect.TypeFor[Change]():       {New, Gone, Changed},
		reflect.TypeFor[report.State](): {report.Healthy, report.Findings, report.Inconclusive},
	}, "rules", filepath.Join("cmd", "internal", "report"), filepath.Join("cmd", "internal", "compare"))
	expect.Golden(t, schemaFile, expect.Value(lines.JSON(s))(t))
}

// filled makes a value in which everything is known: each list has one element, and each
// string, number and truth value is one that n and the place tell.
func filled(t reflect.Type, n int) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem(), n))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(filled(t.Field(i).Type, n))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
		v.Index(0).Set(filled(t.Elem(), n))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.ValueOf("key"), filled(t.Elem(), n))
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", n))
	case reflect.Bool:
		v.SetBool(n%2 == 0)
	case reflect.Float64:
		v.SetFloat(float64(100 * n))
	default:
		v.SetInt(int64(n))
	}
	return v
}

// filledFacts are facts in which everything is known, and leaves the places in them that one value has each.
func filledFacts() (f *facts.Facts, leaves []*facts.Node) {
	v := filled(reflect.TypeFor[facts.Facts](), 1)
	f = v.Addr().Interface().(*facts.Facts) //nolint:forcetypeassert // It is of that type.
	facts.Walk("", f, func(n *facts.Node) bool {
		isMap := n.Value.Kind() == reflect.Map
		if isMap || n.IsLeaf() {
			leaves = append(leaves, n)
		}
		return !isMap
	})
	return f, leaves
}

// TestEveryFact changes each value of the facts, one by one: each change is shown, unless
// the field is left out for a reason. What rules read is among them. By day every fourth is changed.
func TestEveryFact(t *testing.T) {
	a, all := filledFacts()
	expect.AtLeast(t, 350, len(all), "places")
	used, try := map[string]bool{}, expect.EachNth(1)
	for i, n := range all {
		id := n.Field.ID
		name := id[strings.LastIndexByte(id, '.'):]
		used[id], used[name] = true, true
		if !try() {
			continue
		}
		b, leaves := filledFacts()
		n = leaves[i]
		n.Value.Set(filled(n.Value.Type(), 2))
		items := compareFacts(a, b)
		identity := tables().Identities[n.Parent.Value.Type().String()]
		if identity == nil {
			identity = facts.Identity(n.Parent.Value.Type())
		}
		shown := len(items) > 0 && !slices.Contains(identity, name[1:])
		expect.That(t, !shown || !leftOut(id), "%s is left out, and a change of it is shown: %+v", n.Path(), items)
		expect.That(t, len(items) > 0 || leftOut(id), "a change of %s (%s) is not shown", n.Path(), id)
	}
	for _, ids := range tables().Noise {
		for _, id := range ids {
			expect.That(t, used[id] || strings.HasPrefix(id, "fields."), "noise names %s, which the facts do not have", id)
		}
	}
}

// TestTables checks that the tables name what there is.
func TestTables(t *testing.T) {
	f, _ := filledFacts()
	fields, patterns := map[string]bool{}, map[string]bool{}
	for _, e := range entriesOf(f) {
		patterns[e.pattern] = true
	}
	facts.Walk("", f, func(n *facts.Node) bool {
		if n.Field != nil {
			fields[n.Field.ID] = true
		}
		return true
	})
	for of, names := range tables().Identities {
		for _, name := range names {
			expect.That(t, fields[of+"."+name], "identities: there is no %s.%s", of, name)
		}
	}
	for _, id := range slices.Concat(tables().Ordered, tables().Measured) {
		expect.That(t, fields[id], "the facts have no %s", id)
	}
	for kind, places := range tables().Kinds {
		expect.That(t, slices.Contains(kinds, kind), "there is no kind %s", kind)
		for _, pattern := range places {
			expect.That(t, patterns[strings.TrimSuffix(pattern, "/")], "kinds names %s, which the facts do not have", pattern)
		}
	}
	for list, noun := range tables().Nouns {
		expect.That(t, (patterns[list+"[]"] || list == "skipped") && noun != "", "nouns names %s, which the facts do not have", list)
	}
	for _, k := range kinds {
		expect.That(t, headings[k] != "", "%s has no heading", k)
	}
}

func exampleFacts(t *testing.T) map[string]*facts.Facts {
	t.Helper()
	expect.NotShort(t, "it enumerates, and nothing in it runs side by side")
	all := map[string]*facts.Facts{}
	for _, name := range fixtures.Examples() {
		raw := expect.Value(fixtures.Example(name))(t)
		h, f, err := host.OpenRecording(name, bytes.NewReader(raw))
		expect.NoError(t, err)
		if f == nil {
			f, _ = checks.Gather(t.Context(), h, gather.Options{})
		}
		all[name] = f
	}
	return all
}

// TestOrder checks that the order of lists is no difference.
func TestOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 13)) //nolint:gosec // The same order each time.
	for name, f := range exampleFacts(t) {
		other := &facts.Facts{}
		expect.NoError(t, json.Unmarshal(expect.Value(json.Marshal(f))(t), other))
		facts.Walk("", other, func(n *facts.Node) bool {
			if n.Value.Kind() == reflect.Slice && !slices.Contains(tables().Ordered, n.Field.ID) {
				random.Shuffle(n.Value.Len(), reflect.Swapper(n.Value.Interface()))
			}
			return true
		})
		expect.Len(t, 0, compareFacts(f, other), "%s: differences from itself in another order", name)
	}
}

func reportOf(f *facts.Facts, findings ...rules.Finding) *report.Document {
	return report.New(report.Input{Version: "1.0", Profile: rules.Training, Facts: f, Verdict: rules.Result{Findings: findings}})
}

func mirrored(d *Difference) *Difference {
	out := *d
	out.A, out.B = d.B, d.A
	out.Items = slices.Clone(d.Items)
	for n, i := range out.Items {
		i.Before, i.After = i.After, i.Before
		i.BeforeFinding, i.AfterFinding = i.AfterFinding, i.BeforeFinding
		switch i.Change {
		case New:
			i.Change = Gone
		case Gone:
			i.Change = New
		case Changed:
		}
		out.Items[n] = i
	}
	slices.SortStableFunc(out.Items, Item.compare)
	return &out
}

// TestMirror checks that the comparison of two examples has no preferred side.
func TestMirror(t *testing.T) {
	all := exampleFacts(t)
	names, try := slices.Sorted(maps.Keys(all)), expect.EachNth(4)
	for n, a := range names {
		for _, b := range names[n+1:] {
			if !try(a) {
				continue
			}
			x := Input{Name: a, Report: reportOf(all[a], finding("one", rules.High, "host"), finding("two", rules.Low, "host")), Facts: all[a]}
			y := Input{Name: b, Report: reportOf(all[b], finding("two", rules.Critical, "host"), finding("three", rules.Low, "host")), Facts: all[b]}
			there, back := Compare("1.0", x, y), Compare("1.0", y, x)
			diff := cmp.Diff(there, mirrored(back), cmpopts.IgnoreUnexported(Item{}, Said{}), cmpopts.IgnoreFields(Difference{}, "Notes"))
			expect.That(t, diff == "", "%s and %s (-there +back):\n%s", a, b, diff)
		}
	}
}

// finding is one with no more than it needs.
func finding(rule string, severity rules.Severity, subject string) rules.Finding {
	return rules.Finding{Rule: rule, Cause: rule, Title: rule, Severity: severity, Confidence: rules.Likely, Subject: subject, Message: rule + " at 393 GB/s."}
}

func TestFindings(t *testing.T) {
	change := func(f rules.Finding, with func(*rules.Finding)) rules.Finding {
		with(&f)
		return f
	}
	acs := finding("acs", rules.High, "0000:17:00.0 and 6 more")
	acs.Affects = []string{"0000:18:00.0", "0000:19:00.0"}
	slow := finding("slow", rules.Medium, "host")
	variable := func(name string) rules.Finding {
		return change(finding("env", rules.Low, "environment"), func(f *rules.Finding) { f.Params = map[string]any{"variable": name} })
	}
	for name, tt := range map[string]struct {
		a, b []rules.Finding
		want []string
	}{
		"same":                    {[]rules.Finding{acs, slow}, []rules.Finding{slow, acs}, nil},
		"new":                     {nil, []rules.Finding{acs}, []string{"new findings[acs 0000:17:00.0 and 6 more]"}},
		"gone":                    {[]rules.Finding{acs}, nil, []string{"gone findings[acs 0000:17:00.0 and 6 more]"}},
		"folded under its cause":  {[]rules.Finding{acs, slow}, []rules.Finding{change(acs, func(f *rules.Finding) { f.Explains = []rules.Finding{slow} })}, nil},
		"more severe":             {[]rules.Finding{slow}, []rules.Finding{change(slow, func(f *rules.Finding) { f.Severity = rules.Critical })}, []string{"changed findings[slow host]"}},
		"another subject":         {[]rules.Finding{acs}, []rules.Finding{change(acs, func(f *rules.Finding) { f.Subject = "0000:17:00.0 and 7 more" })}, []string{"changed findings[acs 0000:17:00.0 and 6 more]"}},
		"other GPUs":              {[]rules.Finding{acs}, []rules.Finding{change(acs, func(f *rules.Finding) { f.Subject, f.Affects = "0000:99:00.0", []string{"0000:9a:00.0"} })}, []string{"gone findings[acs 0000:17:00.0 and 6 more]", "new findings[acs 0000:99:00.0]"}},
		"measured again":          {[]rules.Finding{slow}, []rules.Finding{change(slow, func(f *rules.Finding) { f.Message = "slow at 390.2 GB/s." })}, nil},
		"measured at half":        {[]rules.Finding{slow}, []rules.Finding{change(slow, func(f *rules.Finding) { f.Message = "slow at 190 GB/s." })}, []string{"changed findings[slow host]"}},
		"variables are not alike": {[]rules.Finding{variable("NCCL_A")}, []rules.Finding{variable("NCCL_B")}, []string{"gone findings[env environment]", "new findings[env environment]"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := expect.Map(compareFindings(tt.a, tt.b), func(i Item) string { return string(i.Change) + " " + i.Path })
			expect.NoDiff(t, tt.want, got, "it")
		})
	}
}

// machine is a machine of two GPUs.
func machine() *facts.Facts {
	const first, second = "0000:3b:00.0", "0000:86:00.0"
	f := &facts.Facts{
		Schema: facts.FactsSchema,
		Host:   &facts.HostFacts{Hostname: "node17", Kernel: "6.8.0-45-generic", BIOS: "Vendor 1.2"},
		PCI: &facts.PCIFacts{Devices: []facts.PCIDevice{
			{Address: first, Kind: "gpu", Link: &facts.PCIeLink{SpeedGTs: 32, Width: 16}},
			{Address: second, Kind: "gpu", Link: &facts.PCIeLink{SpeedGTs: 32, Width: 16}},
			{Address: "0000:3a:01.0", Kind: "bridge", ACS: &facts.ACS{Control: []string{"SrcValid"}}},
		}},
		GPUs: &facts.GPUFacts{NVML: "ok", Driver: facts.GPUDriver{Version: "570.86.15"}, Devices: []facts.GPU{
			{Address: first, Name: "NVIDIA H100 PCIe", UUID: "GPU-1b5e0a52-0001-0001-0001-0000000000aa", Persistence: new(true)},
			{Address: second, Name: "NVIDIA H100 PCIe", UUID: "GPU-1b5e0a52-0001-0001-0001-0000000000bb", Persistence: new(true)},
		}},
		Links:     &facts.LinkFacts{Pairs: []facts.Pair{{A: first, B: second, Kind: "gpu-gpu", Path: "SYS"}}},
		Env:       &facts.EnvFacts{Variables: []facts.Variable{{Name: "NCCL_DEBUG", Value: "WARN", Source: "environment", Effective: true}}},
		Transfers: &probe.Report{Mode: probe.Quick, Outcome: probe.OK},
	}
	for _, pair := range [][2]string{{first, second}, {second, first}} {
		f.Transfers.Transfers = append(f.Transfers.Transfers, probe.Transfer{Test: probe.TestCopy, Source: pair[0], Destination: pair[1], Outcome: probe.OK, GBps: new(41.5)})
	}
	return f
}

// TestMessages checks that what differs from run to run in a message is no difference.
func TestMessages(t *testing.T) {
	with := func(fields map[string]string) *facts.Facts {
		return &facts.Facts{Logs: &facts.LogFacts{Messages: []facts.Message{{ID: "nccl-timeout", Program: "nccl", Fields: fields}}}}
	}
	a := with(map[string]string{"pid": "1", "port": "4711", "peer": "3"})
	expect.Len(t, 0, compareFacts(a, with(map[string]string{"pid": "2", "port": "4712", "peer": "3"})), "another process and port")
	expect.Len(t, 1, compareFacts(a, with(map[string]string{"pid": "1", "port": "4711", "peer": "4"})), "another peer")
}

// TestFigures checks that a measured value differs only beyond what two measurements do.
func TestFigures(t *testing.T) {
	for _, tt := range []struct {
		rate float64
		want int
	}{{41.5, 0}, {41.5 * 1.09, 0}, {41.5 / 1.09, 0}, {41.5 * 1.11, 1}, {41.5 / 1.11, 1}, {0, 1}} {
		a, b := machine(), machine()
		b.Transfers.Transfers[0].GBps = &tt.rate
		expect.Len(t, tt.want, compareFacts(a, b), "differences of 41.5 and %v GB/s", tt.rate)
	}
}

// TestGoldenFormats checks how a difference of every kind looks, and that JSON keeps the published contract.
func TestGoldenFormats(t *testing.T) {
	schema := expect.Value(validator.NewCompiler().Compile(schemaFile))(t)
	in := Input{Name: "a", Form: FormReport, Report: reportOf(machine())}
	for name, d := range map[string]*Difference{"every kind": sample(), "the same": Compare("1.0", in, in)} {
		for format, file := range map[string]string{"text": "diff.txt", "markdown": "diff.md", "json": "diff.json"} {
			var b bytes.Buffer
			expect.NoError(t, d.Write(&b, format, report.Style{ASCII: true}))
			for _, r := range b.String() {
				expect.That(t, r == '\n' || r >= ' ' && r <= '~' || format == "json", "%s: the character %U is written", format, r)
			}
			if !d.Same {
				expect.Golden(t, filepath.Join("testdata", file), b.Bytes())
			}
			if format == "json" {
				err := schema.Validate(expect.Value(validator.UnmarshalJSON(&b))(t))
				expect.That(t, err == nil, "%s: %v", name, err)
			}
		}
	}
}

// sample is a difference of every kind. A value holds characters that steer a terminal.
func sample() *Difference {
	a, b := machine(), machine()
	b.Host.Kernel = "6.8.0-47-generic"
	b.GPUs.Driver.Version = "580.82.07"
	b.GPUs.Devices[0].Persistence = new(false)
	b.GPUs.Devices[0].NVLinks = []facts.NVLink{}
	b.PCI.Devices[0].Link.Width = 8
	b.PCI.Devices[2].ACS = nil
	b.Env.Variables = append(b.Env.Variables, facts.Variable{Name: "NCCL_P2P_DISABLE", Value: "1\x1b[31m\u202e", Source: "environment", Effective: true})
	b.Transfers.Transfers[0].GBps = new(21.0)
	b.Transfers.Transfers[1].Outcome, b.Transfers.Transfers[1].GBps = probe.Corrupt, nil
	lost := "0000:af:00.0"
	a.GPUs.Devices = append(a.GPUs.Devices, facts.GPU{Address: lost, Name: "NVIDIA H100 PCIe"})
	a.Links.Pairs = append(a.Links.Pairs, facts.Pair{A: "0000:3b:00.0", B: lost, Kind: "gpu-gpu"})
	wrong := finding("p2p-corrupt", rules.Critical, "0000:86:00.0 -> 0000:3b:00.0")
	wrong.Message = "Data arrives damaged\x1b]0;title\x07."
	x := Input{Name: "yesterday.json", Form: FormRecording, Facts: a, Report: reportOf(a, finding("link-slow", rules.Medium, "host"))}
	y := Input{Name: "today.json", Form: FormRecording, Facts: b, Report: reportOf(b, wrong, finding("link-slow", rules.Low, "host"))}
	x.Report.Host.Summary, y.Report.Host.Summary = "3 x NVIDIA H100 PCIe", "2 x NVIDIA H100 PCIe"
	return Compare("1.0", x, y)
}

// TestSince enumerates what a finding may be before and now, and how its rule was judged: each one that was there is
// cured, remains or is not judged, and it is cured only where its rule was judged without it.
func TestSince(t *testing.T) {
	const rule = "acs-redirect"
	there := finding(rule, rules.High, "0000:17:00.0")
	for _, before := range []bool{false, true} {
		for _, now := range []bool{false, true} {
			for judged, says := range map[string]func(*report.Document){
				"passed":         func(d *report.Document) { d.Passed = []string{rule} },
				"skipped":        func(d *report.Document) { d.Skipped = []report.Skipped{{Rule: rule, Missing: []string{"needs root"}}} },
				"not applicable": func(d *report.Document) { d.NotApplicable = map[string]string{rule: "no GPU"} },
				"left out":       func(*report.Document) {},
			} {
				t.Run(fmt.Sprintf("before %v, now %v, %s", before, now, judged), func(t *testing.T) {
					was, is := &report.Document{Passed: []string{rule}}, &report.Document{}
					if before {
						was.Findings = []rules.Finding{there}
						was.Advice = []remedies.Advice{{Remedy: "disable-acs", Cures: []remedies.Cure{{Rule: rule, Subject: there.Subject}}}, {Remedy: "other", Cures: []remedies.Cure{{Rule: "other"}}}}
					}
					if now {
						is.Findings = []rules.Finding{there}
					} else {
						says(is)
					}
					b := Since(Input{Name: "before.json", Report: was}, Input{Report: is})
					want := map[string]int{}
					switch {
					case before && now:
						want["remaining"] = 1
					case before && judged == "passed":
						want["cured"] = 1
					case before:
						want["not judged"] = 1
					case now:
						want["new"] = 1
					}
					got := map[string][]report.Compared{"remaining": b.Remaining, "cured": b.Cured, "not judged": b.NotJudged, "new": b.New}
					for list, findings := range got {
						expect.Len(t, want[list], findings, "%s", list)
						for _, f := range findings {
							advised := slices.Equal(f.Advised, []string{"disable-acs"})
							expect.That(t, f.Rule == rule && advised == (list != "new") && (f.Reason != "") == (list == "not judged"), "%s: %+v", list, f)
						}
					}
					expect.That(t, len(b.Entries()) > 0, "nothing is said")
				})
			}
		}
	}
}
