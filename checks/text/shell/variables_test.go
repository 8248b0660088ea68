package shell_test

import (
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/shell"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestRefers(t *testing.T) {
	for text, want := range map[string]bool{
		"8g": false, "": false, "100$": false, "^mlx5_1": false, "{\"a\": 1}": false,
		"$SHM": true, "${SHM}": true, "a$1": true, "$(nproc)": true, "`nproc`": true, "{{ .Values.shm }}": true, "{% if a %}": true, "$@": true, "$(NAME)": true,
	} {
		expect.Equal(t, want, shell.Refers(text), "%q", text)
	}
}

func TestCompose(t *testing.T) {
	for text, want := range map[string]string{
		"${SHM:-8g}": "8g", "${SHM-8g}": "8g", "${A:-${B:-2}}": "2", "x-${A:-1}-y": "x-1-y", "${A:-}": "", "$$A": "$A", "a": "a",
		"${SHM}": "${SHM}", "$SHM": "$SHM", "${SHM:?no}": "${SHM:?no}", "${SHM:+1}": "${SHM:+1}", "${SHM": "${SHM",
	} {
		expect.Equal(t, want, shell.Compose(text), "%q", text)
	}
}

// TestScript checks of each script what N is in its last line; a question mark where that is
// not known, and a dash where N is not set.
func TestScript(t *testing.T) {
	for script, want := range map[string]string{
		"x": "-", "N=8": "8", "N=8 # eight": "8", "export N=\"8\"": "8", "export M=1 N='8'": "8", "readonly N=8": "8", "N=8; x": "8", "M=8\nN=$M": "8",
		"N=${M:-8}": "8", "N=${1:-8}": "8", "N=8\nN=4": "4", ": ${N:=8}": "8", "N=4\n: ${N:=8}": "4", "# N=8": "-", "N=8 torchrun x": "-",
		"echo N=8": "-", "cat <<EOF\nN=8\nEOF": "-", "N=8\ncat <<EOF\nN=4\nEOF": "8", "echo '\nN=8\n'": "-", "N=8\nif a; then b; fi": "8",
		"N=8\nfor i in 1 2; do x $i; done": "8", "N=8\nf() {\n x\n}": "8", "N=8\nsource venv/bin/activate": "8", "N=\\\n8": "8",
		"if a; then\nN=8\nfi": "?", "N=4\nif a; then N=8; fi": "?", "N=4\n[ a ] && N=8": "?", "N=4\nx || N=8": "?", "for N in 1 2; do\nx": "?",
		"N=1\nwhile a; do\nx\nN=8\ndone": "?", "N=1\nwhile a; do\nx $N\ny": "1", "case $1 in\na) N=8 ;;\nesac": "?", "f() {\nN=8\n}\nf": "?",
		"N=4\n(N=8)": "?", "N=$(nproc)": "?", "N=`nproc`": "?", "N=$((2 * 4))": "?", "N=$M": "?", "N=4\nN+=1": "?", "N=(1 2)": "?", "read N": "?",
		"N=4\nread -r M N": "?", "N=4\nunset N": "?", "N=4\nprintf -v N 8": "?", "N=4\nsource env.sh": "?", "N=4\n. ./env.sh": "?",
		"N=4\neval $X": "?", "source env.sh": "?", "source env.sh\nN=8": "8", "N='a;b'": "?", "N=4\nrun() {\n x\n N=8\n}\nrun\ny": "?",
	} {
		value, state := shell.ReadVariables(script + "\nlast").At(len(strings.Split(script, "\n")) + 1)("N")
		expect.Equal(t, want, map[shell.State]string{shell.Unset: "-", shell.Known: value, shell.Unknown: "?"}[state], "%q", script)
	}
}

// TestScriptBlocks checks that a value that changes later in a loop, or after a function that
// reads it, is not known there.
func TestScriptBlocks(t *testing.T) {
	for script, line := range map[string]int{
		"N=1\nwhile a; do\nx $N\nN=2\ndone": 3, "N=1\nrun() {\nx $N\n}\nN=2\nrun": 3, "N=1\nif a; then\nN=2\nx $N\nfi\ny": 4,
		"for N in 1 2\ndo\nx $N\ndone": 3, "N=1\nfor i in a; do x; N=2; done\n": 3,
	} {
		value, state := shell.ReadVariables(script).At(line)("N")
		expect.That(t, state == shell.Unknown, "%q: got %q", script, value)
	}
}

func FuzzScript(f *testing.F) {
	for _, seed := range []string{"N=8\nx $N", "if a; then N=8; fi", "cat <<EOF\nN=8\nEOF", "N='a\nb'", "f() { N=${M:-${L:-1}}; }", "case a in\nb) N=1;;\nesac", "N=(1\n2)", "((N=1))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lookup := shell.ReadVariables(text).At(strings.Count(text, "\n") + 2)
		value, state := lookup("N")
		expect.That(t, state != shell.Known || !shell.Refers(value), "%q is known", value)
		shell.Expand(text, lookup)
		shell.Compose(text)
	})
}

// TestArrays checks that the elements of an array are not known, nor is what it was before.
func TestArrays(t *testing.T) {
	for _, script := range []string{"A=(--a 1)", "A=1\nA=(2)", "declare -a A=(1)", "A=1\nA[1]=2", "A=1\nA+=(2)"} {
		lookup := shell.ReadVariables(script + "\nx").At(9)
		expect.Equal(t, `x "${A[@]}" $A`, shell.Expand(`x "${A[@]}" $A`, lookup), "%q", script)
	}
}
