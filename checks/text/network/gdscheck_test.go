package network_test

import (
	"testing"

	"github.com/gpudoctor/gpudoctor/checks/text/texttest"
	"github.com/gpudoctor/gpudoctor/fixtures/expect"
)

const gdscheckSample = ` GDS release version: 1.7.2.10
 nvidia_fs version:  2.17 libcufile version: 2.12
 Platform: x86_64
 ============
 ENVIRONMENT:
 ============
 =====================
 DRIVER CONFIGURATION:
 =====================
 NVMe               : Unsupported
 NFS                : Supported
 IBM Spectrum Scale : Unsupported
 --Mellanox PeerDirect : Disabled
 --rdma library        : Not Loaded (libcufile_rdma.so)
 --rdma_device_status  : Up: 0 Down: 0
 =====================
 CUFILE CONFIGURATION:
 =====================
 properties.use_compat_mode : true
 fs.generic.posix_unaligned_writes : false
 =========
 GPU INFO:
 =========
 GPU index 0 NVIDIA A100-SXM4-80GB bar:1 bar size (MiB):131072 supports GDS, IOMMU State: Disabled
 ==============
 PLATFORM INFO:
 ==============
 IOMMU: disabled
 Platform verification succeeded
the end
`

func TestGDSCheck(t *testing.T) {
	f := texttest.Parse("x", "gdscheck says\n"+gdscheckSample)
	expect.Must(t, f.Storage != nil && f.Storage.GDS != nil, "nothing was read")
	g := f.Storage.GDS
	for name, want := range map[string]string{
		"NVMe": "unsupported", "NFS": "supported", "IBM Spectrum Scale": "unsupported",
		"Mellanox PeerDirect": "disabled", "rdma library": "not loaded", "rdma_device_status": "up: 0 down: 0",
	} {
		expect.Equal(t, want, g.Drivers[name], "driver %s", name)
	}
	expect.That(t, len(g.Drivers) == 6 && g.Properties["properties.use_compat_mode"] == "true" && len(g.Properties) == 2 && g.Version == "2.17" && g.Line == 2, "got %+v", g)
}
