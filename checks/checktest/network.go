package checktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/host"
)

// WriteNetwork writes what the kernel shows of the network on a machine whose InfiniBand and EFA
// adapters all work: an RDMA device for each, an interface for those of InfiniBand, the loopback
// interface and the modules.
func (t *Tree) WriteNetwork(files *host.Memory, modules ...string) {
	text := func(name, format string, args ...any) { files.AddFile(name, fmt.Appendf(nil, format+"\n", args...)) }
	text("/proc/uptime", "1209600.25 154828800.00")
	link := func(class, name, dir string) {
		files.AddLink("/sys/class/"+class+"/"+name, "../.."+strings.TrimPrefix(dir, "/sys"))
	}
	loopback := "/sys/devices/virtual/net/lo"
	link("net", "lo", loopback)
	for file, value := range map[string]string{"operstate": "unknown", "flags": "0x9", "mtu": "65536", "type": "772", "uevent": "INTERFACE=lo\nIFINDEX=1"} {
		text(loopback+"/"+file, "%s", value)
	}
	drivers := []string{"mlx5_core", "mlx5_ib"}
	if slices.ContainsFunc(t.Functions, (*Function).efa) {
		drivers = []string{"efa"}
	}
	for _, module := range slices.Concat([]string{"ib_core", "ib_uverbs"}, drivers, modules) {
		text("/sys/module/"+module+"/initstate", "live")
	}
	t.writeEFA(files)
	n := 0
	for _, f := range t.Functions {
		if f.Class>>8 != 0x0207 {
			continue
		}
		device, port := fmt.Sprintf("%s/infiniband/mlx5_%d", f.dir, n), fmt.Sprintf("%s/infiniband/mlx5_%d/ports/1", f.dir, n)
		link("infiniband", fmt.Sprintf("mlx5_%d", n), device)
		text(device+"/fw_ver", "28.39.1002")
		text(device+"/hca_type", "MT4129")
		for file, value := range map[string]string{
			"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand", "sm_lid": "0x1",
		} {
			text(port+"/"+file, "%s", value)
		}
		text(port+"/lid", "0x%x", n+5)
		text(port+"/gids/0", "fe80:0000:0000:0000:0200:0000:0000:%04x", n+1)
		for i := 1; i < 8; i++ {
			text(fmt.Sprintf("%s/gids/%d", port, i), "%s", strings.Repeat(":0000", 8)[1:])
		}
		for _, counter := range []string{
			"symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors", "port_rcv_remote_physical_errors",
			"port_xmit_discards", "local_link_integrity_errors", "excessive_buffer_overrun_errors",
		} {
			text(port+"/counters/"+counter, "0")
		}
		for _, counter := range []string{"out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err"} {
			text(port+"/hw_counters/"+counter, "0")
		}
		name := fmt.Sprintf("ib%d", n)
		dir := f.dir + "/net/" + name
		link("net", name, dir)
		for file, value := range map[string]string{
			"operstate": "up", "carrier": "1", "flags": "0x1003", "mtu": "4092", "type": "32", "speed": "400000", "uevent": "INTERFACE=" + name,
		} {
			text(dir+"/"+file, "%s", value)
		}
		n++
	}
}

// efa reports whether a function is an EFA device.
func (f *Function) efa() bool { return f.Vendor == amazon && f.Device>>4 == 0xefa }

// writeEFA writes the RDMA devices of EFA devices, which are named by their buses.
func (t *Tree) writeEFA(files *host.Memory) {
	dirs := map[string]string{}
	for _, f := range t.Functions {
		var bus int
		if _, err := fmt.Sscanf(f.Address, "0000:%x:", &bus); err == nil && f.efa() {
			name := fmt.Sprintf("rdmap%ds0", bus)
			dirs[name] = f.dir + "/infiniband/" + name
		}
	}
	for i, name := range slices.Sorted(maps.Keys(dirs)) {
		files.AddLink("/sys/class/infiniband/"+name, "../.."+strings.TrimPrefix(dirs[name], "/sys"))
		for file, value := range map[string]string{
			"fw_ver": "0.0.0.0", "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp", "ports/1/rate": "100 Gb/sec (4X EDR)",
			"ports/1/link_layer": "Unspecified", "ports/1/sm_lid": "0x0", "ports/1/lid": "0x0", "ports/1/gids/0": fmt.Sprintf("fe80:0000:0000:0000:0200:0000:0000:%04x", i+1),
		} {
			files.AddFile(dirs[name]+"/"+file, []byte(value+"\n"))
		}
	}
}
