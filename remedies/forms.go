package remedies

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// WithForms adds to the variables of Environment the ways by which a container
// runtime and a scheduler set them.
func (a Apply) WithForms() Apply {
	if len(a.Environment) == 0 {
		return a
	}
	var settings, entries []string
	for _, name := range slices.Sorted(maps.Keys(a.Environment)) {
		value := a.Environment[name]
		settings = append(settings, name+"="+value)
		a.Docker = append(slices.Clone(a.Docker), "-e "+name+"="+value)
		entries = append(entries, fmt.Sprintf("  - {name: %s, value: %q}\n", name, value))
	}
	a.Kubernetes += "env:\n" + strings.Join(entries, "")
	a.Slurm = append(slices.Clone(a.Slurm), "#SBATCH --export=ALL,"+strings.Join(settings, ","))
	return a
}
