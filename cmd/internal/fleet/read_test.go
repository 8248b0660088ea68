package fleet

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/rules"
)

func reportOf(host, driver string, rules ...string) string {
	var findings []string
	for _, r := range rules {
		findings = append(findings, fmt.Sprintf(`{"rule":%q,"title":"T","severity":"high","remedies":["x"]}`, r))
	}
	state, exit := "healthy", 0
	if len(rules) > 0 {
		state, exit = "findings", 1
	}
	return fmt.Sprintf(`{"schema":"gpudoctor.report/v1","host":{"hostname":%q,"driver":%q,"gpus":[{"name":"H200"}]},"verdict":{"state":%q,"exit_code":%d},"findings":[%s]}`,
		host, driver, state, exit, strings.Join(findings, ","))
}

// TestRead checks that reports are read from a folder, an archive and a stream alike, and that what is no report is one
// line and loses nothing else.
func TestRead(t *testing.T) {
	t.Parallel()
	good := []string{reportOf("n1", "570"), reportOf("n2", "570", "acs-redirect"), reportOf("n3", "575")}
	bad := map[string]string{
		"cut.json":    reportOf("n4", "570")[:60],
		"other.json":  `{"schema":"gpudoctor.diff/v1"}`,
		"broken.json": "hello",
		"again.json":  reportOf("n3", "580"),
	}
	folder := t.TempDir()
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	put := func(name, content string) {
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		expect.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}))
		_, err := archive.Write([]byte(content))
		expect.NoError(t, err)
	}
	for i, r := range good {
		put(fmt.Sprintf("a%d.json", i), r)
	}
	for name, content := range bad {
		put("b-"+name, content)
	}
	expect.NoError(t, archive.Close())
	known := expect.Value(rules.Load())(t)
	for name, c := range map[string]struct {
		path     string
		stdin    string
		problems int
	}{
		"a folder":   {folder, "", len(bad)},
		"an archive": {"-", packed.String(), len(bad)},
		"a stream":   {"-", strings.Join(good, "\n") + bad["other.json"] + bad["again.json"] + bad["cut.json"], 3},
	} {
		r, err := Read(t.Context(), []string{c.path}, strings.NewReader(c.stdin))
		expect.NoError(t, err)
		f := Fold(r, []string{"n1", "n9"})
		expect.Equal(t, 3, len(f.Nodes), "%s: nodes", name)
		expect.Equal(t, c.problems, len(f.Problems), "%s: problems %v", name, f.Problems)
		expect.Equal(t, "580", f.Nodes[2].Traits["driver"], "%s: the later report counts", name)
		expect.NoDiff(t, []string{"n9"}, f.Unreported, "%s: unreported", name)
		expect.Equal(t, 1, f.ExitCode, "%s: exit code", name)
		expect.Equal(t, 1, len(f.Causes), "%s: causes", name)
		expect.NoDiff(t, []string{"n2"}, f.Causes[0].Nodes, "%s: its nodes", name)
		expect.NoError(t, f.Judge(t.Context(), known))
		expect.Equal(t, 2, len(f.Causes), "%s: causes of the fleet", name)
		expect.NoDiff(t, []string{"n3"}, f.Causes[1].Nodes, "%s: the node with another driver", name)
	}
}
