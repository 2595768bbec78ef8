import { type CompletedCommand, isPath, last, oneLine } from "./words.ts";

export function fish(commands: readonly CompletedCommand[]): string {
  const lines = ["# tollgate completion fish", "complete -c tollgate -f"];
  for (const command of commands) {
    lines.push(
      `complete -c tollgate -n __fish_use_subcommand -a ${last(command)} -d '${oneLine(command.summary)}'`,
    );
    const names = command.parts.map(last).join(" ");
    for (const part of command.parts) {
      const none = `__fish_seen_subcommand_from ${command.name}; and not __fish_seen_subcommand_from ${names}`;
      lines.push(
        `complete -c tollgate -n '${none}' -a ${last(part)} -d '${oneLine(part.summary)}'`,
      );
      lines.push(
        ...optionsOf(
          part,
          `__fish_seen_subcommand_from ${command.name}; and __fish_seen_subcommand_from ${last(part)}`,
        ),
      );
    }
    if (names === "")
      lines.push(...optionsOf(command, `__fish_seen_subcommand_from ${command.name}`));
  }
  return `${lines.join("\n")}\n`;
}

const optionsOf = ({ options }: CompletedCommand, where: string): readonly string[] =>
  Object.entries(options).map(([name, option]) => {
    const short = option.short === undefined ? "" : ` -s ${option.short}`;
    const value = option.value === undefined ? "" : isPath(option) ? " -r -F" : " -x";
    return `complete -c tollgate -n '${where}' -l ${name}${short}${value} -d '${oneLine(option.about)}'`;
  });
