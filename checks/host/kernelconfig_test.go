package host

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// kernelConfigText is a configuration with enough options to be taken for one.
func kernelConfigText(lines ...string) string {
	var b strings.Builder
	b.WriteString("#\n# Automatically generated file; DO NOT EDIT.\n# Linux/x86 6.8.0 Kernel Configuration\n#\n")
	for i := range 100 {
		fmt.Fprintf(&b, "CONFIG_OTHER_%d=y\n", i)
	}
	b.WriteString(strings.Join(lines, "\n"))
	return b.String()
}

func TestKernelConfig(t *testing.T) {
	packed := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		expect.Value(w.Write([]byte(text)))(t)
		expect.NoError(t, w.Close())
		return b.String()
	}
	all := kernelConfigText("CONFIG_HSA_AMD=y", "CONFIG_HSA_AMD_P2P=y", "CONFIG_PCI_P2PDMA=y", "CONFIG_DMABUF_MOVE_NOTIFY=y", "CONFIG_HSA_AMD_SVM=y\n")
	none := kernelConfigText("CONFIG_HSA_AMD=m", "# CONFIG_PCI_P2PDMA is not set", `CONFIG_DMABUF_MOVE_NOTIFY="odd"`)
	y := map[string]string{"CONFIG_HSA_AMD": "y", "CONFIG_HSA_AMD_P2P": "y", "CONFIG_PCI_P2PDMA": "y", "CONFIG_DMABUF_MOVE_NOTIFY": "y"}
	n := map[string]string{"CONFIG_HSA_AMD": "m", "CONFIG_HSA_AMD_P2P": "n", "CONFIG_PCI_P2PDMA": "n", "CONFIG_DMABUF_MOVE_NOTIFY": "n"}
	for _, tt := range []struct {
		name, text string
		compressed bool
		want       map[string]string
	}{
		{"all on", all, false, y},
		{"compressed", packed(all), true, y},
		{"off, and not named", none, false, n},
		{"cut while compressed", packed(all)[:80], true, nil},
		{"not compressed", all, true, nil},
		{"empty", "", false, nil},
		{"something else", strings.Repeat("a=b\n", 1000), false, nil},
		{"too long", all + strings.Repeat("# a comment of no use\n", maxKernelConfig/20), false, nil},
		{"a bomb", packed(all + strings.Repeat("\n", 3*maxKernelConfig)), true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseKernelConfig(strings.NewReader(tt.text), tt.compressed)
			expect.Must(t, (err == nil) == (tt.want != nil), "got error %v", err)
			expect.NoDiff(t, tt.want, got, "it")
		})
	}
}

func TestKernelConfigMissing(t *testing.T) {
	for _, release := range []string{"", "0.0.0-no-such-kernel", "../../etc/passwd"} {
		c, err := kernelConfig(release)
		expect.That(t, err != nil || c.Source == "/proc/config.gz", "kernelConfig(%q) read %s", release, c.Source)
	}
}
