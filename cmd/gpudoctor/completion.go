package main

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completions are the scripts that make a shell ask gpudoctor what may come
// next (--generate-bash-completion is the question, an answer stands on a
// line).
var completions = map[string]string{
	"bash": `_gpudoctor() {
	local word="${COMP_WORDS[COMP_CWORD]}" words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
	[[ "$word" == -* ]] && words+=("$word")
	local IFS=$'\n'
	COMPREPLY=($(compgen -W "$(gpudoctor "${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$word"))
}
complete -o default -F _gpudoctor gpudoctor
`,
	"zsh": `#compdef gpudoctor
_gpudoctor() {
	local word="${words[CURRENT]}"
	local -a before answers
	before=("${(@)words[2,CURRENT-1]}")
	[[ "$word" == -* ]] && before+=("$word")
	answers=("${(@f)$(gpudoctor "${before[@]}" --generate-bash-completion 2>/dev/null)}")
	compadd -- "${answers[@]%%:*}"
	_files
}
compdef _gpudoctor gpudoctor
`,
	"fish": `function __gpudoctor
	set -l words (commandline --tokenize --cut-at-cursor --current-process)
	set -l word (commandline --current-token)
	string match -q -- '-*' $word; and set -a words $word
	gpudoctor $words[2..-1] --generate-bash-completion 2>/dev/null | string replace -r '^([a-z-]+):' '$1\t'
end
complete --command gpudoctor --arguments '(__gpudoctor)'
`,
	"powershell": `Register-ArgumentCompleter -Native -CommandName gpudoctor -ScriptBlock {
	param($word, $ast, $position)
	$words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
	if ($word -and -not $word.StartsWith('-')) { $words = @($words | Select-Object -SkipLast 1) }
	& gpudoctor @words --generate-bash-completion 2>$null |
		ForEach-Object { ($_ -split ':')[0] } | Where-Object { $_ -like "$word*" }
}
`,
}

func completionCommand() *cli.Command {
	shells := slices.Sorted(maps.Keys(completions))
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the script that completes commands and flags in a shell",
		ArgsUsage: strings.Join(shells, "|"),
		Description: `bash        source <(gpudoctor completion bash)
zsh         source <(gpudoctor completion zsh)
fish        gpudoctor completion fish | source
powershell  gpudoctor completion powershell | Out-String | Invoke-Expression`,
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 {
				return hinted(errors.New("completion takes the name of one shell"), "one of: "+strings.Join(shells, ", "))
			}
			script, ok := completions[c.Args().First()]
			if !ok {
				return unknownName("shell", c.Args().First(), shells, "one of: "+strings.Join(shells, ", "))
			}
			return toStdout(c.App.Writer, func(w io.Writer) error {
				_, err := io.WriteString(w, script)
				return err
			})
		},
	}
}
