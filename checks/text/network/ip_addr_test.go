package network_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/network"
	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// show writes an interface as one line: what is known of it.
func show(n facts.Interface) string {
	words := []string{n.Name, n.State, n.Kind}
	if n.Carrier != nil && !*n.Carrier {
		words = append(words, "no-carrier")
	}
	if n.MTU != 0 {
		raw, _ := json.Marshal(n.MTU)
		words = append(words, "mtu", string(raw))
	}
	if n.Host != "" {
		words = append(words, "on", n.Host)
	}
	return strings.Join(append(words, n.Addresses...), " ")
}

func TestInterfaces(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"ip addr": {text: `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: ens5f0np0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP group default qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    altname enp1s0
3: eno2: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN group default qlen 1000
    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff
4: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP group default qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 10.1.0.5/16 brd 10.1.255.255 scope global bond0
       valid_lft forever preferred_lft forever
    inet6 fe80::1/64 scope link
5: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default
    link/ether 02:42:00:00:00:01 brd ff:ff:ff:ff:ff:ff
    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0
6: veth12ab@if9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master docker0 state UP group default
7: ibp12s0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 2044 qdisc mq state UP mode DEFAULT group default qlen 256
    link/infiniband 00:00:10:29:fe brd 00:ff:ff
8: tun0: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UNKNOWN group default qlen 500
    link/none
    inet 10.8.0.2 peer 10.8.0.1/32 scope global tun0
9: eno3: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000
10: eth0.100@eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default
`, want: []string{
			"lo up loopback mtu 65536 127.0.0.1/8", "ens5f0np0 up ethernet mtu 9000", "eno2 down ethernet no-carrier mtu 1500",
			"bond0 up bond mtu 9000 10.1.0.5/16 fe80::1/64", "docker0 down bridge no-carrier mtu 1500 172.17.0.1/16",
			"veth12ab up veth mtu 1500", "ibp12s0 up infiniband mtu 2044", "tun0 up tunnel mtu 1500",
			"eno3 down ethernet mtu 1500", "eth0.100 up vlan mtu 1500",
		}},
		"ip addr cut by grep": {
			text: "root@node4:~# ip a | grep inet\n    inet 127.0.0.1/8 scope host lo\n    inet 10.1.0.6/16 brd 10.1.255.255 scope global dynamic noprefixroute eth0\n",
			want: []string{"lo  loopback on node4 127.0.0.1/8", "eth0  ethernet on node4 10.1.0.6/16"},
		},
		"ip -o addr": {text: "2: eth0    inet 10.1.0.6/16 brd 10.1.255.255 scope global eth0\\       valid_lft forever preferred_lft forever\n", want: []string{"eth0   10.1.0.6/16"}},
		"ip -br addr": {
			text: "lo               UNKNOWN        127.0.0.1/8 ::1/128 \neth0@if12        UP             10.244.1.7/24 fe80::2/64 \neno2             DOWN           \ndocker0          DOWN           172.17.0.1/16 \n",
			want: []string{"lo up loopback 127.0.0.1/8 ::1/128", "eth0 up ethernet 10.244.1.7/24 fe80::2/64", "eno2 down ethernet", "docker0 down bridge 172.17.0.1/16"},
		},
		"ip -br link": {
			text: "eth0             UP             02:00:00:00:00:01 <BROADCAST,MULTICAST,UP,LOWER_UP> \neth1             DOWN           02:00:00:00:00:02 <NO-CARRIER,BROADCAST,MULTICAST,UP> \n",
			want: []string{"eth0 up ethernet", "eth1 down ethernet no-carrier"},
		},
		"no interface": {text: "The service X is UP since Monday\n1: foo: <not flags> mtu\ninet something\nworker UP 3\n", want: nil},
	} {
		expect.NoDiff(t, tt.want, expect.Map(texttest.Sections("x.txt", tt.text).NICs.Interfaces, show), "%s: interfaces", name)
	}
}

func TestInterfacesAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		b.WriteString("7: eth")
		b.WriteString(strings.Repeat("x", i%7))
		raw, _ := json.Marshal(i)
		b.Write(raw)
		b.WriteString(": <UP> mtu 1500 state UP\n")
	}
	expect.Equal(t, network.MaxInterfaces, len(texttest.Parse("x", b.String()).NICs.Interfaces), "it")
}
