// What the scripts of all shells are made of.
import type { Option, Options } from "../command.ts";

/** A command as a shell sees it. */
export interface CompletedCommand {
  /** "keys create" */
  readonly name: string;
  readonly summary: string;
  readonly options: Options;
  readonly parts: readonly CompletedCommand[];
}

/** Each command, and after it those of two words. */
export const flat = (commands: readonly CompletedCommand[]): readonly CompletedCommand[] =>
  commands.flatMap((command) => [command, ...command.parts]);

/** "--config", "-c" */
export const flags = (options: Options): readonly string[] =>
  Object.entries(options).flatMap(([name, { short }]) => [
    `--${name}`,
    ...(short === undefined ? [] : [`-${short}`]),
  ]);

/** Flags that take a value, of all commands. */
export const valued = (commands: readonly CompletedCommand[]): readonly string[] => [
  ...new Set(
    flat(commands).flatMap(({ options }) =>
      Object.entries(options).flatMap(([name, option]) =>
        option.value === undefined ? [] : flags({ [name]: option }),
      ),
    ),
  ),
];

export const isPath = ({ value }: Option): boolean => value === "file" || value === "folder";

/** Those that take a path. */
export const paths = (commands: readonly CompletedCommand[]): readonly string[] => [
  ...new Set(
    flat(commands).flatMap(({ options }) =>
      Object.entries(options).flatMap(([name, option]) =>
        isPath(option) ? flags({ [name]: option }) : [],
      ),
    ),
  ),
];

/** The last word of a name. */
export const last = ({ name }: CompletedCommand): string => name.split(" ").at(-1)!;

/** A sentence on one line, as a single-quoted word of a shell can hold it. */
export const oneLine = (text: string): string =>
  text.replace(/\s+/g, " ").replaceAll("'", "’").trim();
