package evidence

// launchFamily are the kinds of text of this area: how jobs and containers are
// started, their variables and limits.
func launchFamily(s *Sink) Family {
	script, access := &launchScript{Sink: s}, &nodesAccess{}
	return Family{Kinds: []*Kind{
		launchJSONKind, launchDescribeKind, launchYAMLKind, launchInspectKind, launchInspectPartKind, launchDockerfileKind, launchScriptKind, launchCommandKind(script), launchPromptKind(script), launchArgumentsKind,
		environmentKind(script), limitsKind, ulimitKind, shmKind, processKind, nodesKind(access), identityKind(access),
	}}
}
