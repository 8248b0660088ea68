package main

import (
	"maps"
	"slices"
)

// completeQuestion stands before a command line of which a shell asks what its last
// word may become: gpudoctor __complete check --format m. Each answer stands on
// a line, what it means behind a tab. A last line of Files or Folders
// asks the shell for names of files as well.
const (
	completeQuestion = "__complete"
	completeFiles    = ":files"
	completeFolders  = ":folders"
)

// completionScripts are the scripts that make a shell ask gpudoctor what may come
// next.
var completionScripts = map[string]string{
	// Bash ends words at the characters of COMP_WORDBREAKS, such as ":" and
	// "=": what was typed is put together again, and the answers are cut to
	// what comes behind the last of them.
	"bash": `_gpudoctor() {
	local i break line head="" files="" words=()
	for ((i = 1; i <= COMP_CWORD; i++)); do
		if ((i > 1)) && [[ ${COMP_WORDS[i]} == [:=]* || ${COMP_WORDS[i-1]} == *[:=] ]]; then
			words[${#words[@]}-1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}")
		fi
	done
	local word=${words[${#words[@]}-1]}
	for break in : =; do
		if [[ $COMP_WORDBREAKS == *$break* && ${word##*$break} != "$word" ]]; then
			line=${word%"${word##*$break}"}
			((${#line} > ${#head})) && head=$line
		fi
	done
	COMPREPLY=()
	while IFS= read -r line; do
		case $line in
		:files) files=default ;;
		:folders) files=dirnames ;;
		*)
			line=${line%%$'\t'*}
			COMPREPLY+=("${line#"$head"}")
			;;
		esac
	done < <(gpudoctor __complete "${words[@]}" 2>/dev/null)
	if [[ $files && ${#COMPREPLY[@]} -eq 0 ]]; then
		compopt -o "$files" 2>/dev/null
	elif [[ $files == default && -z $head ]]; then
		while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$word")
	fi
}
complete -F _gpudoctor gpudoctor
`,
	"zsh": `#compdef gpudoctor
_gpudoctor() {
	local line prefix="" files=""
	local -a answers meanings
	[[ "${words[CURRENT]}" == --*=* ]] && prefix="${words[CURRENT]%%=*}="
	while IFS= read -r line; do
		case "$line" in
		:files) files=_files ;;
		:folders) files="_files -/" ;;
		*) answers+=("${line%%$'\t'*}"); meanings+=("${line/$'\t'/  }") ;;
		esac
	done < <(gpudoctor __complete "${(@)words[2,CURRENT-1]}" "${words[CURRENT]}" 2>/dev/null)
	(( ${#answers} )) && compadd -l -d meanings -a answers
	if [[ -n "$files" ]]; then
		[[ -n "$prefix" ]] && compset -P "$prefix"
		${=files}
	fi
}
compdef _gpudoctor gpudoctor
`,
	"fish": `function __gpudoctor
	set -l words (commandline --tokenize --cut-at-cursor --current-process)
	set -l word (commandline --cut-at-cursor --current-token)
	set -l flag (string match -r '^--[a-z-]+=' -- $word)
	set -l value (string replace -r '^--[a-z-]+=' '' -- $word)
	for line in (gpudoctor __complete $words[2..-1] "$word" 2>/dev/null)
		switch $line
			case :files
				for file in (__fish_complete_path "$value")
					echo "$flag$file"
				end
			case :folders
				for folder in (__fish_complete_directories "$value")
					echo "$flag$folder"
				end
			case '*'
				echo $line
		end
	end
end
complete --command gpudoctor --no-files --arguments '(__gpudoctor)'
`,
}

// shellNames are the shells for which there is a script.
func shellNames() []string { return slices.Sorted(maps.Keys(completionScripts)) }
