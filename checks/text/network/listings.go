package network

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/network"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// Listings of RDMA devices and their ports with a name and a value in each line. The names of
// the tools do not contradict each other, so one reader takes them all.

// ibstatKind is the listing of RDMA devices by infiniband-diags (rdma-core@691953d8d infiniband-diags/ibstat.c).
var ibstatKind = &parse.Kind{
	Name: "ibstat", Title: "RDMA ports, from ibstat",
	Command: "ibstat", Gives: []string{"nics"},
	Anchors:  []string{"CA '", "Physical state: "},
	Commands: []string{"ibstat"},
	Begins:   parse.BeginsLike(ibstatLine),
	Read:     func(s *parse.Sink, in *parse.Lines) { readListing(s, in, ibstatLine, ibstatLine) },
}

var ibstatLine = lazy.New(`^\s*(?:(CA|Switch|Router) '([^']+)'|(Port) (\d+):|(CA type|Number of ports|Firmware version|Hardware version|Node GUID|System image GUID|State|Physical state|Rate|Effective speed|Base lid|LMC|SM lid|Capability mask|Port GUID|Link layer):\s*(.*?))\s*$`)

// ibstatusKind is the listing of ports by the script of infiniband-diags
// (rdma-core@691953d8d infiniband-diags/scripts/ibstatus).
var ibstatusKind = &parse.Kind{
	Name: "ibstatus", Title: "RDMA ports, from ibstatus",
	Command: "ibstatus", Gives: []string{"nics"},
	Anchors: []string{"Infiniband device '"},
	Begins:  parse.BeginsLike(lazy.New(`^\s*Infiniband device '[^']+' port \d+ status:`)),
	Read:    func(s *parse.Sink, in *parse.Lines) { readListing(s, in, ibstatusLine, ibstatusLine) },
}

var ibstatusLine = lazy.New(`^\s*(?:(Infiniband device) '([^']+' port \d+) status:|(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s*(.*?)\s*$)`)

// ibvDevinfoKind is the listing of RDMA devices by libibverbs' example program, also with -v (rdma-core@691953d8d
// libibverbs/examples/devinfo.c).
var ibvDevinfoKind = &parse.Kind{
	Name: "ibv_devinfo", Title: "RDMA devices, from ibv_devinfo",
	Command: "ibv_devinfo -v", Gives: []string{"nics"},
	Anchors:  []string{"hca_id:", "PORT_ACTIVE (", "PORT_DOWN (", "PORT_INIT (", "PORT_ARMED ("},
	Commands: []string{"ibv_devinfo"},
	Begins:   parse.BeginsLike(ibvDevinfoLine),
	Read:     func(s *parse.Sink, in *parse.Lines) { readListing(s, in, ibvDevinfoLine, ibvDevinfoOther) },
}

var ibvDevinfoLine = lazy.New(`^\s*(hca_id|transport|fw_ver|node_guid|sys_image_guid|vendor_id|vendor_part_id|hw_ver|board_id|phys_port_cnt|port|state|max_mtu|active_mtu|sm_lid|port_lid|port_lmc|link_layer|active_width|active_speed|phys_state|GID\[ *\d+\]):\s*(.*?)\s*$`)

// ibvDevinfoOther is a line that -v adds and that is not read: a limit, the head of a list of flags, or a flag.
var ibvDevinfoOther = lazy.New(`^\s*(?:max_\w+|\w+_caps?|\w+_cap_flags\w*|\w+_cntr|\w+_len|\w+_sl|subnet_timeout|init_type_reply|atomic_cap|local_ca_ack_delay|port_id|core clock.*|completion[ _]timestamp.*|hca_core_clock|page_size_cap|num_comp_vectors|device_cap\w*|flags|supported_qp|rx_hash\w*|qp_rate_limit\w*|tag matching.*|cq moderation caps|raw packet caps|log atomic arg sizes.*|Unknown flags)\s*:|^\s*(?:tag matching|core clock|completion_timestamp_mask) not supported|^\s+[A-Z][A-Za-z0-9_ -]+$`)

// readListing takes the lines of a listing: those of a form, whose groups are names and values,
// and others that belong to it.
func readListing(s *parse.Sink, in *parse.Lines, form, other *lazy.Regexp) {
	command := in.Prompt().Command
	r := &ports{sink: s, device: facts.RDMAPort{Device: flag(command, "-d")}}
	if words := strings.Fields(command); len(words) > 1 && words[0] == "ibstat" && !strings.HasPrefix(words[1], "-") && words[1] != "|" {
		r.device.Device = words[1]
	}
	belongs := func(line string) bool { return form.MatchString(line) || other.MatchString(line) }
	in.While(func(l parse.Line) bool {
		if strings.TrimSpace(l.Text) == "" {
			return ahead(in, belongs)
		}
		m := form.FindStringSubmatch(l.Text)
		for i := 1; i < len(m); i += 2 {
			if m[i] != "" {
				r.take(m[i], m[i+1], l)
			}
		}
		return m != nil || other.MatchString(l.Text)
	})
	r.flush()
}

// ports reads a listing of ports below the devices that they belong to.
type ports struct {
	sink *parse.Sink
	// device is what the lines above the ports say; each port begins with it.
	device facts.RDMAPort
	vendor string
	// port is the one under way, and at is where it began.
	port *facts.RDMAPort
	at   parse.Line
	// width and speed are those of the port's lanes.
	width, speed float64
}

// begin returns the port under way, or begins one.
func (r *ports) begin(l parse.Line) *facts.RDMAPort {
	if r.port == nil {
		r.port, r.at = new(r.device), l
	}
	return r.port
}

// flush ends the port under way.
func (r *ports) flush() {
	if r.port != nil {
		if r.width*r.speed > 0 {
			r.port.RateGbps = r.width * r.speed
		}
		Merge(r.sink, *r.port, r.at)
	}
	r.port, r.width, r.speed = nil, 0, 0
}

// take reads a name and its value.
func (r *ports) take(name, value string, l parse.Line) {
	switch name {
	case "CA", "Switch", "Router", "hca_id":
		r.flush()
		r.device, r.vendor = facts.RDMAPort{Device: value}, ""
	case "Infiniband device":
		r.flush()
		device, port, _ := strings.Cut(value, "' port ")
		r.device = facts.RDMAPort{Device: device}
		r.begin(l).Port, _ = network.LeadingNumber(port)
	case "Port", "port":
		r.flush()
		if n, ok := network.LeadingNumber(value); ok {
			r.begin(l).Port = n
		}
	case "CA type":
		r.device.Model = value
	case "vendor_id":
		r.vendor = value
	case "vendor_part_id":
		if _, err := strconv.ParseUint(value, 10, 16); err == nil && (r.vendor == "0x02c9" || r.vendor == "") {
			r.device.Model = "MT" + value
		}
	case "Firmware version", "fw_ver":
		r.device.Firmware = value
	case "active_width":
		lanes, _, _ := strings.Cut(value, "X")
		r.begin(l)
		r.width = network.ParseRate(lanes)
	case "active_speed":
		r.begin(l)
		r.speed = network.ParseRate(value)
	case "default gid":
		if strings.Contains(value, ":") {
			addGID(r.begin(l), facts.GID{GID: value})
		}
	default:
		r.takeOfPort(name, value, l)
	}
}

// takeOfPort reads a name that belongs to a port.
func (r *ports) takeOfPort(name, value string, l parse.Line) {
	if index, ok := strings.CutPrefix(name, "GID["); ok {
		if n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(index, "]"))); err == nil {
			gid, kind, _ := strings.Cut(value, ",")
			addGID(r.begin(l), facts.GID{Index: n, GID: strings.TrimSpace(gid), Type: network.GIDType(kind)})
		}
		return
	}
	var told facts.RDMAPort
	if !setField(&told, name, value) {
		return
	}
	// A second state is that of the next port, whose head a filter hid.
	if p := r.port; p != nil && (told.State != "" && p.State != "" || told.PhysicalState != "" && p.PhysicalState != "") {
		r.flush()
	}
	setField(r.begin(l), name, value)
}

// setField enters a value of a port, by its name in any of the tools. It is false for another name.
func setField(p *facts.RDMAPort, name, value string) bool {
	switch strings.ToLower(strings.ReplaceAll(name, "_", " ")) {
	case "state":
		p.State = network.PortState(value)
	case "physical state", "phys state":
		p.PhysicalState = network.PhysicalState(value)
	case "rate":
		p.RateGbps = network.ParseRate(value)
	case "sm lid":
		p.SMLID = network.ParseLID(value)
	case "link layer":
		p.LinkLayer = network.LinkLayer(value)
	case "max mtu":
		p.MaxMTU, _ = network.LeadingNumber(value)
	case "active mtu":
		p.MTU, _ = network.LeadingNumber(value)
	default:
		return false
	}
	return true
}
