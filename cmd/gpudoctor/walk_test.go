package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// hop is a function of docs/walk.md: its file, its name, and the names that are called in it.
type hop struct {
	file, name string
	calls      map[string]bool
}

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
	all := regexp.MustCompile("(?m)^\\d+\\. `(\\S+\\.go): (\\w+)` (.*)").FindAllStringSubmatch(page, -1)
	expect.That(t, len(all) > 0 && len(all) <= maxHops, "the page has %d hops, at most %d are wanted", len(all), maxHops)
	var hops []hop
	for _, m := range all {
		h := hop{m[1], m[2], callsOf(t, m[1], m[2])}
		for _, asked := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[3][strings.LastIndexByte(m[3], '(')+1:], -1) {
			expect.That(t, h.calls[asked[1]], "%s: %s does not call %s", h.file, h.name, asked[1])
		}
		hops = append(hops, h)
	}
	return hops
}

// callsOf are the names of what a function calls, or hands to be called.
func callsOf(t *testing.T, file, name string) map[string]bool {
	t.Helper()
	parsed := expect.Value(parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, 0))(t)
	calls, found := map[string]bool{}, false
	for _, d := range parsed.Decls {
		f, isFunc := d.(*ast.FuncDecl)
		if !isFunc || f.Name.Name != name {
			continue
		}
		found = true
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				switch called := c.Fun.(type) {
				case *ast.Ident:
					calls[called.Name] = true
				case *ast.SelectorExpr:
					calls[called.Sel.Name] = true
				}
			}
			return true
		})
	}
	expect.That(t, found, "%s has no function %s", file, name)
	return calls
}

// TestWalk checks of the functions that docs/walk.md names that they exist, and that each gives the line to the next: it calls it,
// is called by it, or both are called by a function that was passed before. So none that only passes it on is left out.
func TestWalk(t *testing.T) {
	t.Parallel()
	hops := walkHops(t)
	for _, name := range []string{"argument", "path", "file"} { // They open the file, and then call the first.
		hops = append(hops, hop{"checks/text/intake.go", name, callsOf(t, "checks/text/intake.go", name)})
	}
	calls := func(from, to hop) bool {
		return from.calls[to.name] || to.name == "writeText" && from.calls["write"] // Format.write.
	}
	// above are a function and those through which what it returns comes.
	var above func(h hop, depth int) []hop
	above = func(h hop, depth int) []hop {
		all := []hop{h}
		for _, caller := range hops {
			if depth > 0 && caller.file+caller.name != h.file+h.name && calls(caller, h) {
				all = append(all, above(caller, depth-1)...)
			}
		}
		return all
	}
	for i, next := range hops[1 : len(hops)-3] {
		given := false
		for _, h := range above(hops[i], 5) {
			given = given || h.file+h.name == next.file+next.name || calls(h, next)
		}
		expect.That(t, given, "%s: %s does not come after %s: %s", next.file, next.name, hops[i].file, hops[i].name)
	}
}

// TestWalkIsTaken checks that a line passes each function of docs/walk.md, by what is executed for it.
func TestWalkIsTaken(t *testing.T) {
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
