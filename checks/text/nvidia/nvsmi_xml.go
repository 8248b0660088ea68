package nvidia

import (
	"strings"

	"github.com/gpudoctor/gpudoctor/checks/facts"
	"github.com/gpudoctor/gpudoctor/checks/text/parse"
)

// nvsmiXMLKind is the long listing as XML (nvidia-smi -q -x), of the document types nvsmi_device_v4 to v13.
var nvsmiXMLKind = &parse.Kind{
	Name: "nvidia-smi-xml", Title: "all attributes of NVIDIA GPUs, from nvidia-smi -q -x",
	Command: "nvidia-smi -q -x", Gives: []string{"gpus"},
	Anchors: []string{"<!DOCTYPE nvidia_smi_log", "<nvidia_smi_log>"},
	Begins:  parse.BeginsWith(func(text string) bool { return strings.Contains(text, "nvidia_smi_log") }),
	Read: func(s *parse.Sink, in *parse.Lines) {
		document, whole := parse.XMLDocument(in, "</nvidia_smi_log>")
		r := &nvsmiQueryReader{sink: s}
		for _, log := range document.Nodes {
			for _, n := range log.Nodes {
				if n.Name != "gpu" {
					r.version(n.Name, n.Text, n.Line)
				} else if facts.Address(n.Attributes["id"]) != "" {
					r.begin(n.Attributes["id"], n.Line)
					r.elements(n, "")
				}
			}
		}
		if r.commit(); whole {
			r.finish(in)
		}
	},
}

// elements reads what lies below an element of a GPU.
func (r *nvsmiQueryReader) elements(of *parse.XMLNode, path string) {
	for _, n := range of.Nodes {
		if len(n.Nodes) == 0 {
			r.attribute(path+n.Name, n.Text, n.Line)
		}
		r.elements(n, path+n.Name+"/")
	}
}
