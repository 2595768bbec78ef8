// Formats the output of `--help` at the width of the terminal.
import { type CliCommand, COMMON_OPTIONS, type Option } from "./command.ts";
import { paint, terminalWidth } from "../format/terminal.ts";

const MIN_DESCRIPTION_WIDTH = 24;

/** Wraps text at a number of characters. A longer word gets a separate line. */
function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const hangingIndent = (text: string, width: number, indent: string): string =>
  wrapText(text, width - indent.length).join(`\n${indent}`);

/**
 * Formats names and descriptions in two columns if the width allows it, and otherwise below each
 * other.
 */
function formatRows(
  of: readonly (readonly [name: string, about: string])[],
  width: number,
): string {
  const widest = Math.max(...of.map(([name]) => name.length));
  const beside = width - widest - 4 >= MIN_DESCRIPTION_WIDTH;
  return of
    .map(([name, about]) => {
      const head = `  ${paint("bold", name)}`;
      if (!beside) return `${head}\n      ${hangingIndent(about, width, "      ")}`;
      const indent = " ".repeat(widest + 4);
      return `${head}${" ".repeat(widest - name.length + 2)}${hangingIndent(about, width, indent)}`;
    })
    .join("\n");
}

const optionRow = ([name, { short, placeholder, description, isRepeatable }]: [string, Option]) =>
  [
    `${short ? `-${short}, ` : "    "}--${name}${placeholder ? ` <${placeholder}>` : ""}`,
    `${description}${isRepeatable ? " (repeatable)" : ""}`,
  ] as const;

export function formatOverview(
  version: string,
  commands: Readonly<Record<string, { readonly summary: string }>>,
  width = terminalWidth(),
): string {
  return [
    `tollgate ${version}: a model gateway`,
    "",
    "Usage: tollgate <command> [options]",
    "",
    formatRows(
      Object.entries(commands).map(([name, { summary }]) => [name, summary]),
      width,
    ),
    "",
    hangingIndent(
      "For details, run tollgate <command> --help. Exit codes: 0 success, 1 failure, 78 errors in gateway.yaml.",
      width,
      "",
    ),
  ].join("\n");
}

export function formatHelp(command: CliCommand, width = terminalWidth()): string {
  const parts = Object.entries(command.subcommands ?? {});
  const shared = parts.length > 0 ? {} : command.options;
  return [
    hangingIndent(`Usage: tollgate ${command.usage}`, width, "       "),
    "",
    hangingIndent(command.description, width, ""),
    "",
    ...(parts.length > 0
      ? [
          "Commands:",
          formatRows(
            parts.map(([name, { summary }]) => [name, summary]),
            width,
          ),
          "",
        ]
      : []),
    "Options:",
    formatRows(Object.entries({ ...shared, ...COMMON_OPTIONS }).map(optionRow), width),
    "",
    command.examples.length > 1 ? "Examples:" : "Example:",
    ...command.examples.map((line) => `  ${line}`),
  ].join("\n");
}
