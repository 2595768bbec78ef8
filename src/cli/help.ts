// What `--help` says, at the width of the terminal that reads it.
import { type CliCommand, COMMON, type Option } from "./command.ts";
import { paint, widthOf } from "./terminal.ts";

const LEAST_ABOUT = 24;

/** Words in lines of at most so many characters; a word that is longer has a line of its own. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const line = lines.at(-1);
    if (line !== undefined && line.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const hanging = (text: string, width: number, indent: string): string =>
  wrapped(text, width - indent.length).join(`\n${indent}`);

/** Names and what they are, beside each other where there is room, else under each other. */
function rows(of: readonly (readonly [name: string, about: string])[], width: number): string {
  const widest = Math.max(...of.map(([name]) => name.length));
  const beside = width - widest - 4 >= LEAST_ABOUT;
  return of
    .map(([name, about]) => {
      const head = `  ${paint("bold", name)}`;
      if (!beside) return `${head}\n      ${hanging(about, width, "      ")}`;
      const indent = " ".repeat(widest + 4);
      return `${head}${" ".repeat(widest - name.length + 2)}${hanging(about, width, indent)}`;
    })
    .join("\n");
}

const optionRow = ([name, { short, value, about, many }]: [string, Option]) =>
  [
    `${short ? `-${short}, ` : "    "}--${name}${value ? ` <${value}>` : ""}`,
    `${about}${many ? " (may be repeated)" : ""}`,
  ] as const;

export function overview(
  version: string,
  commands: Readonly<Record<string, { readonly summary: string }>>,
  width = widthOf(),
): string {
  return [
    `tollgate ${version}: a model gateway`,
    "",
    "Usage: tollgate <command> [options]",
    "",
    rows(
      Object.entries(commands).map(([name, { summary }]) => [name, summary]),
      width,
    ),
    "",
    hanging(
      "tollgate <command> --help says more. Exit codes: 0 fine, 1 failed, 78 gateway.yaml has errors.",
      width,
      "",
    ),
  ].join("\n");
}

export function helpOf(command: CliCommand, width = widthOf()): string {
  const parts = Object.entries(command.parts ?? {});
  const shared = parts.length > 0 ? {} : command.options;
  return [
    hanging(`Usage: tollgate ${command.usage}`, width, "       "),
    "",
    hanging(command.about, width, ""),
    "",
    ...(parts.length > 0
      ? [
          "Commands:",
          rows(
            parts.map(([name, { summary }]) => [name, summary]),
            width,
          ),
          "",
        ]
      : []),
    "Options:",
    rows(Object.entries({ ...shared, ...COMMON }).map(optionRow), width),
    "",
    command.examples.length > 1 ? "Examples:" : "Example:",
    ...command.examples.map((line) => `  ${line}`),
  ].join("\n");
}
