package main

// elsewhereProgram is gpudoctor on a system that is not Linux.
const elsewhereProgram = "gpudoctor-elsewhere"

func init() {
	programs[elsewhereProgram] = func() {
		liveSystem = "darwin"
		main()
	}
}
