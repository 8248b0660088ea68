package gpudoctor.lib.efa_test

import data.gpudoctor.lib.efa

says(order, host, text) := {
	"id": "x", "program": "nccl", "role": "setting", "text": text, "host": host,
	"source": "nccl.log", "line": order + 1, "order": order, "count": 1, "ranks": 1,
}

document(texts) := {"logs": {"messages": [says(i, row[0], row[1]) | some i, row in texts]}}

test_expects_efa if {
	efa.expected with input as {"pci": {"devices": [{"address": "0000:00:1e.0", "vendor": "0x1d0f", "device": "0xefa1"}]}}
	efa.expected with input as {"launches": [{"resources": {"vpc.amazonaws.com/efa": "4"}}]}
	efa.expected with input as {"env": {"variables": [{"name": "FI_PROVIDER", "value": "efa", "effective": true}]}}
	efa.expected with input as {"env": {"variables": [{"name": "FI_EFA_USE_DEVICE_RDMA", "value": "1", "effective": true}]}}
	efa.expected with input as {"nics": {"rdma": [{"device": "rdmap16s27"}]}}
	efa.expected with input as {"logs": {"messages": [object.union(says(0, "a", "x"), {"id": "ofi-platform"})]}}
}
