package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// hop is a function of docs/walk.md.
type hop struct{ file, name string }

// maxHops bounds the functions that hand a line on, maxWalk the lines of the page.
const (
	maxHops = 20
	maxWalk = 40
)

// walkHops reads docs/walk.md.
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
