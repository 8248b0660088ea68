package data

import (
	"slices"
	"strings"
	"testing"

	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

// TestAreas checks that the tables of areas and codes name no area that is not there.
func TestAreas(t *testing.T) {
	table := Read[struct {
		Areas []struct{ Name, Words string }
		Hangs []struct {
			Between, Usual bool
			Kinds, Words   string
			Causes         []string
		}
	}]("areas")
	names := map[string]bool{}
	for _, a := range table.Areas {
		expect.That(t, !names[a.Name] && a.Words != "" && !strings.HasSuffix(a.Words, "."), "area %s: it is there twice, or its words %q do not stand in a sentence", a.Name, a.Words)
		names[a.Name] = true
	}
	usual := map[bool]int{}
	for _, h := range table.Hangs {
		expect.That(t, h.Words != "" && (h.Kinds != "" || h.Usual) && len(h.Causes) != 0, "a way of collectives %+v", h)
		if h.Usual {
			usual[h.Between]++
		}
	}
	expect.That(t, usual[true] == 1 && usual[false] == 1, "the usual ways are %v, want one between hosts and one within", usual)
	for _, w := range Areas().Words {
		for _, of := range append(slices.Clone(w.Of), w.Area) {
			expect.That(t, names[of], "words %q: there is no area %q", w.Like, of)
		}
	}
	for _, library := range Areas().Files {
		last := library.Files[len(library.Files)-1]
		expect.That(t, slices.Equal(last.Like, []string{"**"}), "%s: the last pattern is %q, so that some file has no area", library.Library, last.Like)
		for _, f := range library.Files {
			expect.That(t, names[f.Area], "%s: there is no area %q", library.Library, f.Area)
		}
	}
	type code struct {
		Code
		Means []struct{ Areas []string }
	}
	codes := Read[struct{ Errno, Completions, NCCL []code }]("codes")
	for _, list := range [][]code{codes.Errno, codes.Completions, codes.NCCL} {
		seen := map[int]bool{}
		for _, c := range list {
			expect.That(t, !seen[c.Number] && c.Name != "" && c.Words != "", "code %d %s: it is there twice, or lacks its name or words", c.Number, c.Name)
			seen[c.Number] = true
			for i, m := range c.Means {
				expect.That(t, len(m.Areas) != 0 || i == len(c.Means)-1, "%s: what follows the meaning for all areas is never reached", c.Name)
				for _, a := range m.Areas {
					expect.That(t, names[a], "%s: there is no area %q", c.Name, a)
				}
			}
		}
	}
}

// TestAreaOf checks that files are placed by their patterns, and that words overrule only the files that they are for.
func TestAreaOf(t *testing.T) {
	for _, of := range []struct{ library, file, said, want string }{
		{"nccl", "misc/shmutils.cc", "it failed", "shm"},
		{"nccl", "transport/shm.cc", "it failed", "shm"},
		{"nccl", "shm.cc", "it failed", "shm"},
		{"nccl", "transport/p2p.cc", "it failed", "p2p"},
		{"nccl", "transport/net_ib.cc", "it failed", "verbs"},
		{"nccl", "transport/net_ib/p2p.cc", "it failed", "verbs"},
		{"nccl", "transport/net_ib/gin.cc", "it failed", "gpu-network"},
		{"nccl", "transport/net_ib/gdaki/gin_host_gdaki.cc", "it failed", "gpu-network"},
		{"nccl", "misc/ipcsocket.cc", "it failed", "unix-socket"},
		{"nccl", "os/linux_ipcsocket.cc", "it failed", "unix-socket"},
		{"nccl", "misc/socket.cc", "it failed", "socket"},
		{"nccl", "graph/xml.cc", "XML Parse : expected >", "topology"},
		{"nccl", "graph/tuning.cc", "it failed", "tuning"},
		{"nccl", "a/file/of/tomorrow.cc", "it failed", "general"},
		{"nccl", "", "it failed", "general"},
		// init.cc, proxy.cc and os/linux.cc serve all transports.
		{"nccl", "proxy.cc", "[Service thread] Accept failed x", "socket"},
		{"nccl", "os/linux.cc", "Could not map the shared memory segment", "shm"},
		{"nccl", "init.cc", "Invalid config splitShare attribute value 3", "api"},
		{"nccl", "init.cc", "GIN Error detected", "gpu-network"},
		{"nccl", "graph/connect.cc", "Internal error : tree already has 3 children", "internal"},
		{"nccl", "transport/p2p.cc", "malloc of 3 bytes failed", "host-memory"},
		// Words for files of other areas overrule nothing.
		{"nccl", "graph/xml.cc", "the network is not there", "topology"},
		{"ucx", "cuda_ipc_cache", "it failed", "p2p"},
		{"ucx", "ib_device", "it failed", "verbs"},
		{"ucx", "tcp_ep", "it failed", "socket"},
		{"ucx", "mm_posix", "it failed", "shm"},
		{"libfabric", "efa", "it failed", "network-plugin"},
		{"libfabric", "ofi_rxm;verbs", "it failed", "verbs"},
		{"ucx", "ucp_mm", "failed to register address", "gdr"},
		{"ucx", "event_set", "epoll_create() failed", "operating-system"},
		// What NCCL calls internal says nothing of NCCL where UCX says it.
		{"ucx", "proto_common", "assertion of a protocol", "general"},
		{"libfabric", "core/cuda_hmem_dl_init", "it failed", "driver-in-container"},
		{"nccl", "misc/gdrwrap.cc", "it failed", "gdrcopy"},
		{"nccl", "os/linux.cc", "ncclOsSocketProgressOpt: Call to recv from 10.0.0.9<4000> failed : Bad address", "connection"},
		{"nccl", "enqueue.cc", "ncclPutSignal: peerWin is NULL", "api"},
		{"nccl", "enqueue.cc", "Net registration invalid algorithm ring", "internal"},
		{"libfabric", "core/cuda_gdrcopy_reg", "it failed", "gdr"},
		{"libfabric", "core/ofi_shm_map", "it failed", "shm"},
		{"libfabric", "efa/efa_rdm_peer_construct", "it failed", "network-plugin"},
		{"libfabric", "verbs/vrb_ep_create", "it failed", "verbs"},
		{"libfabric", "cxi/cxip_env_init", "it failed", "settings"},
		{"nccl", "clique/ShmObject.cc", "Call to shm_open failed", "shm"},
		{"nccl", "include/rocmwrap.h", "ROCr failure", "hsa"},
		{"nccl", "misc/alt_rsmi.cc", "it failed", "amd-smi"},
		{"nccl", "misc/msccl/msccl_parser.cc", "it failed", "algorithms"},
		{"c10d", "TCPStore", "it failed", "bootstrap"},
		{"c10d", "DistNetworkError", "it failed", "bootstrap"},
		{"c10d", "DistBackendError", "Tensors must be contiguous", "arguments"},
		{"container-toolkit", "requirement error", "it failed", "container-requirement"},
		{"no-library", "shm.cc", "it failed", ""},
	} {
		expect.Equal(t, of.want, AreaOf(of.library, of.file, of.said), "%s %s %q: area", of.library, of.file, of.said)
	}
}
