package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/cmd/internal/report"
	"github.com/gpudoctor/gpudoctor/rules"
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

// TestAddresses holds that the address to which a connection failed says why, whichever
// library tells it.
func TestAddresses(t *testing.T) {
	const machines = "node8:4021:4077 [3] NCCL INFO Bootstrap : Using eth0:10.3.0.8<0>\nnode7:4021:4077 [3] NCCL INFO Bootstrap : Using eth0:10.3.0.7<0>\n"
	path := filepath.Join(t.TempDir(), "job.log")
	tried := 0
	for library, form := range failedConnects {
		for _, row := range addressCauses {
			for i, e := range connectErrors {
				if tried++; testing.Short() && tried%8 > 0 {
					continue
				}
				line := strings.NewReplacer("{a}", row.address, "{e}", e.words, "{n}", e.number).Replace(form)
				if err := os.WriteFile(path, []byte(machines+line+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				d, err := diagnose(t.Context(), request{source: source{from: []string{path}}, profile: rules.Training, failOn: report.Threshold(rules.High)})
				if err != nil {
					t.Fatal(err)
				}
				want, got := row.causes[i], "nothing"
				if other := row.others[library]; other != "" {
					want = other
				}
				if len(d.Findings) > 0 {
					got = fmt.Sprint(d.Findings[0].Rule)
				}
				if got != want {
					t.Errorf("%s: %s: %s: got %s, want %s", library, row.address, e.words, got, want)
				}
			}
		}
	}
}
