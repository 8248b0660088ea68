package launch_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/text/launch"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func read(text string) *launch.Image {
	var file launch.Dockerfile
	for i, l := range strings.Split(text, "\n") {
		file.Line(parse.Line{Number: i + 1, Text: l})
	}
	return file.Image()
}

func TestVariables(t *testing.T) {
	for text, want := range map[string]string{
		"FROM a\nENV X=1":                                       "1",
		"FROM a\nenv X 1 2":                                     "1 2",
		"FROM a\nENV A=2 \\\n # why\n\n X=\"1 $A\"":             "1 $A",
		"FROM a\nENV A=2\nENV X=$A-${A}":                        "2-2",
		"FROM a\nENV A=2\nENV A=3 X=$A":                         "2",
		"FROM a\nENV X=${A:-1}":                                 "1",
		"FROM a\nENV A=2\nENV X=${A:-1}":                        "2",
		"FROM a\nENV X=$A":                                      "$A",
		"FROM a\nARG A=2\nENV X=$A":                             "2",
		"FROM a\nARG A\nENV X=$A":                               "$A",
		"FROM a\nARG A\nENV X=${A:-1}":                          "1",
		"FROM a\nARG A=2\nENV A=3\nENV X=$A":                    "3",
		"ARG A=2\nFROM a\nENV X=$A":                             "$A",
		"ARG A=2\nFROM a\nARG A\nENV X=$A":                      "2",
		"ARG A=2\nFROM a\nARG A=4\nENV X=$A":                    "4",
		"FROM a AS b\nARG A=2\nFROM b\nENV X=$A":                "2",
		"FROM a\nENV X='$A'":                                    "$A",
		"FROM a\nENV X=1\nRUN <<EOF\nENV X=2\nEOF":              "1",
		"FROM a\nENV X=1\n# ENV X=2":                            "1",
		"FROM a\nENV X=1\nONBUILD ENV X=2":                      "1",
		"FROM a\nENV X=1\nFROM b":                               "",
		"FROM a AS b\nENV X=1\nFROM c\nCOPY --from=b / /":       "",
		"FROM a AS b\nENV X=1\nFROM B":                          "1",
		"FROM a\nENV X=1\nFROM 0":                               "1",
		"FROM a AS b\nENV X=1\nFROM c AS d\nENV X=2\nFROM b":    "1",
		"ARG T=b\nFROM a AS b\nENV X=1\nFROM ${T} AS d":         "1",
		"FROM a AS b\nENV X=1\nFROM --platform=$P b AS d\n":     "1",
		"FROM a AS b\nENV X=1\nfrom c\n":                        "",
		"FROM a\nENV X_PATH=/b\nENV X=$X_PATH:/c":               "/b:/c",
		"FROM a AS b\nENV X=1\nFROM b AS c\nENV X=2\nFROM b\n":  "1",
		"FROM a AS b\nENV X=1\nFROM c AS b\nENV X=2\nFROM b\n":  "2",
		"FROM a AS b\nENV X=1\nFROM b AS b\nENV Y=$X\nFROM b\n": "1",
	} {
		expect.Equal(t, want, read(text).Variables["X"].Value, "%q", text)
	}
}

func TestImage(t *testing.T) {
	image := read("ARG TAG=1\nFROM x:${TAG} AS b\nENV A=1 \\\n  B=2\nUSER me\nRUN a \\\n  b\nFROM b\nRUN c")
	expect.That(t, image.Base == "x:1" && image.User == "me" && image.UserLine == 5 && image.Variables["B"].Line == 4 && len(image.Runs) == 2 && len(image.Runs[0]) == 2, "got %+v", image)
	expect.Equal(t, "/b:/a:$X_PATH", read("FROM a\nENV X_PATH=/a:$X_PATH\nENV X_PATH=/b:$X_PATH").Variables["X_PATH"].Value, "it")
	expect.Equal(t, "$BASE", read("FROM $BASE").Base, "it")
}

// TestStageGraphs compares the variables in force with a model, for every way in which up to
// four stages begin from an image or from one of the stages before them, by name or by number:
// those of each stage on the way from the last one to its image, the later one first.
func TestStageGraphs(t *testing.T) {
	type from struct {
		stage int // -1 is an image.
		form  int // How it is named.
	}
	names := func(f from) string {
		return []string{fmt.Sprintf("s%d", f.stage), fmt.Sprintf("S%d", f.stage), fmt.Sprint(f.stage), fmt.Sprintf("${B%d}", f.stage)}[f.form]
	}
	checked := 0
	var try func(graph []from)
	try = func(graph []from) {
		if len(graph) > 0 {
			checked++
			var b strings.Builder
			for i := range graph {
				fmt.Fprintf(&b, "ARG B%d=s%d\n", i, i)
			}
			for i, f := range graph {
				base := "image"
				if f.stage >= 0 {
					base = names(f)
				}
				fmt.Fprintf(&b, "FROM %s AS s%d\nENV V%d=%d LAST=%d\nCOPY --from=0 /x /x\n", base, i, i, i, i)
			}
			want := map[string]string{"LAST": fmt.Sprint(len(graph) - 1)}
			for i := len(graph) - 1; i >= 0; i = graph[i].stage {
				want[fmt.Sprintf("V%d", i)] = fmt.Sprint(i)
			}
			got := map[string]string{}
			for name, v := range read(b.String()).Variables {
				got[name] = v.Value
			}
			if !maps.Equal(got, want) {
				t.Fatalf("%s%s", b.String(), cmp.Diff(want, got))
			}
		}
		if len(graph) == 4 {
			return
		}
		try(append(slices.Clip(graph), from{stage: -1}))
		for stage := range graph {
			for form := range 4 {
				try(append(slices.Clip(graph), from{stage, form}))
			}
		}
	}
	try(nil)
	expect.AtLeast(t, 500, checked, "graphs")
}

func FuzzDockerfile(f *testing.F) {
	for _, seed := range []string{"FROM a\nENV X=1", "ARG A=1\nFROM ${A} AS b\nENV X=\"$A\" \\\n Y='2'\nFROM b", "# a\nFROM a\nRUN <<E\nx\nE\nENV A b", "FROM 0\nFROM 0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, v := range read(text).Variables {
			expect.That(t, v.Line >= 1 && v.Line <= strings.Count(text, "\n")+1, "%s is at line %d", name, v.Line)
		}
	})
}
