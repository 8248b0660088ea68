package text_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/gpudoctor/gpudoctor/checks"
	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/gather"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/checks/text"
	"github.com/gpudoctor/gpudoctor/fixtures"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// save writes a file of a test, and returns its path.
func save(t *testing.T, name string, data []byte) string {
	t.Helper()
	file := written(t, t.TempDir(), name, string(data))
	return file
}

// TestMachinesAsTrees checks that the files of each recorded machine give the same facts as the
// recording of these files, as a folder and as an archive of each kind.
func TestMachinesAsTrees(t *testing.T) {
	for _, name := range expect.SomeRows(4, fixtures.Examples()) {
		t.Run(name, func(t *testing.T) {
			recording := expect.Value(fixtures.Example(name))(t)
			files, rest := checktest.SplitRecording(t, name)
			want := plain(gathered(t, rest))
			names := gathered(t, recording).Host
			// The names that the kernel gives itself are in files, too: those that the recording holds.
			if bytes.Contains(recording, []byte(" lm ")) {
				want.Host.Arch = names.Arch
			}
			folder := t.TempDir()
			expect.NoError(t, os.CopyFS(folder, files))
			packed := checktest.Tar(t, "", files)
			for _, of := range []string{
				folder,
				save(t, "m.tar.gz", checktest.Gzip(checktest.Tar(t, "./sosreport-node1", files))),
				save(t, "m.zip", checktest.Zip(t, "case 12/node1", files)),
				save(t, "outer.tar", checktest.Tar(t, "", fstest.MapFS{"ticket/m.tgz": {Data: checktest.Gzip(packed)}})),
			} {
				got, err := text.Read(t.Context(), []string{of}, text.Options{})
				expect.Must(t, err == nil, "%s: %v", of, err)
				expect.That(t, got.Recording != "", "%s: no machine", of)
				for _, text := range got.Facts.Texts {
					expect.That(t, strings.HasSuffix(text.Name, "etc/os-release") && text.Unread == "", "%s: the text %+v", of, text)
				}
				expect.NoDiff(t, want, plain(got.Facts), "the recording and %s", of)
			}
		})
	}
}

func gathered(t *testing.T, recording []byte) *facts.Facts {
	t.Helper()
	f, _ := checks.Gather(t.Context(), expect.Value(host.ParseSnapshot("recording", recording))(t), gather.Options{})
	return f
}

// plain leaves out of facts what a tree says in other words: why something is unknown.
func plain(f *facts.Facts) *facts.Facts {
	p := *f
	p.Texts, p.Origins = nil, nil
	p.Unknown = expect.Map(f.Unknown, func(u facts.Unknown) facts.Unknown { return facts.Unknown{Section: u.Section, Fact: u.Fact} })
	slices.SortFunc(p.Unknown, func(a, b facts.Unknown) int {
		return cmp.Or(strings.Compare(a.Section, b.Section), strings.Compare(a.Fact, b.Fact))
	})
	p.Unknown = slices.Compact(p.Unknown)
	return &p
}

// machineFiles are files of a machine with two GPUs.
func machineFiles() fstest.MapFS {
	all := fstest.MapFS{
		"proc/cmdline": {Data: []byte("root=/dev/sda1 iommu=pt\n")},
		"proc/version": {Data: []byte("Linux version 6.8.0-41-generic (x) #1\n")},
	}
	for _, a := range []string{"0000:3b:00.0", "0000:5e:00.0"} {
		for name, text := range map[string]string{"class": "0x030200\n", "vendor": "0x10de\n", "device": "0x2330\n", "numa_node": "0\n"} {
			all["sys/devices/pci0000:3a/0000:3a:00.0/"+a+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		all["sys/bus/pci/devices/"+a] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../../../devices/pci0000:3a/0000:3a:00.0/" + a)}
	}
	return all
}

func TestMachineAndTexts(t *testing.T) {
	files := machineFiles()
	maps.Copy(files, fstest.MapFS{
		"sos_commands/kernel/uname_-a":      {Data: []byte("Linux node7 6.8.0-41-generic #41-Ubuntu SMP x86_64 x86_64 x86_64 GNU/Linux\n")},
		"sos_commands/kernel/dmesg":         {Data: []byte("[   12.803392] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n")},
		"sos_commands/nvidia/nvidia-smi_-L": {Data: []byte("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-8f6c1d1e-2222-3333-4444-555566667777)\n")},
		"sos_commands/pci/lspci":            {Data: []byte("3b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)\n\tLnkCap:\tPort #0, Speed 32GT/s, Width x16\n\tLnkSta:\tSpeed 16GT/s (downgraded), Width x8\n")},
		"proc/net/bonding/bond0":            {Data: []byte("Ethernet Channel Bonding Driver: v6.8.0\n\nBonding Mode: IEEE 802.3ad Dynamic link aggregation\nMII Status: up\n\nSlave Interface: eth0\nMII Status: up\nSpeed: 100000 Mbps\n")},
		"proc/interrupts":                   {Data: []byte("  0: 1\n")},
	})
	of := save(t, "m.tar", checktest.Tar(t, "sosreport-node7", files))
	f := expect.Value(text.Read(t.Context(), []string{of}, text.Options{}))(t).Facts
	expect.That(t, f.Host.Kernel == "6.8.0-41-generic" && f.Host.Arch == "amd64" && slices.Contains(f.Host.CommandLine, "iommu=pt"), "the host is %+v", f.Host)
	expect.That(t, f.KernelLog != nil && len(f.KernelLog.Events) == 1, "the kernel log is %+v", f.KernelLog)
	expect.That(t, len(f.PCI.Devices) == 2 && !f.PCI.Partial && f.PCI.Devices[0].Link != nil && f.PCI.Devices[0].Link.Width == 8 && f.PCI.Devices[1].Link == nil, "the PCI devices are %+v", f.PCI)
	expect.That(t, len(f.GPUs.Devices) == 2 && f.GPUs.Devices[0].InPCI, "the GPUs are %+v", f.GPUs.Devices)
	for _, u := range f.Unknown {
		expect.That(t, u.Section != "kernel_log", "still unknown: %+v", u)
	}
	for _, o := range f.Origins {
		expect.That(t, o.Fact != "host.kernel" || o.Value == f.Host.Kernel, "the origin %+v is of another value", o)
	}
	names := []string{}
	for _, text := range f.Texts {
		names = append(names, text.Name)
		expect.That(t, len(text.Kinds) > 0, "%s is not recognized: %s", text.Name, text.Problem)
	}
	expect.Len(t, 5, names, "the texts are")
}

func TestSeveralMachines(t *testing.T) {
	folder := t.TempDir()
	expect.NoError(t, os.CopyFS(filepath.Join(folder, "node1"), machineFiles()))
	expect.NoError(t, os.CopyFS(filepath.Join(folder, "node2"), machineFiles()))
	_, err := text.Read(t.Context(), []string{folder}, text.Options{})
	want := ": " + filepath.Join(folder, "node1") + ", " + filepath.Join(folder, "node2")
	expect.That(t, errors.Is(err, text.ErrSeveral) && strings.HasSuffix(err.Error(), want), "got %v, want an error that names%s", err, want)
	// The root folder of a container on the machine is no other machine.
	expect.NoError(t, os.CopyFS(filepath.Join(folder, "node1/run/containers/1"), machineFiles()))
	got, err := text.Read(t.Context(), []string{filepath.Join(folder, "node1")}, text.Options{})
	expect.That(t, err == nil && got.Recording == filepath.Join(folder, "node1"), "got %q, %v", got.Recording, err)
	many := t.TempDir()
	for i := range 20 {
		expect.NoError(t, os.CopyFS(filepath.Join(many, strings.Repeat("n", i+1)), machineFiles()))
	}
	_, err = text.Read(t.Context(), []string{many}, text.Options{})
	expect.That(t, errors.Is(err, text.ErrSeveral) && strings.Count(err.Error(), ", ") == 16 && strings.HasSuffix(err.Error(), ", and others"), "got %v", err)
}

// TestCutTree checks that a tree that ends before its time, at any byte, shows no value that the whole
// one does not show, and that what may be missing is unknown.
func TestCutTree(t *testing.T) {
	files := machineFiles()
	files["sys/kernel/iommu_groups"], files["sys/class/iommu"] = &fstest.MapFile{Mode: fs.ModeDir}, &fstest.MapFile{Mode: fs.ModeDir}
	packed := checktest.Tar(t, "node1", files)
	whole, err := text.Read(t.Context(), []string{save(t, "m.tar", packed)}, text.Options{})
	expect.Must(t, err == nil && whole.Facts.IOMMU.Mode == "off", "got %v, %v", whole.Facts, err)
	for end := 512; end < len(packed)-1024; end += 1536 - 1 {
		got, err := text.Read(t.Context(), []string{save(t, "m.tar", packed[:end])}, text.Options{})
		if err != nil {
			continue // There is nothing in it yet.
		}
		f := got.Facts
		expect.That(t, slices.ContainsFunc(f.Texts, func(t facts.Text) bool { return t.Unread != "" }), "cut at %d: it is not said: %+v", end, f.Texts)
		expect.That(t, f.IOMMU.Mode == "" && f.IOMMU.Units == nil, "cut at %d: the IOMMU is %+v", end, f.IOMMU)
		expect.That(t, f.PCI == nil && f.GPUs.Devices == nil, "cut at %d: PCI is %+v, GPUs are %+v", end, f.PCI, f.GPUs)
	}
}

// TestXZ checks that what xz -9 has compressed is read, and that what claims to need more memory than that is not.
func TestXZ(t *testing.T) {
	const packed = "fd377a585a000004e6d6b446020021011c00000010cf58cc01001c4e43434c2076657273696f6e20322e32382e392b6375646131332e300a" +
		"0000000023d4bdae1248631c0001351d441bb1e11fb6f37d010000000004595a"
	data := expect.Value(hex.DecodeString(packed))(t)
	got, err := text.Read(t.Context(), []string{save(t, "nccl.log.xz", data)}, text.Options{})
	expect.That(t, err == nil && len(got.Facts.Software) != 0 && got.Facts.Software[0].Version == "2.28.9", "got %+v, %v", got.Facts.Software, err)
	for end := range len(data) {
		got, err := text.Read(t.Context(), []string{save(t, "nccl.log.xz", data[:end])}, text.Options{})
		expect.That(t, err != nil || got.Facts.Texts[0].Unread != "", "cut at %d, it passes for whole", end)
	}
	huge := slices.Clone(data)
	huge[16] = 40 // The size of the dictionary, 4 GiB (the .xz file format 1.2.0, 5.3.1), and the checksum of its head.
	binary.LittleEndian.PutUint32(huge[20:], crc32.ChecksumIEEE(huge[12:20]))
	expect.Fails(text.Read(t.Context(), []string{save(t, "nccl.log.xz", huge)}, text.Options{}))(t, "dictionary size exceeds max", "a dictionary of 4 GiB")
}

func packZstd(tb testing.TB, content string, window int) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := expect.Value(zstd.NewWriter(&b, zstd.WithWindowSize(window)))(tb)
	expect.Value(w.Write([]byte(content)))(tb)
	expect.NoError(tb, w.Close())
	return b.Bytes()
}

// TestZstd checks that what zstd has compressed is read, in an archive as well, that none of it is
// lost without a word, and that what claims to need more memory than the bound is refused.
func TestZstd(t *testing.T) {
	const content = "NCCL version 2.28.9+cuda13.0\n"
	data := packZstd(t, content, 1<<20)
	skipped := append([]byte("\x50\x2a\x4d\x18\x02\x00\x00\x00ab"), data...)
	archive := packZstd(t, string(tarred(t, "logs/nccl.log.zst", string(data))), 1<<20)
	for name, raw := range map[string][]byte{"nccl.log.zst": data, "skip.zst": skipped, "ticket.tar.zst": archive, "two.zst": append(slices.Clone(data), data...)} {
		got, err := text.Read(t.Context(), []string{save(t, name, raw)}, text.Options{})
		expect.That(t, err == nil && len(got.Facts.Software) != 0 && got.Facts.Software[0].Version == "2.28.9", "%s: got %+v, %v", name, got.Facts, err)
	}
	for end := range len(data) {
		got, err := text.Read(t.Context(), []string{save(t, "nccl.log.zst", data[:end])}, text.Options{})
		expect.That(t, err != nil || got.Facts.Texts[0].Unread != "", "cut at %d, it passes for whole", end)
	}
	// A frame with a window of 128 MiB (RFC 8878, 3.1.1.1.2), and one that is all of 4 GiB.
	for name, head := range map[string]string{"window": "\x28\xb5\x2f\xfd\x00\x88", "single": "\x28\xb5\x2f\xfd\xa0\x00\x00\x00\xff"} {
		_, err := text.Read(t.Context(), []string{save(t, name+".zst", append([]byte(head), "\x01\x00\x00"...))}, text.Options{})
		expect.That(t, err != nil && (strings.Contains(err.Error(), "window size exceeded") || strings.Contains(err.Error(), "exceeds")), "%s: %v", name, err)
	}
}
