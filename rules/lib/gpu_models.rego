# The entries of the table of GPU models (rules/data/gpu_models.yaml) for the GPUs in the facts and the texts.
package gpudoctor.lib.gpu_models

import data.tables.gpu_models as table

# model is what the table says of a GPU, by its name.
model[g.name] := of(g.name) if some g in all

all := found if {
	count(found) > 0
} else := [{"name": t.gpu} | some t in input.texts; t.gpu]

found := array.concat([g | some g in input.gpus.devices], [{"name": name} | some b in input.benchmarks; some name in b.gpu_names])

# of is the first row of the table that a name is like.
of(name) := table.models[min([i | some i, row in table.models; regex.match(row.like, lower(name))])]

# architectures are those of all GPUs, "" of one that is not known.
architectures contains architecture(g) if some g in all

# architecture of a GPU is what a program states ("Ada Lovelace", "gfx942:sramecc+"), or what the name tells.
architecture(g) := array.flatten([
	[lower(regex.find_n(`^\w+`, g.architecture, 1)[0]) | g.architecture],
	[of(g.name).architecture | of(g.name).architecture],
	[named | named := regex.find_n(`\bgfx[0-9a-f]{3,4}`, g.name, 1)[0]],
	"",
])[0]
