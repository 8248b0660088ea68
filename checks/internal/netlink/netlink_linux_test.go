package netlink

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// The addresses of this machine are those that the standard library finds.
func TestAddresses(t *testing.T) {
	got := expect.Value(addresses())(t)
	interfaces := expect.Value(net.Interfaces())(t)
	for _, i := range interfaces {
		want := expect.Map(expect.Value(i.Addrs())(t), func(a net.Addr) string { return a.String() })
		slices.Sort(want)
		slices.Sort(got[i.Name])
		expect.That(t, slices.Equal(want, got[i.Name]), "%s: got %q, want %q", i.Name, got[i.Name], want)
	}
}

// attribute is one attribute, padded.
func attribute(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

func message(kind uint16, body ...[]byte) []byte {
	data := slices.Concat(body...)
	b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(data)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(append(b, make([]byte, 10)...), data...)
}

func TestAddressOf(t *testing.T) {
	head := []byte{unix.AF_INET, 24, 0, 0, 7, 0, 0, 0}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"address":        {slices.Concat(head, attribute(unix.IFA_ADDRESS, 10, 0, 0, 5)), "10.0.0.5/24"},
		"point to point": {slices.Concat(head, attribute(unix.IFA_ADDRESS, 10, 0, 0, 1), attribute(unix.IFA_LOCAL, 10, 0, 0, 5)), "10.0.0.5/24"},
		"local first":    {slices.Concat(head, attribute(unix.IFA_LOCAL, 10, 0, 0, 5), attribute(unix.IFA_ADDRESS, 10, 0, 0, 1)), "10.0.0.5/24"},
		"none":           {head, ""},
		"short":          {head[:6], ""},
		"cut":            {slices.Concat(head, attribute(unix.IFA_ADDRESS, 10, 0, 0, 5)[:6]), ""},
		"odd length":     {slices.Concat(head, attribute(unix.IFA_ADDRESS, 10, 0, 0)), ""},
		"long prefix":    {slices.Concat([]byte{unix.AF_INET, 33, 0, 0, 7, 0, 0, 0}, attribute(unix.IFA_ADDRESS, 10, 0, 0, 5)), ""},
	} {
		index, prefix, ok := addressOf(tt.data)
		got := prefix.String()
		expect.That(t, ok == (tt.want != "") && (!ok || got == tt.want && index == 7), "%s: got %s of interface %d, %v; want %q", name, got, index, ok, tt.want)
	}
}

func TestFlowControl(t *testing.T) {
	pfc := append([]byte{8, 0b1000_1000, 0, 0, 0, 0}, make([]byte, 128)...)
	answer := message(unix.RTM_GETDCB, []byte{0, dcbIEEEGet, 0, 0}, attribute(dcbIfname, 'e', 0), attribute(dcbIEEE, attribute(dcbPFC, pfc...)...))
	got, err := readFlowControl(answer)
	expect.That(t, err == nil && slices.Equal(got.Priorities, []int{3, 7}), "got %v (%v), want priorities 3 and 7", got, err)
	expect.Fails(readFlowControl(message(unix.RTM_GETDCB, []byte{0, dcbIEEEGet, 0, 0})))(t, errNotShown, "without PFC")
	refused := binary.NativeEndian.AppendUint32(nil, ^uint32(unix.EOPNOTSUPP)+1)
	expect.Fails(readFlowControl(message(unix.NLMSG_ERROR, refused)))(t, unix.EOPNOTSUPP, "refused")
	// The request is what the kernel reads: it knows the interface, whose driver has no DCB.
	expect.Fails(flowControl("lo"))(t, unix.EOPNOTSUPP, "lo")
	expect.Fails(flowControl("none-such"))(t, unix.ENODEV, "an interface that does not exist")
	expect.Fails(flowControl(strings.Repeat("x", 16)))(t, unix.EINVAL, "a name that is too long is asked for")
}

// Whatever the kernel answers, what is read of it is bounded.
func FuzzNetlink(f *testing.F) {
	f.Add(message(unix.RTM_GETDCB, []byte{0, dcbIEEEGet, 0, 0}, attribute(dcbIEEE, attribute(dcbPFC, 8, 255)...)))
	f.Add(attribute(1, 2, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readFlowControl(b)
		expect.That(t, err != nil || len(got.Priorities) <= 8, "got %v", got)
		_, prefix, ok := addressOf(b)
		expect.That(t, !ok || prefix.Addr() != (netip.Addr{}), "got %v", prefix)
	})
}
