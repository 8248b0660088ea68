//go:build cgo && linux

package nvml

import (
	"fmt"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/gpudoctor/gpudoctor/checks/facts"
)

type subject struct {
	*interviewer
	gpu nvml.Device
	out *Device
	// lost is true once the GPU reports that it is lost: it is not queried further.
	lost bool
}

// maxLinks bounds the NVLinks of a GPU (NVML_NVLINK_MAX_LINKS, nvml.h 13).
const maxLinks = 36

func (s *subject) all() {
	s.identity()
	s.memory()
	s.pcie()
	s.modes()
	s.ecc()
	s.rows()
	fields := s.fields([]nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_LINK_COUNT}, {FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}})
	if action, ok := fields[field{nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 0}]; ok {
		s.out.RecoveryAction = recoveryActions[action]
	}
	count, ok := fields[field{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}]
	s.nvlinks(count, ok)
	s.fabric()
	s.processes()
}

// ok checks a result: a GPU that is lost or needs a reset is noted, and so is another error than "not supported".
func (s *subject) ok(function string, ret nvml.Return) bool {
	switch ret {
	case nvml.SUCCESS:
		return true
	case nvml.ERROR_GPU_IS_LOST:
		s.out.Error, s.lost = nameOf(ret), true
	case nvml.ERROR_RESET_REQUIRED:
		s.out.Error = nameOf(ret)
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_NO_DATA, nvml.ERROR_DEPRECATED,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH, nvml.ERROR_VGPU_ECC_NOT_SUPPORTED, nvml.ERROR_INVALID_ARGUMENT:
	default:
		r := Refusal{Function: s.symbol(function), Error: nameOf(ret)}
		if !slices.Contains(s.out.Refused, r) {
			s.out.Refused = append(s.out.Refused, r)
		}
	}
	return false
}

// learn queries a value and converts it to the form of the answer; nil is unknown.
func learn[T, U any](s *subject, function string, f func() (T, nvml.Return), form func(T) U) *U {
	if s.lost {
		return nil
	}
	v, ret := get(s.interviewer, function, f)
	if !s.ok(function, ret) {
		return nil
	}
	return new(form(v))
}

// word queries a value that has a name; "" is unknown.
func word[T any](s *subject, function string, f func() (T, nvml.Return), form func(T) string) string {
	return known(learn(s, function, f, form))
}

// number queries a number; 0 is unknown.
func number[T ~int | ~uint32](s *subject, function string, f func() (T, nvml.Return)) int {
	return known(learn(s, function, f, func(v T) int { return int(v) }))
}

func same[T any](v T) T { return v }

func isOn(state nvml.EnableState) bool { return state == nvml.FEATURE_ENABLED }

func (s *subject) identity() {
	s.out.Address = word(s, "nvmlDeviceGetPciInfo", s.gpu.GetPciInfo, busAddress)
	s.out.UUID = word(s, "nvmlDeviceGetUUID", s.gpu.GetUUID, same)
	s.out.Name = word(s, "nvmlDeviceGetName", s.gpu.GetName, same)
	s.out.Architecture = word(s, "nvmlDeviceGetArchitecture", s.gpu.GetArchitecture, func(a nvml.DeviceArchitecture) string {
		return architectures[int64(a)]
	})
	s.out.ComputeCapability = word(s, "nvmlDeviceGetCudaComputeCapability", func() (string, nvml.Return) {
		major, minor, ret := s.gpu.GetCudaComputeCapability()
		return fmt.Sprintf("%d.%d", major, minor), ret
	}, same)
}

func busAddress(pci nvml.PciInfo) string {
	b := make([]byte, 0, len(pci.BusId))
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return address(string(b))
}

// memory queries the frame buffer, of which the older function counts the driver's reserve as used, and BAR1.
func (s *subject) memory() {
	if m := learn(s, "nvmlDeviceGetMemoryInfo_v2", s.gpu.GetMemoryInfo_v2, same); m != nil {
		s.used(m.Total, m.Used)
	} else if m := learn(s, "nvmlDeviceGetMemoryInfo", s.gpu.GetMemoryInfo, same); m != nil {
		s.used(m.Total, m.Used)
	}
	if b := learn(s, "nvmlDeviceGetBAR1MemoryInfo", s.gpu.GetBAR1MemoryInfo, same); b != nil && b.Bar1Total > 0 {
		s.out.BAR1Bytes = bytesOf(b.Bar1Total)
	}
}

func (s *subject) used(total, used uint64) {
	if n := bytesOf(total); n != nil {
		s.out.MemoryBytes = *n
	}
	s.out.MemoryUsedBytes = bytesOf(used)
}

func (s *subject) pcie() {
	link := facts.GPULink{
		Generation:    number(s, "nvmlDeviceGetCurrPcieLinkGeneration", s.gpu.GetCurrPcieLinkGeneration),
		Width:         number(s, "nvmlDeviceGetCurrPcieLinkWidth", s.gpu.GetCurrPcieLinkWidth),
		MaxGeneration: number(s, "nvmlDeviceGetMaxPcieLinkGeneration", s.gpu.GetMaxPcieLinkGeneration),
		MaxWidth:      number(s, "nvmlDeviceGetMaxPcieLinkWidth", s.gpu.GetMaxPcieLinkWidth),
	}
	if link != (facts.GPULink{}) {
		s.out.PCIe = &link
	}
}

func (s *subject) modes() {
	state := learn(s, "nvmlDeviceGetPerformanceState", s.gpu.GetPerformanceState, func(p nvml.Pstates) int { return int(p) })
	if state != nil && *state <= 15 { // 32 is unknown.
		s.out.PerformanceState = state
	}
	s.out.Persistence = learn(s, "nvmlDeviceGetPersistenceMode", s.gpu.GetPersistenceMode, isOn)
	s.out.VirtualizationMode = word(s, "nvmlDeviceGetVirtualizationMode", s.gpu.GetVirtualizationMode, func(m nvml.GpuVirtualizationMode) string {
		return virtualizationModes[int64(m)]
	})
	s.out.MIG = learn(s, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		now, _, ret := s.gpu.GetMigMode()
		return now, ret
	}, func(now int) bool { return now == nvml.DEVICE_MIG_ENABLE })
}

func (s *subject) ecc() {
	enabled := learn(s, "nvmlDeviceGetEccMode", func() (nvml.EnableState, nvml.Return) {
		now, _, ret := s.gpu.GetEccMode()
		return now, ret
	}, isOn)
	if enabled == nil {
		return
	}
	e := &facts.ECC{Enabled: *enabled}
	s.out.ECC = e
	e.RetiredPagesPending = learn(s, "nvmlDeviceGetRetiredPagesPendingStatus", s.gpu.GetRetiredPagesPendingStatus, isOn)
	e.UnrepairableMemory = newer(s, "nvmlDeviceGetUnrepairableMemoryFlag_v1", unrepairableMemoryStatus{}, func(m unrepairableMemoryStatus) bool {
		return m.unrepairable != 0
	})
	e.ChannelRepairIsPending = newer(s, "nvmlDeviceGetRepairStatus", repairStatus{version: nvml.STRUCT_VERSION(repairStatus{}, 1)}, func(r repairStatus) bool {
		return r.channelPending != 0
	})
	if !e.Enabled {
		return // Nothing is counted.
	}
	e.VolatileUncorrected = known(learn(s, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) {
		return s.gpu.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	}, bytesOf))
	e.SRAMThresholdExceeded = learn(s, "nvmlDeviceGetSramEccErrorStatus", s.gpu.GetSramEccErrorStatus, func(st nvml.EccSramErrorStatus) bool {
		return st.BThresholdExceeded != 0
	})
}

func (s *subject) rows() {
	s.out.RemappedRows = learn(s, "nvmlDeviceGetRemappedRows", func() (facts.RemappedRows, nvml.Return) {
		_, _, pending, failed, ret := s.gpu.GetRemappedRows()
		return facts.RemappedRows{Pending: pending, Failed: failed}, ret
	}, same)
}

func (s *subject) fabric() {
	// The form that has a health mask came with the drivers 545.
	s.out.Fabric = learn(s, "nvmlDeviceGetGpuFabricInfoV", s.gpu.GetGpuFabricInfoV().V2, fabricOf)
	if s.out.Fabric == nil {
		s.out.Fabric = learn(s, "nvmlDeviceGetGpuFabricInfo", s.gpu.GetGpuFabricInfo, func(i nvml.GpuFabricInfo) facts.Fabric {
			return fabricOf(nvml.GpuFabricInfo_v2{State: i.State, Status: i.Status})
		})
	}
}

func fabricOf(i nvml.GpuFabricInfo_v2) facts.Fabric {
	f := facts.Fabric{State: fabricStates[int64(i.State)], Unhealthy: unhealthy(i.HealthMask)}
	if f.State == "completed" {
		f.Status = errorName(i.Status)
	}
	return f
}

func (s *subject) processes() {
	list := learn(s, "nvmlDeviceGetComputeRunningProcesses", s.gpu.GetComputeRunningProcesses, same)
	if list == nil {
		return
	}
	s.out.Processes = []facts.GPUProcess{}
	for _, p := range *list {
		s.out.Processes = append(s.out.Processes, facts.GPUProcess{PID: int(p.Pid)})
	}
}

// peers queries how this GPU can access the memory of each later GPU. The library answers for a pair, and each query takes a
// millisecond in the driver, during which nothing else starts there: with 8 GPUs both orders would take 0.15 s.
func (s *subject) peers(all []subject) []facts.GPUPeer {
	var list []facts.GPUPeer
	for _, other := range all {
		if *other.out.Index <= *s.out.Index {
			continue
		}
		status := func(index nvml.GpuP2PCapsIndex) string {
			v, ret := get(s.interviewer, "nvmlDeviceGetP2PStatus", func() (nvml.GpuP2PStatus, nvml.Return) {
				return s.gpu.GetP2PStatus(other.gpu, index)
			})
			if ret != nvml.SUCCESS {
				return ""
			}
			return peerStatuses[int64(v)]
		}
		p := facts.GPUPeer{
			A: s.out.Address, B: other.out.Address,
			Read:   status(nvml.P2P_CAPS_INDEX_READ),
			Write:  status(nvml.P2P_CAPS_INDEX_WRITE),
			NVLink: status(nvml.P2P_CAPS_INDEX_NVLINK),
		}
		if p != (facts.GPUPeer{A: p.A, B: p.B}) {
			list = append(list, p)
		}
	}
	return list
}
