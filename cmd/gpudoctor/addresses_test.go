package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
	"github.com/gpudoctor/gpudoctor/fixtures/night"
)

// failedConnects are the lines by which libraries say that a connection failed: {a} is the
// address, {e} and {n} the error.
var failedConnects = map[string]string{
	"nccl":         "node7:4021:4077 [3] misc/socket.cc:592 NCCL WARN socketPollConnect: connect to {a}<45117> failed : {e}",
	"nccl retries": "node7:4021:4077 [3] misc/socket.cc:578 NCCL WARN socketPollConnect: connect to {a}<45117> returned {e}, exceeded error retry count after 35 attempts",
	"c10d":         "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (head, 29500). The client socket has failed to connect to [{a}]:29500 (errno: {n} - {e}).",
	"gloo":         "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: {e}, remote=[{a}]:21877",
	"openmpi":      "[node7][[39817,1],2][btl_tcp_endpoint.c:796:mca_btl_tcp_endpoint_complete_connect] connect() to {a} failed: {e} ({n})",
	"ucx":          "[1693920302.521306] [node7:78142:0]            sock.c:334  UCX  ERROR connect(fd=52, dest_addr={a}:44389) failed: {e}",
	"ray":          "[2026-03-01 22:48:01,851 W 6578 6578] rpc_client.h:153: Failed to connect to GCS at address {a}:6379 within 5 seconds.",
}

// addressCauses are the causes for which a connection between two machines fails, by its
// address: those of the kinds of errors in connectErrors, in their order. The first cause
// is that of most libraries; those of others stand behind their names.
var addressCauses = []struct {
	address string
	causes  [4]string
	others  map[string]string
}{
	{"127.0.0.1", each4("wrong-nic"), map[string]string{"c10d": "env-misconfig", "ray": "env-misconfig"}},
	{"127.0.1.1", each4("wrong-nic"), map[string]string{"c10d": "env-misconfig", "ray": "env-misconfig"}},
	{"::1", each4("wrong-nic"), map[string]string{"c10d": "env-misconfig", "ray": "env-misconfig"}},
	{"172.17.0.3", each4("wrong-nic"), nil},
	{"192.168.122.5", each4("wrong-nic"), nil},
	{"169.254.3.1", each4("wrong-nic"), nil},
	{"fe80::5054:ff:fe12:3456", each4("wrong-nic"), nil},
	{"0.0.0.0", each4("wrong-nic"), nil},
	{"10.3.0.9", [4]string{"firewall", "firewall", "firewall", "wrong-nic"}, map[string]string{"ray": "firewall"}}, // Ray names no error.
}

func each4(cause string) [4]string { return [4]string{cause, cause, cause, cause} }

// connectErrors are those of connect(2), by errno.
var connectErrors = []struct{ words, number string }{
	{"Connection refused", "111"}, {"Connection timed out", "110"}, {"No route to host", "113"}, {"Network is unreachable", "101"},
}

// machines are two hosts of one network.
const machines = "node8:4021:4077 [3] NCCL INFO Bootstrap : Using eth0:10.3.0.8<0>\nnode7:4021:4077 [3] NCCL INFO Bootstrap : Using eth0:10.3.0.7<0>\n"

// namelessConnects are the lines of libfabric, which names no address.
var namelessConnects = map[string]string{
	"libfabric connects":  "libfabric:4021:1755792160::tcp:ep_ctrl:xnet_ep_connect():201<warn> connect failure {n}({e})",
	"libfabric connected": "libfabric:4021:1755792160::tcp:ep_ctrl:xnet_connect_done():301<warn> connection failure (sockerr -{n})",
	"libfabric rxm":       "libfabric:4021:1755792160::ofi_rxm:ep_ctrl:rxm_handle_error():753<warn> fi_eq_readerr: err: {e} ({n}), prov_err: Success (0)",
}

// unresolvedNames are the lines by which libraries and launchers say that a host name does
// not resolve: {e} and {n} the error.
var unresolvedNames = map[string]string{
	"c10d":   "[W1122 21:07:51.739937333 socket.cpp:764] [c10d] The IPv4 network addresses of (node9, 29500) cannot be retrieved (gai error: {n} - {e}).",
	"nccl":   "node7:4021:4077 [3] misc/socket.cc:295 NCCL WARN Net : error encountered when getting address info : {e}",
	"python": "Traceback (most recent call last):\n  File \"/app/train.py\", line 8, in main\n    addresses = socket.getaddrinfo(head, port)\nsocket.gaierror: [Errno {n}] {e}",
	"hydra":  "[proxy:0:1@node8] HYDU_sock_connect (utils/sock/sock.c:113): unable to get host address for node9 (1)",
	"mpirun": "ssh: Could not resolve hostname node9: {e}\nORTE was unable to reliably start one or more daemons.",
}

// resolveErrors are those of getaddrinfo(3), by number.
var resolveErrors = []struct{ words, number string }{
	{"Name or service not known", "-2"}, {"Temporary failure in name resolution", "-3"}, {"No address associated with hostname", "-5"},
}

// TestUnresolvedNames checks that a host name that does not resolve is called that, whichever
// program tells it.
func TestUnresolvedNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.log")
	for program, form := range unresolvedNames {
		for _, e := range resolveErrors {
			line := strings.NewReplacer("{e}", e.words, "{n}", e.number).Replace(form)
			expect.Equal(t, "wrong-nic", firstRule(t, path, machines+line+"\n"), "%s: %s", program, e.words)
		}
	}
}

// TestNamelessConnects checks that a connection that failed without an address has the causes
// of one to another machine.
func TestNamelessConnects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.log")
	causes := addressCauses[len(addressCauses)-1].causes
	for library, form := range namelessConnects {
		for i, e := range connectErrors {
			line := strings.NewReplacer("{e}", e.words, "{n}", e.number).Replace(form)
			expect.Equal(t, causes[i], firstRule(t, path, machines+line+"\n"), "%s: %s", library, e.words)
		}
	}
}

// firstRule is the rule of the first finding in a text.
func firstRule(t *testing.T, path, text string) string {
	t.Helper()
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	d := concluded(t, path)
	if len(d.Findings) == 0 {
		return "nothing"
	}
	return d.Findings[0].Rule
}

// TestAddresses checks that the address to which a connection failed says why, whichever
// library tells it.
func TestAddresses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "job.log")
	tried := 0
	for library, form := range failedConnects {
		for _, row := range addressCauses {
			for i, e := range connectErrors {
				if tried++; night.Few() && tried%32 > 0 {
					continue
				}
				line := strings.NewReplacer("{a}", row.address, "{e}", e.words, "{n}", e.number).Replace(form)
				want := row.causes[i]
				if other := row.others[library]; other != "" {
					want = other
				}
				expect.Equal(t, want, firstRule(t, path, machines+line+"\n"), "%s: %s: %s", library, row.address, e.words)
			}
		}
	}
}
