package data

// Unknown returns the table of what rules say about facts that are not known.
var Unknown = reader[UnknownTable]("unknown")

// UnknownTable holds, by the path of a fact, the sentence for a rule that lacks it, where the facts give no reason.
type UnknownTable struct {
	Facts map[string]string `json:"facts"`
}
