//go:build cgo && linux

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/gpudoctor/gpudoctor/checks/facts"
)

// field is a field's number with the NVLink that it is queried for.
type field struct{ id, scope uint32 }

// fields queries many fields in one call, and returns those that are known.
func (s *subject) fields(list []nvml.FieldValue) map[field]int64 {
	if s.lost || len(list) == 0 {
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

// linkFields are the fields of one NVLink. Drivers before 470 do not know
// them; then each value is queried by a function.
var linkFields = []uint32{
	nvml.FI_DEV_NVLINK_GET_STATE,
	nvml.FI_DEV_NVLINK_GET_VERSION,
	nvml.FI_DEV_NVLINK_GET_SPEED,
}

// nvlinks queries every NVLink. If their count is not known, they are
// queried in turn until one does not exist.
func (s *subject) nvlinks(count int64, counted bool) {
	if !counted || count > maxLinks {
		count = maxLinks
	}
	var list []nvml.FieldValue
	if counted {
		list = append(list, nvml.FieldValue{FieldId: nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON})
		for link := range uint32(count) {
			for _, id := range linkFields {
				list = append(list, nvml.FieldValue{FieldId: id, ScopeId: link})
			}
		}
	}
	l := links{subject: s, fields: s.fields(list)}
	links := []facts.NVLink{}
	for i := range int(count) {
		link, ok := l.link(i)
		if s.lost {
			return
		}
		if ok {
			links = append(links, link)
		} else if !counted {
			break
		}
	}
	s.out.NVLinks = links
}

// links queries the NVLinks of one GPU.
type links struct {
	*subject
	fields map[field]int64
}

// link returns what is known about one NVLink; false means that it does not exist.
func (l *links) link(i int) (facts.NVLink, bool) {
	out := facts.NVLink{Link: i}
	state, ok := l.number(nvml.FI_DEV_NVLINK_GET_STATE, i, "nvmlDeviceGetNvLinkState", func() (int64, nvml.Return) {
		state, ret := l.gpu.GetNvLinkState(i)
		return int64(state), ret
	})
	if !ok {
		return out, false
	}
	out.Active = state != 0 // 1 is active, 2 asleep (NVML_NVLINK_STATE_*).
	version, _ := l.number(nvml.FI_DEV_NVLINK_GET_VERSION, i, "nvmlDeviceGetNvLinkVersion", func() (int64, nvml.Return) {
		version, ret := l.gpu.GetNvLinkVersion(i)
		return int64(version), ret
	})
	out.Version = linkGenerations[version]
	if !out.Active || l.lost {
		return out, true
	}
	if mbps, ok := l.fields[field{nvml.FI_DEV_NVLINK_GET_SPEED, uint32(i)}]; ok && mbps > 0 {
		out.SpeedMBps = int(mbps)
	} else {
		out.SpeedMBps = int(l.fields[field{nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON, 0}])
	}
	l.remote(&out)
	return out, true
}

// number takes a field, or calls the function that older drivers have.
func (l *links) number(id uint32, link int, function string, f func() (int64, nvml.Return)) (int64, bool) {
	if n, ok := l.fields[field{id, uint32(link)}]; ok {
		return n, true
	}
	n := learn(l.subject, function, f, same)
	return known(n), n != nil
}

// remote fills in what is at the other end.
func (l *links) remote(out *facts.NVLink) {
	out.RemoteType = word(l.subject, "nvmlDeviceGetNvLinkRemoteDeviceType", func() (nvml.IntNvLinkDeviceType, nvml.Return) {
		return l.gpu.GetNvLinkRemoteDeviceType(out.Link)
	}, func(t nvml.IntNvLinkDeviceType) string { return remoteTypes[int64(t)] })
	out.RemoteAddress = word(l.subject, "nvmlDeviceGetNvLinkRemotePciInfo", func() (nvml.PciInfo, nvml.Return) {
		return l.gpu.GetNvLinkRemotePciInfo(out.Link)
	}, busAddress)
}
