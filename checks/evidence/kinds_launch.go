package evidence

// launchKinds are the kinds of text of this area: how jobs and containers are
// started, their variables and limits.
var launchKinds = []*Kind{
	launchJSONKind, launchDescribeKind, launchYAMLKind, launchInspectKind, launchInspectPartKind, launchDockerfileKind, launchScriptKind, launchCommandKind, launchPromptKind, launchArgumentsKind,
	environmentKind, limitsKind, ulimitKind, shmKind, processKind, nodesKind, identityKind,
}
