package gpudoctor.rules.rail_crossed_test

import data.gpudoctor.rules.rail_crossed

rails(first, second) := {"fleet": {"nodes": 16, "traits": [
	{"name": "subnet of mlx5_0", "values": first},
	{"name": "subnet of mlx5_1", "values": second},
]}}

most(subnet) := {"value": subnet, "count": 15}

one(subnet) := {"value": subnet, "count": 1, "nodes": ["n7"]}

test_crossed if {
	found := rail_crossed.findings with input as rails([most("10.0.0.0/24"), one("10.0.1.0/24")], [most("10.0.1.0/24"), one("10.0.0.0/24")])
	{[f.id, f.subject, f.about.other, f.nodes] | some f in found} == {
		["crossed", "mlx5_0", {"mlx5_1"}, ["n7"]],
		["crossed", "mlx5_1", {"mlx5_0"}, ["n7"]],
	}
}

# Each rack has its own subnets, or all rails have one.
test_racks if count(rail_crossed.findings) == 0 with input as rails(
	[{"value": "10.0.0.0/24", "count": 8, "nodes": ["a"]}, {"value": "10.2.0.0/24", "count": 8, "nodes": ["b"]}],
	[{"value": "10.1.0.0/24", "count": 8, "nodes": ["a"]}, {"value": "10.3.0.0/24", "count": 8, "nodes": ["b"]}],
)

test_one_subnet if count(rail_crossed.findings) == 0 with input as rails([{"value": "10.0.0.0/16", "count": 16}], [{"value": "10.0.0.0/16", "count": 16}])

test_no_subnets if rail_crossed.not_applicable == {"no RDMA port with a subnet"} with input as {"fleet": {"nodes": 2, "traits": []}}
