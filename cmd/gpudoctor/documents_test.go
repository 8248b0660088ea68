package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/image/imagetest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// documents are the pages that tell users of commands. CONTRIBUTING.md has a test of its own.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	expect.Must(t, err == nil && len(pages) > 0, "no documents: %v", err)
	return append(pages, "../../README.md")
}

// desk makes a folder with the files that the documents name.
func desk(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, from := range map[string]string{
		"job.log":                           "fixtures/faults/logs/shm-small/warn.log",
		"nccl.log":                          "fixtures/faults/logs/shm-small/info.log",
		"slurm-4711.out":                    "fixtures/faults/logs/shm-small/info.log",
		"bug-report.log.gz":                 "fixtures/faults/logs/shm-small/info.log",
		"lspci.txt":                         "fixtures/texts/p2p-off-in-pod.txtar",
		"ticket-4711/job.log":               "fixtures/faults/logs/shm-small/info.log",
		"ticket-4711/host.txt":              "fixtures/hosts/h200x2.txtar",
		"tickets/n1/job.log":                "fixtures/faults/logs/shm-small/info.log",
		"tickets/n2/host.txtar":             "fixtures/hosts/h200x2.txtar",
		"host.txtar":                        "fixtures/hosts/h200x2.txtar",
		"deploy/pod.txtar":                  "fixtures/launches/pod-rdma-healthy.txtar",
		"train.sbatch":                      "fixtures/launches/sbatch-healthy.txtar",
		"fixtures/texts/support-case.txtar": "fixtures/texts/support-case.txtar",
		"fixtures/texts/r9700x4-hip-copies-rccl-not.txtar": "fixtures/texts/r9700x4-hip-copies-rccl-not.txtar",
	} {
		raw := expect.Value(os.ReadFile(filepath.Join("..", "..", from)))(t)
		to := filepath.Join(folder, name)
		writeTestFile(t, to, raw)
	}
	waivers := "waivers:\n  - {rule: iommu-translation, reason: a test, expires: 2099-05-31}\n"
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "waivers.yaml"), []byte(waivers), 0o600))
	writeReports(t, filepath.Join(folder, "reports"))
	files, _ := checktest.SplitRecording(t, "h200x2")
	expect.NoError(t, os.CopyFS(filepath.Join(folder, "node7"), files))
	for _, name := range []string{"sosreport.tar.xz", "sosreport-node7.tar.xz", "node8.tar.gz"} { // What it is packed in is found by its content.
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), checktest.Gzip(checktest.Tar(t, "sosreport-node7", files)), 0o600))
	}
	expect.NoError(t, os.Rename(imagetest.Write(t, goodImages[0].img, imagetest.Docker), filepath.Join(folder, "image.tar")))
	for name, example := range map[string]string{"before.json": "example:h200x2", "after.json": "example:model-2x-zeros"} {
		line := "gpudoctor check -o " + name + " --from " + example
		out, code := runIn(t, folder, line)
		expect.Must(t, code != 2, "%s: %s", line, out)
	}
	return folder
}

func runIn(t *testing.T, folder, line string) (string, int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-c", line)
	c.Dir = folder
	c.Stdin = strings.NewReader("Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   61M  3.1M  96% /dev/shm\n")
	c.Env = append(os.Environ(), "LANG=C.UTF-8", "COLUMNS=100")
	return together(t, c)
}

var (
	// ownCommand is a line of code that runs gpudoctor itself, perhaps behind a pipe.
	ownCommand = regexp.MustCompile(`^(?:    |\$ |)(?:.* \| )?(gpudoctor(?: [^#]*)?)`)
	// manifests are the pipes of programs that are not at hand; launch.txtar tries what they write.
	manifests = regexp.MustCompile(`^    (?:helm|kustomize) `)
	// inlineCommand is one within a sentence.
	inlineCommand = regexp.MustCompile("`(gpudoctor(?: [^`]*)?)`")
	// placeholder is what a reader is to put something in place of.
	placeholder = regexp.MustCompile(`\.\.\.|…|\b[A-Z]{2,}\b| [A-Z]\b|<[a-z]`)
)

// commandsOf are the commands of a page that can be run as they stand.
func commandsOf(page string) []string {
	var found []string
	code := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if strings.HasPrefix(line, "    gpudoctor") || strings.HasPrefix(line, "    ") && strings.Contains(line, "| gpudoctor") && !manifests.MatchString(line) || code && strings.HasPrefix(line, "$ ") {
			if m := ownCommand.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				found = append(found, strings.TrimSpace(m[1]))
			}
			continue
		}
		for _, m := range inlineCommand.FindAllStringSubmatch(line, -1) {
			if len(strings.Fields(m[1])) == 2 { // It names a command rather than tells to run it.
				m[1] += " --help"
			}
			found = append(found, m[1])
		}
	}
	return slices.DeleteFunc(found, func(s string) bool { return placeholder.MatchString(s) || strings.Contains(s, "<(") })
}

// TestDocumentedCommands checks that each command of README.md and docs works as it stands:
// it is neither wrong usage nor an error. By day that is every tenth.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	expect.NotShort(t, "TestScripts runs the same commands")
	var lines []string
	for _, name := range documents(t) {
		raw := expect.Value(os.ReadFile(name))(t)
		for _, line := range commandsOf(string(raw)) {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	expect.AtLeast(t, 60, len(lines), "commands")
	folder := desk(t)
	for _, line := range expect.SomeRows(10, lines) {
		out, code := runIn(t, folder, line)
		expect.That(t, code == 0 || code == 1 || code == 3, "%s: exit %d: %s", line, code, out)
	}
}

// session is a block of a page that shows a command and what it prints.
var session = regexp.MustCompile("(?ms)^```console\n\\$ ([^\n]*)\n(.*?)^```$")

// took is how long something took, which differs from run to run.
var took = regexp.MustCompile(` +\(?\d+(?:\.\d+)? m?s\)?$`)

// TestGoldenDocuments checks that commands print what README.md and docs show.
func TestGoldenDocuments(t *testing.T) {
	folder := desk(t)
	shown := 0
	for _, name := range documents(t) {
		raw := expect.Value(os.ReadFile(name))(t)
		page := session.ReplaceAllStringFunc(string(raw), func(block string) string {
			m := session.FindStringSubmatch(block)
			if strings.HasPrefix(m[2], "$ ") {
				return block // Several commands, without what they print.
			}
			out, _ := runIn(t, folder, m[1])
			shown++
			var b strings.Builder
			for line := range strings.Lines(out) {
				b.WriteString(strings.TrimRight(took.ReplaceAllString(strings.TrimRight(line, "\n"), ""), " ") + "\n")
			}
			return "```console\n$ " + m[1] + "\n" + b.String() + "```"
		})
		expect.Golden(t, name, []byte(page))
	}
	expect.That(t, shown != 0, "no page shows what a command prints")
}

// fence is a block of code in a document: what stands behind ```, and the lines.
var fence = regexp.MustCompile("(?ms)^```(\\S+)(?: (create|append) (\\S+))?\n(.*?)^```$")

// TestContributing follows the recipes of CONTRIBUTING.md, in order, in a copy of the
// repository: files are created or appended to as the blocks say, each command must
// succeed, and print what stands below it.
func TestContributing(t *testing.T) {
	expect.NotShort(t, "it compiles the program again, several times")
	expect.NotByDay(t, "it compiles the program again, several times")
	t.Parallel()
	root := filepath.Join("..", "..")
	text := expect.Value(os.ReadFile(filepath.Join(root, "CONTRIBUTING.md")))(t)
	clone := t.TempDir()
	packed := exec.Command("sh", "-c", `tar --create --exclude=./.git --exclude=./.carry --exclude=./.out --directory="$0" . | tar --extract --directory="$1" && chmod -R u+w "$1"`, root, clone)
	out, err := packed.CombinedOutput()
	expect.Must(t, err == nil, "%v: %s", err, out)
	edits, commands := 0, 0
	for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
		language, action, name, body := block[1], block[2], block[3], block[4]
		switch {
		case action != "":
			edits++
			edit(t, filepath.Join(clone, name), action, body)
		case language == "console":
			for _, step := range strings.Split("\n"+body, "\n$ ")[1:] {
				commands++
				line, want, _ := strings.Cut(step, "\n")
				follow(t, clone, line, strings.TrimSpace(want))
			}
		default:
			t.Errorf("a block of %s is neither a file nor commands:\n%s", language, body)
		}
	}
	expect.That(t, edits >= 9 && commands >= 10, "%d files and %d commands were found", edits, commands)
}

func edit(t *testing.T, file, action, body string) {
	t.Helper()
	old, err := os.ReadFile(file)
	expect.Must(t, (err == nil) == (action == "append"), "%s %s: %v", action, file, err)
	writeTestFile(t, file, append(old, body...))
}

// follow runs a command line. gpudoctor check may end with 1, which means findings.
func follow(t *testing.T, dir, line, want string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Dir = dir
	// What is compiled once is found again in the next copy, whatever its folder.
	// Its tests run as a developer runs them, by day.
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -vet=off", "GPUDOCTOR_TESTS=")
	out, err := cmd.CombinedOutput()
	found := strings.Contains(line, "gpudoctor check") && cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 1
	expect.Must(t, err == nil || found, "%s: %v\n%s", line, err, out)
	expect.That(t, !strings.Contains(string(out), "no tests to run"), "%s runs no test:\n%s", line, out)
	flat := strings.Join(strings.Fields(string(out)), " ")
	expect.That(t, strings.Contains(flat, strings.Join(strings.Fields(want), " ")), "%s does not print %q:\n%s", line, want, out)
}

// TestExplain checks that every id and every word is explained, and in ASCII where that is asked for.
func TestExplain(t *testing.T) {
	known := expect.Value(learn(""))(t)
	names := known.names()
	expect.Must(t, len(names) >= 100, "only %d names", len(names))
	for _, name := range expect.SomeRows(10, names) {
		code, stdout, stderr := inProcess("explain", name, "--ascii")
		expect.That(t, code == exitOK && len(stdout) >= 30 && stderr == "", "explain %s ends with %d and writes %q and %q", name, code, stdout, stderr)
		for _, c := range stdout {
			if c != '\n' && (c < ' ' || c > '~') {
				t.Errorf("explain %s --ascii writes %q", name, c)
				break
			}
		}
	}
}

type hop struct{ file, name string }

// maxHops bounds the functions that hand a line on, maxWalk the lines of the page.
const (
	maxHops = 20
	maxWalk = 40
)

func walkHops(t *testing.T) []hop {
	t.Helper()
	page := string(expect.Value(os.ReadFile("../../docs/walk.md"))(t))
	expect.That(t, strings.Count(page, "\n") <= maxWalk, "the page has more than %d lines", maxWalk)
	all := regexp.MustCompile("(?m)^\\d+\\. `(\\S+\\.go): (\\w+)` ").FindAllStringSubmatch(page, -1)
	expect.That(t, len(all) > 0 && len(all) <= maxHops, "the page has %d hops, at most %d are wanted", len(all), maxHops)
	return expect.Map(all, func(m []string) hop { return hop{m[1], m[2]} })
}

// TestWalk checks that a line passes each function of docs/walk.md, by what is executed for it.
func TestWalk(t *testing.T) {
	t.Parallel()
	expect.NotByDay(t, "it compiles the program for coverage")
	folder := t.TempDir()
	program, log := filepath.Join(folder, "gpudoctor"), filepath.Join(folder, "job.log")
	build := exec.Command("go", "build", "-cover", "-coverpkg=./checks/text/...,./rules,./cmd/internal/report,./cmd/gpudoctor", "-o", program, "./cmd/gpudoctor")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	expect.Must(t, err == nil, "%v: %s", err, out)
	line := regexp.MustCompile("`(\\S+ \\[0\\] .*)`").FindStringSubmatch(string(expect.Value(os.ReadFile("../../docs/walk.md"))(t)))[1]
	expect.NoError(t, os.WriteFile(log, []byte(line+"\n"), 0o600))
	run := exec.Command(program, "check", "--from", log, "--no-redact")
	run.Env = append(os.Environ(), "GOCOVERDIR="+folder)
	out, _ = run.CombinedOutput() // Its exit code is 1.
	words := strings.Join(strings.Fields(string(out)), " ")
	expect.That(t, strings.Contains(words, "seen "+log+":1 "+line) && strings.Contains(words, "Connections between hosts are blocked"), "the report is %s", out)
	executed := string(expect.Value(exec.Command("go", "tool", "covdata", "func", "-i="+folder).Output())(t))
	for _, h := range walkHops(t) {
		took := regexp.MustCompile(regexp.QuoteMeta(h.file) + `:\d+:\s+(?:\S+\.)?` + h.name + `\s+(\d+\.\d+)%`).FindStringSubmatch(executed)
		expect.That(t, took != nil && took[1] != "0.0", "the line does not pass %s: %s (%v)", h.file, h.name, took)
	}
}
