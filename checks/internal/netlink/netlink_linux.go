package netlink

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/gpudoctor/gpudoctor/checks/deadline"
)

// maxAddresses bounds the addresses of all interfaces: a node with a thousand pods has one or two
// for each.
const maxAddresses = 4096

// maxAnswer bounds an answer about one interface, which has a few hundred bytes.
const maxAnswer = 64 << 10

// addresses lists the IP addresses of the interfaces in this network namespace, by their names, with
// the lengths of their prefixes.
func addresses() (map[string][]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	names := make(map[uint32]string, len(interfaces))
	for _, i := range interfaces {
		names[uint32(i.Index)] = i.Name
	}
	table, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	list, count := make(map[string][]string), 0
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWADDR || count == maxAddresses {
			continue
		}
		if index, prefix, ok := addressOf(m.Data); ok && names[index] != "" {
			list[names[index]] = append(list[names[index]], prefix.String())
			count++
		}
	}
	return list, nil
}

// addressOf reads an RTM_NEWADDR: struct ifaddrmsg (family, prefix length, flags, scope, index) and
// its attributes (include/uapi/linux/if_addr.h). IFA_ADDRESS of a point-to-point interface is that of the
// other end, so that IFA_LOCAL counts where there is one.
func addressOf(data []byte) (index uint32, prefix netip.Prefix, ok bool) {
	if len(data) < unix.SizeofIfAddrmsg {
		return 0, netip.Prefix{}, false
	}
	var address netip.Addr
	for kind, value := range attributes(data[unix.SizeofIfAddrmsg:]) {
		a, valid := netip.AddrFromSlice(value)
		if valid && (kind == unix.IFA_LOCAL || kind == unix.IFA_ADDRESS && !address.IsValid()) {
			address = a
		}
	}
	prefix = netip.PrefixFrom(address, int(data[1]))
	return binary.NativeEndian.Uint32(data[4:]), prefix, prefix.IsValid()
}

// typeMask is NLA_TYPE_MASK: without the flags of nested and big-endian attributes.
const typeMask = 0x3fff

// attributes goes through the attributes of a netlink message (struct nlattr), up to one that does not
// fit.
func attributes(data []byte) func(yield func(kind uint16, value []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(data) >= unix.SizeofNlAttr {
			size, kind := int(binary.NativeEndian.Uint16(data)), binary.NativeEndian.Uint16(data[2:])&typeMask
			if size < unix.SizeofNlAttr || size > len(data) || !yield(kind, data[unix.SizeofNlAttr:size]) {
				return
			}
			data = data[min((size+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(data)):]
		}
	}
}

// Commands and attributes of Data Center Bridging (include/uapi/linux/dcbnl.h).
const (
	dcbIEEEGet = 21 // DCB_CMD_IEEE_GET
	dcbIfname  = 1  // DCB_ATTR_IFNAME
	dcbIEEE    = 13 // DCB_ATTR_IEEE
	dcbPFC     = 2  // DCB_ATTR_IEEE_PFC
)

// flowControl asks the driver of an interface which priorities have priority flow control.
func flowControl(name string) (FlowControl, error) {
	fail := func(err error) (FlowControl, error) { return FlowControl{}, fmt.Errorf("DCB_CMD_IEEE_GET: %w", err) }
	if len(name) >= unix.IFNAMSIZ || strings.ContainsRune(name, 0) {
		return fail(unix.EINVAL)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = unix.Close(fd) }() // Nothing was written.
	timeout := unix.NsecToTimeval(deadline.File.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return fail(err)
	}
	if err := unix.Sendto(fd, request(name), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fail(err)
	}
	buf, n := make([]byte, maxAnswer), 0
	for {
		// A signal of Go's runtime may interrupt it.
		if n, _, err = unix.Recvfrom(fd, buf, 0); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fail(err)
	}
	f, err := readFlowControl(buf[:n])
	if err != nil {
		return fail(err)
	}
	return f, nil
}

// request is an nlmsghdr, a dcbmsg (family, command and padding) and the name.
func request(name string) []byte {
	attribute := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(name)+1))
	attribute = append(binary.NativeEndian.AppendUint16(attribute, dcbIfname), name...)
	attribute = append(attribute, make([]byte, unix.NLA_ALIGNTO-len(name)%unix.NLA_ALIGNTO)...)
	body := append([]byte{unix.AF_UNSPEC, dcbIEEEGet, 0, 0}, attribute...)
	head := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	head = binary.NativeEndian.AppendUint16(head, unix.RTM_GETDCB)
	head = binary.NativeEndian.AppendUint16(head, unix.NLM_F_REQUEST)
	head = append(head, make([]byte, 8)...) // Sequence number and port.
	return append(head, body...)
}

var errNotShown = errors.New("the driver does not show priority flow control")

// readFlowControl reads the answer.
func readFlowControl(answer []byte) (FlowControl, error) {
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil || len(messages) == 0 {
		return FlowControl{}, unix.EBADMSG
	}
	data := messages[0].Data
	if messages[0].Header.Type == unix.NLMSG_ERROR {
		if len(data) < 4 {
			return FlowControl{}, unix.EBADMSG
		}
		return FlowControl{}, syscall.Errno(-int32(binary.NativeEndian.Uint32(data)))
	}
	const dcbmsg, enabled = 4, 1 // The size of the struct, and where ieee_pfc has pfc_en.
	for kind, nested := range attributes(data[min(dcbmsg, len(data)):]) {
		if kind != dcbIEEE {
			continue
		}
		for kind, pfc := range attributes(nested) {
			if kind == dcbPFC && len(pfc) > enabled {
				return FlowControl{Priorities: bitsOf(pfc[enabled])}, nil
			}
		}
	}
	return FlowControl{}, errNotShown
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
