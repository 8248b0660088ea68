package rdma_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/rdma"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestRDMAWords(t *testing.T) {
	for text, want := range map[string]string{
		"PORT_ACTIVE (4)": "active", "Initializing": "init", "1: DOWN": "down", "PORT_ARMED (3)": "armed", "Active": "active", "": "", "x": "",
	} {
		expect.Equal(t, want, rdma.State(text), "state %q", text)
	}
	for text, want := range map[string]string{
		"LINK_UP (5)": "LinkUp", "5: LinkUp": "LinkUp", "POLLING": "Polling", "3: Disabled": "Disabled",
		"PORT_CONFIGURATION_TRAINNING (4)": "PortConfigurationTraining", "LINK_ERROR_RECOVERY (6)": "LinkErrorRecovery", "?": "",
	} {
		expect.Equal(t, want, rdma.PhysicalState(text), "physical state %q", text)
	}
}

// The path MTU is the largest power of two that leaves room for the headers of RoCE: 1024 with
// Ethernet's 1500, 4096 with jumbo frames.
func TestPathMTU(t *testing.T) {
	for mtu := range 70000 {
		got := rdma.PathMTU(mtu)
		switch {
		case got == 0 && mtu < 256+96:
		case got == 4096 && mtu >= 4096+96:
		case got >= 256 && got < 4096 && got&(got-1) == 0 && got+96 <= mtu && 2*got+96 > mtu:
		default:
			t.Errorf("an Ethernet MTU of %d gives the path MTU %d", mtu, got)
		}
	}
	for mtu, want := range map[int]int{1500: 1024, 4200: 4096, 9000: 4096, 2148: 2048, -1: 0} {
		expect.Equal(t, want, rdma.PathMTU(mtu), "an Ethernet MTU of %d gives the path MTU", mtu)
	}
}
