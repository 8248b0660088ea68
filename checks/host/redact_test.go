package host

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/internal/redact"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

func TestRedactText(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{
			"uuids", "GPU-8f6c1d1e-2222-3333-4444-555566667777 and MIG-0a1b2c3d-0000-1111-2222-333344445555, again 8F6C1D1E-2222-3333-4444-555566667777",
			"GPU-00000000-0000-0000-0000-000000000001 and MIG-00000000-0000-0000-0000-000000000002, again 00000000-0000-0000-0000-000000000001",
		},
		{"old MIG name", "MIG-GPU-8f6c1d1e-2222-3333-4444-555566667777/1/0", "MIG-GPU-00000000-0000-0000-0000-000000000001/1/0"},
		{"no uuid", "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"},
		{"root", "root=UUID=8f6c1d1e-2222-3333-4444-555566667777 ro", "root=UUID=00000000-0000-0000-0000-000000000001 ro"},

		{
			"mac", "eth0: a0:36:9f:01:02:03 and A0:36:9F:01:02:03, none 00:00:00:00:00:00, all ff:ff:ff:ff:ff:ff",
			"eth0: 02:00:00:00:00:01 and 02:00:00:00:00:01, none 00:00:00:00:00:00, all ff:ff:ff:ff:ff:ff",
		},
		{"mac after a word", "mac:a0:36:9f:01:02:03 iface:a0:36:9f:01:02:04 addr:a0:36:9f:01:02:05:", "mac:02:00:00:00:00:01 iface:02:00:00:00:00:02 addr:02:00:00:00:00:03:"},
		{"mac of the boot interface", "BOOTIF=01-a0-36-9f-01-02-03 a0-36-9f-01-02-04", "BOOTIF=01-02-00-00-00-00-01 02-00-00-00-00-02"},
		{"mac in a name", "enxa0369f010203: renamed from eth0 (a0:36:9f:01:02:03)", "enx020000000001: renamed from eth0 (02:00:00:00:00:01)"},
		{"IPoIB", "80:00:02:08:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:ab:12:34", "02:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01"},

		{"ipv4", "10.1.2.3 to 10.1.2.4:4791, again 10.1.2.3<0> (10.1.2.0/24)", "240.0.0.1 to 240.0.0.4:4791, again 240.0.0.1<0> (240.0.0.2/24)"},
		{"ipv4 that stays", "127.0.0.1 0.0.0.0 255.255.255.0 239.1.2.3 192.0.2.9 172.17.0.2 240.0.0.9", "127.0.0.1 0.0.0.0 255.255.255.0 239.1.2.3 192.0.2.9 172.17.0.2 240.0.0.9"},
		{"ipv4 link-local", "169.254.169.254", "169.254.0.1"},
		{"ipv4 at the end of a sentence", "Connected to 10.1.2.3.", "Connected to 240.0.0.1."},
		{"ipv4 of tcpdump", "IP 10.0.0.1.51784 > 10.0.0.9.ssh: Flags [S]", "IP 240.0.0.1.51784 > 240.0.0.8.ssh: Flags [S]"},
		{"ipv4 range", "10.0.0.1-10.0.0.9", "240.0.0.1-240.0.0.8"},
		{"url", "http://10.1.2.3/path https://me:pw@example.org/x", "http://240.0.0.1/path https://redacted@example.org/x"},
		{"nfs", "10.1.2.3:/export /mnt nfs rw,addr=10.1.2.3", "240.0.0.1:/export-1 /mnt nfs rw,addr=240.0.0.1"},

		{"ipv6", "2a02:1234::17 fe80::a236:9fff:fe01:203%eth0 fd12:3456::9 ::1 ::", "2001:db8:0:1:200::1 fe80::200:0:0:2%eth0 fd00::2:200:0:0:3 ::1 ::"},
		{"ipv6 with a port", "[2a02:1234::17]:80 inet6 fe80::1/64: timeout", "[2001:db8:0:1:200::1]:80 inet6 fe80::200:0:0:2/64: timeout"},
		{"mapped", "::ffff:10.1.2.3", "::ffff:240.0.0.1"},
		{"gid", "fe80:0000:0000:0000:0c42:a103:00ab:1234", "fe80:0000:0000:0000:0200:0000:0000:0001"},
		{"gid of RoCE over IPv4", "0000:0000:0000:0000:0000:ffff:0a01:0203 10.1.2.3", "0000:0000:0000:0000:0000:ffff:f000:0001 240.0.0.1"},
		{"no gid", "0000:0000:0000:0000:0000:0000:0000:0000", "0000:0000:0000:0000:0000:0000:0000:0000"},
		{
			"guid", "0c42:a103:00ab:1234 and its gid fe80:0000:0000:0000:0c42:a103:00ab:1234, none 0000:0000:0000:0000",
			"0200:0000:0000:0001 and its gid fe80:0000:0000:0000:0200:0000:0000:0001, none 0000:0000:0000:0000",
		},
		{"bare guid", "node_guid: 0x0c42a10300ab1234", "node_guid: 0x0200000000000001"},

		{"home", "/home/alice/.nccl.conf /home/bob:/home/alice /home/user1 /Users/carol/x", "/home/user1/.nccl.conf /home/user2:/home/user1 /home/user1 /Users/user3/x"},
		{
			"secrets", `NVIDIA_API_KEY=nvapi-abc NCCL_IB_PKEY=0x8001 HF_TOKEN="a b" x UCX_RKEY_MPOOL=1 password='p q'`,
			`NVIDIA_API_KEY=redacted NCCL_IB_PKEY=0x8001 HF_TOKEN="redacted" x UCX_RKEY_MPOOL=1 password='redacted'`,
		},
		{"serial number", "Serial Number : 1654922003141\nSerial Number : N/A\nboard 1654922003141 x", "Serial Number : serial-1\nSerial Number : N/A\nboard serial-1 x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := redact.New().Text(tt.text)
			expect.NoDiff(t, tt.want, got, "it")
			expect.Equal(t, got, redact.New().Text(got), "redacted twice: %q becomes", got)
		})
	}
}

// TestRedactLeaves checks that nothing is taken for an address that is none.
func TestRedactLeaves(t *testing.T) {
	for _, text := range []string{
		"0000:3b:00.0 00000000:00:06.0 3b:00.0 0000:3b:00",
		"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.",
		"pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
		"[12:34:56] 2026-11-21T05:43:00.123456 05:43:00",
		"12.345678 DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0xfe800000",
		"Driver Version: 580.159.04 CUDA 13.0 NVIDIA UNIX x86_64 Kernel Module 580.159.04",
		"version 13.0.1.2, firmware: 22.39.10.02, BIOS 1.2.3.4, VBIOS Version : 96.00.99.00.01",
		"libnccl.so.2.21.5.1 nvidia_cublas_cu12-12.1.3.1.dist-info nvidia-cublas-cu12==12.1.3.1",
		"Linux 5.15.0.1-generic v1.2.3.4 /opt/tool/1.2.3.4/lib",
		"00000010: 86 80 00 00 00:01:02:03:04:05:06:07:08:09 de:ad",
		"std::vector c10::cafe c10::cuda ffff::x ::add a::b",
		"pci_bus 0000:00: root bus resource [mem 0xfe000000-0xfe7fffff window]",
		"ACPI: PCI Root Bridge [PCI0] (domain 0000 [bus 00-ff])",
		"Serial: 8250/16550 driver, 32 ports; SerialNumber=3",
		"node0 gpu0 mlx5_0 eth0 host 0-15,64-79",
		"tmpfs /dev/shm rw,size=65536k 0:25 / 1:2:3",
		"5-4-3-2-1-0 26-11-21-05-43-00",
		"NCCL_SOCKET_IFNAME=^docker0,lo KEY=1 MONKEY_COUNT=5",
		"Linux version 6.8.0-60-generic (buildd@lcy02-amd64-054) (gcc 13.3.0) #63-Ubuntu SMP",
		"pci 0000:3b:00.0: [10de:2335] type 00 class 0x030200", " [10de:2335]", "nvidia 0000:3b:00.0: enabling device (0000 -> 0002)",
		"GPU[00-07] gpu[0-7] bus[0-3] channel[0,1] worker[0] NCCL INFO Channel 00/16 : 0 1 2 3", "CPU affinity 0-15,64-79 NUMA node1 CPU(s): 16-31",
		"    image: nvcr.io/nvidia/pytorch:25.01-py3", "see https://github.com/NVIDIA/nccl/issues/1515 and https://docs.nvidia.com/x",
		"2025-08-19 10:21:07 INFO trainer: step 5", "2025-08-19 10:21:07,123 - train - INFO - loss: 1.25", "[rank0]:[W socket.cpp:663] x", "[rank3]: Traceback", "rank 3 on GPU 2",
		"on node 0, on host 1", "host: private", "node: 3", "Host: x86_64-linux-gnu", "error: connection refused", "master_addr is not set", "MASTER_ADDR=localhost MASTER_PORT=29500",
		"torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970", "libnccl.so.2(+0x1a2b3)[0x7f0123456789]", "File \"/usr/lib/python3.12/site-packages/torch/nn.py\", line 12, in forward",
		"socket://0.0.0.0:2345 unix:///run/x.sock file:///etc/x", "tmpfs on /dev/shm type tmpfs (rw)", "/dev/sda1 on / type ext4 (rw)", "overlay / overlay rw,lowerdir=/a:/b 0 0",
		"docker run --gpus all --ipc host --network host --shm-size 8g", "python -m torch.distributed.run --nproc_per_node 8 train.py", "mpirun -np 8 -x NCCL_DEBUG=INFO ./all_reduce_perf -b 8 -e 1G -f 2 -g 1",
	} {
		r := redact.New()
		r.Study(text)
		expect.Equal(t, text, r.Text(text), "a text without a name")
	}
}

func TestRedactHosts(t *testing.T) {
	r := redact.New()
	for _, tt := range []struct{ name, want string }{
		{"dgx-07.ai.corp.example", "host-1"},
		{"dgx-07", "host-1"},
		{"nvidia", "host-2"},
		{"node0", "host-3"},
		{"localhost", "localhost"},
		{"(none)", "(none)"},
		{"host-1", "host-1"},
		{"", ""},
	} {
		expect.Equal(t, tt.want, r.Host(tt.name), "Host(%q)", tt.name)
	}
	const text = "dgx-07 kernel: nvidia on node0 with NUMA node0, dgx-07.ai.corp.example and store.ai.corp.example; not dgx-071, my-dgx-07"
	const want = "host-1 kernel: nvidia on host-3 with NUMA node0, host-1.example.com and host-4.example.com; not dgx-071, my-host-1"
	expect.NoDiff(t, want, r.Text(text), "it")
}

func TestRedactManyAddresses(t *testing.T) {
	r := redact.New()
	seen := make(map[string]bool)
	for i := range 2000 {
		in := fmt.Sprintf("10.0.%d.%d", i/200, i%200)
		seen[r.Text(in)] = true
	}
	expect.That(t, len(seen) == 2000, "2000 addresses have %d stand-ins", len(seen))
}

func TestRedactJSON(t *testing.T) {
	const in = `{
		"hostname": "worker",
		"gpus": [
			{"uuid": "GPU-8f6c1d1e-2222-3333-4444-555566667777", "serial": "1654922003141", "address": "0000:3b:00.0", "bytes": 151397597184},
			{"uuid": "N/A", "serial": "N/A", "note": "card 1654922003141 on worker", "driver_version": "10.1.2.3"}
		],
		"fabric": {"cluster_uuid": "ab12cd34", "null": null},
		"variables": [{"name": "NVIDIA_API_KEY", "value": "nvapi"}, {"name": "NCCL_IB_PKEY", "value": "0"}],
		"/home/alice/lib": "10.1.2.3"
	}`
	const want = `{"/home/user1/lib":"240.0.0.1","fabric":{"cluster_uuid":"00000000-0000-0000-0000-000000000001","null":null},` +
		`"gpus":[{"address":"0000:3b:00.0","bytes":151397597184,"serial":"serial-1","uuid":"GPU-00000000-0000-0000-0000-000000000002"},` +
		`{"driver_version":"10.1.2.3","note":"card serial-1 on worker","serial":"N/A","uuid":"N/A"}],` +
		`"hostname":"host-1","variables":[{"name":"NVIDIA_API_KEY","value":"redacted"},{"name":"NCCL_IB_PKEY","value":"0"}]}`
	redacted := func(raw []byte) (json.RawMessage, error) {
		m := &Memory{}
		m.setAnswer("answer", raw, nil)
		return recordingRedactor{redact.New()}.memory(m).Ask(t.Context(), "answer", nil)
	}
	got := expect.Value(redacted([]byte(in)))(t)
	expect.NoDiff(t, want, string(got), "it")
	expect.Equal(t, want, string(expect.Value(redacted(got))(t)), "redacted twice")
	expect.Fails(redacted([]byte("{")))(t, nil, "half a document")
}

// TestRedactMemory checks that a redacted recording hangs together: what leads to a file still does.
func TestRedactMemory(t *testing.T) {
	config := configSpace()
	binary.LittleEndian.PutUint32(config[0x100:], 0x1480_0001) // AER, the next capability at 0x148.
	binary.LittleEndian.PutUint32(config[0x148:], 0x1600_0003) // The serial number.
	copy(config[0x14c:], "\x11\x22\x33\x44\x55\x66\x77\x88\x99")
	src := &Memory{}
	src.Answer(AskUname, Uname{Node: "trainer-7.lab.example.org", Release: "6.8.0"})
	src.Answer(AskEnviron, []string{"HOME=/mnt/people/alice", "MASTER_ADDR=gpunode-17.lab.corp.example", "VLLM_HOST_IP=10.20.30.40", "NCCL_CONF_FILE=/mnt/people/alice/n.conf"})
	src.Answer(AskKernelLog, "1.000001 systemd: Hostname set to trainer-7\n")
	src.Answer(AskStatfs+"/mnt/people/alice", Statfs{})
	src.AnswerError(AskNVML, errors.New("dial trainer-7: refused"))
	src.AddFile("/proc/sys/kernel/hostname", []byte("trainer-7\n"))
	src.AddFile("/mnt/people/alice/n.conf", []byte("NCCL_SOCKET_IFNAME=enxa0369f010203\n"))
	src.AddFile("/etc/passwd", []byte("root:secret:0:0:Big Boss:/root:/bin/sh\nbob:x:1001:1001:Bob B.:/home/bob:/bin/sh\n"))
	src.AddLink("/sys/class/net/enxa0369f010203", "../../devices/virtual/net/enxa0369f010203")
	src.AddFile("/sys/devices/virtual/net/enxa0369f010203/address", []byte("a0:36:9f:01:02:03\n"))
	src.AddFile("/sys/bus/pci/devices/0000:3b:00.0/config", config)
	src.AddError("/home/bob", fs.ErrPermission)
	written := snapshot(t, src, RecordOptions{Version: "1"})
	for _, word := range []string{"trainer", "alice", "bob", "Boss", "secret", "lab.example", "a0:36", "a0369f", "1122334455"} {
		if i := bytes.Index(bytes.ToLower(written), bytes.ToLower([]byte(word))); i >= 0 {
			t.Errorf("%q is in the snapshot: %.80q", word, written[i:])
		}
	}
	m := expect.Value(Parse("x", written))(t)
	read := func(name string) string {
		b, err := m.ReadFile(name, MaxFile)
		expect.That(t, err == nil, "%v", err)
		return string(b)
	}
	ask := func(question string) string {
		raw, err := m.Ask(t.Context(), question, nil)
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	config[0x14c+8] = 0x99
	clear(config[0x14c : 0x14c+8])
	for _, tt := range []struct{ what, got, want string }{
		{"hostname", read("/proc/sys/kernel/hostname"), "host-1\n"},
		{"uname", ask(AskUname), `{"machine":"","node":"host-1","release":"6.8.0"}`},
		{"environ", ask(AskEnviron), `["HOME=/mnt/people/user1","MASTER_ADDR=host-2.example.com","VLLM_HOST_IP=240.0.0.1","NCCL_CONF_FILE=/mnt/people/user1/n.conf"]`},
		{"file in a home folder", read("/mnt/people/user1/n.conf"), "NCCL_SOCKET_IFNAME=enx020000000001\n"},
		{"question about it", ask(AskStatfs + "/mnt/people/user1"), `{"free_bytes":0,"read_only":false,"size_bytes":0}`},
		{"kernel log", ask(AskKernelLog), `"1.000001 systemd: Hostname set to host-1\n"`},
		{"error", ask(AskNVML), "dial host-1: refused"},
		{"through a link", read("/sys/class/net/enx020000000001/address"), "02:00:00:00:00:01\n"},
		{"config space", read("/sys/bus/pci/devices/0000:3b:00.0/config"), string(config)},
		{"accounts", read("/etc/passwd"), "root:x:0:0::/root:/bin/sh\nuser2:x:1001:1001::/home/user2:/bin/sh\n"},
	} {
		expect.NoDiff(t, tt.want, tt.got, "%s", tt.what)
	}
	names, err := m.ReadDir("/sys/class/net")
	expect.That(t, err == nil && len(names) == 1 && names[0] == "enx020000000001", "list of interfaces: got %q, %v", names, err)
}

// TestRedactKernelPaths checks that the paths of the kernel stay, whatever a host is called.
func TestRedactKernelPaths(t *testing.T) {
	for _, host := range []string{"node1", "nvidia0", "devices", "system", "class", "mlx5_0", "shm", "meminfo"} {
		src := &Memory{}
		src.AddFile("/proc/sys/kernel/hostname", []byte(host+"\n"))
		src.AddFile("/sys/devices/system/node/node1/meminfo", []byte("Node 1 MemTotal: 16 kB\n"))
		src.AddLink("/sys/devices/system/cpu/cpu0/node1", "../../node/node1")
		src.AddFile("/sys/class/infiniband/mlx5_0/ports/1/state", []byte("4: ACTIVE\n"))
		src.Answer(AskStatfs+"/dev/shm", Statfs{})
		src.Answer(AskAccess+"/dev/nvidia0", "rw")
		src.Answer(AskUname, Uname{Node: host})
		out := recordingRedactor{redact.New()}.memory(src)
		for name := range src.nodes {
			expect.That(t, out.nodes[name] != nil, "on the host %s there is no %s", host, name)
		}
		for question := range src.answers {
			_, ok := out.answers[question]
			expect.That(t, ok, "on the host %s nobody answers %s", host, question)
		}
		b, err := out.ReadFile("/sys/devices/system/cpu/cpu0/node1/meminfo", 100)
		expect.That(t, err == nil && strings.Contains(string(b), "MemTotal"), "on the host %s a link leads nowhere: %q, %v", host, b, err)
		b, err = out.ReadFile("/proc/sys/kernel/hostname", 100)
		expect.That(t, err == nil && string(b) == "host-1\n", "the host %s is called %q, %v", host, b, err)
	}
}

func FuzzRedact(f *testing.F) {
	expect.NotShort(f, "it enumerates, and nothing in it runs side by side")
	f.Add("GPU-8f6c1d1e-2222-3333-4444-555566667777 a0:36:9f:01:02:03 10.1.2.3 fe80::1 /home/alice/x KEY=v")
	f.Add("0c42:a103:00ab:1234 0000:0000:0000:0000:0000:ffff:0a01:0203 BOOTIF=01-a0-36-9f-01-02-03 serial number: abcd1234")
	f.Add("::ffff:10.1.2.3 01:02:03:04:05:06:07:08 -1.2.3.4 1.2.3.4- node_guid: 0x0c42a10300ab1234")
	for line := range strings.Lines(readCorpus(f).text()) {
		f.Add(strings.TrimSuffix(line, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		redacted := func(text string) string {
			r := redact.New()
			r.Study(text)
			return r.Text(text)
		}
		once := redacted(text)
		other := redacted(text)
		expect.That(t, other == once, "not the same twice: %q and %q", once, other)
		expect.That(t, strings.Count(once, "\n") == strings.Count(text, "\n"), "%q has other lines than %q", once, text)
		secrets := redact.NewSecrets().Text(text)
		expect.Equal(t, secrets, redact.NewSecrets().Text(secrets), "secrets redacted twice: %q", text)
		v := any(map[string]any{"serial": text, "x": []any{text, text}, "command": []any{text, "--password", text}, text: "hostname"})
		r := redact.New()
		r.Study(v)
		expect.Value(redact.EncodeJSON(redact.Value(r, v)))(t)
	})
}

// TestRedactAMD checks that the numbers by which a card and its hive are known
// are not shown, and that two hives stay two.
func TestRedactAMD(t *testing.T) {
	r := redact.New()
	const in = "simd_count 1216\nhive_id 9876543210987654321\nunique_id 1234567890123456789\nlocation_id 3072\n"
	const want = "simd_count 1216\nhive_id 144115188075855873\nunique_id 0\nlocation_id 3072\n"
	const node = "/sys/class/kfd/kfd/topology/nodes/2/properties"
	got := string(r.File(node, []byte(in)))
	expect.Equal(t, want, got, "it")
	expect.Equal(t, got, string(redact.New().File(node, []byte(got))), "redacted twice: %q becomes", got)
	for _, tt := range []struct{ id, want string }{
		{"9876543210987654321\n", "144115188075855873\n"}, {"5\n", "144115188075855874\n"}, {"0\n", "0\n"}, {"no number\n", "0\n"},
	} {
		expect.Equal(t, tt.want, string(r.File("/sys/devices/pci0000:00/0000:00:01.0/xgmi_hive_info/xgmi_hive_id", []byte(tt.id))), "hive %q", tt.id)
	}
	const link = "type 11\nnode_to 3\nweight 15\n"
	expect.Equal(t, link, string(r.File("/sys/class/kfd/kfd/topology/nodes/2/io_links/1/properties", []byte(link))), "a link")
}
