import {
  type CompletedCommand,
  optionFlags,
  lastWord,
  pathFlags,
  DEFAULT_COMMAND,
  defaultCommandOptions,
  flagsWithValue,
} from "./completion-data.ts";

const quoteWords = (words: readonly string[]): string => `' ${words.join(" ")} '`;

export function bashScript(commands: readonly CompletedCommand[]): string {
  const values = commands.map(
    (each) =>
      `    ${each.name}) valued=${quoteWords(flagsWithValue(each))} paths=${quoteWords(pathFlags(each))} ;;`,
  );
  const cases = commands.flatMap(({ name, options, subcommands }) => [
    ...subcommands.map(
      (part) => `    '${part.name}') words=${quoteWords(optionFlags(part.options))} ;;`,
    ),
    `    '${name} '*) words=${quoteWords([...subcommands.map(lastWord), ...optionFlags(options)])} ;;`,
  ]);
  return `# tollgate completion bash
_tollgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}
  # An option's value after "=" is a word of its own here, and so is the "=".
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  local name=\${COMP_WORDS[1]} i=2 part= valued= paths= words=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words=${quoteWords([...commands.map(lastWord), ...optionFlags(defaultCommandOptions(commands))])}
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  [[ $name == -* ]] && name=${DEFAULT_COMMAND} i=1
  case $name in
${values.join("\n")}
  esac
  if [[ $paths == *" $before "* ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  [[ $valued == *" $before "* ]] && return
  for (( ; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in
      =) ((i++)) ;;
      -*) [[ $valued == *" \${COMP_WORDS[i]} "* && \${COMP_WORDS[i+1]} != = ]] && ((i++)) ;;
      *) part=\${part:-\${COMP_WORDS[i]}} ;;
    esac
  done
  case "$name $part" in
${cases.join("\n")}
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o filenames -F _tollgate tollgate
`;
}
