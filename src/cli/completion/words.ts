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

/** Flags that take a value, of a command and its parts: which part is meant is not known before them. */
export const valued = (command: CompletedCommand): readonly string[] =>
  those(command, ({ value }) => value !== undefined);

export const isPath = ({ value }: Option): boolean => value === "file" || value === "folder";

/** Those that take a path. */
export const paths = (command: CompletedCommand): readonly string[] => those(command, isPath);

const those = (command: CompletedCommand, are: (option: Option) => boolean): readonly string[] => [
  ...new Set(
    flat([command]).flatMap(({ options }) =>
      Object.entries(options).flatMap(([name, option]) =>
        are(option) ? flags({ [name]: option }) : [],
      ),
    ),
  ),
];

/** Options before any command are those of `serve`. */
export const UNNAMED = "serve";
/** At the first word alone. */
export const VERSION: Options = { version: { about: "print the version" } };

export const unnamed = (commands: readonly CompletedCommand[]): Options => ({
  ...commands.find(({ name }) => name === UNNAMED)!.options,
  ...VERSION,
});

/** The last word of a name. */
export const last = ({ name }: CompletedCommand): string => name.split(" ").at(-1)!;

/** A sentence on one line, as a single-quoted word of a shell can hold it. */
export const oneLine = (text: string): string =>
  text.replace(/\s+/g, " ").replaceAll("'", "’").trim();
