//go:build ci

package report_test

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"golang.org/x/tools/txtar"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The tests here look at pages in a real browser, as people do. They need Chromium, and axe-core
// (github.com/dequelabs/axe-core), which judges accessibility: the variable GPUDOCTOR_AXE names its file axe.min.js.
// Where they are not there the tests are skipped.

//go:embed testdata/look.js
var lookScript string

// view is how a page is looked at.
type view struct {
	name  string
	width int64
	// height is what a person sees at once.
	height        int64
	scheme, media string
}

var views = []view{
	{"phone-light", 390, 844, "light", "screen"},
	{"phone-dark", 390, 844, "dark", "screen"},
	{"laptop-light", 1280, 800, "light", "screen"},
	{"laptop-dark", 1280, 800, "dark", "screen"},
	// A4 without margins of 14 mm: 182 mm at 96 pixels an inch (CSS Values 4, 6.2).
	{"print", 688, 1017, "light", "print"},
}

// hosts are the machines that are looked at: 2, 4 and 8 GPUs, healthy and not, recorded and built.
var hosts = []struct{ name, from string }{
	{"h200x2", "example:h200x2"},
	{"wrong-data", "example:model-2x-zeros"},
	{"mi250x4", "example:model-mi250x4"},
	{"r9700x4", "example:model-r9700x4"},
	{"slow", "example:model-8x-pcie-acs"},
	{"mi300x8", "example:model-mi300x8"},
	{"hostile", "hostile.json"},
	{"text", "support-case.txtar"},
}

// seen is what look.js tells of a page.
type seen struct {
	// Wide is by how many pixels the page is wider than the window.
	Wide int
	// Overlaps are pairs of labels of the picture that cover each other, Outside those that leave their box.
	Overlaps, Outside []string
	// Labels is how many labels were compared.
	Labels int
	// Hacked is true where a script of the facts ran.
	Hacked bool
	// Violations are those of axe-core, Passes how many of its rules found none.
	Violations []string
	Passes     int
}

// leastPasses is how many rules of axe-core have something to judge in any page: those
// of a document, its language, title, headings, landmarks, lists, names and contrast.
const leastPasses = 15

func TestInBrowser(t *testing.T) {
	axe := axeSource(t)
	program := build(t)
	folder := t.TempDir()
	writeHosts(t, program, folder)
	b := newBrowser(t)
	look := func(name, file string, pictured bool) {
		for _, v := range views {
			t.Run(name+"/"+v.name, func(t *testing.T) {
				b.open(t, file, v)
				b.do(t, chromedp.Evaluate[chromedp.Void](axe))
				s := value[seen](t, b, lookScript)
				expect.That(t, s.Wide <= 0, "the page is %d pixels wider than the window", s.Wide)
				expect.That(t, len(s.Overlaps)+len(s.Outside) == 0, "labels cover each other: %q, or leave the picture: %q", s.Overlaps, s.Outside)
				expect.That(t, (s.Labels > 0) == pictured, "the picture has %d labels", s.Labels)
				expect.That(t, !s.Hacked, "a script of the facts ran")
				expect.AtLeast(t, leastPasses, s.Passes, "rules of axe-core found something to judge")
				expect.Len(t, 0, s.Violations, "violations by axe-core")
				b.shoot(t, name+"-"+v.name)
				b.quiet(t)
			})
		}
	}
	for _, h := range hosts {
		from := h.from
		if !strings.HasPrefix(from, "example:") {
			from = filepath.Join(folder, from)
		}
		file := filepath.Join(folder, h.name+".html")
		report(t, program, from, file)
		look(h.name, file, h.name != "text")
	}
	for _, size := range []int{2, 64, 1000} {
		look(fmt.Sprint("fleet-", size), fleetPage(t, program, folder, size), false)
	}
	t.Run("copy", func(t *testing.T) { b.copies(t, filepath.Join(folder, "wrong-data.html")) })
	t.Run("badge", func(t *testing.T) { b.followsBadge(t, filepath.Join(folder, "slow.html")) })
	t.Run("script stays text", func(t *testing.T) { b.showsScript(t, filepath.Join(folder, "hostile.html")) })
}

// copies checks that each button copies what stands beside it, and says so.
func (b *tab) copies(t *testing.T, file string) {
	t.Helper()
	b.open(t, file, views[2])
	buttons := value[int](t, b, `document.querySelectorAll("button.copy").length`)
	expect.Must(t, buttons >= 3, "the page has %d copy buttons", buttons)
	for i := range buttons {
		button := fmt.Sprintf(`document.querySelectorAll("button.copy")[%d]`, i)
		if !value[bool](t, b, button+`.checkVisibility()`) {
			continue // It stands in what is folded.
		}
		want := value[string](t, b, button+`.parentElement.querySelector("code").textContent`)
		b.do(t, chromedp.Click(chromedp.JSPath(button)))
		said := value[string](t, b, `new Promise(done => setTimeout(() => done(`+button+`.textContent), 50))`)
		have := value[string](t, b, `navigator.clipboard.readText()`)
		expect.That(t, strings.HasPrefix(said, "Copied"), "button %d says %q", i, said)
		expect.That(t, have == want && want != "", "button %d copies %q, want %q", i, have, want)
	}
	b.quiet(t)
}

// followsBadge checks that a mark in the picture leads to its finding.
func (b *tab) followsBadge(t *testing.T, file string) {
	t.Helper()
	b.open(t, file, views[2])
	b.do(t, chromedp.Focus(chromedp.CSS(".picture a.badge")), chromedp.KeyEvent("\r"))
	expect.Equal(t, "finding-1", value[string](t, b, `document.querySelector(":target")?.id ?? ""`), "the mark leads to")
}

// showsScript checks that markup in the facts is shown as it is.
func (b *tab) showsScript(t *testing.T, file string) {
	t.Helper()
	b.open(t, file, views[2])
	expect.That(t, strings.Contains(value[string](t, b, `document.body.textContent`), injected), "the page does not show %q", injected)
}

// injected would run if it were taken for markup.
const injected = `<script>window.hacked = true</script><img src=x onerror="window.hacked = true">`

// writeHosts writes the machines that are built here.
func writeHosts(t *testing.T, program, folder string) {
	t.Helper()
	out := expect.Value(exec.Command(program, "facts", "--from", "example:model-8x-pcie-acs").Output())(t)
	write := func(name string, change func(f *facts.Facts)) {
		_, f, err := host.OpenRecording(name, bytes.NewReader(out))
		expect.NoError(t, err)
		change(f)
		var b bytes.Buffer
		expect.NoError(t, host.WriteFacts(&b, f))
		save(t, filepath.Join(folder, name), b.Bytes())
	}
	write("hostile.json", func(f *facts.Facts) {
		f.Host.CPU.Model = injected
		f.Env.Variables = []facts.Variable{{Name: "NCCL_P2P_LEVEL", Value: injected, Source: "/etc/nccl.conf" + injected, Effective: true}}
		for i := range f.GPUs.Devices {
			f.GPUs.Devices[i].Name = fmt.Sprint(strings.Repeat("Wide \u202e", i+1), injected)
		}
	})
	raw := expect.Value(os.ReadFile("../../../fixtures/texts/support-case.txtar"))(t)
	save(t, filepath.Join(folder, "support-case.txtar"), txtar.Format(txtar.Parse(raw)))
}

// fleetPage is a page about nodes in racks of sixteen: most are well, each ninth has a fault that was recorded, the
// measurements differ, those of node 5 and each 99th behind it most, one report is hostile, and the last node has none.
func fleetPage(t *testing.T, program, folder string, size int) string {
	t.Helper()
	reports := filepath.Join(folder, fmt.Sprint("fleet-", size))
	expect.NoError(t, os.Mkdir(reports, 0o700))
	good, bad := filepath.Join(folder, "good.json"), filepath.Join(folder, "bad.json")
	report(t, program, "example:model-8x-pcie", good)
	report(t, program, "example:model-8x-pcie-acs", bad)
	well, faulty := expect.Value(os.ReadFile(good))(t), expect.Value(os.ReadFile(bad))(t)
	var names []string
	for i := range size {
		raw, name := well, fmt.Sprintf("r%02d-n%02d", i/16, i%16)
		names = append(names, name)
		gbps := 39.4 + 0.1*float64(i%7)
		switch {
		case i == size-1 && size > 2:
			continue
		case i%9 == 1:
			raw = faulty
		case i%99 == 5:
			gbps = 12
		case i == 7:
			raw = bytes.ReplaceAll(raw, []byte("NVIDIA RTX"), []byte(strings.ReplaceAll(injected, `"`, `\"`)))
		}
		raw = bytes.ReplaceAll(raw, []byte(`"gbps": 39.4`), fmt.Appendf(nil, `"gbps": %.1f`, gbps))
		save(t, filepath.Join(reports, name+".json"), raw)
	}
	file := reports + ".html"
	out, err := exec.Command(program, "fleet", reports, "--expect", strings.Join(names, ","), "-o", file).CombinedOutput()
	_, statErr := os.Stat(file)
	expect.Must(t, statErr == nil, "%v\n%s", err, out)
	return file
}

func save(t *testing.T, file string, data []byte) {
	t.Helper()
	expect.NoError(t, os.WriteFile(file, data, 0o600))
}

func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gpudoctor")
	out, err := exec.Command("go", "build", "-o", program, "github.com/gpudoctor/gpudoctor/cmd/gpudoctor").CombinedOutput()
	expect.Must(t, err == nil, "%v\n%s", err, out)
	return program
}

func report(t *testing.T, program, from, file string) {
	t.Helper()
	out, err := exec.Command(program, "check", "--from", from, "-o", file).CombinedOutput()
	_, statErr := os.Stat(file)
	expect.Must(t, statErr == nil, "%v\n%s", err, out)
}

func axeSource(t *testing.T) string {
	t.Helper()
	file := os.Getenv("GPUDOCTOR_AXE")
	if file == "" {
		expect.LacksTool(t, "GPUDOCTOR_AXE does not name axe-core's axe.min.js")
	}
	return string(expect.Value(os.ReadFile(file))(t))
}

// tab is a page in a browser, with what the browser says of it.
type tab struct {
	ctx     context.Context
	console chan string
}

func newBrowser(t *testing.T) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-headless-shell", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		expect.LacksTool(t, "no Chromium is installed")
	}
	// Without the background networking Chromium asks for nothing that is not local.
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(t.TempDir()), chromedp.CombinedOutput(io.Discard))
	allocator, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	b := &tab{ctx: ctx}
	// The first action starts the browser, which ends with its context.
	expect.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	expect.Value(chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-read"}, Setting: browser.PermissionSettingGranted,
	}))(t)
	b.console = make(chan string, 1000)
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return // The browser was closed.
			}
			b.console <- m.Text
		}
	}()
	return b
}

// quiet fails the test if the browser complained since the last call: of exceptions,
// on the console, or of what the content security policy refuses.
func (b *tab) quiet(t *testing.T) {
	t.Helper()
	const end = "end of what the browser says"
	b.do(t, chromedp.Evaluate[chromedp.Void](`console.log("`+end+`")`))
	for {
		select {
		case said := <-b.console:
			if said == end {
				return
			}
			t.Error("the browser says: " + said)
		case <-time.After(patience):
			t.Fatal("the console is closed")
		}
	}
}

// do makes a person's moves.
func (b *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	expect.NoError(t, chromedp.Do(ctx, steps...))
}

// patience is how long one look may take.
const patience = 20 * time.Second

// value is what an expression has for a value in the page.
func value[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	return got(t, b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// got is what an action gives.
func got[T any](t *testing.T, b *tab, action chromedp.Action[T]) T {
	t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	return expect.Value(chromedp.Run(ctx, action))(t)
}

// open opens a page as it is looked at.
func (b *tab) open(t *testing.T, file string, v view) {
	t.Helper()
	page := url.URL{Scheme: "file", Path: file}
	media := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: v.media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme}},
		})
		return err
	})
	b.do(t, chromedp.EmulateViewport(v.width, v.height), media, chromedp.Navigate("about:blank"), chromedp.Navigate(page.String()))
}

// shoot keeps a picture of the page in the folder that GPUDOCTOR_SCREENSHOTS names, for a person.
func (b *tab) shoot(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("GPUDOCTOR_SCREENSHOTS")
	if folder == "" {
		return
	}
	save(t, filepath.Join(folder, name+".png"), got(t, b, chromedp.FullScreenshot(100)))
}
