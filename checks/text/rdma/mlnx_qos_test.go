package rdma_test

import (
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const mlnxQoSSample = `$ mlnx_qos -i ens1f0
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
	prio:0 dscp:07,06,05,04,03,02,01,00,
	prio:1 dscp:15,14,13,12,11,10,09,08,
default priority:
Receive buffer size (bytes): 20016,156096,0,0,0,0,0,0,max_buffer_size=262016
Cable len: 7
PFC configuration:
	priority    0   1   2   3   4   5   6   7
	enabled     0   0   0   1   0   0   0   0   
	buffer      0   0   0   1   0   0   0   0   
tc: 1 ratelimit: unlimited, tsa: vendor
	 priority:  0
tc: 0 ratelimit: unlimited, tsa: vendor
	 priority:  1
`

func TestMlnxQoS(t *testing.T) {
	f := texttest.Parse("x", mlnxQoSSample+"$ mlnx_qos -i ens2f0\nDCBX mode: OS controlled\nPriority trust state: pcp\nPFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     0   0   0   0   0   0   0   0\n")
	expect.Must(t, f.NICs != nil && len(f.NICs.QoS) == 2, "got %+v", f.NICs)
	a, b := f.NICs.QoS[0], f.NICs.QoS[1]
	expect.That(t, a.Interface == "ens1f0" && a.Trust == "dscp" && slices.Equal(a.PFC, []int{3}) && a.Line == 2, "got %+v", a)
	expect.That(t, b.Interface == "ens2f0" && b.Trust == "pcp" && b.PFC != nil && len(b.PFC) == 0, "got %+v", b)
}

func FuzzMlnxQoS(f *testing.F) {
	f.Add(mlnxQoSSample)
	f.Add("PFC configuration:\npriority 0 1\nenabled 1\nPFC configuration:\nenabled 1 1\n")
	f.Fuzz(bounded)
}
