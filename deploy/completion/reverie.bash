# Completion of reverie for bash. Made by a test of cmd/bot; do not edit.
_reverie() {
	local word=${COMP_WORDS[COMP_CWORD]} command='' words='' i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case "$command ${COMP_WORDS[i]}" in
		" run" | " chat" | " init" | " doctor" | " tier" | " memory" | " memory list" | " memory add" | " memory forget" | " memory history" | " memory undo" | " memory export" | " memory search" | " memory import" | " memory reindex" | " dream" | " dream undo" | " task" | " task list" | " task show" | " task add" | " task complete" | " task pause" | " task resume" | " task delete" | " task runs" | " mcp" | " mcp list" | " mcp check" | " mcp add" | " mcp serve" | " skill" | " skill list" | " skill check" | " skill add" | " skill review" | " skill remove" | " backup" | " restore" | " web" | " prompt" | " version" | " help") command="$command ${COMP_WORDS[i]}" ;;
		esac
	done
	case $command in
	'') words='run chat init doctor tier memory dream task mcp skill backup restore web prompt version help --config -c --json --version -v' ;;
	' run') words='--config -c --json --version -v' ;;
	' chat') words='--config -c --json --version -v' ;;
	' init') words='--config -c --json --version -v' ;;
	' doctor') words='--config -c --json --version -v' ;;
	' tier') words='--config -c --json --version -v' ;;
	' memory') words='list add forget history undo export search import reindex --config -c --json --version -v' ;;
	' memory list') words='--scope --any --config -c --json --version -v' ;;
	' memory add') words='--scope --config -c --json --version -v' ;;
	' memory forget') words='--scope --all --config -c --json --version -v' ;;
	' memory history') words='--config -c --json --version -v' ;;
	' memory undo') words='--config -c --json --version -v' ;;
	' memory export') words='--scope --any --config -c --json --version -v' ;;
	' memory search') words='--scope --k -k --turns --past --batch --config -c --json --version -v' ;;
	' memory import') words='--scope --remove --config -c --json --version -v' ;;
	' memory reindex') words='--config -c --json --version -v' ;;
	' dream') words='undo --dry-run --phase --config -c --json --version -v' ;;
	' dream undo') words='--config -c --json --version -v' ;;
	' task') words='list show add complete pause resume delete runs --config -c --json --version -v' ;;
	' task list') words='--room --all --config -c --json --version -v' ;;
	' task show') words='--config -c --json --version -v' ;;
	' task add') words='--room --when --prompt --silent --priority --config -c --json --version -v' ;;
	' task complete') words='--config -c --json --version -v' ;;
	' task pause') words='--config -c --json --version -v' ;;
	' task resume') words='--config -c --json --version -v' ;;
	' task delete') words='--config -c --json --version -v' ;;
	' task runs') words='--room --count --config -c --json --version -v' ;;
	' mcp') words='list check add serve --config -c --json --version -v' ;;
	' mcp list') words='--config -c --json --version -v' ;;
	' mcp check') words='--config -c --json --version -v' ;;
	' mcp add') words='--yes -y --config -c --json --version -v' ;;
	' mcp serve') words='--for --config -c --json --version -v' ;;
	' skill') words='list check add review remove --config -c --json --version -v' ;;
	' skill list') words='--config -c --json --version -v' ;;
	' skill check') words='--config -c --json --version -v' ;;
	' skill add') words='--for --config -c --json --version -v' ;;
	' skill review') words='--config -c --json --version -v' ;;
	' skill remove') words='--yes --config -c --json --version -v' ;;
	' backup') words='--passphrase-file --config -c --json --version -v' ;;
	' restore') words='--check --passphrase-file --config -c --json --version -v' ;;
	' web') words='--config -c --json --version -v' ;;
	' prompt') words='--layout --room --why --config -c --json --version -v' ;;
	' version') words='--config -c --json --version -v' ;;
	' help') words='--config -c --json --version -v' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _reverie reverie
