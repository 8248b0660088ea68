package network

import (
	"slices"
	"testing"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// answer is a dcbmsg with attributes of an interface, those of IEEE nested.
func answer(t *testing.T, ieee func(*netlink.AttributeEncoder) error) []byte {
	t.Helper()
	e := netlink.NewAttributeEncoder()
	e.String(dcbIfname, "e")
	if ieee != nil {
		e.Nested(dcbIEEE, ieee)
	}
	return append([]byte{0, dcbIEEEGet, 0, 0}, expect.Value(e.Encode())(t)...)
}

func TestFlowControl(t *testing.T) {
	got, err := readFlowControl(answer(t, func(e *netlink.AttributeEncoder) error {
		e.Bytes(dcbPFC, append([]byte{8, 0b1000_1000, 0, 0, 0, 0}, make([]byte, 128)...))
		return nil
	}))
	expect.That(t, err == nil && slices.Equal(got.Priorities, []int{3, 7}), "got %v (%v), want priorities 3 and 7", got, err)
	expect.Fails(readFlowControl(answer(t, nil)))(t, errNotShown, "without PFC")
	// The request is what the kernel reads: it knows the interface, whose driver has no DCB.
	expect.Fails(flowControlOf("lo"))(t, unix.EOPNOTSUPP, "lo")
	expect.Fails(flowControlOf("none-such"))(t, unix.ENODEV, "an interface that does not exist")
}

// Whatever the kernel answers, what is read of it is bounded.
func FuzzNetlink(f *testing.F) {
	f.Add([]byte{0, dcbIEEEGet, 0, 0, 12, 0, dcbIEEE, 0x80, 6, 0, dcbPFC, 0, 8, 255, 0, 0})
	f.Add([]byte{5, 0, 1, 0, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readFlowControl(b)
		expect.That(t, err != nil || len(got.Priorities) <= 8, "got %v", got)
	})
}
