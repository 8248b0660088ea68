package network_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestPings checks that large packets to a host are said to be lost where small ones to the same host arrive, in each form
// in which people show it, and in no other case.
func TestPings(t *testing.T) {
	t.Parallel()
	const begin = "PING 10.0.0.2 (10.0.0.2) 8972(9000) bytes of data.\n"
	const lost, well = "2 packets transmitted, 0 received, 100% packet loss, time 1031ms\n", "2 packets transmitted, 2 received, 0% packet loss, time 1001ms\n"
	const reply = "64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.093 ms\n"
	for text, want := range map[string]string{
		begin + "\n" + lost + "PING 10.0.0.2 (10.0.0.2) 1472(1500) bytes of data.\n" + well: "1472",
		begin + "\n" + lost + "$ ping -c 2 10.0.0.2\n" + reply:                              "56",
		reply + begin + "\n" + lost:                                                         "56",
		"n1$ ping -c2 -M do -s 8972 10.0.0.2      0 received, 100% packet loss\nn1$ ping -c2 -M do -s 1472 10.0.0.2      2 received\n": "1472",
		begin + "\n" + lost: "",
		begin + "8980 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.1 ms\n" + well + reply: "",
		begin + "\n" + lost + "64 bytes from 10.0.0.3: icmp_seq=1 ttl=64 time=0.1 ms\n":    "",
		begin + "\n2 packets transmitted, 1 received, 50% packet loss\n" + reply:           "",
	} {
		f, got := texttest.Parse("ping.txt", text), ""
		if f.Logs != nil && len(f.Logs.Messages) > 0 {
			got = f.Logs.Messages[0].Fields["small"]
		}
		expect.Equal(t, want, got, "%s", text)
	}
}
