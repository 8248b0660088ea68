package pci

import (
	"math"
	"slices"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// configOf returns the config space of a port that has every capability.
func configOf() []byte {
	b := make([]byte, 4096)
	for at, v := range map[int]uint32{
		0x00: 0x352a8086, 0x04: 0x00100006, 0x08: 0x060400a1, 0x0c: 0x00010000, 0x34: 0x40, // A bridge with a list of capabilities.
		0x40: 0x6001,                                                               // Power management.
		0x60: 0x00420010, 0x64: 0x8001, 0x68: 0x5130, 0x6c: 0x84, 0x70: 0x00840000, // A root port at 16 GT/s, x8.
		0x100: 0x16010001, 0x160: 0x1c01000d, 0x164: 0x001d005f, // AER; ACS that redirects.
		0x1c0: 0x2201000f, 0x220: 0x00010015, 0x224: 1<<17 | 1<<12, 0x228: 13<<8 | 1<<5 | 2, // ATS; resizable BAR 2 of 8 GiB.
	} {
		put32(b, at, v)
	}
	return b
}

func TestReadConfig(t *testing.T) {
	full := facts.PCIDevice{
		PortType: "root-port",
		Link:     &facts.PCIeLink{SpeedGTs: 16, Width: 8, MaxSpeedGTs: 16, MaxWidth: 8, Source: "config"},
		Extended: true,
		ACS: &facts.ACS{
			Control: []string{"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"},
		},
		ATS:           &facts.ATS{},
		ResizableBARs: []facts.ResizableBAR{{Index: 2, SizeBytes: 8 << 30, MaxBytes: 8 << 30}},
	}
	type (
		bytes  = []byte
		device = facts.PCIDevice
	)
	whole := func(*device) {}
	only := func(want device) func(*device) { return func(d *device) { *d = want } }
	notExtended := func(d *device) { d.Extended, d.ACS, d.ATS, d.ResizableBARs = false, nil, nil, nil }
	for _, test := range []struct {
		name   string
		change func(b bytes) bytes
		want   func(d *device)
	}{
		{"whole", func(b bytes) bytes { return b }, whole},
		{"longer than config space is", func(b bytes) bytes { return append(b, 1) }, whole},
		{"several functions", func(b bytes) bytes { b[0x0e] |= 0x80; return b }, whole},
		{"nothing", func(bytes) bytes { return nil }, only(device{})},
		{"all ones", func(b bytes) bytes { return slices.Repeat(bytes{0xff}, len(b)) }, only(device{OffBus: true})},
		{"all zeros", func(b bytes) bytes { return make(bytes, len(b)) }, only(device{})},
		{"a header that is cut off", func(b bytes) bytes { return b[:10] }, only(device{})},
		{"ids of a virtual function", func(b bytes) bytes { copy(b, "\xff\xff\xff\xff"); return b }, whole},
		{"capabilities in a loop behind PCIe", func(b bytes) bytes { b[0x61] = 0x40; return b }, whole},
		{"capabilities that point into the header", func(b bytes) bytes { b[0x41] = 0x10; return b }, only(device{})},
		{"extended capabilities in a loop", func(b bytes) bytes { put32(b, 0x220, 0x0015|1<<16|0x1c0<<20); return b }, func(d *device) { d.Extended = false }},
		{"extended capabilities of zeros", func(b bytes) bytes { clear(b[0x100:]); return b }, notExtended},
		{"extended capabilities of ones", func(b bytes) bytes { copy(b[0x100:], slices.Repeat(bytes{0xff}, 4096-256)); return b }, notExtended},
		{"reserved link speed and width", func(b bytes) bytes { b[0x72], b[0x73] = 0xff, 0xff; return b }, func(d *device) { d.Link.SpeedGTs, d.Link.Width = 0, 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got device
			readConfig(&got, test.change(configOf()))
			want := full
			want.Link = new(*full.Link)
			want.ResizableBARs = slices.Clone(full.ResizableBARs)
			test.want(&want)
			expect.NoDiff(t, want, got, "device")
		})
	}
}

func put32(b []byte, at int, v uint32) {
	b[at], b[at+1], b[at+2], b[at+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func TestParseResource(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []facts.BAR
	}{
		{"empty", "", []facts.BAR{}},
		{
			"64-bit windows take two lines",
			"0x0000104002000000 0x0000104002ffffff 0x000000000014220c\n0x0 0x0 0x0\n0x0000100000000000 0x0000103fffffffff 0x000000000014220c\n",
			[]facts.BAR{{Index: 0, SizeBytes: 16 << 20}, {Index: 2, SizeBytes: 256 << 30}},
		},
		{
			"I/O, 32 bits",
			"0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n0x000000000000e000 0x000000000000e07f 0x0000000000040101\n",
			[]facts.BAR{{Index: 0, SizeBytes: 16 << 20}, {Index: 1, SizeBytes: 128, IO: true}},
		},
		{"no room", "0x0000000000000000 0x0000001fffffffff 0x000000002014220c\n", []facts.BAR{{Index: 0, SizeBytes: 128 << 30, Unassigned: true}}},
		{"the ROM is no BAR", "0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n0 0 0\n0x1000 0x1fff 0x200\n", []facts.BAR{}},
		{"garbage", "x y z\n1 2\n0x2000 0x1000 0x200\n0x0 0xffffffffffffffff 0x200\n", []facts.BAR{}},
	} {
		expect.NoDiff(t, test.want, parseResource([]byte(test.in)), "%s", test.name)
	}
}

func TestParseLink(t *testing.T) {
	for in, want := range map[string]float64{
		"32.0 GT/s PCIe": 32, "8 GT/s": 8, "2.5 GT/s": 2.5, "64.0 GT/s PCIe": 64, "Unknown": 0, "Unknown speed": 0, "": 0, "NaN": 0, "7 GT/s": 0,
	} {
		expect.Equal(t, want, LinkSpeed(in), "speed %q", in)
	}
	widths := map[string]int{"16": 16, "1": 1, "0": 0, "63": 0, "255": 0, "x16": 16}
	for in, want := range widths {
		expect.Equal(t, want, LinkWidth(in), "width %q", in)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(configOf())
	f.Add(configOf()[:256])
	f.Add(configOf()[:64])
	f.Add(slices.Repeat([]byte{0xff}, 64))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var d facts.PCIDevice
		readConfig(&d, b)
		expect.That(t, !d.Extended || len(b) > 256, "extended space read from %d bytes", len(b))
		l := d.Link
		expect.That(t, l == nil || l.Width <= 32 && l.MaxWidth <= 32 && l.SpeedGTs <= 64 && l.MaxSpeedGTs <= 64, "link %+v", l)
		for _, bar := range d.ResizableBARs {
			expect.That(t, bar.SizeBytes > 0 && bar.MaxBytes >= bar.SizeBytes && bar.Index <= 5, "resizable BAR %+v", bar)
		}
	})
}

func FuzzResource(f *testing.F) {
	f.Add([]byte("0x0000104002000000 0x0000104002ffffff 0x000000000014220c\n"))
	f.Add([]byte("0x0 0xffffffffffffffff 0x200\n0 0 0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, bar := range parseResource(b) {
			expect.That(t, bar.SizeBytes > 0 && bar.Index >= 0 && bar.Index <= 5, "BAR %+v", bar)
		}
		speed := LinkSpeed(string(b))
		expect.That(t, !math.IsNaN(speed) && speed >= 0 && speed <= 64, "speed %g", speed)
	})
}

func TestParsePCIPath(t *testing.T) {
	for _, test := range []struct {
		path, root string
		ancestors  []string
	}{
		{"/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0", "pci0000:00", []string{"0000:00:01.0"}},
		{"/sys/devices/pci0000:00/0000:00:06.0", "pci0000:00", nil},
		{"/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/MSFT1000:00/5620e0c7-0001/pci0001:00/0001:00:00.0", "pci0001:00", nil},
		{"/sys/devices/platform/soc/40000000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0", "pci0000:00", []string{"0000:00:00.0"}},
		{"/sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0/10000:e1:00.0", "pci0000:00", []string{"0000:00:0e.0", "10000:e0:01.0"}},
		{"/sys/bus/pci/devices/0000:01:00.0", "", nil},
	} {
		root, ancestors := parsePath(test.path)
		expect.That(t, root == test.root && slices.Equal(ancestors, test.ancestors), "%s: %q %q, want %q %q", test.path, root, ancestors, test.root, test.ancestors)
	}
}
