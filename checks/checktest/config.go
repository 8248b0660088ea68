package checktest

import (
	"bytes"
	"encoding/binary"
)

// Config returns the function's configuration space. Offsets are those of
// include/uapi/linux/pci_regs.h.
func (f *Function) Config() []byte {
	size := 4096
	if f.Port == NoExpress {
		size = 256
	}
	b := make([]byte, size)
	if f.OffBus {
		b = bytes.Repeat([]byte{0xff}, size)
	} else {
		f.header(b)
		if f.Port != NoExpress {
			f.express(b)
			f.extended(b)
		}
	}
	if f.ConfigBytes > 0 {
		b = b[:f.ConfigBytes]
	}
	return b
}

func put16(b []byte, at int, v uint16) { binary.LittleEndian.PutUint16(b[at:], v) }
func put32(b []byte, at int, v uint32) { binary.LittleEndian.PutUint32(b[at:], v) }

func (f *Function) header(b []byte) {
	vendor, device := f.Vendor, f.Device
	if f.Physical != nil {
		vendor, device = 0xffff, 0xffff // A virtual function shows no ids of its own.
	}
	put16(b, 0x00, vendor)
	put16(b, 0x02, device)
	put16(b, 0x04, 0x0006) // Memory and bus master enabled.
	put32(b, 0x08, f.Class<<8|0xa1)
	if f.Below != nil {
		b[0x0e] = 1
	}
	if f.Port != NoExpress {
		put16(b, 0x06, 0x0010) // There is a list of capabilities.
		b[0x34] = 0x40
	}
}

// express writes a power management capability at 0x40 and the PCIe
// capability at 0x60.
func (f *Function) express(b []byte) {
	const at = 0x60
	b[0x40], b[0x41] = 0x01, at
	b[at] = 0x10
	put16(b, at+0x02, 0x0002|uint16(f.Port)<<4)
	put32(b, at+0x04, 0x00008001) // Device Capabilities: 256 bytes of payload.
	put16(b, at+0x08, 0x5130)     // Device Control: 256 bytes, relaxed ordering, 4096 read.
	if f.Port != Integrated && f.Physical == nil {
		put32(b, at+0x0c, uint32(f.Link.MaxSpeed)|uint32(f.Link.MaxWidth)<<4)
		put16(b, at+0x12, uint16(f.Link.Speed)|uint16(f.Link.Width)<<4)
	}
}

// extended writes the extended capabilities in one list from 0x100.
func (f *Function) extended(b []byte) {
	type capability struct {
		id    uint32
		write func(at int)
	}
	list := []capability{{0x0001, func(int) {}}} // AER.
	if f.ACS != nil {
		list = append(list, capability{0x000d, func(at int) {
			put16(b, at+0x04, f.ACS.Capability)
			put16(b, at+0x06, f.ACS.Control)
		}})
	}
	if f.ATS != nil {
		list = append(list, capability{0x000f, func(at int) {
			if *f.ATS {
				put16(b, at+0x06, 0x8000)
			}
		}})
	}
	if f.ResizableLog2MiB > 0 {
		list = append(list, capability{0x0015, func(at int) {
			n := uint32(f.ResizableLog2MiB)
			put32(b, at+0x04, 1<<(n+4)|1<<(8+4)) // 256 MiB and the largest.
			put32(b, at+0x08, n<<8|1<<5|2)       // One entry, for BAR 2, at its largest.
		}})
	}
	if f.Masked {
		list = append([]capability{{0, func(int) {}}}, list...)
	}
	const step = 0x60
	for i, c := range list {
		at, next := 0x100+i*step, 0x100+(i+1)*step
		if i == len(list)-1 {
			next = 0
		}
		put32(b, at, c.id|1<<16|uint32(next)<<20)
		c.write(at)
	}
}
