package gpudoctor.rules.nodes_differ_test

import data.gpudoctor.rules.nodes_differ

of(name, values) := {"fleet": {"nodes": 10, "traits": [{"name": name, "values": values}]}}

most := {"value": "2.27.3", "count": 8}

few := {"value": "2.26.2", "count": 2, "nodes": ["n7", "n9"]}

test_few if {
	[f] := [f | some f in nodes_differ.findings] with input as of("NCCL", [most, few])
	f.nodes == ["n7", "n9"]
	f.severity == "high"
	f.remedies == ["same-nccl-everywhere"]
	f.about.values == ["2.27.3 on 8", "2.26.2 on 2 (n7, n9)"]
}

# Without a value of most nodes, all of them are named.
test_half if {
	[f] := [f | some f in nodes_differ.findings] with input as of("driver", [
		{"value": "570", "count": 5, "nodes": ["a", "b", "c", "d", "e"]},
		{"value": "575", "count": 1, "nodes": ["f"]},
		{"value": "576", "count": 1, "nodes": ["g"]},
		{"value": "577", "count": 1, "nodes": ["h"]},
		{"value": "578", "count": 1, "nodes": ["i"]},
		{"value": "579", "count": 1, "nodes": ["j"]},
	])
	count(f.nodes) == 10
	f.about.values[0] == "570 on 5 (a, b, c and 2 more)"
	f.about.values[4] == "and 2 more values"
}

test_alike if count(nodes_differ.findings) == 0 with input as of("NCCL", [{"value": "2.27.3", "count": 10}])

test_not_of_the_table if count(nodes_differ.findings) == 0 with input as of("size", [most, few])

test_variables if {
	[f] := [f | some f in nodes_differ.findings] with input as of("NCCL_PROTO", [most, few])
	f.grade == "joint"
	[g] := [g | some g in nodes_differ.findings] with input as of("NCCL_IB_HCA", [most, few])
	g.grade == "setting"
}
