package library

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpudoctor/gpudoctor/checks/checktest"
	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/host"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// oneRoot is the mount table of a machine with one file system.
const oneRoot = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"

// makeLdCache builds a loader's cache from names and paths, with the flags of x86-64.
func makeLdCache(entries ...cacheEntry) []byte {
	b := append([]byte(cacheMagic), make([]byte, cacheHeader-len(cacheMagic))...)
	binary.LittleEndian.PutUint32(b[20:], uint32(len(entries)))
	b[28] = 2
	at := uint32(cacheHeader + cacheEntryBytes*len(entries))
	var text []byte
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint32(b, flagX8664|flagLibc6)
		b = binary.LittleEndian.AppendUint32(b, at+uint32(len(text)))
		text = append(append(text, e.name...), 0)
		b = binary.LittleEndian.AppendUint32(b, at+uint32(len(text)))
		text = append(append(text, e.path...), 0)
		b = append(b, make([]byte, 12)...)
	}
	return append(b, text...)
}

// big is the description of a library of a real one's size.
var big = host.FileInfo{Mode: 0o755, Size: 90 << 20}

const lib64 = "/usr/lib/x86_64-linux-gnu/"

// addDriver puts a driver's libraries in place, as its installer does.
func addDriver(m *host.Memory) {
	const version = "580.95.05"
	for _, name := range []string{"libcuda", "libnvidia-ml"} {
		m.AddInfo(lib64+name+".so."+version, big)
		m.AddLink(lib64+name+".so.1", name+".so."+version)
		m.AddLink(lib64+name+".so", name+".so.1")
	}
}

func TestLibraries(t *testing.T) {
	driverCache := makeLdCache(
		cacheEntry{"libcuda.so.1", lib64 + "libcuda.so.1"}, cacheEntry{"libcuda.so", lib64 + "libcuda.so"},
		cacheEntry{"libnvidia-ml.so.1", lib64 + "libnvidia-ml.so.1"},
		cacheEntry{"libc.so.6", lib64 + "libc.so.6"},
	)
	cuda := facts.Library{Kind: "libcuda", Path: lib64 + "libcuda.so.1", RealPath: lib64 + "libcuda.so.580.95.05", Version: "580.95.05", FoundBy: byCache, Loads: true}
	again := cuda
	again.FoundBy, again.Loads = byDefault, false
	ml := facts.Library{Kind: "libnvidia-ml", Path: lib64 + "libnvidia-ml.so.1", RealPath: lib64 + "libnvidia-ml.so.580.95.05", Version: "580.95.05", FoundBy: byCache, Loads: true}
	mlAgain := ml
	mlAgain.FoundBy, mlAgain.Loads = byDefault, false
	for _, tt := range []struct {
		name    string
		environ []string
		put     func(m *host.Memory)
		want    []facts.Library
	}{
		{"an empty machine", nil, func(*host.Memory) {}, []facts.Library{}},
		{"a driver in the cache", nil, func(m *host.Memory) {
			addDriver(m)
			m.AddFile("/etc/ld.so.cache", driverCache)
		}, []facts.Library{cuda, again, ml, mlAgain}},
		{"a driver that the container runtime mounted", nil, func(m *host.Memory) {
			addDriver(m)
			m.AddFile("/proc/self/mountinfo", []byte("9 1 8:1 /x "+lib64+"libcuda.so.580.95.05 ro - ext4 /dev/sda1 ro\n"))
		}, []facts.Library{
			{Kind: "libcuda", Path: lib64 + "libcuda.so.1", RealPath: lib64 + "libcuda.so.580.95.05", Version: "580.95.05", FoundBy: byDefault, Loads: true, Mounted: true},
			{Kind: "libnvidia-ml", Path: lib64 + "libnvidia-ml.so.1", RealPath: lib64 + "libnvidia-ml.so.580.95.05", Version: "580.95.05", FoundBy: byDefault, Loads: true},
		}},
		{
			"LD_LIBRARY_PATH comes before the cache; stubs and compat are known by their folder",
			[]string{"LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs::/usr/local/cuda/compat:relative"},
			func(m *host.Memory) {
				addDriver(m)
				m.AddFile("/etc/ld.so.cache", driverCache)
				m.AddLink("/usr/local/cuda", "cuda-12.4")
				m.AddInfo("/usr/local/cuda-12.4/lib64/stubs/libcuda.so", host.FileInfo{Mode: 0o755, Size: 60 << 10})
				m.AddInfo("/usr/local/cuda-12.4/compat/libcuda.so.550.54.15", big)
				m.AddLink("/usr/local/cuda-12.4/compat/libcuda.so.1", "libcuda.so.550.54.15")
			},
			[]facts.Library{
				{Kind: "libcuda", Path: "/usr/local/cuda/lib64/stubs/libcuda.so", RealPath: "/usr/local/cuda-12.4/lib64/stubs/libcuda.so", FoundBy: byLibraryPath, Stub: true},
				{Kind: "libcuda", Path: "/usr/local/cuda/compat/libcuda.so.1", RealPath: "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15", Version: "550.54.15", FoundBy: byLibraryPath, Compat: true, Loads: true},
				{Kind: "libcuda", Path: cuda.Path, RealPath: cuda.RealPath, Version: cuda.Version, FoundBy: byCache},
				again,
				{Kind: "libcuda", Path: "/usr/local/cuda/lib64/stubs/libcuda.so", RealPath: "/usr/local/cuda-12.4/lib64/stubs/libcuda.so", FoundBy: byToolkit, Stub: true},
				{Kind: "libcuda", Path: "/usr/local/cuda/compat/libcuda.so.1", RealPath: "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15", Version: "550.54.15", FoundBy: byToolkit, Compat: true},
				ml, mlAgain,
			},
		},
		{"a stub that was linked or copied to where the driver's library belongs", nil, func(m *host.Memory) {
			m.AddInfo("/usr/local/cuda/lib64/stubs/libcuda.so", host.FileInfo{Mode: 0o755, Size: 60 << 10})
			m.AddLink("/usr/lib/libcuda.so.1", "/usr/local/cuda/lib64/stubs/libcuda.so")
			m.AddInfo("/usr/lib/libnvidia-ml.so.1", host.FileInfo{Mode: 0o755, Size: 60 << 10})
		}, []facts.Library{
			{Kind: "libcuda", Path: "/usr/lib/libcuda.so.1", RealPath: "/usr/local/cuda/lib64/stubs/libcuda.so", FoundBy: byDefault, Stub: true, Loads: true},
			{Kind: "libcuda", Path: "/usr/local/cuda/lib64/stubs/libcuda.so", FoundBy: byToolkit, Stub: true},
			{Kind: "libnvidia-ml", Path: "/usr/lib/libnvidia-ml.so.1", FoundBy: byDefault, Stub: true, Loads: true},
		}},
		{"mount points left over in an image: empty, and dangling", nil, func(m *host.Memory) {
			m.AddFile(lib64+"libcuda.so.535.54.03", nil)
			m.AddLink(lib64+"libcuda.so.1", "libcuda.so.535.54.03")
			m.AddLink(lib64+"libnvidia-ml.so.1", "libnvidia-ml.so.535.54.03")
		}, []facts.Library{
			{Kind: "libcuda", Path: lib64 + "libcuda.so.1", RealPath: lib64 + "libcuda.so.535.54.03", Version: "535.54.03", FoundBy: byDefault, Loads: true, Empty: true},
		}},
		{
			"a small stand-in that was put first is no stub",
			[]string{"LD_LIBRARY_PATH=/sim"},
			func(m *host.Memory) { m.AddFile("/sim/libcuda.so.1", []byte("\x7fELF\x02")) },
			[]facts.Library{{Kind: "libcuda", Path: "/sim/libcuda.so.1", FoundBy: byLibraryPath, Loads: true}},
		},
		{"a library of 32 bits is passed over", []string{"LD_LIBRARY_PATH=/old:/new"}, func(m *host.Memory) {
			m.AddFile("/old/libnccl.so.2", []byte("\x7fELF\x01"))
			m.AddFile("/new/libnccl.so.2", []byte("\x7fELF\x02"))
			m.Answer(host.AskLibraryText+"/new/libnccl.so.2", "NCCL version 2.28.9")
		}, []facts.Library{
			{Kind: "libnccl", Path: "/old/libnccl.so.2", FoundBy: byLibraryPath},
			{Kind: "libnccl", Path: "/new/libnccl.so.2", Version: "2.28.9", FoundBy: byLibraryPath, Loads: true},
		}},
		{"LD_PRELOAD comes before all", []string{"LD_PRELOAD=/x/libnccl.so.2.21.5 /x/libother.so"}, func(m *host.Memory) {
			m.AddInfo("/x/libnccl.so.2.21.5", big)
			m.AddInfo("/usr/lib64/libnccl.so.2.28.9", big)
			m.AddLink("/usr/lib64/libnccl.so.2", "libnccl.so.2.28.9")
		}, []facts.Library{
			{Kind: "libnccl", Path: "/x/libnccl.so.2.21.5", Version: "2.21.5", FoundBy: byPreload, Loads: true},
			{Kind: "libnccl", Path: "/usr/lib64/libnccl.so.2", RealPath: "/usr/lib64/libnccl.so.2.28.9", Version: "2.28.9", FoundBy: byDefault},
		}},
		{"several runtimes, each with its own name", nil, func(m *host.Memory) {
			for _, v := range []string{"11.8.89", "12.4.127", "13.0.48"} {
				m.AddInfo("/usr/lib64/libcudart.so."+v, big)
			}
			m.AddLink("/usr/lib64/libcudart.so.11.0", "libcudart.so.11.8.89")
			m.AddLink("/usr/lib64/libcudart.so.12", "libcudart.so.12.4.127")
			m.AddLink("/usr/lib64/libcudart.so", "libcudart.so.12")
		}, []facts.Library{
			{Kind: "libcudart", Path: "/usr/lib64/libcudart.so.11.0", RealPath: "/usr/lib64/libcudart.so.11.8.89", Version: "11.8.89", FoundBy: byDefault, Loads: true},
			{Kind: "libcudart", Path: "/usr/lib64/libcudart.so.12", RealPath: "/usr/lib64/libcudart.so.12.4.127", Version: "12.4.127", FoundBy: byDefault, Loads: true},
			{Kind: "libcudart", Path: "/usr/lib64/libcudart.so.13.0.48", Version: "13.0.48", FoundBy: byDefault},
		}},
		{"Python's packages, with the version of their metadata", []string{"VIRTUAL_ENV=/srv/venv", "HOME=/root"}, func(m *host.Memory) {
			const site = "/srv/venv/lib/python3.12/site-packages/"
			m.AddInfo(site+"nvidia/nccl/lib/libnccl.so.2", big)
			m.AddFile(site+"nvidia_nccl_cu12-2.27.3.dist-info/METADATA", nil)
			m.AddInfo(site+"nvidia/cu13/lib/libcudart.so.13", big)
			m.AddFile(site+"nvidia_cuda_runtime-13.0.48.dist-info/METADATA", nil)
			m.AddInfo(site+"torch/lib/libcudart-d0da41ae.so.11.0", big)
		}, []facts.Library{
			{Kind: "libcudart", Path: "/srv/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13", Version: "13.0.48", FoundBy: byPython},
			{Kind: "libcudart", Path: "/srv/venv/lib/python3.12/site-packages/torch/lib/libcudart-d0da41ae.so.11.0", FoundBy: byPython},
			{Kind: "libnccl", Path: "/srv/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2", Version: "2.27.3", FoundBy: byPython},
		}},
		{"two packages that overwrite each other: the content decides", nil, func(m *host.Memory) {
			const site = "/usr/lib/python3/dist-packages/"
			m.AddFile(site+"nvidia/nccl/lib/libnccl.so.2", []byte("\x7fELF\x02"))
			m.Answer(host.AskLibraryText+site+"nvidia/nccl/lib/libnccl.so.2", "NCCL version 2.21.5")
			m.AddDir(site + "nvidia_nccl_cu11-2.21.5.dist-info")
			m.AddDir(site + "nvidia_nccl_cu12-2.27.3.dist-info")
		}, []facts.Library{{Kind: "libnccl", Path: "/usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2", Version: "2.21.5", FoundBy: byPython}}},
		{"no cache: the folders of ld.so.conf are looked into, though the loader does not know them", nil, func(m *host.Memory) {
			m.AddFile("/etc/ld.so.conf", []byte("include /etc/ld.so.conf.d/*.conf\n"))
			m.AddFile("/etc/ld.so.conf.d/rocm.conf", []byte("# ROCm\n/opt/amd/lib\n"))
			m.AddInfo("/opt/amd/lib/libamdhip64.so.6.2.60204", big)
			m.AddLink("/opt/amd/lib/libamdhip64.so.6", "libamdhip64.so.6.2.60204")
			m.AddInfo("/opt/amd/lib/librccl.so.1.0.60204", big)
			m.Answer(host.AskLibraryText+"/opt/amd/lib/librccl.so.1.0.60204", "RCCL version 2.20.5")
		}, []facts.Library{
			{Kind: "libamdhip64", Path: "/opt/amd/lib/libamdhip64.so.6", RealPath: "/opt/amd/lib/libamdhip64.so.6.2.60204", Version: "6.2.60204", FoundBy: byToolkit},
			{Kind: "librccl", Path: "/opt/amd/lib/librccl.so.1.0.60204", Version: "2.20.5", FoundBy: byToolkit},
		}},
		{"ROCm as Python packages", nil, func(m *host.Memory) {
			site := "/usr/lib/python3/dist-packages/"
			m.AddInfo(site+"_rocm_sdk_core/lib/libamdhip64.so.7", big)
			m.AddInfo(site+"_rocm_sdk_libraries_gfx120X_all/lib/librccl.so.1", big)
			m.Answer(host.AskLibraryText+site+"_rocm_sdk_libraries_gfx120X_all/lib/librccl.so.1", "RCCL version 2.26.6")
		}, []facts.Library{
			{Kind: "libamdhip64", Path: "/usr/lib/python3/dist-packages/_rocm_sdk_core/lib/libamdhip64.so.7", FoundBy: byPython},
			{Kind: "librccl", Path: "/usr/lib/python3/dist-packages/_rocm_sdk_libraries_gfx120X_all/lib/librccl.so.1", Version: "2.26.6", FoundBy: byPython},
		}},
		{"plugins", nil, func(m *host.Memory) {
			m.AddInfo("/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net-ofi.so", big)
		}, []facts.Library{{Kind: "nccl-net", Path: "/opt/amazon/ofi-nccl/lib/x86_64-linux-gnu/libnccl-net-ofi.so", FoundBy: byToolkit}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m host.Memory
			m.AddFile("/proc/self/mountinfo", []byte(oneRoot))
			m.Answer(host.AskEnviron, tt.environ)
			tt.put(&m)
			got := checktest.One(t, Check, &m)
			expect.NoDiff(t, &facts.LibraryFacts{Files: tt.want}, got.Libraries, "libraries")
			expect.Len(t, 0, got.Unknown, "unknown")
		})
	}
}

func TestLibrariesUnreadable(t *testing.T) {
	var m host.Memory
	m.AnswerError(host.AskEnviron, errors.New("no answer"))
	m.AddError("/proc/self/mountinfo", fs.ErrPermission)
	m.AddFile("/etc/ld.so.cache", []byte("not a cache"))
	m.AddError("/usr/lib64", fs.ErrPermission)
	got := checktest.One(t, Check, &m)
	expect.NoDiff(t, []facts.Unknown{
		{Section: "libraries", Fact: "files", Reason: "LD_LIBRARY_PATH is not known: read the environment: no answer"},
		{Section: "libraries", Fact: "files.mounted", Reason: "read /proc/self/mountinfo: permission denied", Hint: "run as root"},
		{Section: "libraries", Fact: "files", Reason: "/etc/ld.so.cache: not a cache of the glibc loader"},
	}, got.Unknown[:min(3, len(got.Unknown))], "unknown")
	expect.NoDiff(t, []facts.Library{}, got.Libraries.Files, "files")
}

func TestLibrariesBound(t *testing.T) {
	var m host.Memory
	m.Answer(host.AskEnviron, []string{"LD_LIBRARY_PATH=" + strings.Repeat("/a:", maxPathList+1)})
	m.AddFile("/proc/self/mountinfo", []byte(oneRoot))
	for i := range maxLibraries + 5 {
		m.AddFile(fmt.Sprintf("/a/libnccl-net-%d.so", i), nil)
	}
	got := checktest.One(t, Check, &m).Libraries
	expect.That(t, len(got.Files) == maxLibraries && got.Truncated, "got %d files, truncated %t, want %d and true", len(got.Files), got.Truncated, maxLibraries)
}

func TestLdCache(t *testing.T) {
	entries := []cacheEntry{{"libcuda.so.1", "/usr/lib/libcuda.so.1"}, {"libnccl.so.2", "/usr/lib/libnccl.so.2"}}
	valid := makeLdCache(entries...)
	old := append([]byte(oldCacheMagic), make([]byte, 5)...)
	old[12] = 1
	old = append(old, make([]byte, oldCacheEntry+4)...)
	otherWord := slices.Clone(valid)
	binary.LittleEndian.PutUint32(otherWord[cacheHeader:], flagLibc6)
	outside := slices.Clone(valid)
	binary.LittleEndian.PutUint32(outside[cacheHeader+4:], 1<<31)
	for _, tt := range []struct {
		name string
		in   []byte
		want []cacheEntry
		fail string
	}{
		{"the format of our time", valid, entries, ""},
		{"with the older format in front", append(old, valid...), entries, ""},
		{"an entry of 32 bits is left out", otherWord, entries[1:], ""},
		{"an offset outside is left out", outside, entries[1:], ""},
		{"no entries", makeLdCache(), nil, ""},
		{"empty", nil, nil, "not a cache of the glibc loader"},
		{"cut off", valid[:60], nil, "the cache is truncated: 2 entries, room for 0"},
		{"the older format alone", old, nil, "not a cache of the glibc loader"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseLdCache(tt.in)
			expect.Equal(t, "", cmp.Diff(tt.want, got, cmp.AllowUnexported(cacheEntry{})), "difference of entries")
			expect.That(t, (tt.fail == "" || fmt.Sprint(err) == tt.fail) && (tt.fail != "" || err == nil), "error %v, want %q", err, tt.fail)
		})
	}
}

func FuzzLdCache(f *testing.F) {
	f.Add(makeLdCache(cacheEntry{"libcuda.so.1", "/usr/lib/libcuda.so.1"}))
	f.Add([]byte(oldCacheMagic + "\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseLdCache(b)
		expect.That(t, err == nil || entries == nil, "entries %v beside the error %v", entries, err)
		expect.That(t, len(entries) <= len(b)/cacheEntryBytes, "%d entries from %d bytes", len(entries), len(b))
		for _, e := range entries {
			expect.That(t, e.name != "" && e.path != "" && !strings.ContainsRune(e.path, 0), "bad entry %+v", e)
		}
	})
}

func FuzzLibraryName(f *testing.F) {
	f.Add("libcudart-d0da41ae.so.11.0")
	f.Add("libnccl.so.2.28.9")
	f.Fuzz(func(t *testing.T, file string) {
		kind, numbers, ok := splitLibrary(file)
		if !ok {
			return
		}
		expect.That(t, kind.Name != "" && strings.Trim(numbers, "0123456789.") == "", "%q: kind %q, numbers %q", file, kind.Name, numbers)
		v := versionOfName(kind, file)
		expect.That(t, v == "" || v == numbers, "%q: version %q, numbers %q", file, v, numbers)
	})
}
