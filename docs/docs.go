// Package docs holds the documents that the program shows.
package docs

import _ "embed"

// Glossary explains the terms of reports, a row of a table for each.
//
//go:embed glossary.md
var Glossary string
