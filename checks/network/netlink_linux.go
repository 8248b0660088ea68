package network

import (
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
)

// Commands and attributes of Data Center Bridging (include/uapi/linux/dcbnl.h).
const (
	dcbIEEEGet = 21 // DCB_CMD_IEEE_GET
	dcbIfname  = 1  // DCB_ATTR_IFNAME
	dcbIEEE    = 13 // DCB_ATTR_IEEE
	dcbPFC     = 2  // DCB_ATTR_IEEE_PFC
	dcbHead    = 4  // The size of a dcbmsg: family, command and padding.
)

// flowControlOf asks the driver of an interface which priorities have priority flow control.
func flowControlOf(name string) (FlowControl, error) {
	answer, err := askDCB(name)
	if err == nil {
		var f FlowControl
		if f, err = readFlowControl(answer); err == nil {
			return f, nil
		}
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		err = errno // Without the words of the library.
	}
	return FlowControl{}, fmt.Errorf("DCB_CMD_IEEE_GET: %w", err)
}

// askDCB returns the kernel's answer, a dcbmsg.
func askDCB(name string) ([]byte, error) {
	attributes := netlink.NewAttributeEncoder()
	attributes.String(dcbIfname, name)
	encoded, err := attributes.Encode()
	if err != nil {
		return nil, err
	}
	conn, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // Nothing was changed.
	if err := conn.SetDeadline(time.Now().Add(deadline.File)); err != nil {
		return nil, err
	}
	messages, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: unix.RTM_GETDCB, Flags: netlink.Request},
		Data:   append([]byte{unix.AF_UNSPEC, dcbIEEEGet, 0, 0}, encoded...),
	})
	if err != nil || len(messages) == 0 {
		return nil, errors.Join(err, unix.EBADMSG)
	}
	return messages[0].Data, nil
}

var errNotShown = errors.New("the driver does not show priority flow control")

func readFlowControl(answer []byte) (f FlowControl, err error) {
	const enabled = 1 // Where ieee_pfc has pfc_en.
	err = errNotShown
	attributes, invalid := netlink.NewAttributeDecoder(answer[min(dcbHead, len(answer)):])
	if invalid != nil {
		return f, invalid
	}
	for attributes.Next() {
		if attributes.Type() != dcbIEEE {
			continue
		}
		attributes.Nested(func(nested *netlink.AttributeDecoder) error {
			for nested.Next() {
				if pfc := nested.Bytes(); nested.Type() == dcbPFC && len(pfc) > enabled {
					f.Priorities, err = bitsOf(pfc[enabled]), nil
				}
			}
			return nil
		})
	}
	return f, errors.Join(err, attributes.Err())
}

// bitsOf lists the bits that are set, from 0.
func bitsOf(mask byte) []int {
	list := []int{}
	for i := range 8 {
		if mask>>i&1 == 1 {
			list = append(list, i)
		}
	}
	return list
}
