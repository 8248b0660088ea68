//go:build cgo && linux

package nvml

import (
	"cmp"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// field is a field's number with the NVLink that it is queried for.
type field struct{ id, scope uint32 }

// fields queries many fields in one call, and returns those that are known.
func (s *subject) fields(list []nvml.FieldValue) map[field]int64 {
	if s.lost {
		return nil
	}
	const function = "nvmlDeviceGetFieldValues"
	ret := s.call(function, func() nvml.Return { return s.gpu.GetFieldValues(list) })
	if !s.ok(function, ret) {
		return nil
	}
	known := make(map[field]int64, len(list))
	for _, v := range list {
		if nvml.Return(v.NvmlReturn) != nvml.SUCCESS {
			continue
		}
		if n, ok := fieldNumber(v.ValueType, v.Value); ok {
			known[field{v.FieldId, v.ScopeId}] = n
		}
	}
	return known
}

// linkFields are the fields of one NVLink, which drivers from 470 on know.
var linkFields = []uint32{nvml.FI_DEV_NVLINK_GET_STATE, nvml.FI_DEV_NVLINK_GET_VERSION, nvml.FI_DEV_NVLINK_GET_SPEED}

// nvlinks queries every NVLink. Without their number, or their states, they are not known, but that there are none is:
// a GPU without NVLinks answers no question about the first.
func (s *subject) nvlinks(count int64, counted bool) {
	if !counted {
		if learn(s, "nvmlDeviceGetNvLinkState", func() (nvml.EnableState, nvml.Return) { return s.gpu.GetNvLinkState(0) }, same) == nil && !s.lost {
			s.out.NVLinks = []facts.NVLink{}
		}
		return
	}
	count = min(count, maxLinks)
	list := []nvml.FieldValue{{FieldId: nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON}}
	for link := range uint32(count) {
		for _, id := range linkFields {
			list = append(list, nvml.FieldValue{FieldId: id, ScopeId: link})
		}
	}
	fields := s.fields(list)
	links := []facts.NVLink{}
	for i := range int(count) {
		if link, ok := s.link(fields, i); ok {
			links = append(links, link)
		}
	}
	if !s.lost && (count <= 0 || len(links) > 0) {
		s.out.NVLinks = links
	}
}

// link returns what is known about one NVLink; false means that it does not exist.
func (s *subject) link(fields map[field]int64, i int) (facts.NVLink, bool) {
	value := func(id uint32) *int64 {
		if n, ok := fields[field{id, uint32(i)}]; ok {
			return &n
		}
		return nil
	}
	state := value(nvml.FI_DEV_NVLINK_GET_STATE)
	if state == nil {
		return facts.NVLink{}, false
	}
	out := facts.NVLink{
		Link:    i,
		Active:  *state != 0, // 1 is active, 2 asleep (NVML_NVLINK_STATE_*).
		Version: linkGenerations[known(value(nvml.FI_DEV_NVLINK_GET_VERSION))],
	}
	if !out.Active {
		return out, true
	}
	out.SpeedMBps = int(cmp.Or(max(0, known(value(nvml.FI_DEV_NVLINK_GET_SPEED))), fields[field{nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON, 0}]))
	out.RemoteType = word(s, "nvmlDeviceGetNvLinkRemoteDeviceType", func() (nvml.IntNvLinkDeviceType, nvml.Return) {
		return s.gpu.GetNvLinkRemoteDeviceType(i)
	}, func(t nvml.IntNvLinkDeviceType) string { return remoteTypes[int64(t)] })
	out.RemoteAddress = word(s, "nvmlDeviceGetNvLinkRemotePciInfo", func() (nvml.PciInfo, nvml.Return) {
		return s.gpu.GetNvLinkRemotePciInfo(i)
	}, busAddress)
	return out, true
}
