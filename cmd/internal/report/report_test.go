package report

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/probe"
	"github.com/gpudoctor/gpudoctor/cmd/internal/report/lines"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/remedies"
	"github.com/gpudoctor/gpudoctor/rules"
)

// TestGolden compares every sample as text, and some in the other formats, with what is recorded. fixtures/verdicts.txt has digests
// of the reports on all inputs as text, Markdown and HTML, and TestDocumentsFollowSchema checks the JSON of all samples.
func TestGolden(t *testing.T) {
	inAllFormats := []string{"healthy", "acs", "hostile", "many", "full", "steps", "waived"}
	for name, d := range samples() {
		for _, f := range formats {
			if f.Name == "html" || f.CI { // See TestGoldenHTML and TestGoldenFormats.
				continue
			}
			if f.Name != "text" && !slices.Contains(inAllFormats, name) {
				continue
			}
			var b bytes.Buffer
			expect.NoError(t, f.Write(&b, d, Style{Example: "h200x8"}))
			expect.Golden(t, filepath.Join("testdata", name+f.Extension+".golden"), b.Bytes())
		}
	}
}

func textOf(d *Document, style Style) string {
	var b bytes.Buffer
	writeText(&b, d, style)
	return b.String()
}

// TestGoldenHTML checks what a page says, without its style and its script.
func TestGoldenHTML(t *testing.T) {
	listed := regexp.MustCompile(`(?s)<section class="facts".*</section>|<svg class="picture narrow".*?</svg>`)
	for _, name := range []string{"acs", "full", "hostile", "steps"} {
		var b bytes.Buffer
		f, _ := FormatNamed("html")
		expect.NoError(t, f.Write(&b, samples()[name], Style{}))
		whole := said(b.Bytes())
		if name != "acs" { // One of them shows the facts.
			whole = listed.ReplaceAll(whole, nil)
		}
		expect.Golden(t, filepath.Join("testdata", name+".html.golden"), whole)
	}
}

// said is a page without its style and its script.
func said(page []byte) []byte {
	return regexp.MustCompile(`(?s)<style>.*</style>|<script>.*?</script>\n</body>|<meta http-equiv[^>]*>`).ReplaceAll(page, nil)
}

// switched is two GPUs and a NIC below a switch, one port of which has a finding.
func switched() Input {
	in := healthy(2)
	in.Facts.Links.VirtualTopology = new(false)
	const root, up = "0000:00:01.0", "0000:01:00.0"
	ports := []string{"0000:02:00.0", "0000:02:01.0", "0000:02:02.0"}
	link := &facts.PCIeLink{SpeedGTs: 32, Width: 16, MaxSpeedGTs: 32, MaxWidth: 16}
	add := func(address, kind, portType string, ancestors ...string) {
		in.Facts.PCI.Devices = append(in.Facts.PCI.Devices, facts.PCIDevice{
			Address: address, Kind: kind, PortType: portType, Ancestors: ancestors, Link: link, Driver: map[string]string{"nic": "mlx5_core\x1b[2J"}[kind],
		})
	}
	add(root, "bridge", "root-port")
	add(up, "bridge", "upstream-port", root)
	for i, port := range ports {
		add(port, "bridge", "downstream-port", root, up)
		if i < 2 {
			add(gpuAt(i), "gpu", "endpoint", root, up, port)
		} else {
			add("0000:05:00.0", "nic", "endpoint", root, up, port)
		}
	}
	in.Verdict.Findings = []rules.Finding{
		{Rule: "acs-redirect", Cause: "acs-redirect", Severity: rules.High, Confidence: rules.Likely, Title: "ACS redirects peer-to-peer traffic", Subject: ports[1]},
		{Rule: "gpu-fault", Cause: "gpu-fault", Severity: rules.High, Confidence: rules.Likely, Title: "A GPU fell off the bus", Subject: gpuAt(0)},
		{Rule: "pcie-link-degraded", Cause: "pcie-link-degraded", Severity: rules.Medium, Confidence: rules.Likely, Title: "A PCIe link runs below its speed", Subject: "0000:05:00.0"},
		{Rule: "env-misconfig", Cause: "env-misconfig", Severity: rules.Low, Confidence: rules.Likely, Title: "A variable is set", Subject: "NCCL_DEBUG"},
	}
	return in
}

// TestGoldenTopology checks the picture as a tree, also where there is little room.
func TestGoldenTopology(t *testing.T) {
	for file, style := range map[string]Style{"switched-topology": {Width: 80, Color: true}, "switched-topology-40": {Width: 20, ASCII: true}} {
		var b bytes.Buffer
		expect.NoError(t, WriteTopology(&b, New(switched()), style))
		expect.Golden(t, filepath.Join("testdata", file+".golden"), b.Bytes())
		if style.Color {
			continue
		}
		for line := range strings.Lines(b.String()) {
			n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
			expect.That(t, n <= 40, "%d columns: %q", n, line)
		}
	}
	for name, want := range map[string]string{"no-gpu": "No topology: no GPU here", "healthy": "NVLink 4 through NVSwitch joins GPUs 0 to 7, each to each"} {
		var b bytes.Buffer
		err := WriteTopology(&b, samples()[name], Style{})
		expect.That(t, err == nil && strings.Contains(b.String(), want), "%s: got %v and\n%s", name, err, b.String())
	}
}

func TestGoldenStyles(t *testing.T) {
	for _, tt := range []struct {
		sample, file string
		style        Style
	}{
		{"acs", "acs-verbose", Style{Verbose: true}},
		{"acs", "acs-60", Style{Width: 60}},
		{"acs", "acs-color", Style{Width: 80, Color: true}},
		{"acs", "acs-quiet", Style{Quiet: true}},
		{"low", "low-quiet", Style{Quiet: true}},
		{"hang", "hang-60", Style{Width: 60}},
		{"healthy", "healthy-80", Style{Width: 80}},
		{"healthy", "healthy-verbose", Style{Verbose: true}},
		{"hostile", "hostile-ascii", Style{ASCII: true, Verbose: true}},
		{"busy-part", "busy-part-60", Style{Width: 60}},
		{"steps", "steps-60", Style{Width: 60}},
		{"full", "full-verbose", Style{Width: 80, Verbose: true}},
	} {
		expect.Golden(t, filepath.Join("testdata", tt.file+".txt.golden"), []byte(textOf(samples()[tt.sample], tt.style)))
	}
}

// TestGoldenTransfers checks what a command that makes transfers alone writes.
func TestGoldenTransfers(t *testing.T) {
	for sample, file := range map[string]string{"full": "full-transfers.txt", "many": "many-transfers-80.txt"} {
		var b bytes.Buffer
		expect.NoError(t, WriteTransfers(&b, "text", samples()[sample], Style{Width: 80, Verbose: true}))
		expect.Golden(t, filepath.Join("testdata", file+".golden"), said(b.Bytes()))
	}
}

// TestTransfersExitCode checks that what could not be tried is not taken for well.
func TestTransfersExitCode(t *testing.T) {
	part := healthy(8)
	use(&part, 2, probe.User{PID: 1234, Program: "python3"})
	for _, tt := range []struct {
		name string
		in   Input
		want int
	}{
		{"healthy", healthy(8), 0},
		{"one GPU in use", part, 3},
		{"all in use", busy(), 3},
		{"no probe", unproven(), 3},
		{"wrong data", acs(), 1},
		{"the driver hangs", driverHang(), 1},
		{"no GPU", noGPUs(), 0},
		{"no GPU, as far as texts tell", fewGPUs(0, func(in *Input) { in.TextsOnly = true }), 3},
		{"no GPU, and nothing was read", fewGPUs(0, func(in *Input) { in.Facts.PCI, in.Facts.GPUs, in.Facts.Transfers = nil, nil, nil }), 3},
		{"one GPU", fewGPUs(1, nil), 0},
		{"one GPU, no probe", fewGPUs(1, func(in *Input) { in.Facts.Transfers = nil }), 3},
		{"one GPU, two for the driver", fewGPUs(1, func(in *Input) { in.Facts.Transfers.Devices = healthy(2).Facts.Transfers.Devices }), 3},
		{"one GPU, the driver hangs", fewGPUs(1, func(in *Input) { in.Facts.Transfers.Outcome = probe.Hang }), 1},
	} {
		expect.Equal(t, tt.want, TransfersExitCode(New(tt.in)), "%s", tt.name)
	}
}

// fewGPUs is a healthy machine with n GPUs, changed.
func fewGPUs(n int, change func(*Input)) Input {
	in := healthy(n)
	if change != nil {
		change(&in)
	}
	return in
}

// TestOnlyNumbersAreReferredTo checks that a finding refers to another one by
// its number alone, and that no finding without a number is referred to.
func TestOnlyNumbersAreReferredTo(t *testing.T) {
	reference := regexp.MustCompile(`as under (\S+)`)
	twice := low()
	other := twice.Verdict.Findings[0]
	other.Title, other.Subject = "Another one of the same cure", "NCCL_NVLS_ENABLE"
	twice.Verdict.Findings = append(twice.Verdict.Findings, other)
	all := samples()
	all["twice"] = New(twice)
	for name, d := range all {
		said := textOf(d, Style{Verbose: true})
		for _, m := range reference.FindAllStringSubmatch(said, -1) {
			expect.That(t, strings.Contains(said, "\n"+m[1]+"  "), "%s: %q leads nowhere", name, m[0])
		}
		if name == "twice" {
			expect.Equal(t, 2, strings.Count(said, "unset NCCL_NVLS_ENABLE\n"), "so often the cure of two findings without a number is shown")
		}
	}
}

// TestOneScreen checks the promise that a healthy machine takes one screen.
func TestOneScreen(t *testing.T) {
	// The probe's full mode tells more figures.
	for name, width := range map[string]int{
		"healthy": 80, "healthy-pair": 80, "low": 80, "no-gpu": 80, "unproven": 80, "busy": 80, "busy-part": 80, "full": 100,
	} {
		lines := strings.Split(strings.TrimSuffix(textOf(samples()[name], Style{Width: width, Example: "h200x8"}), "\n"), "\n")
		expect.That(t, len(lines) <= 24, "%s takes %d lines, want at most 24", name, len(lines))
		for _, l := range lines {
			n := utf8.RuneCountInString(l)
			expect.That(t, n <= width, "%s: line of %d columns: %s", name, n, l)
		}
	}
}

func TestVerdict(t *testing.T) {
	with := func(in Input, strict bool, at Threshold, only ...string) Input {
		in.Strict, in.FailOn, in.Only = strict, at, only
		return in
	}
	failOn := func(in Input, at Threshold) Input { return with(in, false, at) }
	strict := func(in Input, only ...string) Input { return with(in, true, in.FailOn, only...) }
	corruptUnsaid := healthy(8)
	corruptUnsaid.Facts.Transfers.Transfers[0].Outcome = probe.Corrupt
	mild := acs()
	for i := range mild.Verdict.Findings {
		mild.Verdict.Findings[i].Severity = rules.Low
	}
	image := noGPUs()
	image.Profile = rules.Image
	image.Facts.PCI, image.Facts.GPUs = nil, nil
	one := healthy(1)
	for _, tt := range []struct {
		name  string
		in    Input
		state State
		exit  int
	}{
		{"healthy", healthy(8), Healthy, 0},
		{"healthy, strict", strict(healthy(8)), Healthy, 0},
		{"one GPU needs no transfer", strict(one), Healthy, 0},
		{"low", low(), Healthy, 0},
		{"low at low", failOn(low(), "low"), Healthy, 1},
		{"info at info", failOn(low(), "info"), Healthy, 1},
		{"critical", acs(), Findings, 1},
		{"critical at none", failOn(acs(), "none"), Findings, 3},
		{"a finding comes before what is missing", strict(driverHang()), Findings, 1},
		{"low cause of critical consequences", mild, Findings, 1},
		{"no GPU", noGPUs(), Inconclusive, 0},
		{"no GPU, strict", strict(noGPUs()), Inconclusive, 3},
		{"nothing could be read", Input{Profile: rules.Training, FailOn: "high", Strict: true, Facts: &facts.Facts{}}, Inconclusive, 3},
		{"image", strict(image), Healthy, 0},
		{"not tried", unproven(), Inconclusive, 0},
		{"not tried, strict", strict(unproven()), Inconclusive, 3},
		{"only one rule that could be judged", strict(unproven(), "env-misconfig"), Healthy, 0},
		{"only one rule that could not", strict(healthy(8), "acs-redirect"), Inconclusive, 3},
		{"corrupt, and no rule says so", corruptUnsaid, Inconclusive, 3},
	} {
		d := New(tt.in)
		expect.That(t, d.Verdict.State == tt.state && d.Verdict.ExitCode == tt.exit, "%s: got %s, exit %d (%s), want %s, exit %d", tt.name, d.Verdict.State, d.Verdict.ExitCode, d.Verdict.Reason, tt.state, tt.exit)
	}
}

// nothing is the report's input where nothing could be read.
func nothing() Input {
	return Input{
		Version: "0.1.0", Profile: rules.Training, FailOn: "high", Facts: &facts.Facts{Transfers: &probe.Report{Mode: probe.Quick, Outcome: probe.Unknown}},
		Verdict: rules.Result{Findings: []rules.Finding{{Severity: rules.Low, Confidence: rules.Possible}}, Skipped: []rules.Skipped{{Rule: "acs-redirect"}}},
		Advice:  []remedies.Advice{{Kind: remedies.Fix}},
	}
}

func TestNewOfNothing(t *testing.T) {
	for _, f := range formats {
		for _, verbose := range []bool{false, true} {
			var b bytes.Buffer
			d := New(nothing())
			err := f.Write(&b, d, Style{Verbose: verbose})
			expect.That(t, err == nil && b.Len() != 0, "%s of empty facts: %d bytes, %v", f.Name, b.Len(), err)
		}
	}
}

// TestWhySkipped checks that what a rule lacked is given by its fields: no bracket
// or colon in words is taken for anything, and that the last line does not say again what
// the areas of a machine say, or --verbose, which lists all that was lacked.
func TestWhySkipped(t *testing.T) {
	in := nothing()
	in.Verdict.Skipped = []rules.Skipped{
		{Rule: "b", Missing: []rules.Missing{{Fact: "nics.modules", Words: "no module: (lsmod)"}}},
		{Rule: "a", Missing: []rules.Missing{{Fact: "pci.devices[].acs", Reason: "needs root (or CAP_SYS_ADMIN)", Words: "hidden: (x)"}}},
		{Rule: "c", Missing: []rules.Missing{{Fact: "env"}}},
		{Rule: "d", Missing: []rules.Missing{{Words: "the rule failed: x (y)"}}, Fault: true},
	}
	d := New(in)
	for i, want := range []Skipped{
		{Rule: "a", Missing: []string{"pci.devices[].acs: hidden: (x) (needs root (or CAP_SYS_ADMIN))"}, Lacks: in.Verdict.Skipped[1].Missing},
		{Rule: "b", Missing: []string{"nics.modules: no module: (lsmod)"}, Lacks: in.Verdict.Skipped[0].Missing},
		{Rule: "c", Missing: []string{"env is not known"}, Lacks: in.Verdict.Skipped[2].Missing},
		{Rule: "d", Missing: []string{"the rule failed: x (y)"}, Lacks: in.Verdict.Skipped[3].Missing, Fault: true},
	} {
		expect.NoDiff(t, want, d.Skipped[i], "skipped")
	}
	for verbose, want := range map[bool]string{false: "; d (the rule failed: x (y)) (--verbose).", true: "."} {
		got := newText(newView(d, false), Style{Verbose: verbose}).judged()
		expect.Equal(t, "Rules: 0 passed, 4 could not be judged, 0 do not apply"+want, got, "verbose %v", verbose)
	}
}

func TestPrintable(t *testing.T) {
	for _, tt := range []struct {
		in    string
		ascii bool
		want  string
	}{
		{"plain text", false, "plain text"},
		{"\x1b[31mred\x1b[0m", false, `\x1b[31mred\x1b[0m`},
		{"a\nb\tc", false, "a b c"},
		{"\u202eevil\u2066", false, `\u{202e}evil\u{2066}`},
		{"\x9b31m", false, `\x9b31m`},
		{"\u009b31m", false, `\u{9b}31m`},
		{"\x7f\x00", false, `\x7f\x00`},
		{"zero\u200bwidth\ufeff", false, `zero\u{200b}width\u{feff}`},
		{"Größe µs", false, "Größe µs"},
		{"Größe µs", true, `Gr\u{f6}\u{df}e \u{b5}s`},
		{"tag\U000e0041", false, `tag\u{e0041}`},
		{strings.Repeat("x", lines.MaxField+1), false, strings.Repeat("x", lines.MaxField) + "..."},
	} {
		expect.Equal(t, tt.want, lines.Printable(tt.in, tt.ascii), "lines.Printable(%q, %v)", tt.in, tt.ascii)
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[2J")
	f.Add("a\u202eb\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, ascii := range []bool{false, true} {
			got := lines.Printable(s, ascii)
			i := strings.IndexFunc(got, func(r rune) bool { return !strconv.IsPrint(r) || ascii && r > 0x7e })
			expect.That(t, i < 0 && utf8.ValidString(got), "lines.Printable(%q, %v) = %q", s, ascii, got)
		}
		for _, md := range []string{lines.Inline(s), lines.Cell(s)} {
			expect.That(t, !strings.ContainsAny(strings.ReplaceAll(md, "<!-- -->", ""), "\n"), "%q leaves its line: %q", s, md)
		}
		bare := strings.ReplaceAll(lines.Inline(s), "@<!-- -->", "")
		expect.That(t, !strings.Contains(strings.ReplaceAll(bare, ":<!-- -->", ""), "<"), "gfm.Inline(%q) = %q holds HTML", s, lines.Inline(s))
	})
}

func TestFormats(t *testing.T) {
	for file, want := range map[string]string{"a.txt": "text", "dir.d/b.json": "json", "c.MD": "markdown", "d.pdf": "", "e": "", "r.sarif": "sarif", "r.xml": "junit", "r.prom": "prometheus", "r.": ""} {
		f, ok := FormatOf(file)
		expect.That(t, f.Name == want && ok == (want != ""), "FormatOf(%q) = %q, %v, want %q", file, f.Name, ok, want)
	}
	for _, name := range FormatNames() {
		_, ok := FormatNamed(name)
		expect.That(t, ok, "FormatNamed(%q) finds nothing", name)
	}
}

// TestUnreadIsNeverHealth checks that a machine is not called healthy where a part of the texts was not read, for
// whatever reason, and that what holds no text is no such reason.
func TestUnreadIsNeverHealth(t *testing.T) {
	whole := facts.Text{Name: "job.log", Lines: 1, Bytes: 80, Kinds: []facts.TextKind{{Kind: "nccl-log", Line: 1, Lines: 1}}}
	for _, tt := range []struct {
		text  facts.Text
		state State
	}{
		{facts.Text{Name: "none", Kinds: []facts.TextKind{}}, Healthy},
		{facts.Text{Name: "x", Problem: "binary data", Kinds: []facts.TextKind{}}, Healthy},
		{facts.Text{Name: "x", Problem: "no answer", Unread: facts.UnreadError}, Inconclusive},
		{facts.Text{Name: "x", Problem: "encrypted", Unread: facts.UnreadForm}, Inconclusive},
		{facts.Text{Name: "x", Problem: "long", Unread: facts.UnreadLines, Lines: 1, Kinds: whole.Kinds}, Inconclusive},
		{facts.Text{Name: "x", Problem: "limit", Unread: facts.UnreadSize, Lines: 1}, Inconclusive},
		{facts.Text{Name: "x", Problem: "deadline", Unread: facts.UnreadTime}, Inconclusive},
		{facts.Text{Name: "and 3 more", Problem: "more than 4096 texts", Unread: facts.UnreadCount, More: 3}, Inconclusive},
	} {
		in := healthy(4)
		in.Facts.Texts = []facts.Text{whole, tt.text}
		d := New(in)
		expect.That(t, d.Verdict.State == tt.state, "%+v: the verdict is %s, want %s: %+v", tt.text, d.Verdict.State, tt.state, d.Verdict.Reasons)
		named := slices.ContainsFunc(d.Verdict.Reasons, func(r Reason) bool { return r.Code == ReasonCut && strings.Contains(r.Text, tt.text.Name) })
		expect.That(t, named == (tt.state != Healthy), "%+v: the reasons are %+v", tt.text, d.Verdict.Reasons)
	}
}

// TestFaultIsNeverHealth checks that a rule which is at fault leaves no verdict healthy, whatever its severity.
func TestFaultIsNeverHealth(t *testing.T) {
	for _, severity := range severities {
		for _, profile := range []rules.Profile{rules.Training, rules.Image} {
			in := healthy(4)
			in.Profile = profile
			in.Rules = append(slices.Clone(in.Rules), rules.Rule{ID: "faulty", Severity: severity})
			in.Verdict.Skipped = []rules.Skipped{{Rule: "faulty", Missing: []rules.Missing{{Words: "the rule failed"}}, Fault: true}}
			expect.Equal(t, Inconclusive, New(in).Verdict.State, "%s, %s", severity, profile)
		}
	}
}

// TestOrigins checks which line of a text evidence is put down to, and that none is better than a wrong one.
func TestOrigins(t *testing.T) {
	f := &facts.Facts{
		Texts: []facts.Text{{Name: "a.txt"}, {Name: "b.txt"}},
		Origins: []facts.Origin{
			{Fact: "gpus.devices[0000:01:00.0].name", Source: "a.txt", Line: 1, Value: "NVIDIA A100"},
			{Fact: "gpus.devices[0000:01:00.0].remapped_rows.pending", Source: "b.txt", Line: 9, Value: "true"},
			{Fact: "gpus.p2p[GPU0 -> GPU1].read", Source: "a.txt", Line: 4, Value: "ok"},
			{Fact: "gpus.p2p[GPU0 -> GPU1].write", Source: "a.txt", Line: 4, Value: "ok"},
			{Fact: "gpus.devices[0000:02:00.0].fabric.state", Source: "a.txt", Line: 5, Value: "completed"},
			{Fact: "gpus.devices[0000:02:00.0].fabric.status", Source: "a.txt", Line: 6, Value: "SUCCESS"},
			{Fact: "pci.devices[0000:01:00.0].link.width", Source: "a.txt", Line: 7, Value: "16"},
			{Fact: "gpus.amd.kernel_config[CONFIG_HSA_AMD_P2P]", Source: "a.txt", Line: 8, Value: "n"},
			{Fact: "host.command_line", Source: "a.txt", Line: 10, Value: "[quiet iommu=pt]"},
			{Fact: "host.kernel", Source: "a.txt", Line: 11}, // From a facts file: the value is not told.
		},
		Env: &facts.EnvFacts{Variables: []facts.Variable{
			{Name: "NCCL_DEBUG", Value: "WARN", Source: "a.txt", Line: 2, Effective: true},
			{Name: "NCCL_DEBUG", Value: "INFO", Source: "b.txt", Line: 3},
			{Name: "NCCL_ALGO", Value: "Ring", Source: "environment", Effective: true},
			{Name: "NCCL_PROTO", Value: "LL", Source: "b.txt", Effective: true}, // The line is not known.
		}},
		KernelLog: &facts.KernelLogFacts{Events: []facts.KernelEvent{{Message: "NVRM: Xid 79", Source: "b.txt", Line: 12}, {Message: "NVRM: Xid 79", Source: "b.txt", Line: 14}}},
		Launches: []facts.Launch{
			{Name: "a", Source: "a.txt", Line: 20, Lines: map[string]int{"shm_bytes": 24, "variables[NCCL_DEBUG]": 22}},
			{Name: "a", Source: "b.txt", Line: 20, Lines: map[string]int{"shm_bytes": 29}},
		},
		Benchmarks: []facts.Benchmark{{
			Tool: "nccl-tests", Source: "a.txt", Line: 30, Wrong: new(int64(3)), Lines: map[string]int{"wrong": 39},
			Points: []facts.BenchmarkPoint{{GBps: new(12.5), Line: 33}, {GBps: new(40.0), Line: 34}},
		}},
	}
	for _, c := range []struct {
		fact   string
		value  any
		source string
		want   string
	}{
		{"gpus.devices[0000:01:00.0].remapped_rows.pending", true, "NVML", "b.txt:9"},
		// Not that of what stands around it.
		{"gpus.devices[0000:01:00.0].remapped_rows.uncorrected", 4, "NVML", "NVML"},
		{"gpus.devices[0000:01:00.0].mig", true, "nvidia-smi", "nvidia-smi"},
		{"gpus.p2p[GPU0 -> GPU1]", "ok", "cudaDeviceCanAccessPeer", "a.txt:4"},
		// Several lines of one text tell it together.
		{"gpus.devices[0000:02:00.0].fabric", map[string]any{"state": "completed"}, "NVML", "a.txt"},
		// The texts say 16; the rule has 8 from elsewhere.
		{"pci.devices[0000:01:00.0].link.width", 8, "NVML", "NVML"},
		{"pci.devices[0000:01:00.0].link.width", 16.0, "lspci", "a.txt:7"},
		{"gpus.amd.kernel_config.CONFIG_HSA_AMD_P2P", "n", "the kernel", "a.txt:8"},
		{"host.command_line", "quiet iommu=pt", "/proc/cmdline", "a.txt:10"},
		{"host.kernel", "6.8.0", "/proc", "a.txt:11"},
		{"env.variables[NCCL_DEBUG]", "WARN", "environment", "a.txt:2"},
		{"env.variables[NCCL_DEBUG]", "INFO", "environment", "b.txt:3"},
		{"env.variables[NCCL_ALGO]", "Ring", "environment", "environment"},
		{"env.variables[NCCL_PROTO]", "LL", "the texts", "b.txt"},
		{"kernel_log.events[xid]", "NVRM: Xid 79", "the kernel log", "b.txt:12"},
		{"kernel_log.events[xid]", "NVRM: Xid 48", "the kernel log", "the kernel log"},
		{"launches[a].shm_bytes", 64, "a.txt:20", "a.txt:24"},
		{"launches[a].shm_bytes", 64, "b.txt:20", "b.txt:29"},
		{"launches[a].ipc", "private", "b.txt:20", "b.txt:20"},
		{"launches[].variables.NCCL_DEBUG", "WARN", "a.txt:20", "a.txt:22"},
		{"benchmarks[nccl-tests].wrong", 3, "a.txt:30", "a.txt:39"},
		{"benchmarks", 3, "a.txt:30", "a.txt:39"},
		{"benchmarks[nccl-tests].points", 40.0, "a.txt:30", "a.txt:34"},
		{"benchmarks", "all_reduce", "a.txt:30", "a.txt:30"},
	} {
		list := []rules.Finding{{Explains: []rules.Finding{{Evidence: []rules.Evidence{{Fact: c.fact, Value: c.value, Source: c.source}}}}}}
		expect.Equal(t, c.want, fillOrigins(list, f)[0].Explains[0].Evidence[0].Source, "%s = %v of %s is put down to", c.fact, c.value, c.source)
	}
}

// plant sets every string that a value can hold, fields without a name in JSON included, to what next returns, and
// returns where they are. Types that lead to themselves are entered twice.
func plant(v reflect.Value, at string, depth int, next func() string) []string {
	if depth == 0 {
		return nil
	}
	if !v.CanSet() && v.CanAddr() { // An unexported field.
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	switch v.Kind() { //nolint:exhaustive // The others hold no strings.
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(next())
			return []string{at}
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*facts.Facts]() {
			return nil // What the report is made of is no part of it.
		}
		v.Set(reflect.New(v.Type().Elem()))
		return plant(v.Elem(), at, depth-1, next)
	case reflect.Struct:
		var all []string
		for i := range v.NumField() {
			all = append(all, plant(v.Field(i), at+"."+v.Type().Field(i).Name, depth-1, next)...)
		}
		return all
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return plant(v.Index(0), at+"[]", depth-1, next)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		all := plant(value, at+"{}", depth-1, next)
		v.SetMapIndex(reflect.ValueOf("a").Convert(v.Type().Key()), value)
		return all
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(map[string]any{"list": []any{next()}}))
			return []string{at}
		}
	}
	return nil
}

// TestRedactReachesEverything checks that every string of a report is redacted, but
// those that are words of ours: rules, remedies and links.
func TestRedactReachesEverything(t *testing.T) {
	const depth = 12
	for _, tt := range []struct {
		what    string
		planted string
		redact  func(*Document) *Document
	}{
		{"a name", "atlas%d.hpc.acme.example:4021:4077 [0] NCCL INFO /home/alice/x", (*Document).Redact},
		{"a secret", "hf_%dAbCdEfGhIjKlMnOpQrStUvWx", (*Document).WithoutSecrets},
		{"a secret", "hf_%dAbCdEfGhIjKlMnOpQrStUvWx", (*Document).Redact},
	} {
		d := &Document{}
		n := 0
		places := plant(reflect.ValueOf(d).Elem(), "", depth, func() string { n++; return fmt.Sprintf(tt.planted, n) })
		d.shown = func() *facts.Facts { return &facts.Facts{} }
		before := dump(reflect.ValueOf(d).Elem(), "", depth)
		after := dump(reflect.ValueOf(tt.redact(d)).Elem(), "", depth)
		expect.Must(t, len(places) >= 150, "only %d strings were planted", len(places))
		expect.That(t, reflect.DeepEqual(before, dump(reflect.ValueOf(d).Elem(), "", depth)), "the report itself was changed")
		kept := 0
		for at, text := range after {
			if strings.Contains(text, "alice") || strings.Contains(text, "atlas") || strings.Contains(text, "hf_") {
				kept++
				expect.That(t, ours(at), "%s is seen in %s: %q", tt.what, at, text)
			}
		}
		t.Logf("%d strings, %d of them words of ours", len(places), kept)
	}
}

// TestViewIsPrintable checks that every string of a view that a format can reach is safe to print, those of the report in it
// included, and that the report itself is not changed.
func TestViewIsPrintable(t *testing.T) {
	const depth = 12
	v := view{Document: &Document{}}
	n := 0
	places := plant(reflect.ValueOf(&v).Elem(), "", depth, func() string { n++; return fmt.Sprintf("a\x1b[%dm\u202e\n", n) })
	expect.Must(t, len(places) >= 250, "only %d strings were planted", len(places))
	before := dump(reflect.ValueOf(v), "", depth)
	for at, said := range dump(reflect.ValueOf(lines.Clean(v, true)), "", depth) {
		hidden := regexp.MustCompile(`\.[a-z]`).MatchString(at)
		expect.That(t, hidden || strings.IndexFunc(said, func(r rune) bool { return r < ' ' || r > '~' }) < 0, "%s is %q", at, said)
	}
	expect.NoDiff(t, before, dump(reflect.ValueOf(v), "", depth), "the report")
}

// ours reports whether a place holds what no input reaches.
func ours(at string) bool {
	return strings.HasPrefix(at, ".in.Rules[]") || slices.ContainsFunc([]string{
		".Schema", ".ID", ".Rule", ".Remedy", ".Kind", ".Test", ".Program", ".Role", ".Section", ".Outcome", ".Mode", ".Code", ".FoundBy", ".Links[]", ".Remedies[]", ".Passed[]", ".Cause",
	}, func(end string) bool { return strings.HasSuffix(at, end) })
}

// dump lists all strings of a value by their places.
func dump(v reflect.Value, at string, depth int) map[string]string {
	all := map[string]string{}
	if depth == 0 {
		return all
	}
	add := func(v reflect.Value, at string) {
		maps.Copy(all, dump(v, at, depth-1))
	}
	switch v.Kind() { //nolint:exhaustive // The others hold no strings.
	case reflect.String:
		all[at] = v.String()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*facts.Facts]() {
			add(v.Elem(), at)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			add(v.Field(i), at+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		for i := range v.Len() {
			add(v.Index(i), at+"[]")
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			add(v.MapIndex(k), at+"{}")
		}
	}
	return all
}

func TestQuietSaysNothingOfAHealthyMachine(t *testing.T) {
	expect.Equal(t, "", textOf(samples()["low"], Style{Quiet: true}), "it")
}
