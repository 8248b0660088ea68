package gpudoctor.lib.iommu_cures_test

import data.gpudoctor.lib.iommu_cures

test_lasting if {
	iommu_cures.lasting == ["iommu-pt", "iommu-off"] with input as {}

	# What was asked for already, and what would take the guests' isolation away, is left out.
	iommu_cures.lasting == ["iommu-off"] with input as {"iommu": {"command_line": ["iommu=pt"]}}
	iommu_cures.lasting == ["iommu-pt"] with input as {"host": {"virtualization": {"passthrough_host": true}}}
	iommu_cures.of_texts == ["iommu-pt", "iommu-off", "nccl-p2p-disable"] with input as {}
}

test_stopgap_for_who_runs_nccl if {
	iommu_cures.stopgap == [] with input as {"logs": {"messages": [{"program": "cuda"}]}}
	every document in [
		{"transfers": {"outcome": "ok"}},
		{"logs": {"messages": [{"program": "nccl"}]}},
		{"logs": {"messages": [], "communicators": [{"ranks": 2}]}},
	] {
		iommu_cures.stopgap == ["nccl-p2p-disable"] with input as document
	}
}
