package nvidia

import (
	"strconv"
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/lazy"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiCSVKind is the answer to nvidia-smi --query-gpu with --format=csv: the
// header names the columns, or without one (noheader) the command.
//
//	index, name, driver_version, memory.total [MiB]
//	0, NVIDIA H200, 580.159.04, 143771 MiB
var nvsmiCSVKind = &parse.Kind{
	Name: "nvidia-smi-csv", Title: "attributes of NVIDIA GPUs, from nvidia-smi --query-gpu",
	Command: "nvidia-smi --query-gpu=index,pci.bus_id,name,driver_version --format=csv", Gives: []string{"gpus", "software"},
	Anchors: []string{
		"index, ", "name, ", "pci.bus_id", "driver_version", "gpu_bus_id", "uuid, ", "memory.total [MiB]", "memory.used [MiB]", "compute_cap",
		"pcie.link.", "mig.mode.", "remapped_rows.", "ecc.errors.", "persistence_mode", "fabric.state", "pstate, ",
	},
	Commands: []string{"nvidia-smi"},
	Begins: func(in *parse.Lines) bool {
		if columns, ok := nvsmiCSVHeader(in.First().Text); ok {
			return len(columns) > 1 || in.After("nvidia-smi")
		}
		columns := nvsmiCSVAsked(in)
		return columns != nil && strings.Count(in.First().Text, ",") == len(columns)-1
	},
	Read: nvsmiCSVRead,
}

// nvsmiCSVKeys are the columns beside those of nvsmiAttributes, and what they tell of a row.
var nvsmiCSVKeys = map[string]string{
	"index": "index", "gpu_index": "index", "pci.bus_id": "address", "gpu_bus_id": "address", "driver_version": "driver",
}

// nvsmiCSVColumn is a name of a column as nvidia-smi --help-query-gpu lists them, with its unit behind it.
var nvsmiCSVColumn = lazy.New(`^[a-z][a-z0-9_.]*(?: \[[^\]]{1,12}\])?$`)

// nvsmiCSVHeader reads a line of names of columns. One at least must be known, and each must look like one.
func nvsmiCSVHeader(text string) ([]string, bool) {
	if len(text) > 4096 {
		return nil, false
	}
	var columns []string
	known := 0
	for field := range strings.SplitSeq(text, ",") {
		field = strings.TrimSpace(field)
		if !nvsmiCSVColumn.MatchString(field) {
			return nil, false
		}
		name, _, _ := strings.Cut(field, " ")
		if nvsmiCSVKeys[name] != "" || nvsmiByColumn[name] != nil {
			known++
		}
		columns = append(columns, name)
	}
	return columns, known > 0 && (known > 1 || len(columns) == 1 || strings.ContainsAny(text, "._"))
}

// nvsmiCSVAsked are the columns that the command right above asks for, but where a line is not that of the GPU at its position.
func nvsmiCSVAsked(in *parse.Lines) []string {
	command := in.Prompt().Command
	asked := nvsmiCSVOption.First(command)
	if asked == "" || !in.After("nvidia-smi") || !strings.Contains(command, "csv") || nvsmiSorted.MatchString(command) {
		return nil
	}
	return strings.Split(strings.Trim(asked, ","), ",")
}

var (
	nvsmiCSVOption = lazy.New(`--query-(?:gpu|remapped-rows)[= ]([a-z0-9_.,]+)`)
	nvsmiSorted    = lazy.New(`\| *(?:sort|uniq)\b`)
)

func nvsmiCSVRead(s *parse.Sink, in *parse.Lines) {
	command := ""
	if in.After("nvidia-smi") {
		command = in.Prompt().Command
	}
	columns, header := nvsmiCSVHeader(in.First().Text)
	if header {
		in.Next()
	} else {
		columns = nvsmiCSVAsked(in)
	}
	only := nvsmiCommandIndex(command)
	rows, consecutive := 0, true
	in.While(func(l parse.Line) bool {
		fields := strings.Split(l.Text, ",")
		if _, again := nvsmiCSVHeader(l.Text); again || rows >= parse.MaxEntries || strings.TrimSpace(l.Text) == "" || len(fields) != len(columns) ||
			!nvsmiCSVRow(s, columns, fields, max(only, 0)+rows, &consecutive, rows, l) {
			return false
		}
		rows++
		return true
	})
	// A pipe may have cut the list; without the command it cannot be told.
	if command != "" && only < 0 && rows > 0 && consecutive && !strings.Contains(command, "|") {
		nvsmiAnswered(s, in.First())
	}
}

// nvsmiCSVRow reads one line. position is the index of its GPU where no column tells.
func nvsmiCSVRow(s *parse.Sink, columns, fields []string, position int, consecutive *bool, row int, l parse.Line) bool {
	told := &facts.GPU{}
	address, driver := "", ""
	index := -1
	for i, column := range columns {
		value := strings.TrimSpace(fields[i])
		switch nvsmiCSVKeys[column] {
		case "index":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > 1023 {
				return false
			}
			index = n
			*consecutive = *consecutive && n == row
		case "address":
			if address = facts.Address(value); address == "" {
				return false
			}
		case "driver":
			if !nvsmiDriverVersion.MatchString(value) {
				return false
			}
			driver = value
		default:
			if a := nvsmiByColumn[column]; a != nil {
				a.set(told, nvsmiValueOf(value))
			}
		}
	}
	nvsmiDriver(s, driver, "", l)
	if address == "" && index < 0 {
		index = position
	}
	nvsmiReplace(nvsmiGPU(s, address, index, l), told)
	return true
}
