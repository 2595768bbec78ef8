import { type CompletedCommand, flags, last, paths, UNNAMED, unnamed, valued } from "./words.ts";

const listed = (words: readonly string[]): string => `' ${words.join(" ")} '`;

export function bash(commands: readonly CompletedCommand[]): string {
  const values = commands.map(
    (each) => `    ${each.name}) valued=${listed(valued(each))} paths=${listed(paths(each))} ;;`,
  );
  const cases = commands.flatMap(({ name, options, parts }) => [
    ...parts.map((part) => `    '${part.name}') words=${listed(flags(part.options))} ;;`),
    `    '${name} '*) words=${listed([...parts.map(last), ...flags(options)])} ;;`,
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
    words=${listed([...commands.map(last), ...flags(unnamed(commands))])}
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    return
  fi
  [[ $name == -* ]] && name=${UNNAMED} i=1
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
