//go:build linux

package child

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestSignals checks that no number reaches kill(2) that means more than one process or group
// there, or process 1, whichever way it comes.
func TestSignals(t *testing.T) {
	var sent []int
	before, children := sendKill, family.pids
	defer func() { sendKill, family.pids = before, children }()
	sendKill = func(pid int) error {
		sent = append(sent, pid)
		return nil
	}
	numbers := map[int]bool{}
	for _, middle := range []int{0, math.MinInt32, math.MaxInt32, 1 << 32, -1 << 32, math.MinInt, math.MaxInt} {
		for n := middle - 3; n != middle+4; n++ { // It wraps around.
			numbers[n] = true
		}
	}
	for n := range numbers {
		sent = nil
		err := sigkill(n)
		means := int(int32(n)) // To the kernel.
		allowed := means == n && n != math.MinInt32 && (n > 1 || n < -1)
		expect.That(t, allowed == (err == nil) && allowed == (len(sent) == 1), "%d: %v, sent %v, want it sent: %t", n, err, sent, allowed)
		sent = nil
		family.pids = map[int]bool{n: true} // No other test runs now.
		kill(&os.Process{Pid: n})
		for _, pid := range sent {
			expect.That(t, pid == int(int32(pid)) && (-2 >= pid || pid >= 2), "a child with the number %d: %d is signaled", n, pid)
		}
	}
}

// TestOneSignalDoor checks that nothing else in the program sends a signal, or has the kernel or package os send one.
func TestOneSignalDoor(t *testing.T) {
	found := map[string]int{}
	root := filepath.Join("..", "..", "..")
	for _, dir := range []string{"checks", "cmd", "rules", "remedies"} {
		expect.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
				return err
			}
			short, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			var doors []string
			switch filepath.Ext(name) {
			case ".go":
				doors, err = signalsInGo(name)
			case ".c", ".h":
				var text []byte
				text, err = os.ReadFile(name)
				doors = regexp.MustCompile(`\b(?:kill|killpg|tgkill|tkill|pthread_kill|sigqueue|raise|abort)\(.*\);|PR_SET_PDEATHSIG|SYS_\w*kill\w*`).FindAllString(string(text), -1)
			}
			for _, door := range doors {
				found[short+": "+door]++
			}
			return err
		}))
	}
	expect.NoDiff(t, map[string]int{
		"checks/internal/child/process_linux.go: unix.Kill":             1,
		"checks/internal/child/process_linux.go: unix.PR_SET_PDEATHSIG": 1,
		"checks/internal/child/process_other.go: proc.Kill":             1,
	}, found, "it")
}

// signalsInGo are the names by which a Go file can send signals.
func signalsInGo(name string) (doors []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			door := fmt.Sprintf("%s.%s", n.X, n.Sel)
			if signalNames.MatchString(n.Sel.Name) && door != "deadline.Kill" {
				doors = append(doors, door)
			}
		case *ast.CallExpr: // Of a process. WaitStatus has a method of this name, too.
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Signal" && len(n.Args) > 0 {
				doors = append(doors, fmt.Sprintf("%s.Signal", f.X))
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Pdeathsig" {
				doors = append(doors, key.Name)
			}
		}
		return true
	})
	return doors, nil
}

var signalNames = regexp.MustCompile(`^(Kill|Tgkill|PidfdSendSignal|PtraceKill|FindProcess|PR_SET_PDEATHSIG|SYS_\w*(KILL|SIGNAL|SIGQUEUE)\w*)$`)
