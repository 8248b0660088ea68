package host

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// maxKernelLog is twice the largest ring buffer that a kernel can be built with (LOG_BUF_SHIFT is at most 25, init/Kconfig).
const maxKernelLog = 64 << 20

type kernelLog struct{ text strings.Builder }

// add takes one record of /dev/kmsg: "priority,sequence,microseconds,flags;message", then lines of properties
// (Documentation/ABI/testing/dev-kmsg).
func (k *kernelLog) add(record []byte) {
	head, message, ok := bytes.Cut(record, []byte{';'})
	if !ok {
		return
	}
	message, _, _ = bytes.Cut(message, []byte{'\n'})
	fields := bytes.SplitN(head, []byte{','}, 5)
	if len(fields) < 3 || !KernelLogWanted(string(message)) {
		return
	}
	us, err := strconv.ParseUint(string(fields[2]), 10, 63)
	if err != nil {
		return
	}
	const perSecond = 1_000_000
	fmt.Fprintf(&k.text, "%d.%06d %s\n", us/perSecond, us%perSecond, bytes.ToValidUTF8(message, []byte("?")))
}
