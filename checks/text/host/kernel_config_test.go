package host_test

import (
	"maps"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestKernelConfig(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]string
	}{
		{"a search", "$ zcat /proc/config.gz | grep -E 'P2PDMA|HSA_AMD'\n# CONFIG_PCI_P2PDMA is not set\nCONFIG_HSA_AMD=y\nCONFIG_HSA_AMD_SVM=y\n", map[string]string{"CONFIG_PCI_P2PDMA": "n", "CONFIG_HSA_AMD": "y"}},
		{"several files", "/boot/config-6.8.0-40-generic:CONFIG_DMABUF_MOVE_NOTIFY=y\n/boot/config-6.8.0-40-generic:# CONFIG_HSA_AMD_P2P is not set\n", map[string]string{"CONFIG_DMABUF_MOVE_NOTIFY": "y", "CONFIG_HSA_AMD_P2P": "n"}},
		{"the first of two kernels", "CONFIG_HSA_AMD_P2P=y\n# CONFIG_HSA_AMD_P2P is not set\n", map[string]string{"CONFIG_HSA_AMD_P2P": "y"}},
		{"advice", "Set CONFIG_HSA_AMD_P2P=y and CONFIG_PCI_P2PDMA=y in your kernel.\n", nil},
	} {
		f := texttest.Parse("x", c.text)
		var got map[string]string
		if f.GPUs != nil && f.GPUs.AMD != nil {
			got = f.GPUs.AMD.KernelConfig
		}
		expect.That(t, maps.Equal(got, c.want), "%s: got %v, want %v", c.name, got, c.want)
	}
}

func FuzzKernelConfig(f *testing.F) {
	f.Add("CONFIG_HSA_AMD_P2P=y\n# CONFIG_PCI_P2PDMA is not set\n")
	f.Add("x:CONFIG_HSA_AMD=m\n")
	f.Fuzz(func(t *testing.T, text string) {
		facts := texttest.Parse("x", text)
		if facts.GPUs == nil || facts.GPUs.AMD == nil {
			return
		}
		for name, value := range facts.GPUs.AMD.KernelConfig {
			expect.That(t, value == "y" || value == "m" || value == "n", "%s is %q", name, value)
		}
	})
}
