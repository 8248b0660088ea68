package rules

import "slices"

// The profile launch judges what files say of a job. What a rule needs to know of a machine
// it does not need then, but a file that describes a job.

// launchNeeds are what every rule needs in the profile launch.
var launchNeeds = []Need{{"launches"}}

// needsIn is a rule with what it needs in a profile.
func needsIn(profile Profile, rule Rule) Rule {
	if profile == Launch {
		rule.Needs = launchNeeds
	}
	return rule
}

// ofProfile is the answer of a rule without what it misses of a machine, where files are
// judged.
func ofProfile(profile Profile, a reading) reading {
	if profile == Launch {
		a.missing = slices.DeleteFunc(a.missing, func(m Missing) bool { return m.Section() != launchNeeds[0][0] })
	}
	return a
}
