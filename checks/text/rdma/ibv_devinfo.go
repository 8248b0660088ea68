package rdma

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/rdma"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// ibvDevinfoKind is the listing of RDMA devices by libibverbs' example
// program, short or with -v (rdma-core@691953d8d
// libibverbs/examples/devinfo.c).
var ibvDevinfoKind = &parse.Kind{
	Name:     "ibv_devinfo",
	Title:    "RDMA devices, from ibv_devinfo",
	Command:  "ibv_devinfo -v",
	Gives:    []string{"nics"},
	Anchors:  []string{"hca_id:", "PORT_ACTIVE (", "PORT_DOWN (", "PORT_INIT (", "PORT_ARMED ("},
	Commands: []string{"ibv_devinfo"},
	Begins: func(in *parse.Lines) bool {
		l, ok := in.Peek()
		return ok && ibvDevinfoKey(l.Text) != ""
	},
	Read: ibvDevinfoRead,
}

// ibvDevinfoLine is a line "key: value" of any depth.
var ibvDevinfoLine = lazy.New(`^\s*(hca_id|transport|fw_ver|node_guid|sys_image_guid|vendor_id|vendor_part_id|hw_ver|board_id|phys_port_cnt|port|state|max_mtu|active_mtu|sm_lid|port_lid|port_lmc|link_layer|active_width|active_speed|phys_state|GID\[ *\d+\]):\s*(.*?)\s*$`)

// ibvDevinfoOther is a line that -v adds and that is not read: a limit, the
// head of a list of flags, or a flag.
var ibvDevinfoOther = lazy.New(`^\s*(?:max_\w+|\w+_caps?|\w+_cap_flags\w*|\w+_cntr|\w+_len|\w+_sl|subnet_timeout|init_type_reply|atomic_cap|local_ca_ack_delay|port_id|core clock.*|completion[ _]timestamp.*|hca_core_clock|page_size_cap|num_comp_vectors|device_cap\w*|flags|supported_qp|rx_hash\w*|qp_rate_limit\w*|tag matching.*|cq moderation caps|raw packet caps|log atomic arg sizes.*|Unknown flags)\s*:|^\s*(?:tag matching|core clock|completion_timestamp_mask) not supported|^\s+[A-Z][A-Za-z0-9_ -]+$`)

func ibvDevinfoKey(line string) string {
	m := ibvDevinfoLine.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	return m[1]
}

func ibvDevinfoBelongs(line string) bool {
	return ibvDevinfoKey(line) != "" || ibvDevinfoOther.MatchString(line)
}

func ibvDevinfoRead(s *parse.Sink, in *parse.Lines) {
	ports := ports{sink: s, device: facts.RDMAPort{Device: flag(in.Prompt().Command, "-d")}}
	width, speed := 0.0, 0.0
	vendor := ""
	flush := func() {
		if ports.port != nil && width*speed > 0 {
			ports.port.RateGbps = width * speed
		}
		ports.flush()
		width, speed = 0, 0
	}
	in.While(func(l parse.Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return ahead(in, ibvDevinfoBelongs)
		}
		m := ibvDevinfoLine.FindStringSubmatch(l.Text)
		if m == nil {
			return ibvDevinfoOther.MatchString(l.Text)
		}
		key, value := m[1], m[2]
		switch key {
		case "hca_id":
			flush()
			ports.device, vendor = facts.RDMAPort{Device: value}, ""
		case "fw_ver":
			ports.device.Firmware = value
		case "vendor_id":
			vendor = value
		case "vendor_part_id":
			if _, err := strconv.ParseUint(value, 10, 16); err == nil && (vendor == "0x02c9" || vendor == "") {
				ports.device.Model = "MT" + value
			}
		case "port":
			flush()
			if n, ok := rdma.LeadingNumber(value); ok {
				ports.begin(l).Port = n
			}
		case "state":
			if ports.stated() { // A filter hid the heads.
				flush()
			}
			ports.begin(l).State = rdma.State(value)
		case "max_mtu":
			ports.begin(l).MaxMTU, _ = rdma.LeadingNumber(value)
		case "active_mtu":
			ports.begin(l).MTU, _ = rdma.LeadingNumber(value)
		case "sm_lid":
			ports.begin(l).SMLID = rdma.LID(value)
		case "port_lid":
			ports.begin(l).LID = rdma.LID(value)
		case "link_layer":
			ports.begin(l).LinkLayer = rdma.LinkLayer(value)
		case "phys_state":
			ports.begin(l).PhysicalState = rdma.PhysicalState(value)
		case "active_width":
			n, _, _ := strings.Cut(value, "X")
			width = rdma.Rate(n)
			ports.begin(l)
		case "active_speed":
			speed = rdma.Rate(value)
			ports.begin(l)
		default:
			if index, ok := strings.CutPrefix(key, "GID["); ok {
				if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(index, "]"))); err == nil {
					gid, kind, _ := strings.Cut(value, ",")
					addGID(ports.begin(l), facts.GID{Index: n, GID: strings.TrimSpace(gid), Type: rdma.GIDType(kind)})
				}
			}
		}
		return true
	})
	flush()
}
