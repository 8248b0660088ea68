# Driver error codes. The entries of the table of CUDA driver, HIP and NVML errors (rules/data/driver_errors.yaml).
package gpudoctor.lib.driver_errors

import data.tables.driver_errors as table

# code is a result by its name in cuda.h, without CUDA_ERROR_, and nvml NVML's errors for a GPU that it cannot use.
code[c.name] := c.code if some c in table.codes
nvml[e.name] := e if some e in table.nvml

# class is what a code is about.
class(number) := by_name[object.get(class_of, number, "other")]

class_of[c.code] := c.class if some c in table.codes
by_name[c.name] := c if some c in table.classes

# in_gpu are the codes for hardware that stay where no GPU accesses another.
in_gpu := {c.code | some c in table.codes; c.in_gpu}

# untried are codes that a transfer can fail with and that say nothing of the path: the probe could not try.
untried := {c.code | some c in table.codes; c.untried}

# judged are the codes of a driver that says itself what it lacks, which other rules judge.
judged := {c.code | some c in table.codes; c.judged_by}
