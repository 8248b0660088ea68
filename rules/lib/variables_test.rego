package gpudoctor.lib.variables_test

import data.gpudoctor.lib.variables

# Each variable of NCCL that a row judges is one that NCCL reads or has read.
test_rows_name_real_variables if {
	every row in variables.rows {
		every name in row.names {
			real(name)
		}
	}
}

real(name) if not startswith(name, "NCCL_")

real(name) if name in variables.known

real(name) if {
	some row in variables.dead
	name in row.names
}

test_numbers_are_known if count(variables.numbers - variables.known) == 0

test_misspelt_names_are_not_known if {
	every wrong, meant in variables.misspelt {
		not wrong in variables.known
		meant in variables.known
	}
}

test_levels if {
	every level in variables.old_levels {
		level in variables.levels
	}
	every _, level in variables.path_levels {
		level in variables.levels
	}
}

test_dead_rows_say_what_took_their_place if {
	row := variables.gone("NCCL_OLD", "2.5", "NCCL_NEW")
	row.why == "is not read any more since NCCL 2.5 (see NCCL_NEW)"
	variables.gone("NCCL_OLD", "2.5", "nothing").why == "is not read any more since NCCL 2.5"
}
